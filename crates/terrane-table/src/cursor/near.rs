//! Placement of a cursor near to where it is: the next version that is asked for lies one entry further, as a
//! rule, or a few blocks.

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::{Cursor, Result, SeqNo, ValuePosition};

use super::{ExtentCursor, loader};
use crate::cache::ObjectRef;
use crate::extent::Extent;
use crate::loader::Part;

/// Entries to step over in the block before its index is searched.
const STEPS_MAX: u32 = 4;

/// A placement near to the position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near<'k> {
    pub(crate) key: &'k [u8],
    pub(crate) seq: SeqNo,
    /// Where it was written, as a pointer says it; empty if that is not known.
    pub(crate) position: &'k [u8],
    /// The way in which the caller goes.
    pub(crate) backward: bool,
    /// The cursor came from the extent before this one, so that the first block in its direction is the next
    /// one.
    pub(crate) is_crossing: bool,
    /// Whether the version may be one of the next few entries.
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
        if !near.may_wait
            && self.index.is_none()
            && loader(&self.extent, &self.cache, self.options).cached_part(&Part::Index).is_none()
        {
            return Ok(false);
        }
        self.prepared = None;
        self.position.clear();
        let index = self.take_index()?;
        let written = ValuePosition::decode(near.position);
        let mut gone = self.search_near(&index, near, written, &held);
        if written.is_some() && matches!(gone, Ok(true)) && !self.is_at(near) {
            gone = self.search_near(&index, near, None, &held);
        }
        self.index = Some(index);
        if gone.is_err() {
            self.block = None;
        }
        gone
    }

    /// Whether the cursor is at the version that is asked for.
    fn is_at(&self, near: Near<'_>) -> bool {
        self.entry().is_some_and(|entry| entry.seq_kind.seq() == near.seq && entry.key == near.key)
    }

    /// Returns true if the scan has a window of read-ahead.
    #[inline]
    pub(crate) fn is_reading_ahead(&self) -> bool {
        self.ahead.has_window()
    }

    /// Steps to the version that is asked for, within the block; false if it is not one of the next few.
    fn step_near(&mut self, near: Near<'_>) -> bool {
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
        written: Option<ValuePosition>,
        held: &impl Fn(&Arc<Extent>, usize) -> Option<ObjectRef>,
    ) -> Result<bool> {
        let rows = &index.index().rows;
        let written = written.filter(|written| (written.block as usize) < rows.len());
        let mut at = match written {
            Some(written) => written.block as usize,
            None => {
                count(|cells| add(&cells.index_blocks_searched, 1));
                rows.find(near.key)
            }
        };
        while at < rows.len() {
            if self.block.is_none() || self.block_index != at {
                let is_next = match (&self.block, near.backward) {
                    (None, _) if !near.is_crossing => false,
                    (None, false) => at == 0,
                    (None, true) => at + 1 == rows.len(),
                    (Some(_), false) => at == self.block_index + 1,
                    (Some(_), true) => at + 1 == self.block_index,
                };
                let cached = loader(&self.extent, &self.cache, self.options).cached_block(index, at);
                let cached = cached.or_else(|| held(&self.extent, at));
                if cached.is_none() && !near.may_wait && !(is_next && self.ahead.is_near_scan(near.backward))
                {
                    return Ok(false);
                }
                if is_next {
                    self.ahead.step(near.backward)
                } else {
                    self.ahead.restart()
                }
                self.enter_block(index, at, cached)?;
            }
            let ExtentCursor { position, block: Some(block), .. } = self else { break };
            match written {
                Some(written) => position.seek_at(block.block(), written.entry, near.key, near.seq),
                None => position.seek(block.block(), near.key, near.seq),
            }
            // All versions of the key in this block are newer: the next one may hold more.
            if position.is_placed() || !index.index().continues(at, near.key) {
                break;
            }
            at += 1;
        }
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
