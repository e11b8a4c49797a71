//! Cuts range deletes over much of the level below the target at borders of its extents.
//!
//! An extent with a single range delete over the whole table would lead to one job for all the remaining
//! work, and to an edit as long. Its pieces cover about equal amounts; concurrent jobs move them down.

use std::ops::RangeInclusive;

use terrane_base::{Result, key};
use terrane_storage::SLOT_BYTES;

use super::Output;
use crate::job::{JobSpec, Work};

/// A range delete is cut into about this many pieces.
const PIECES: u64 = 16;
/// Bytes of grandparents under a piece: fewer are not worth the slot that it takes, more would make an edit
/// too long.
const PIECE_BYTES: RangeInclusive<u64> = 32 * SLOT_BYTES as u64..=1 << 38;

/// Bytes of grandparents after which a job cuts a range delete.
pub(super) fn piece_bytes(spec: &JobSpec) -> u64 {
    let below: u64 = spec.grandparents.iter().map(|grandparent| grandparent.bytes).sum();
    let least = spec.grandparent_bytes_max.min(*PIECE_BYTES.start());
    (below / PIECES).clamp(least, *PIECE_BYTES.end())
}

impl Output<'_> {
    /// Returns true if a piece ends before the next range delete: what survives over gaps of the levels below
    /// has gaps, too.
    pub(super) fn ends_piece(&mut self) -> bool {
        let Some(next) = self.ranges.get(self.next_range) else { return false };
        while let Some(grandparent) = self.spec.grandparents.get(self.grandparent)
            && self.spec.collation().lt(&grandparent.largest, &next.start)
        {
            if !self.writer.is_empty() {
                self.met_bytes += grandparent.bytes;
            }
            self.grandparent += 1;
        }
        debug_assert!(
            self.is_sound(),
            "the counts of the output fit what it has, behind grandparent {}",
            self.grandparent
        );
        // A range delete that touches the next one would be cut before everything that it covers.
        let taken = self.next_range.checked_sub(1).map(|taken| &self.ranges[taken]);
        self.writer.range_delete_bytes() > 0
            && self.met_bytes >= self.piece_bytes
            && taken.is_some_and(|taken| {
                let collation = self.spec.collation();
                collation.lt(&taken.last_key(collation), &next.start)
            })
    }

    /// As [`Self::divide_range`], if the current extent has a range delete.
    pub(super) fn divide_taken(&mut self, key: Option<&[u8]>, work: &mut Work) -> Result<()> {
        if self.writer.range_delete_bytes() > 0 { self.divide_range(key, work) } else { Ok(()) }
    }

    /// Ends extents where the last range delete crosses borders of pieces before `key`.
    pub(super) fn divide_range(&mut self, key: Option<&[u8]>, work: &mut Work) -> Result<()> {
        debug_assert!(self.next_range > 0, "the current extent has a range delete");
        let spec = self.spec;
        while let Some(grandparent) = spec.grandparents.get(self.grandparent) {
            let (border, end) = (&*grandparent.largest, &*self.ranges[self.next_range - 1].end);
            let collation = spec.collation();
            let is_behind = |key: &[u8]| collation.le(key, border);
            if key.is_some_and(is_behind) || is_behind(&collation.last_before(end)) {
                break;
            }
            self.met_bytes += grandparent.bytes;
            self.grandparent += 1;
            if self.met_bytes >= self.piece_bytes && self.cut_behind(border) {
                self.close(None, work)?;
                if terrane_base::planted!(LoseRangePiece) {
                    self.next_range += 1;
                    break;
                }
                self.push_range()?;
            }
        }
        Ok(())
    }

    /// Cuts the last range delete after `border`, if it begins before it; the rest comes next.
    fn cut_behind(&mut self, border: &[u8]) -> bool {
        debug_assert!(self.next_range > 0, "a range delete is in the current extent");
        let taken = self.next_range - 1;
        let entry = if self.writer.has_entries() { self.writer.last_key() } else { &[] };
        let collation = self.spec.collation();
        let is_within = collation.lt(&self.ranges[taken].start, border) && collation.le(entry, border);
        if !is_within || border.len() > key::KEY_BYTES_MAX {
            return false;
        }
        let behind = self.writer.cut_range_delete(&collation.successor(border));
        let is_cut = behind.is_some();
        if let Some(behind) = behind {
            self.ranges[taken] = behind;
            self.next_range = taken;
        }
        is_cut
    }
}
