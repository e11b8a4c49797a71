//! When to hint the store at what a scan will read next.
//!
//! Nothing is hinted for the first blocks after a placement: most placements read only one or two. From the third
//! block in one direction on, each block that is not in the cache extends a window in front of the scan, which
//! doubles from [`WINDOW_BYTES_MIN`] to [`WINDOW_BYTES_MAX`].

use std::ops::Range;

const WINDOW_BYTES_MIN: u32 = 64 << 10;
const WINDOW_BYTES_MAX: u32 = 512 << 10;
/// Blocks in one direction that make a scan.
const STREAK: u32 = 2;

#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    backward: bool,
    /// Steps from block to block in this direction.
    streak: u32,
    window: u32,
    /// How far was hinted: an end going forward, a start going backward. `None`: nothing yet.
    edge: Option<u32>,
}

impl ReadAhead {
    /// The scan was placed anew.
    pub(crate) fn restart(&mut self) {
        *self = ReadAhead::default();
    }

    /// The scan goes on in another extent, whose offsets start over.
    pub(crate) fn change_extent(&mut self) {
        self.edge = None;
    }

    /// The scan moved to the next block in a direction.
    pub(crate) fn step(&mut self, backward: bool) {
        if self.backward != backward {
            self.restart();
            self.backward = backward;
        }
        self.streak += 1;
    }

    /// The block at `block` must be read; blocks lie in `0..data_end`. Returns the range to hint at, if any.
    pub(crate) fn miss(&mut self, block: Range<u32>, data_end: u32) -> Option<Range<u32>> {
        if self.streak < STREAK {
            return None;
        }
        self.window = (self.window * 2).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
        // Hints go out when half of the last window is used up, not with every block.
        let half = self.window / 2;
        let range = if self.backward {
            let end = self.edge.map_or(block.start, |edge| edge.min(block.start));
            if block.start - end > half { return None } else { end.saturating_sub(self.window)..end }
        } else {
            let start = self.edge.map_or(block.end, |edge| edge.max(block.end));
            if start - block.end > half {
                return None;
            } else {
                start..start.saturating_add(self.window).min(data_end)
            }
        };
        self.edge = Some(if self.backward { range.start } else { range.end });
        if range.is_empty() { None } else { Some(range) }
    }
}
