//! [`LevelCursor`]: walks the entries of a sorted list of disjoint extents in order, both ways.
//!
//! Only the current extent is open; the next one is opened when it is reached. A cursor with a scope
//! (`scope`) visits only the extents that the scope meets, and checks the filter of each before it opens it.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::{Cursor, Entry, Result, SeqNo};

use crate::cache::Cache;
use crate::cursor::{CursorOptions, ExtentCursor};
use crate::extent::Extent;
use crate::scope::{Admission, Scope};

/// Extents in key order. No two hold the same version of a key; versions of one key may go on from one extent
/// to the next.
pub trait ExtentList: Send + Sync + Debug {
    /// Number of extents.
    fn len(&self) -> usize;

    /// The extent at `index`. Requires: `index < len()`.
    fn extent(&self, index: usize) -> &Arc<Extent>;

    /// The first extent whose largest key is at or after `key`; `len()` if all end before it.
    fn find(&self, key: &[u8]) -> usize;

    /// Returns true if there is no extent.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ExtentList for Vec<Arc<Extent>> {
    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn extent(&self, index: usize) -> &Arc<Extent> {
        &self[index]
    }

    fn find(&self, key: &[u8]) -> usize {
        self.partition_point(|extent| extent.meta.collation.lt(&extent.meta.largest, key))
    }
}

/// See the [module](self). Keeps the list, and so its extents, alive.
#[derive(Debug)]
pub struct LevelCursor {
    list: Arc<dyn ExtentList>,
    cache: Arc<Cache>,
    options: CursorOptions,
    /// Index in the list of the open extent.
    extent_index: usize,
    cursor: Option<ExtentCursor>,
    /// True if the position of `cursor` is valid for this cursor.
    is_placed: bool,
    /// Index in the list of the extent in which the prepared seek begins.
    prepared: Option<usize>,
    /// The scope of the cursor, if it has one.
    within: Option<Box<Within>>,
}

/// A scope, and the extents of the list that it meets.
#[derive(Debug)]
struct Within {
    scope: Arc<Scope>,
    range: Range<usize>,
}

impl LevelCursor {
    /// A cursor without a position. Reads nothing yet.
    #[must_use]
    pub fn new(list: Arc<dyn ExtentList>, cache: Arc<Cache>, options: CursorOptions) -> Self {
        LevelCursor {
            list,
            cache,
            options,
            extent_index: 0,
            cursor: None,
            is_placed: false,
            prepared: None,
            within: None,
        }
    }

    /// Restricts the cursor to a scope: it opens no extent without a key of the scope.
    #[must_use]
    pub fn within(mut self, scope: Arc<Scope>) -> Self {
        let start = self.list.find(scope.prefix());
        let end = scope.end().map_or(self.list.len(), |end| self.list.find(end));
        let reaches = end < self.list.len() && scope.meets(self.list.extent(end));
        debug_assert!(start <= self.list.len() && end <= self.list.len(), "places in the list");
        self.within = Some(Box::new(Within { scope, range: start..(end + usize::from(reaches)).max(start) }));
        self
    }

    /// The first extent from `index` on, in a direction, that the cursor may open.
    #[inline]
    fn admitted(&self, index: usize, backward: bool) -> Result<Option<(usize, Admission)>> {
        match &self.within {
            None => Ok((index < self.list.len()).then_some((index, Admission::Unasked))),
            Some(within) => self.admitted_within(within, index, backward),
        }
    }

    fn admitted_within(
        &self,
        within: &Within,
        mut index: usize,
        backward: bool,
    ) -> Result<Option<(usize, Admission)>> {
        let Range { start, end } = within.range;
        debug_assert!(start <= end && end <= self.list.len(), "the scope is a part of the list");
        if start < end {
            index = if backward { index.min(end - 1) } else { index.max(start) };
        }
        while (start..end).contains(&index) {
            match within.scope.admits(self.list.extent(index), &self.cache)? {
                Admission::Denied => {}
                admission => return Ok(Some((index, admission))),
            }
            match index.checked_sub(1) {
                Some(before) if backward => index = before,
                None if backward => break,
                _ => index += 1,
            }
        }
        Ok(None)
    }

    /// Counts a false positive of the filter.
    fn count_admission(&self, admission: Admission) {
        let Some(within) = self.within.as_ref().filter(|_| admission == Admission::Asked) else { return };
        let is_false = self.entry().is_none_or(|entry| !within.scope.holds(entry.key));
        count(|cells| add(&cells.prefix_positives_false, u64::from(is_false)));
    }

    /// True if the open extent is the one at its place in the list, and a position lies in an open extent.
    fn is_sound(&self) -> bool {
        let is_there = |cursor: &ExtentCursor| {
            self.extent_index < self.list.len()
                && Arc::ptr_eq(cursor.extent(), self.list.extent(self.extent_index))
        };
        self.cursor.as_ref().map_or(!self.is_placed, is_there)
    }

    /// [`Cursor::seek_before`] within a scope; `index` is the extent that contains `key` or follows it.
    fn seek_before_within(&mut self, key: &[u8], index: usize) -> Result<()> {
        debug_assert!(
            index <= self.list.len(),
            "extent {index} is one of {}, or behind them",
            self.list.len()
        );
        let Some((admitted, admission)) = self.admitted(index, true)? else { return Ok(()) };
        let Some(cursor) = self.open(admitted) else { return Ok(()) };
        if admitted < index {
            let sought = cursor.seek_last();
            self.update_or_cross(sought, true)?;
        } else if starts_before(cursor.extent(), key) {
            let sought = cursor.seek_before(key);
            self.update_or_cross(sought, true)?;
        } else {
            self.cross(true)?;
        }
        self.count_admission(admission);
        Ok(())
    }

    /// Opens the extent at `index`, if there is one.
    fn open(&mut self, index: usize) -> Option<&mut ExtentCursor> {
        if index >= self.list.len() {
            return None;
        }
        let is_open = self.cursor.is_some() && self.extent_index == index;
        if !is_open {
            let extent = self.list.extent(index).clone();
            match &mut self.cursor {
                Some(cursor) => cursor.change_extent(extent),
                None => self.cursor = Some(ExtentCursor::new(extent, self.cache.clone(), self.options)),
            }
            self.extent_index = index;
        }
        debug_assert!(self.extent_index == index, "the open extent is the one that was asked for");
        self.cursor.as_mut()
    }

    /// Records whether the extent's cursor has a position after an operation.
    fn update_placed(&mut self, done: Result<()>) -> Result<()> {
        self.is_placed = done.is_ok() && self.cursor.as_ref().is_some_and(ExtentCursor::is_placed);
        debug_assert!(
            self.is_sound(),
            "a position lies in the open extent, number {} of the list",
            self.extent_index
        );
        done
    }

    /// Seeks by `seek` in the extents from the one that may hold `key` on, until one gives a position. If
    /// `seek` returns false because it would wait, so does this cursor.
    #[inline]
    fn seek_by(&mut self, key: &[u8], seek: impl Fn(&mut ExtentCursor) -> Result<bool>) -> Result<bool> {
        self.is_placed = false;
        let prepared = self.prepared.take();
        debug_assert!(prepared.is_none_or(|index| index == self.list.find(key)), "another key was prepared");
        let mut index = prepared.unwrap_or_else(|| self.list.find(key));
        while let Some((admitted, admission)) = self.admitted(index, false)? {
            index = admitted;
            let Some(cursor) = self.open(index) else { break };
            if !seek(cursor)? {
                return Ok(false);
            }
            self.update_placed(Ok(()))?;
            self.count_admission(admission);
            // No position means that all versions of `key` in this extent are newer and the next one may hold
            // more, or that the extent's range deletes reach further than its entries.
            if self.is_placed {
                break;
            }
            index += 1;
        }
        Ok(true)
    }

    /// Goes from the end of an extent to the next one, and past extents that hold range deletes only.
    fn cross(&mut self, backward: bool) -> Result<()> {
        debug_assert!(!self.is_placed, "a cursor leaves an extent at its end: extent {}", self.extent_index);
        while self.cross_once(backward)? && !self.is_placed {}
        Ok(())
    }

    /// Goes to the next extent; returns false behind the last one.
    fn cross_once(&mut self, backward: bool) -> Result<bool> {
        let next = if backward { self.extent_index.checked_sub(1) } else { Some(self.extent_index + 1) };
        let index = match next {
            Some(next) => self.admitted(next, backward)?.map(|(index, _)| index),
            None => None,
        };
        let is_next = |index| if backward { index < self.extent_index } else { index > self.extent_index };
        debug_assert!(index.is_none_or(is_next), "a walk would meet extents again");
        let beyond = index.and_then(|index| if backward { index.checked_sub(1) } else { Some(index + 1) });
        let following = beyond.filter(|&beyond| beyond < self.list.len());
        let following = following.map(|beyond| self.list.extent(beyond).clone());
        let Some(cursor) = index.and_then(|index| self.open(index)) else {
            self.is_placed = false;
            return Ok(false);
        };
        if cursor.reads_ahead() {
            cursor.follow(following);
        }
        let crossed = cursor.cross(backward);
        self.update_placed(crossed).map(|()| true)
    }

    /// Continues in the next extents if the operation gave no position.
    fn update_or_cross(&mut self, done: Result<()>, backward: bool) -> Result<()> {
        self.update_placed(done)?;
        if self.is_placed { Ok(()) } else { self.cross(backward) }
    }
}

/// Returns true if the smallest key of an extent comes before `key`.
fn starts_before(extent: &Extent, key: &[u8]) -> bool {
    extent.meta.collation.lt(&extent.meta.smallest, key)
}

impl Cursor for LevelCursor {
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        if self.is_placed { self.cursor.as_ref()?.entry() } else { None }
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.seek_by(key, |cursor| cursor.seek(key, seq).map(|()| true)).map(drop)
    }

    fn prepare_seek(&mut self, key: &[u8]) {
        if self.within.is_some() {
            // The filter of an extent is checked before anything of it is prefetched.
            return;
        }
        let index = self.list.find(key);
        debug_assert!(index <= self.list.len(), "a search ends in an extent or behind the last one");
        self.is_placed = false;
        self.prepared = Some(index);
        if let Some(cursor) = self.open(index) {
            cursor.prepare_seek(key);
        }
    }

    fn begin_seek(&mut self, key: &[u8], seq: SeqNo) -> Result<bool> {
        self.seek_by(key, |cursor| cursor.begin_seek(key, seq))
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.is_placed = false;
        self.prepared = None;
        let index = self.list.find(key);
        debug_assert!(index <= self.list.len(), "a search ends in an extent or behind the last one");
        if self.within.is_some() {
            return self.seek_before_within(key, index);
        }
        if let Some(cursor) = self.open(index) {
            let starts_before = starts_before(cursor.extent(), key);
            if starts_before {
                let sought = cursor.seek_before(key);
                return self.update_or_cross(sought, true);
            }
        }
        let Some(cursor) = index.checked_sub(1).and_then(|index| self.open(index)) else { return Ok(()) };
        let sought = cursor.seek_last();
        self.update_or_cross(sought, true)
    }

    fn seek_first(&mut self) -> Result<()> {
        debug_assert!(self.is_sound(), "the open extent is another than the list has at its place");
        self.is_placed = false;
        self.prepared = None;
        if let Some(within) = &self.within {
            let scope = within.scope.clone();
            return self.seek(scope.prefix(), SeqNo::MAX);
        }
        let Some(cursor) = self.open(0) else { return Ok(()) };
        let sought = cursor.seek_first();
        self.update_or_cross(sought, false)
    }

    fn seek_last(&mut self) -> Result<()> {
        debug_assert!(self.is_sound(), "the open extent is another than the list has at its place");
        self.is_placed = false;
        self.prepared = None;
        if let Some(within) = &self.within {
            let scope = within.scope.clone();
            return match scope.end() {
                Some(end) => self.seek_before(end),
                None => self.seek_before_within(&[], self.list.len()),
            };
        }
        let Some(cursor) = self.list.len().checked_sub(1).and_then(|last| self.open(last)) else {
            return Ok(());
        };
        let sought = cursor.seek_last();
        self.update_or_cross(sought, true)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        debug_assert!(self.is_sound(), "the open extent is another than the list has at its place");
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        let moved = cursor.next();
        // Within an extent the position stays valid.
        if moved.is_ok() && cursor.is_placed() {
            return Ok(());
        }
        self.update_placed(moved)?;
        self.cross(false)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        debug_assert!(self.is_sound(), "the open extent is another than the list has at its place");
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        let moved = cursor.prev();
        if moved.is_ok() && cursor.is_placed() {
            return Ok(());
        }
        self.update_placed(moved)?;
        self.cross(true)
    }
}
