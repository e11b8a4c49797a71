//! External files, from their path to extents in the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrane_base::{Error, Kind, Result};
use terrane_format::dump;
use terrane_format::external::{BYTEWISE, COMPARATOR, KEY_ORDER, MERGE_OPERATOR};
use terrane_storage::{EXTENT_SLOTS_MAX, SLOT_BYTES};
use terrane_table::ExternalFile;

use crate::bulk::ingest::edit_room::EditRoom;
use crate::bulk::ingest::{Arrival, Incoming, Ingested};
use crate::observe::stats::add;
use crate::shared::Shared;
use crate::table::Table;
use crate::write::WritePath;

/// An external file and the table that it is for.
#[derive(Clone)]
pub struct IngestFile {
    /// The table.
    pub table: Arc<Table>,
    /// The file.
    pub path: PathBuf,
}

/// Options of an ingest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngestOptions {
    /// Copy the extents instead of giving the file another name: for files that a program may still write to.
    pub copy: bool,
    /// Remove the files once they are in; [`Ingested::files_left`] counts those that cannot be removed.
    pub remove: bool,
    /// Verify every checksum and the metas of the extents of all files, before anything comes in; true by
    /// default. The files are read for it, or, with `copy`, verified while they are copied. Without it the
    /// file is trusted, and a block is verified when it is read: for files that the program itself wrote.
    pub verify: bool,
    /// How long to wait for transactions and writes that have locks on keys within the files.
    pub lock_timeout: Duration,
}

impl Default for IngestOptions {
    fn default() -> Self {
        IngestOptions { copy: false, remove: false, verify: true, lock_timeout: Duration::from_secs(10) }
    }
}

impl WritePath {
    /// Ingests external files, all or none, as one commit: their entries are newer than every earlier commit.
    ///
    /// # Errors
    /// `Invalid` for a file that was written for another order of keys or another merge operator than its
    /// table has, for two files of a table that overlap, more extents than one commit can name (64 MiB of
    /// their first and last keys), or no file; `Corrupt`, naming file and offset; `TimedOut` if a transaction
    /// keeps locks within the files; `NotFound` for a table that was dropped; `Full`, `Poisoned`, `Io`.
    pub fn ingest(&self, files: &[IngestFile], options: IngestOptions) -> Result<Ingested> {
        self.refuse_if_read_only()?;
        if self.is_closing() {
            return Err(Error::new(Kind::Cancelled, "the database is closing"));
        }
        let opened = open_files(self, files, options)?;
        let mut arrivals = Vec::with_capacity(files.len());
        let mut ingested = Ingested::default();
        for (file, opened) in files.iter().zip(&opened) {
            match bring_in(self, file, opened, options, &mut ingested) {
                Ok(arrival) => arrivals.push(arrival),
                Err(error) => {
                    Incoming { engine: self, arrivals: &arrivals }.give_back();
                    return Err(error);
                }
            }
        }
        drop(opened);
        debug_assert!(arrivals.len() == files.len(), "every file has come in");
        ingested.seq =
            Incoming { engine: self, arrivals: &arrivals }.publish_or_give_back(options.lock_timeout)?;
        add(&self.counters.files_ingested, files.len() as u64);
        if options.remove {
            // The ingest is committed: an error would say that it is not.
            let left = files.iter().filter(|file| self.disk().remove(&file.path).is_err());
            ingested.files_left = left.count() as u64;
        }
        Ok(ingested)
    }
}

fn open_files(engine: &Shared, files: &[IngestFile], options: IngestOptions) -> Result<Vec<ExternalFile>> {
    if files.is_empty() {
        return Err(Error::invalid("no file to ingest: name one or more"));
    }
    let opened = files.iter().map(|file| {
        if file.table.is_dropped() {
            return Err(Error::new(Kind::NotFound, format!("table {:?} was dropped", file.table.name)));
        }
        file.table.refuse_if_stopped()?;
        let opened = ExternalFile::open_ordered(&**engine.disk(), &file.path, &engine.functions.orders)?;
        check_purpose(&opened, &file.table)?;
        check_slots(&opened)?;
        // A copy is verified then, and read once.
        if options.verify
            && !options.copy
            && let Some(error) = opened.verify().into_iter().next()
        {
            return Err(error);
        }
        Ok(opened)
    });
    let opened = opened.collect::<Result<Vec<_>>>()?;
    check_apart(files, &opened)?;
    let mut room = EditRoom::default();
    for (file, opened) in files.iter().zip(&opened) {
        for meta in opened.contents().all() {
            room.take(file.table.id, meta, "take in fewer files at once")?;
        }
    }
    Ok(opened)
}

/// Brings the extents of a file into the store.
fn bring_in(
    engine: &WritePath,
    file: &IngestFile,
    opened: &ExternalFile,
    options: IngestOptions,
    ingested: &mut Ingested,
) -> Result<Arrival> {
    let contents = opened.contents();
    let slots: Vec<_> = contents.all().map(|meta| (meta.id.slot, meta.slots)).collect();
    let linked = if options.copy { None } else { engine.store.adopt(&file.path, &slots)? };
    ingested.extents += slots.len() as u64;
    ingested.entries += contents.extents.iter().map(|meta| meta.entries).fold(0, u64::saturating_add);
    ingested.range_deletes += contents.range_deletes();
    let mut arrival = Arrival::new(&file.table);
    if let Some(number) = linked {
        ingested.files_linked += 1;
        arrival.extents.extend(contents.extents.iter().cloned());
        arrival.deletes.extend(contents.deletes.iter().cloned());
        arrival.all_mut().for_each(|meta| meta.id.file = number);
        return Ok(arrival);
    }
    let copied = [(&contents.extents, false), (&contents.deletes, true)].into_iter().try_for_each(
        |(found, are_deletes)| {
            found.iter().try_for_each(|meta| {
                let verifies = options.verify && options.copy;
                let copied = copy_extent(engine, opened, meta, verifies)?;
                ingested.bytes_copied += u64::from(copied.bytes);
                if are_deletes {
                    arrival.deletes.push(copied)
                } else {
                    arrival.extents.push(copied)
                }
                Ok(())
            })
        },
    );
    if let Err(error) = copied {
        Incoming { engine, arrivals: &[arrival] }.give_back();
        return Err(error);
    }
    debug_assert!(arrival.all().count() == slots.len(), "every extent of the file is there");
    Ok(arrival)
}

fn copy_extent(
    engine: &Shared,
    opened: &ExternalFile,
    meta: &terrane_format::extent::ExtentMeta,
    verifies: bool,
) -> Result<terrane_format::extent::ExtentMeta> {
    let bytes = if verifies { opened.read_verified(meta)? } else { opened.read(meta)? };
    debug_assert!(bytes.len() <= meta.slots as usize * SLOT_BYTES, "an extent has room in its slots");
    let mut copied = meta.clone();
    copied.id = engine.store.allocate(meta.slots)?;
    engine.store.write(copied.id, &bytes).inspect_err(|_| {
        // The write's error is the one to act on.
        let _ = engine.store.free(copied.id, copied.slots);
    })?;
    Ok(copied)
}

/// No extent reaches further than a file can, nor has more bytes than its slots.
fn check_slots(file: &ExternalFile) -> Result<()> {
    for meta in file.contents().all() {
        let end = u64::from(meta.id.slot) + u64::from(meta.slots);
        let room = u64::from(meta.slots) * SLOT_BYTES as u64;
        if end > u64::from(EXTENT_SLOTS_MAX) || u64::from(meta.bytes) > room {
            let message = format!(
                "{}: an extent of {} bytes in {} slots up to slot {end}, where a file has {EXTENT_SLOTS_MAX} slots",
                file.path().display(),
                meta.bytes,
                meta.slots
            );
            return Err(Error::corrupt(message));
        }
    }
    Ok(())
}

/// A file fits tables with its key order and with its merge operator, if it has operands.
fn check_purpose(file: &ExternalFile, table: &Table) -> Result<()> {
    let refuse = |name: &str, found: &str, wanted: &str| {
        Err(Error::invalid(format!(
            "{}: it was written for {name}={found}, and table {:?} has {wanted}: write it again for this table",
            file.path().display(),
            table.name
        )))
    };
    let contents = file.contents();
    let found = contents.option(COMPARATOR).or_else(|| contents.option(KEY_ORDER)).unwrap_or(BYTEWISE);
    let order = table.semantics.order().map_or(BYTEWISE, |order| order.name());
    let is_comparator = contents.option(COMPARATOR).is_some();
    if found != order || is_comparator == table.semantics.collation().is_bytes() {
        return refuse(KEY_ORDER, found, order);
    }
    let settings = table.settings();
    let wanted = settings.merge_operator.get();
    match file.contents().option(MERGE_OPERATOR) {
        Some(found) if wanted != Some(found) => refuse(MERGE_OPERATOR, found, wanted.unwrap_or("none")),
        _ => Ok(()),
    }
}

/// All entries of one commit have one number: no key may have two.
fn check_apart(files: &[IngestFile], opened: &[ExternalFile]) -> Result<()> {
    let mut spans: Vec<_> = files.iter().zip(opened).map(|(file, opened)| (file.table.id, opened)).collect();
    spans.sort_by_key(|(id, _)| *id);
    for spans in spans.chunk_by_mut(|(id, _), (other_id, _)| id == other_id) {
        spans[0].1.collation().clone().sort_by_key(spans, |(_, file)| file.bounds().0);
    }
    for pair in spans.windows(2) {
        let ((id, file), (other_id, other)) = (pair[0], pair[1]);
        if id == other_id && file.reaches(other.bounds().0) {
            return Err(Error::invalid(format!(
                "{} and {} overlap from key {} on: files of one table that come in together must not",
                shown(file.path()),
                shown(other.path()),
                dump::text(other.bounds().0)
            )));
        }
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
