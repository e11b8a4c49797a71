//! Placement of a cursor near to where it is: the next version that is asked for lies one entry further, as a
//! rule, or a few blocks. Where a pointer says the position of a value, the cursor only enters the block, and
//! the value is taken from there without a position of the cursor.

use std::ops::Range;
use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::{Cursor, Result, SeqNo, ValuePosition};

use super::{ExtentCursor, loader};
use crate::cache::ObjectRef;
use crate::extent::Extent;
use crate::loader::Part;
use crate::read_ahead::ReadAhead;

/// Entries to step over in the block before its index is searched.
const STEPS_MAX: u32 = 4;

/// A placement near to the position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near<'k> {
    pub(crate) key: &'k [u8],
    pub(crate) seq: SeqNo,
    /// The way in which the caller goes.
    pub(crate) backward: bool,
    /// The cursor came from the extent before this one, so that the first block in its direction is the next
    /// one.
    pub(crate) is_crossing: bool,
    /// True if the version may be one of the next few entries.
    pub(crate) may_step: bool,
    /// False if the placement may not wait for a device, except for what a scan reads ahead.
    pub(crate) may_wait: bool,
}

impl ExtentCursor {
    /// Goes to the first entry at or after the key and number, by steps if it is near. Returns false, without
    /// a position, if it would have to wait and may not. Blocks that are not cached are asked of `held`
    /// first.
    #[inline]
    pub(crate) fn go_near(
        &mut self,
        near: Near<'_>,
        held: impl Fn(&Arc<Extent>, usize) -> Option<ObjectRef>,
    ) -> Result<bool> {
        debug_assert!(
            self.index.is_some() || self.block.is_none(),
            "a block is entered by an index, which is kept"
        );
        if near.may_step && self.is_placed() && self.step_near(near) {
            return Ok(true);
        }
        self.go_by_index(near, held)
    }

    #[inline(never)]
    fn go_by_index(
        &mut self,
        near: Near<'_>,
        held: impl Fn(&Arc<Extent>, usize) -> Option<ObjectRef>,
    ) -> Result<bool> {
        let gone = self.with_index(near, |cursor, index| {
            cursor.position.clear();
            cursor.search_near(index, near, &held)
        });
        debug_assert!(
            !matches!(gone, Ok(false)) || !self.is_placed(),
            "a reader that must wait would take the position before for the one it asked for"
        );
        gone
    }

    /// Calls `go` with the index block; returns false if it would have to be waited for and may not.
    fn with_index(
        &mut self,
        near: Near<'_>,
        go: impl FnOnce(&mut Self, &ObjectRef) -> Result<bool>,
    ) -> Result<bool> {
        if !near.may_wait
            && self.index.is_none()
            && loader(&self.extent, &self.cache, self.options).cached_part(&Part::Index).is_none()
        {
            return Ok(false);
        }
        self.prepared = None;
        let index = self.take_index()?;
        let gone = go(self, &index);
        debug_assert!(
            self.block.is_none() || self.block_index < index.index().slots.len(),
            "block {} is not one of the index",
            self.block_index
        );
        self.index = Some(index);
        if gone.is_err() {
            self.block = None;
        }
        gone
    }

    /// Where the value of the version `seq` of `key` lies in the block that the cursor is in, if it was
    /// written at this position and that is in this block. The cursor stays where it is in its block.
    #[inline]
    pub(crate) fn value_at(
        &mut self,
        written: ValuePosition,
        (key, seq): (&[u8], SeqNo),
        backward: bool,
    ) -> Option<Range<usize>> {
        let block = self.block.as_ref().filter(|_| self.block_index == written.block as usize)?.block();
        let (seq_kind, value) = block.locate_at(written.entry, key, seq)?;
        if !seq_kind.is_plain_put() {
            return None;
        }
        debug_assert!(
            value.end <= block.bytes().len(),
            "a located value lies in the block, whatever its bytes"
        );
        if !backward && value.end >= self.warm_at {
            self.warm_next();
        }
        Some(value)
    }

    /// The number of the block that the cursor is in.
    #[inline(always)]
    pub(crate) fn block_number(&self) -> Option<usize> {
        self.block.as_ref().map(|_| self.block_index)
    }

    /// Returns true if the cursor is in a block that has room for one value of this length, and for no other.
    pub(crate) fn is_in_block_of_one(&self, value_bytes: u32) -> bool {
        let bytes = self.block.as_ref().map(|block| block.block().bytes().len());
        bytes.is_some_and(|bytes| bytes < 2 * value_bytes as usize)
    }

    /// Gives back the block and the blocks read ahead; the cursor has no position then. It keeps the index
    /// block, which all scans share.
    pub(crate) fn leave_block(&mut self) {
        self.block = None;
        self.position.clear();
        self.ahead = ReadAhead::new(self.options.read_ahead_bytes);
        debug_assert!(self.entry().is_none(), "a cursor that left its block has a position");
    }

    /// Bytes of the block that the cursor is in.
    #[inline(always)]
    pub(crate) fn bytes(&self, range: Range<usize>) -> Option<&[u8]> {
        self.block.as_ref()?.block().bytes().get(range)
    }

    /// Enters block `at`, without a position in it, if the cursor is in another one and there is such a
    /// block. Returns false if it would have to wait and may not. As [`ExtentCursor::go_near`] otherwise.
    #[inline(never)]
    pub(crate) fn enter_near(
        &mut self,
        at: usize,
        near: Near<'_>,
        held: impl Fn(&Arc<Extent>, usize) -> Option<ObjectRef>,
    ) -> Result<bool> {
        debug_assert!(
            self.index.is_some() || self.block.is_none(),
            "a block is entered by an index, which is kept"
        );
        if self.block.is_some() && self.block_index == at {
            return Ok(true);
        }
        self.with_index(near, |cursor, index| match at < index.index().rows.len() {
            true => cursor.go_to_block(index, at, near, &held),
            false => Ok(true),
        })
    }

    /// Returns true if the scan has a window of read-ahead.
    #[inline]
    pub(crate) fn is_reading_ahead(&self) -> bool {
        self.ahead.has_window()
    }

    /// Steps to the version that is asked for, within the block; false if it is not one of the next few.
    fn step_near(&mut self, near: Near<'_>) -> bool {
        debug_assert!(
            self.position.is_placed(),
            "steps begin at an entry: without one they would search the whole block"
        );
        let ExtentCursor { position, block: Some(block), .. } = self else { return false };
        let block = block.block();
        for _ in 0..STEPS_MAX {
            if near.backward {
                position.prev(block)
            } else {
                position.next(block)
            }
            let Some(entry) = position.entry(block) else { return false };
            if entry.seq_kind.seq() == near.seq && entry.key == near.key {
                if !near.backward && position.end() >= self.warm_at {
                    self.warm_next();
                }
                return true;
            }
        }
        false
    }

    fn search_near(
        &mut self,
        index: &ObjectRef,
        near: Near<'_>,
        held: &impl Fn(&Arc<Extent>, usize) -> Option<ObjectRef>,
    ) -> Result<bool> {
        debug_assert!(
            !self.position.is_placed(),
            "a search that finds nothing would leave the position before"
        );
        let rows = &index.index().rows;
        count(|cells| add(&cells.index_blocks_searched, 1));
        let mut at = rows.find(near.key);
        while at < rows.len() {
            if !self.go_to_block(index, at, near, held)? {
                return Ok(false);
            }
            let ExtentCursor { position, block: Some(block), .. } = self else { break };
            position.seek(block.block(), near.key, near.seq);
            // All versions of the key in this block are newer: the next one may hold more.
            if position.is_placed() || !index.index().continues(at, near.key) {
                break;
            }
            at += 1;
        }
        Ok(true)
    }

    /// Makes block `at` the current one if it is not, without a position in it. Returns false if it would
    /// have to wait and may not.
    fn go_to_block(
        &mut self,
        index: &ObjectRef,
        at: usize,
        near: Near<'_>,
        held: &impl Fn(&Arc<Extent>, usize) -> Option<ObjectRef>,
    ) -> Result<bool> {
        debug_assert!(at < index.index().slots.len(), "the caller looked whether there is such a block");
        if self.block.is_some() && self.block_index == at {
            return Ok(true);
        }
        self.position.clear();
        let is_next = match (&self.block, near.backward) {
            (None, _) if !near.is_crossing => false,
            (None, false) => at == 0,
            (None, true) => at + 1 == index.index().rows.len(),
            (Some(_), false) => at == self.block_index + 1,
            (Some(_), true) => at + 1 == self.block_index,
        };
        let cached = loader(&self.extent, &self.cache, self.options).cached_block(index, at);
        let cached = cached.or_else(|| held(&self.extent, at));
        if cached.is_none() && !near.may_wait && !(is_next && self.ahead.is_near_scan(near.backward)) {
            return Ok(false);
        }
        if is_next {
            self.ahead.step(near.backward)
        } else {
            self.ahead.restart()
        }
        self.enter_block(index, at, cached)?;
        Ok(true)
    }

    /// Continues in another extent as [`ExtentCursor::change_extent`], with the state of the scan. The next
    /// placement is crossing.
    pub(crate) fn cross_to(&mut self, extent: Arc<Extent>) {
        self.change_extent(extent);
        self.position.clear();
        debug_assert!(self.entry().is_none(), "a cursor has no position in an extent that it comes to");
    }
}
