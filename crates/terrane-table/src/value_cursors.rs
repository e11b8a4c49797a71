//! [`ValueCursors`]: the positions of one scan in the value tables that its rows point into.
//!
//! A pointer says block and entry of its value. The values of one sorted group lie in key order, so a scan
//! that comes to the next value of a group finds it in the block of the last one, as a rule: then nothing
//! moves, and what costs time is the check that key and number are those of the pointer's entry. One cursor
//! for each value table holds the block; it reads ahead in windows as the cursor of a level does, and goes on
//! in the next value table of its group with the state of its scan. Where a pointer has no position, or the
//! entry there is another one, the cursor steps or searches.
//!
//! Where a scan would have to wait for the first blocks of many value tables one after the other, its user
//! tells the coming values first ([`ValueCursors::want`]), and [`ValueCursors::gather`] reads what they lack
//! in one batch: index blocks, then data blocks, in the order of extents and places.
//!
//! Invariants:
//! 1. No epoch is held across a read of the store, nor between calls.
//! 2. At most [`OPEN_MAX`] value tables are open, and at most one of them holds a block of one long value:
//!    the next value of its table lies in another block, so the cursor that the scan leaves gives back its
//!    block and what it has read ahead. Otherwise each scan would keep as many long values in memory as there
//!    are sorted groups. Blocks that were gathered are at most `BATCH_READS` and within a share of the
//!    windows of all scans of the cache.
//! 3. A part that cannot be gathered is left out: the placement that needs it reports the error.

mod gather;

use std::ops::Range;
use std::sync::Arc;

use terrane_base::{Cursor, Entry, Result, SeqNo, ValuePointer, ValueTableId};

use crate::cache::Cache;
use crate::cache::windows::WindowShare;
use crate::cursor::{CursorOptions, ExtentCursor, Near};
use crate::extent::Extent;
use crate::loader::Loader;
use gather::{Gathered, Wants, held, used_up};

/// Most value tables that a scan has open: more groups than overlap where merges do their work.
const OPEN_MAX: usize = 32;

/// Slots of the guesses, by the number of a value table modulo this. A job gives its value tables numbers one
/// after the other, so the value tables of a scan rarely share a slot.
const GUESSES: usize = 64;

/// An open value table.
#[derive(Debug)]
struct Open {
    cursor: ExtentCursor,
    /// It came from the value table before it in its group, and has not been placed since.
    is_crossing: bool,
    /// True if its cursor has the value table in which its group goes on.
    is_following: bool,
    /// Where the value of the last placement lies in the block, if it was taken at its position. Otherwise
    /// the cursor is at it.
    value: Option<Range<usize>>,
}

/// Which value table is open, and when it was used last, by the count of placements.
#[derive(Clone, Copy, Debug)]
struct Use {
    table: ValueTableId,
    last: u64,
}

/// How a placement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// At a value of the key, number and length that were asked for.
    Exact,
    /// At the first entry at or after the key and number, if there is one.
    Near,
    /// It would have to wait for a device, and may not.
    Waits,
    /// There is no such value table.
    Nowhere,
}

/// Where to go in a value table.
#[derive(Clone, Copy, Debug)]
pub struct ValuePlace<'k> {
    /// The key of the entry that points there.
    pub key: &'k [u8],
    /// Its sequence number.
    pub seq: SeqNo,
    /// The pointer: the value table, and where the value was written there.
    pub pointer: ValuePointer,
    /// The way in which the scan goes.
    pub backward: bool,
    /// False if the placement may not wait for a device, except for what it reads ahead.
    pub may_wait: bool,
}

/// Positions of one scan in the value tables that its rows point into: see the head of the file.
#[derive(Debug)]
pub struct ValueCursors {
    cache: Arc<Cache>,
    options: CursorOptions,
    open: Vec<Open>,
    /// For each open value table; apart from them, because it is searched with each value.
    uses: Vec<Use>,
    /// For each remainder of numbers of value tables by [`GUESSES`], where the one that was placed last is
    /// open, if it still is.
    guesses: [u8; GUESSES],
    /// Those used later were used since the scan was placed.
    since: u64,
    /// The open value table that was placed last.
    current: usize,
    /// The open value table that holds a block of one long value.
    long: Option<usize>,
    placements: u64,
    wants: Wants,
    gathered: Vec<Gathered>,
    share: WindowShare,
}

impl ValueCursors {
    /// Cursors of a scan; none is open.
    #[must_use]
    pub fn new(cache: Arc<Cache>, options: CursorOptions) -> Self {
        ValueCursors {
            cache,
            options,
            open: Vec::new(),
            uses: Vec::new(),
            guesses: [0; GUESSES],
            since: 0,
            current: 0,
            long: None,
            placements: 0,
            wants: Wants::default(),
            gathered: Vec::new(),
            share: WindowShare::default(),
        }
    }

    /// The scan was placed again: no cursor moves on to the next value table until the scan has read from it.
    pub fn restart(&mut self) {
        self.since = self.placements;
    }

    /// Returns true if the block at the position of a pointer is the one in which the last value of its value
    /// table was.
    #[inline(always)]
    #[must_use]
    pub fn is_in_block(&self, pointer: &ValuePointer) -> bool {
        debug_assert!(self.open.len() == self.uses.len(), "each open value table has its use");
        let at = usize::from(self.guesses[pointer.table.0 as usize % GUESSES]);
        let is_open = self.uses.get(at).is_some_and(|used| used.table == pointer.table);
        let block = self.open.get(at).filter(|_| is_open).and_then(|open| open.cursor.block_number());
        block.is_some() && block == pointer.position.map(|written| written.block as usize)
    }

    /// Goes to the value of a pointer to an entry of this key and number, for a scan that goes forward;
    /// `None`, without a change, if it is not at its position. Part of the caller, which runs it for each
    /// row. Requires: [`ValueCursors::is_in_block`].
    #[inline(always)]
    pub fn value_in_block(&mut self, pointer: &ValuePointer, key: &[u8], seq: SeqNo) -> Option<&[u8]> {
        let at = usize::from(self.guesses[pointer.table.0 as usize % GUESSES]);
        let (open, used) = (self.open.get_mut(at)?, self.uses.get_mut(at)?);
        debug_assert!(used.table == pointer.table, "the block is one of another value table");
        let value = open.cursor.value_at(pointer.position?, (key, seq), false)?;
        if value.len() != pointer.len as usize {
            return None;
        }
        self.current = at;
        self.placements += 1;
        used.last = self.placements;
        open.value = Some(value.clone());
        open.cursor.bytes(value)
    }

    /// Goes to the value of a pointer, or to the first entry at or after its key and number in the value
    /// table; `find` finds an extent by the number of a value table: that of the pointer, and that in which
    /// its group goes on.
    ///
    /// # Errors
    /// `Corrupt`, naming file and offset; `Io`.
    #[inline(never)]
    pub fn place<'e>(
        &mut self,
        place: ValuePlace<'_>,
        find: impl Fn(ValueTableId) -> Option<&'e Arc<Extent>>,
    ) -> Result<Placed> {
        let ValuePlace { key, seq, pointer, backward, may_wait } = place;
        self.placements += 1;
        self.current = match self.uses.iter().position(|used| used.table == pointer.table) {
            Some(at) => at,
            None => match find(pointer.table) {
                Some(extent) => self.open_another(pointer.table, extent, backward),
                None => return Ok(Placed::Nowhere),
            },
        };
        debug_assert!(self.current < OPEN_MAX, "a guess has room for every place");
        self.guesses[pointer.table.0 as usize % GUESSES] = self.current as u8;
        self.leave_long();
        let ValueCursors { open, uses, since, current, long, gathered, placements, .. } = self;
        let open = &mut open[*current];
        // The value that comes first after a placement of the scan is anywhere: entries after the last one
        // would be read for nothing.
        let may_step = std::mem::replace(&mut uses[*current].last, *placements) > *since;
        let near = Near { key, seq, backward, is_crossing: open.is_crossing, may_step, may_wait };
        let held = |extent: &Arc<Extent>, at| held(gathered, extent, at);
        open.value = None;
        if let Some(written) = pointer.position {
            if !open.cursor.enter_near(written.block as usize, near, held)? {
                return Ok(Placed::Waits);
            }
            let value = open.cursor.value_at(written, (key, seq), backward);
            open.value = value.filter(|value| value.len() == pointer.len as usize);
        }
        if open.value.is_none() && !open.cursor.go_near(near, held)? {
            return Ok(Placed::Waits);
        }
        open.is_crossing = false;
        if !open.is_following && open.cursor.is_reading_ahead() {
            open.is_following = true;
            open.cursor.follow(following(open.cursor.extent(), pointer.table, backward, find));
        }
        assert!(open.value.is_none() || open.cursor.block_number().is_some(), "a value lies in a block");
        if open.cursor.is_in_block_of_one(pointer.len) {
            *long = Some(*current);
            used_up(gathered, &open.cursor);
        }
        Ok(if open.value.is_some() { Placed::Exact } else { Placed::Near })
    }

    /// The value at the last placement, if there is one.
    #[inline]
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        let open = self.open.get(self.current)?;
        match &open.value {
            Some(value) => open.cursor.bytes(value.clone()),
            None => Some(open.cursor.entry()?.value),
        }
    }

    /// The entry at the last placement, if that was [`Placed::Near`] and there is one.
    #[must_use]
    pub fn entry(&self) -> Option<Entry<'_>> {
        self.open.get(self.current).filter(|open| open.value.is_none())?.cursor.entry()
    }

    /// The value table of the last placement.
    #[inline]
    #[must_use]
    pub fn table(&self) -> Option<ValueTableId> {
        self.uses.get(self.current).map(|used| used.table)
    }

    /// Gives back the block of one long value, if another value table than the current one holds it.
    fn leave_long(&mut self) {
        if let Some(at) = self.long.take_if(|at| *at != self.current) {
            self.open[at].cursor.leave_block();
            self.open[at].value = None;
        }
        debug_assert!(self.long.is_none_or(|at| at == self.current), "two value tables hold long values");
    }

    /// Opens a value table; returns where.
    #[inline(never)]
    fn open_another(&mut self, table: ValueTableId, extent: &Arc<Extent>, backward: bool) -> usize {
        debug_assert!(extent.meta.value_table.is_some_and(|values| values.number == table), "another one");
        let passed = |at: &usize| {
            self.uses[*at].last > self.since && goes_on(self.open[*at].cursor.extent(), extent, backward)
        };
        // The one before it in its group was passed last.
        let passed = (0..self.open.len()).filter(passed).max_by_key(|at| self.uses[*at].last);
        let oldest = || {
            let oldest = (0..self.open.len()).min_by_key(|at| self.uses[*at].last);
            oldest.filter(|_| self.open.len() >= OPEN_MAX)
        };
        let at = match passed.or_else(oldest) {
            Some(at) => {
                let open = &mut self.open[at];
                open.cursor.cross_to(extent.clone());
                (open.is_crossing, open.is_following, open.value) = (passed.is_some(), false, None);
                self.uses[at].table = table;
                at
            }
            None => {
                let cursor = ExtentCursor::new(extent.clone(), self.cache.clone(), self.options);
                self.open.push(Open { cursor, is_crossing: false, is_following: false, value: None });
                self.uses.push(Use { table, last: 0 });
                self.open.len() - 1
            }
        };
        assert!(self.open.len() == self.uses.len(), "each open value table has its use");
        assert!(self.open.len() <= OPEN_MAX, "a scan has too many value tables open");
        at
    }

    fn loader<'e>(&self, extent: &'e Extent) -> Loader<'e> {
        Loader { extent, cache: extent.bind(&self.cache), fill_cache: self.options.fill_cache }
    }
}

/// Returns true if a sorted group may go on from one value table to another, by their keys.
fn goes_on(from: &Extent, to: &Extent, backward: bool) -> bool {
    let (from, to) = (&from.meta, &to.meta);
    match backward {
        false => to.collation.lt(&from.largest, &to.smallest),
        true => to.collation.lt(&to.largest, &from.smallest),
    }
}

/// The value table in which a group goes on: a job takes the numbers of its value tables one after the other.
/// A guess, for read-ahead alone.
#[cold]
fn following<'e>(
    extent: &Extent,
    table: ValueTableId,
    backward: bool,
    find: impl Fn(ValueTableId) -> Option<&'e Arc<Extent>>,
) -> Option<Arc<Extent>> {
    let number = if backward { table.0.checked_sub(1)? } else { table.0.checked_add(1)? };
    find(ValueTableId(number)).filter(|next| goes_on(extent, next, backward)).cloned()
}
