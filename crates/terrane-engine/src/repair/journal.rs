//! The journal of a damaged database: groups whose checksums hold, also behind damaged ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::record::Record;
use terrane_base::{Error, Kind, RecordKind, Result, SegmentId, SeqNo, TableId};
use terrane_device::Disk;
use terrane_format::segment::{Batches, GROUP_HEADER_BYTES, Groups, lost_salt};
use terrane_journal::{SegmentBytes, file_name, file_number, pending_name, segment_in_file};
use terrane_levels::State;
use terrane_levels::directory::JOURNAL;

use crate::repair::Repair;
use crate::repair::aside::AsideFile;

/// Where the front of a segment has its id.
const ID_AT: usize = 16;
/// Ids that are tried for a segment whose front is damaged.
const IDS_TRIED_MAX: usize = 64;

/// A segment to read.
pub(super) struct Source {
    pub(super) id: SegmentId,
    pub(super) path: PathBuf,
    /// Its end, if that is known.
    pub(super) end: Option<u64>,
    /// Least length of its file in bytes, if that is known.
    pub(super) bytes: u64,
    /// The last record up to that end.
    pub(super) last: Option<SeqNo>,
    /// Without an end: the last commit that an opening kept which set aside what came after it.
    pub(super) kept: Option<SeqNo>,
}

/// The file of a segment that the manifest lists. An opening with a replay filter may have died before the
/// file got its name.
fn listed_file(disk: &dyn Disk, dir: &Path, file: u32) -> Result<PathBuf> {
    let (named, pending) = (dir.join(file_name(file)), dir.join(pending_name(file)));
    let is_pending = !disk.exists(&named)? && disk.exists(&pending)?;
    Ok(if is_pending { pending } else { named })
}

/// Returns true if the file is there and does not say that it is another segment's.
fn is_of(disk: &dyn Disk, path: &Path, id: SegmentId) -> bool {
    match segment_in_file(disk, path) {
        Ok(header) => header.is_none_or(|header| header.id == id),
        Err(error) => error.kind() != Kind::NotFound,
    }
}

/// Returns true if the journal knows of edits that the manifest, which ends without its mark, does not have:
/// `state` is out of date then. Such a segment was removed, was added, or belongs to a later edit.
pub(super) fn proves_more_edits(
    disk: &Arc<dyn Disk>,
    source: &Path,
    state: &State,
    edit_number: u64,
) -> Result<bool> {
    let dir = source.join(JOURNAL);
    for segment in state.segments.values() {
        if !is_of(&**disk, &listed_file(&**disk, &dir, segment.spec.file)?, segment.spec.id) {
            return Ok(true);
        }
    }
    let names = match disk.list(&dir) {
        Err(error) if error.kind() == Kind::NotFound => return Ok(false),
        names => names?,
    };
    for name in names.iter().filter(|name| file_number(name).is_some()) {
        // What cannot be read proves nothing.
        let Ok(segment) = SegmentBytes::open(&**disk, &dir.join(name), u64::MAX) else { continue };
        let Ok((header, groups)) = Groups::new(segment.bytes()) else { continue };
        let edits = groups.map(|group| group.header.edits).max().unwrap_or(0);
        if header.id >= state.next.segment || header.edit.saturating_add(edits.into()) > edit_number {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The salt that most segments have; the least one of several.
fn most_common(salts: impl Iterator<Item = u32>) -> Option<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    salts.for_each(|salt| *counts.entry(salt).or_default() += 1);
    counts.into_iter().max_by_key(|(salt, count)| (*count, Reverse(*salt))).map(|(salt, _)| salt)
}

/// The salt that most segments have in their fronts.
///
/// # Errors
/// `Io` of the directory.
pub(super) fn most_common_salt(disk: &dyn Disk, source: &Path) -> Result<Option<u32>> {
    let dir = source.join(JOURNAL);
    let names = match disk.list(&dir) {
        Err(error) if error.kind() == Kind::NotFound => return Ok(None),
        names => names?,
    };
    let paths = names.iter().filter(|name| file_number(name).is_some()).map(|name| dir.join(name));
    // What cannot be read says nothing.
    let headers = paths.filter_map(|path| segment_in_file(disk, &path).ok().flatten());
    Ok(most_common(headers.filter_map(|header| header.salt)))
}

impl Repair<'_> {
    /// Copies every record that is not in the levels, in order.
    pub(super) fn copy_journal(&mut self, state: &State) -> Result<()> {
        self.write_batch()?;
        let mut sources = self.sources(state)?;
        let aside = self.aside(&mut sources)?;
        let mut openings = aside.iter().peekable();
        for at in 0..=sources.len() {
            while let Some(opening) = openings.next_if(|opening| opening.place == at) {
                self.copy_aside(opening, state)?;
            }
            if let Some(source) = sources.get(at) {
                self.copy_segment(source, state)?;
            }
        }
        debug_assert!(openings.next().is_none(), "what was set aside has a place between the segments");
        Ok(())
    }

    /// The segments that the manifest names, and those behind it that it lost.
    fn sources(&mut self, state: &State) -> Result<Vec<Source>> {
        let dir = self.source.join(JOURNAL);
        let mut sources = Vec::new();
        for segment in state.segments.values() {
            let path = listed_file(&**self.disk, &dir, segment.spec.file)?;
            let (id, bytes) = (segment.spec.id, segment.spec.bytes);
            if self.is_by_number && !is_of(&**self.disk, &path, id) {
                // The edit that removed it may be lost: the file is another segment's, or none any more.
                let what = format!("segment {id} is not in its file: what it had may be lost");
                self.report.doubt(Error::corrupt(what).at(path.display().to_string(), 0));
                continue;
            }
            sources.push(Source {
                id,
                path,
                end: segment.seal.map(|seal| seal.end_offset),
                bytes,
                last: segment.seal.map(|seal| seal.last_seq),
                kept: None,
            });
        }
        let next = if self.is_by_number { SegmentId(0) } else { state.next.segment };
        self.add_unlisted(&dir, next, &mut sources)?;
        sources.sort_by_key(|source| source.id);
        debug_assert!(sources.is_sorted_by_key(|source| source.id), "segments are copied in their order");
        if self.is_by_number {
            // The journal has all segments from its oldest one on. What comes before a gap is left in spare
            // files.
            let gap = sources.windows(2).rposition(|pair| self.is_gap(&pair[0], &pair[1]));
            sources.drain(..gap.map_or(0, |at| at + 1));
        }
        Ok(sources)
    }

    /// Returns true if a segment is missing between the two. An opening gives up segments that nothing was
    /// written to or that lie behind a break: their numbers do not come again, and the next segment follows
    /// the one before them.
    fn is_gap(&self, before: &Source, next: &Source) -> bool {
        debug_assert!(before.id < next.id, "segments are copied in their order");
        let follows = || {
            let header = segment_in_file(&**self.disk, &next.path).ok().flatten();
            header.is_some_and(|header| header.previous.id == before.id)
        };
        before.id.0 + 1 < next.id.0 && !follows()
    }

    /// Adds the segments from `next` on that no manifest lists, but those of other databases.
    fn add_unlisted(&mut self, dir: &Path, next: SegmentId, sources: &mut Vec<Source>) -> Result<()> {
        let listed: BTreeSet<SegmentId> = sources.iter().map(|source| source.id).collect();
        let (mut unlisted, mut headless) = (Vec::new(), Vec::new());
        for name in self.names(dir)?.into_iter().filter(|name| file_number(name).is_some()) {
            let path = dir.join(&name);
            match segment_in_file(&**self.disk, &path) {
                Ok(Some(header)) if header.id >= next && !listed.contains(&header.id) => {
                    unlisted.push((header, path));
                }
                Ok(None) if self.is_by_number => headless.push(path),
                Ok(_) => {}
                Err(error) => self.report.lose(None, error),
            }
        }
        // Where nothing else says what makes segments those of the database, most of them do.
        self.salt = self.salt.or_else(|| most_common(unlisted.iter().filter_map(|(header, _)| header.salt)));
        for (header, path) in unlisted {
            if header.salt.is_some() && header.salt != self.salt {
                let what = format!("segment {} is one of another database: it is left out", header.id);
                self.report.doubt(Error::corrupt(what).at(path.display().to_string(), 0));
                continue;
            }
            sources.push(Source { id: header.id, path, end: None, bytes: 0, last: None, kept: None });
        }
        headless.retain(|path| sources.iter().all(|source| source.path != *path));
        debug_assert!(
            headless.is_empty() || self.is_by_number,
            "a manifest that is whole lists its segments"
        );
        for path in headless {
            let known: BTreeSet<SegmentId> = sources.iter().map(|source| source.id).collect();
            sources.extend(self.headless(path, &known));
        }
        Ok(())
    }

    /// The segment in a file whose front is damaged and that no manifest lists: its groups hold for no other
    /// id. That is the one in the damaged front, or one that is missing between and beside the known ones.
    fn headless(&self, path: PathBuf, known: &BTreeSet<SegmentId>) -> Option<Source> {
        // What cannot be read has been reported, or has no group.
        let mapped = SegmentBytes::open(&**self.disk, &path, u64::MAX).ok()?;
        let bytes = mapped.bytes();
        let written = bytes.get(ID_AT..)?.first_chunk().map(|id| SegmentId(u64::from_le_bytes(*id)))?;
        let (first, last) = (known.first().map_or(1, |id| id.0), known.last().map_or(1, |id| id.0));
        let beside = first.saturating_sub(1).max(1)..=last.saturating_add(1);
        let missing = beside.map(SegmentId).take(IDS_TRIED_MAX);
        let salt = self.salt.and_then(|salt| lost_salt(bytes, salt));
        let mut ids = std::iter::once(written).chain(missing).filter(|id| !known.contains(id));
        let id = ids.find(|id| Groups::anywhere(bytes, *id, salt).is_some())?;
        debug_assert!(!known.contains(&id), "segment {id} would be copied twice");
        Some(Source { id, path, end: None, bytes: 0, last: None, kept: None })
    }

    /// The names in the directory of segments; none if it is lost.
    fn names(&mut self, dir: &Path) -> Result<Vec<String>> {
        match self.disk.list(dir) {
            Err(error) if error.kind() == Kind::NotFound => {
                let error = Error::corrupt("the directory of segments is missing");
                self.report.lose(None, error.at(dir.display().to_string(), 0));
                Ok(Vec::new())
            }
            listed => listed,
        }
    }

    fn copy_segment(&mut self, source: &Source, state: &State) -> Result<()> {
        let shown = source.path.display().to_string();
        let mapped = SegmentBytes::open(&**self.disk, &source.path, source.end.unwrap_or(u64::MAX));
        let mapped = match mapped {
            Ok(mapped) => mapped,
            Err(error) => {
                let of_pool = match error.kind() {
                    Kind::NotFound => ": if the journal is in persistent memory, name its pool (pmem_path)",
                    _ => "",
                };
                let what = format!("segment {} cannot be read{of_pool}", source.id);
                self.report.lose(None, error.context(what));
                return Ok(());
            }
        };
        let bytes = mapped.bytes();
        self.report_cut(source, bytes.len() as u64, &shown);
        let Some(mut groups) = self.open_segment(source, bytes, &shown) else { return Ok(()) };
        let kept = source.kept.unwrap_or(SeqNo::MAX);
        loop {
            for group in groups.by_ref().take_while(|group| group.header.first_seq <= kept) {
                for batch in Batches::new(bytes, &group) {
                    self.copy_batch((bytes, &shown), &batch, state, None)?;
                }
            }
            let (stopped, reason) = (groups.walk(), groups.stop_reason());
            if stopped.last_seq >= kept {
                return Ok(());
            }
            let first_lost = stopped.last_seq.0 + 1;
            let corrupt = |what: String| Error::corrupt(what).at(&shown, stopped.offset as u64);
            match (groups.skip_damage(), source.end) {
                (Some(next), _) => {
                    let what =
                        format!("records {first_lost} to {} are lost: {reason}", kept.0.min(next.0 - 1));
                    self.report.lose(None, corrupt(what));
                }
                (None, Some(end)) => {
                    if (stopped.offset as u64) < end {
                        let what = format!("records from {first_lost} in this segment are lost: {reason}");
                        self.report.lose(None, corrupt(what));
                    }
                    return Ok(());
                }
                (None, None) => {
                    // Bytes behind the last sound group: one that was being written, a damaged one, or what
                    // an earlier segment left in the file.
                    let mut rest = bytes[stopped.offset.min(bytes.len())..].iter().take(GROUP_HEADER_BYTES);
                    if rest.any(|byte| *byte != 0) {
                        let what = format!("records from {first_lost} in this segment may be lost: {reason}");
                        self.report.doubt(corrupt(what));
                    }
                    return Ok(());
                }
            }
        }
    }

    /// A file that is too short has lost the bytes behind its end, also if the bytes before it are sound.
    fn report_cut(&mut self, source: &Source, found: u64, shown: &str) {
        let expected = source.end.unwrap_or(source.bytes);
        if found < expected {
            let message = format!("segment {}: expected {expected} bytes, found {found}", source.id);
            self.report.lose(None, Error::corrupt(message).at(shown, found));
        }
    }

    /// The groups of a segment; `None` if there is nothing in it.
    fn open_segment<'b>(&mut self, source: &Source, bytes: &'b [u8], shown: &str) -> Option<Groups<'b>> {
        let error = match Groups::new(bytes) {
            Ok((header, groups)) if header.id == source.id => return Some(groups),
            Ok((header, _)) => Error::corrupt(format!("it is the front of segment {}", header.id)),
            Err(error) => error,
        };
        let salt = self.salt.and_then(|salt| lost_salt(bytes, salt));
        let groups = Groups::anywhere(bytes, source.id, salt);
        // A segment that was made ready and never used has neither front nor groups.
        if groups.is_some() || source.end.is_some() {
            let what = format!("the front of segment {} is damaged", source.id);
            self.report.lose(None, error.context(what).at(shown, 0));
        }
        groups
    }

    /// Copies a whole batch: all its records that are not in the levels, or of those that an opening set
    /// `aside` all that nothing newer is known of.
    pub(super) fn copy_batch(
        &mut self,
        (segment, shown): (&[u8], &str),
        batch: &terrane_format::segment::Batch,
        state: &State,
        mut aside: Option<&mut AsideFile<'_>>,
    ) -> Result<()> {
        debug_assert!(self.batch.is_empty(), "a batch of the journal is written as one, by itself");
        let mut records = Vec::new();
        let read = batch.records(segment, |_, seq, record| {
            let is_wanted = match &mut aside {
                Some(aside) => self.is_wanted_of_aside(state, (seq, record), aside),
                None => self.is_wanted(state, record, seq),
            };
            if is_wanted {
                records.push((seq, *record));
            }
            Ok(())
        });
        if let Err(error) = read {
            self.report.lose(None, error.at(shown, batch.offset as u64));
            return Ok(());
        }
        for (seq, mut record) in records {
            let old = record.table;
            record.table = self.table(old)?;
            if record.kind.is_delete() {
                // A single delete is a promise about the old database.
                record.kind = RecordKind::Delete;
            }
            self.push(record)?;
            self.report.records += 1;
            if record.kind == RecordKind::RangeDelete && self.is_by_number && aside.is_none() {
                self.write_batch()?;
                self.restore_newer(old, (record.key, record.value), seq)?;
                self.write_batch()?;
            }
        }
        self.write_batch()
    }

    /// Returns true if the table of a record goes into the new database.
    pub(super) fn is_of_a_table(&self, state: &State, table: TableId) -> bool {
        if table == TableId::NONE || self.unordered.contains(&table) || self.dropped.contains(&table) {
            return false;
        }
        match state.tables.get(&table) {
            Some(table) => !table.dropped,
            // Dropped and forgotten, if its number was given out before the manifest ends; else made after
            // that.
            None => self.is_by_number || table >= state.next.table,
        }
    }

    /// Returns true if a record is not in the levels and its table was not dropped.
    fn is_wanted(&self, state: &State, record: &Record<'_>, seq: SeqNo) -> bool {
        let table = record.table;
        let is_flushed = state.tables.get(&table).is_some_and(|table| seq <= state.flushed(table));
        let is_left = self.is_of_a_table(state, table) && !is_flushed;
        // An extent does not show which other keys a range delete covers.
        let is_of_range = self.is_by_number && record.kind == RecordKind::RangeDelete;
        is_left && (is_of_range || seq > self.reached.of(table, record.key, 0))
    }
}
