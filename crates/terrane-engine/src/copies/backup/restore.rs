//! Restoring a backup: makes a new database in a directory that does not exist yet.
//!
//! The steps are those of a checkpoint: data files, then the journal with the checksums of the new id, then
//! the manifest, then one rename. Every object is checked before a byte of it is written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::{Error, Result, SeqNo};
use terrane_device::Disk;
use terrane_format::backup::{BackupManifest, HEADER_BYTES, ObjectKind, TRAILER_BYTES};
use terrane_format::extent::check;
use terrane_format::extent::origin_of;
use terrane_format::manifest::DatabaseId;
use terrane_journal::SegmentWriter;
use terrane_levels::directory::{DATA, JOURNAL, Others, write_origins};
use terrane_levels::{Manifest, State};
use terrane_storage::ExtentFiles;

use crate::copies::backup::Backups;
use crate::copies::backup::objects::extents_of;
use crate::copies::backup::progress::{ProgressReporter, Watcher};
use crate::copies::checkpoint::sealed;
use crate::copies::checkpoint::unfinished::Unfinished;

/// Options of a restore.
///
/// ```
/// # use terrane_engine::backup::RestoreOptions;
/// let slowly = RestoreOptions::default().bytes_per_second(50 << 20);
/// assert_eq!(slowly.bytes_per_second, 50 << 20);
/// let below_another_database = slowly.beside_others(true);
/// assert!(below_another_database.beside_others);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreOptions {
    /// Ceiling for reading, in bytes per second; 0, the default, means no ceiling.
    pub bytes_per_second: u64,
    /// Restore also to a place below the directory of another database, as programs of RocksDB may do, but
    /// for the names that this one uses; false, the default, refuses such places.
    pub beside_others: bool,
}

impl RestoreOptions {
    /// Sets [`RestoreOptions::beside_others`].
    #[must_use]
    pub fn beside_others(mut self, is_accepted: bool) -> Self {
        self.beside_others = is_accepted;
        self
    }

    /// Sets [`RestoreOptions::bytes_per_second`].
    #[must_use]
    pub fn bytes_per_second(mut self, bytes: u64) -> Self {
        self.bytes_per_second = bytes;
        self
    }
}

/// A database that was made of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// Its directory.
    pub path: PathBuf,
    /// It has exactly the commits up to this number.
    pub last_seq: SeqNo,
    /// Extents in it.
    pub extents: u64,
    /// Bytes of extents and journal.
    pub bytes: u64,
}

/// The bytes between header and trailer of an object that was checked.
pub(super) fn body(object: &[u8]) -> &[u8] {
    &object[HEADER_BYTES..object.len() - TRAILER_BYTES]
}

/// A database and those that it is a copy of, the oldest first; of the writers of its extents each with the
/// one before it.
fn line_of(last: DatabaseId, mut writers: BTreeMap<DatabaseId, DatabaseId>) -> Vec<DatabaseId> {
    let mut line = vec![last];
    while let Some(before) = writers.remove(&line[0]).filter(|before| before.0 != 0) {
        line.insert(0, before);
    }
    let others = writers.into_keys().filter(|writer| !line.contains(writer)).collect::<Vec<_>>();
    line.splice(0..0, others);
    debug_assert!(line.last() == Some(&last), "the database is the newest of its line");
    line
}

impl Backups {
    /// Makes a database of backup `id` in the directory `target` of `disk`, which must not exist: with an id
    /// of its own, durable on return. Every object is checked; a backup that is damaged is not restored.
    ///
    /// # Errors
    /// `NotFound` if there is no such backup; `Invalid` if something is at `target` or that is within a
    /// database; `Busy` if another restore to it is under way; `Corrupt`, naming the object; `Cancelled` by
    /// `watcher`; `Full`, `Io`. Nothing is at `target` then, unless only the last sync failed.
    pub fn restore_on(
        &self,
        disk: &Arc<dyn Disk>,
        id: u64,
        target: &Path,
        options: &RestoreOptions,
        watcher: &mut Watcher<'_>,
    ) -> Result<Restored> {
        let (manifest, state) = self.load_state(id)?;
        let mut watch = |progress: &crate::copies::backup::BackupProgress| watcher(progress);
        let reporter = ProgressReporter::new(&self.env, options.bytes_per_second, &mut watch);
        let unfinished = Unfinished::begin(disk, target, Others::beside(options.beside_others))?;
        match self.fill(disk, unfinished.dir(), &manifest, &state, reporter) {
            Ok(bytes) => unfinished.finish().map(|()| Restored {
                path: target.to_owned(),
                last_seq: manifest.last_seq,
                extents: manifest.extents,
                bytes,
            }),
            Err(error) => {
                unfinished.abandon();
                Err(error.context(format!("backup {id} was not restored")))
            }
        }
    }

    fn fill(
        &self,
        disk: &Arc<dyn Disk>,
        dir: &Path,
        manifest: &BackupManifest,
        state: &State,
        mut reporter: ProgressReporter<'_>,
    ) -> Result<u64> {
        let (data, journal) = (dir.join(DATA), dir.join(JOURNAL));
        disk.create_dir(&data)?;
        disk.create_dir(&journal)?;
        let extents = extents_of(state);
        let bytes = extents.values().map(|meta| u64::from(meta.bytes)).sum::<u64>()
            + manifest.segments.iter().map(|segment| segment.bytes).sum::<u64>();
        reporter.begin((extents.len() + manifest.segments.len()) as u64, bytes)?;
        let mut files = ExtentFiles::new(disk.clone(), &data);
        let mut writers = BTreeMap::new();
        for (name, meta) in &extents {
            reporter.spend(meta.bytes.into())?;
            let object = self.read(ObjectKind::Extent, *name, meta.bytes.into())?;
            let found = check::inspect_ordered(body(&object), meta.id, meta.slots, &meta.collation);
            match found.map(|found| check::is_as_said(found, meta)) {
                Ok(true) => {}
                _ if terrane_base::planted!(BelieveBackupObject) => {}
                Ok(false) => return Err(Error::corrupt(format!("object {name:032x} is another extent"))),
                Err(error) => return Err(error.context(format!("object {name:032x}"))),
            }
            writers.extend(origin_of(body(&object)).map(|origin| (origin.database, origin.before)));
            files.put(meta.id, meta.slots, body(&object))?;
            reporter.done(meta.bytes.into())?;
        }
        files.finish()?;
        let id = Manifest::draw_id(&self.env);
        let id = if terrane_base::planted!(RestoreKeepsId) { state.database } else { id };
        let mut writer = SegmentWriter::new(&**disk, &journal, id.segment_salt());
        let mut segments = Vec::new();
        for segment in &manifest.segments {
            reporter.spend(segment.bytes)?;
            let object = self.read(ObjectKind::Segment, segment.name, segment.bytes)?;
            segments.push(sealed(&writer.put(segment.id, body(&object))?));
            reporter.done(segment.bytes)?;
        }
        writer.finish(manifest.last_seq)?;
        debug_assert_eq!(reporter.progress().bytes_done, bytes, "the database has all of the backup");
        write_origins(&**disk, dir, &line_of(state.database, writers))?;
        let state = state.detached(id, &segments, manifest.last_seq);
        Manifest::write_copy(disk.clone(), dir, &state)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_copies_begins_with_the_oldest() {
        let line = |last: u128, writers: &[(u128, u128)]| {
            let writers = writers.iter().map(|(id, before)| (DatabaseId(*id), DatabaseId(*before)));
            let line = line_of(DatabaseId(last), writers.collect());
            line.iter().map(|id| id.0).collect::<Vec<_>>()
        };
        assert_eq!(line(5, &[]), [5]);
        assert_eq!(line(5, &[(5, 9), (9, 2), (2, 0)]), [2, 9, 5]);
        assert_eq!(line(5, &[(3, 0)]), [3, 5], "it has written no extent of its own yet");
        assert_eq!(line(5, &[(5, 9), (9, 5)]), [5, 9, 5], "made-up ids end all the same");
    }
}
