//! The journal of a damaged database: groups whose checksums hold, also behind damaged ones.

use std::path::{Path, PathBuf};

use terrane_base::{Error, Kind, RecordKind, Result, SegmentId, SeqNo, TableId};
use terrane_format::segment::{Batches, GROUP_HEADER_BYTES, Groups, lost_salt};
use terrane_journal::{SegmentBytes, file_name, file_number, pending_name, segment_in_file};
use terrane_levels::State;
use terrane_levels::directory::JOURNAL;

use crate::copies::repair::Repair;

/// A segment to read.
struct Source {
    id: SegmentId,
    path: PathBuf,
    /// Its end, if that is known.
    end: Option<u64>,
    /// Least length of its file in bytes, if that is known.
    bytes: u64,
}

impl Repair<'_> {
    /// Copies every record that is not in the levels, in order.
    pub(super) fn copy_journal(&mut self, state: Option<&State>) -> Result<()> {
        self.write_batch()?;
        for source in self.sources(state)? {
            self.copy_segment(&source, state)?;
        }
        Ok(())
    }

    /// The segments that the manifest names, and those behind it that it lost.
    fn sources(&mut self, state: Option<&State>) -> Result<Vec<Source>> {
        let dir = self.source.join(JOURNAL);
        let mut sources = Vec::new();
        for segment in state.iter().flat_map(|state| state.segments.values()) {
            let path = self.listed_file(&dir, segment.spec.file)?;
            let (id, bytes) = (segment.spec.id, segment.spec.bytes);
            sources.push(Source { id, path, end: segment.seal.map(|seal| seal.end_offset), bytes });
        }
        let next = state.map_or(SegmentId(0), |state| state.next.segment);
        self.salt = state.map(|state| state.database.segment_salt());
        for name in self.names(&dir)?.into_iter().filter(|name| file_number(name).is_some()) {
            let path = dir.join(&name);
            match segment_in_file(&**self.disk, &path) {
                Ok(Some(header)) if header.id >= next => {
                    // Without a manifest any whole header says what makes the groups of the database its own.
                    self.salt = self.salt.or(header.salt);
                    sources.push(Source { id: header.id, path, end: None, bytes: 0 });
                }
                Ok(_) => {}
                Err(error) => self.report.lose(None, error),
            }
        }
        sources.sort_by_key(|source| source.id);
        Ok(sources)
    }

    /// The file of a segment that the manifest lists. An opening with a replay filter may have died before
    /// the file got its name.
    fn listed_file(&self, dir: &Path, file: u32) -> Result<PathBuf> {
        let (named, pending) = (dir.join(file_name(file)), dir.join(pending_name(file)));
        let is_pending = !self.disk.exists(&named)? && self.disk.exists(&pending)?;
        Ok(if is_pending { pending } else { named })
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

    fn copy_segment(&mut self, source: &Source, state: Option<&State>) -> Result<()> {
        let shown = source.path.display().to_string();
        let mapped = SegmentBytes::open(&**self.disk, &source.path, source.end.unwrap_or(u64::MAX));
        let mapped = match mapped {
            Ok(mapped) => mapped,
            Err(error) => {
                self.report.lose(None, error.context(format!("segment {} cannot be read", source.id)));
                return Ok(());
            }
        };
        let bytes = mapped.bytes();
        self.report_cut(source, bytes.len() as u64, &shown);
        let Some(mut groups) = self.open_segment(source, bytes, &shown) else { return Ok(()) };
        loop {
            for group in groups.by_ref() {
                for batch in Batches::new(bytes, &group) {
                    self.copy_batch(bytes, &batch, state, &shown)?;
                }
            }
            let (stopped, reason) = (groups.walk(), groups.stop_reason());
            let first_lost = stopped.last_seq.0 + 1;
            let corrupt = |what: String| Error::corrupt(what).at(&shown, stopped.offset as u64);
            match (groups.skip_damage(), source.end) {
                (Some(next), _) => {
                    let what = format!("records {first_lost} to {} are lost: {reason}", next.0 - 1);
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

    /// Copies a whole batch: all its records that are not in the levels.
    fn copy_batch(
        &mut self,
        segment: &[u8],
        batch: &terrane_format::segment::Batch,
        state: Option<&State>,
        shown: &str,
    ) -> Result<()> {
        let mut records = Vec::new();
        let read = batch.records(segment, |_, seq, record| {
            let is_left_out = self.unordered.contains(&record.table);
            if !is_left_out
                && is_wanted(state, record.table, seq)
                && seq > self.reached.of(record.table, record.key, 0)
            {
                records.push(*record);
            }
            Ok(())
        });
        if let Err(error) = read {
            self.report.lose(None, error.at(shown, batch.offset as u64));
            return Ok(());
        }
        for mut record in records {
            record.table = self.table(record.table)?;
            if record.kind.is_delete() {
                // A single delete is a promise about the old database.
                record.kind = RecordKind::Delete;
            }
            self.push(record)?;
            self.report.records += 1;
        }
        self.write_batch()
    }
}

/// Whether a record is not in the levels and its table was not dropped.
fn is_wanted(state: Option<&State>, table: TableId, seq: SeqNo) -> bool {
    if table == TableId::NONE {
        return false;
    }
    match state.and_then(|state| state.tables.get(&table)) {
        Some(table) => !table.dropped && seq > table.flushed,
        // Dropped and forgotten, if its number was given out before the manifest ends; else made after that.
        None => state.is_none_or(|state| table >= state.next.table),
    }
}
