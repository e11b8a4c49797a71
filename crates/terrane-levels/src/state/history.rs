//! The history: kept segments in the order of their numbers, with consecutive records, so that the history is
//! one range of commits that ends where the live segments begin. It is removed from its oldest end.

use std::sync::Arc;

use terrane_base::{Error, Result, SegmentId, SeqNo};
use terrane_format::manifest::Kept;
use terrane_format::segment::SEGMENT_HEADER_BYTES;

use super::apply::no_segment;
use super::numbers::check_seq;
use super::{KeptSegment, State};

/// Most void marks that are kept, the newest ones: each is a failed ingest, and memory must be bounded.
const VOID_MARKS_MAX: usize = 1 << 16;

impl State {
    pub(super) fn keep_segment(&mut self, id: SegmentId, kept: Kept) -> Result<()> {
        check_seq(kept.last_seq)?;
        let live = self.segments.get(&id).ok_or_else(|| no_segment(id))?;
        let spec = live.spec;
        let is_within = (SEGMENT_HEADER_BYTES as u64..=spec.bytes).contains(&kept.end_offset);
        if !is_within || kept.first_seq > kept.last_seq || kept.first_seq.0 == 0 {
            let message = format!("segment {id} of {} bytes cannot be kept as {kept:?}", spec.bytes);
            return Err(Error::invalid(message));
        }
        if let Some((newest, before)) = self.history.last_key_value()
            && (*newest >= id || before.kept.last_seq.0 + 1 != kept.first_seq.0)
        {
            let end = before.kept.last_seq;
            return Err(Error::invalid(format!(
                "segment {id} from {} on does not follow history, which ends with {end} in segment {newest}",
                kept.first_seq
            )));
        }
        let live = self.segments.remove(&id);
        debug_assert!(live.is_some(), "a segment is live or kept");
        Arc::make_mut(&mut self.history).insert(id, KeptSegment { spec, kept });
        Ok(())
    }

    pub(super) fn forget_segment(&mut self, id: SegmentId) -> Result<()> {
        let last_seq = match self.history.first_key_value() {
            Some((oldest, segment)) if *oldest == id => {
                let had = self.segment_files.remove(&segment.spec.file);
                debug_assert!(had, "the file of a kept segment is in use: {id}");
                segment.kept.last_seq
            }
            _ => return Err(Error::invalid(format!("segment {id} is not the oldest of history"))),
        };
        Arc::make_mut(&mut self.history).pop_first();
        self.forget_marks(last_seq);
        Ok(())
    }

    pub(super) fn remove_segment(&mut self, id: SegmentId) -> Result<()> {
        let removed = self.segments.remove(&id).ok_or_else(|| no_segment(id))?;
        let had = self.segment_files.remove(&removed.spec.file);
        debug_assert!(had, "the file of a live segment is in use: {id}");
        // Older segments are gone, too: without history, readers of changes begin with the oldest live
        // segment. A segment whose end is unknown leaves its marks to the next ones.
        let is_oldest = self.segments.first_key_value().is_none_or(|(oldest, _)| id < *oldest);
        if let Some(seal) = removed.seal.filter(|_| self.history.is_empty() && is_oldest) {
            self.forget_marks(seal.last_seq);
        }
        Ok(())
    }

    /// Removes marks up to this number: no segment contains them any more, and a reader with such a file
    /// still open gets an error.
    fn forget_marks(&mut self, last_seq: SeqNo) {
        if self.void_marks.first().is_some_and(|seq| *seq <= last_seq) {
            Arc::make_mut(&mut self.void_marks).retain(|seq| *seq > last_seq);
        }
        debug_assert!(
            self.void_marks.first().is_none_or(|seq| *seq > last_seq),
            "marks of segments that are there"
        );
    }

    pub(super) fn void_mark(&mut self, seq: SeqNo) -> Result<()> {
        check_seq(seq)?;
        let marks = Arc::make_mut(&mut self.void_marks);
        marks.insert(seq);
        if marks.len() > VOID_MARKS_MAX {
            marks.pop_first();
        }
        debug_assert!(marks.len() <= VOID_MARKS_MAX, "one mark comes at a time");
        Ok(())
    }
}
