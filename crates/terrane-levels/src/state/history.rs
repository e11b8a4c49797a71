//! Segments that are history: in the order of their numbers, their records without a gap between them, so that what is
//! kept is one stretch of commits that ends where the live segments begin. Given up from its oldest end.

use std::sync::Arc;

use terrane_base::{Error, Result, SegmentId};
use terrane_format::manifest::Kept;
use terrane_format::segment::SEGMENT_HEADER_BYTES;

use super::apply::{check_seq, no_segment};
use super::{KeptSegment, State};

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
        self.segments.remove(&id);
        Arc::make_mut(&mut self.history).insert(id, KeptSegment { spec, kept });
        Ok(())
    }

    pub(super) fn forget_segment(&mut self, id: SegmentId) -> Result<()> {
        match self.history.first_key_value() {
            Some((oldest, segment)) if *oldest == id => self.segment_files.remove(&segment.spec.file),
            _ => return Err(Error::invalid(format!("segment {id} is not the oldest of history"))),
        };
        Arc::make_mut(&mut self.history).pop_first();
        Ok(())
    }
}
