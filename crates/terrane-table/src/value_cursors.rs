//! [`ValueCursors`]: the positions of one scan in the value tables that its rows point into.
//!
//! The values of one sorted group lie in key order, so a scan that comes to the next value of a group finds
//! it one entry behind the last one: a comparison, no search. One cursor for each value table keeps that
//! place; it reads ahead in windows as the cursor of a level does, and goes on in the next value table of its
//! group with the state of its scan.
//!
//! Where a scan would have to wait for the first blocks of many value tables one after the other, its user
//! tells the coming values first ([`ValueCursors::want`]), and [`ValueCursors::gather`] reads what they lack
//! in one batch: index blocks, then data blocks, in the order of extents and places.
//!
//! Invariants:
//! 1. No epoch is held across a read of the store, nor between calls.
//! 2. At most [`OPEN_MAX`] value tables are open. Blocks that were gathered are at most [`BATCH_READS`] and
//!    within a share of the windows of all scans of the cache.
//! 3. A part that cannot be gathered is left out: the placement that needs it reports the error.

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::{Cursor, Entry, Result, SeqNo, ValueTableId};

use crate::cache::windows::WindowShare;
use crate::cache::{Cache, ObjectRef};
use crate::cursor::{CursorOptions, ExtentCursor, Near};
use crate::extent::Extent;
use crate::load_many::{BATCH_READS, Loaded, Need, load_many};
use crate::loader::{Loader, Part};

/// Most value tables that a scan has open: more groups than overlap where merges do their work.
const OPEN_MAX: usize = 32;

/// Most bytes of gathered blocks, before decompression.
const GATHERED_BYTES_MAX: u64 = 512 << 10;

/// An open value table.
#[derive(Debug)]
struct Open {
    cursor: ExtentCursor,
    /// It came from the value table before it in its group, and has not been placed since.
    is_crossing: bool,
    /// It was told in which value table its group goes on.
    is_told: bool,
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
    /// At the first entry at or after the key and number, if there is one.
    Done,
    /// It would have to wait for a device, and may not.
    Waits,
    /// There is no such value table.
    Nowhere,
}

/// A value that is going to be asked for.
#[derive(Debug)]
struct Want {
    extent: Arc<Extent>,
    /// Where its key lies in `keys`.
    key: std::ops::Range<usize>,
}

/// A gathered block.
#[derive(Debug)]
struct Gathered {
    extent: Arc<Extent>,
    at: usize,
    block: Loaded,
}

/// Where to go in a value table.
#[derive(Clone, Copy, Debug)]
pub struct ValuePlace<'k> {
    /// The key of the entry that points there.
    pub key: &'k [u8],
    /// Its sequence number.
    pub seq: SeqNo,
    /// Where the value was written there, as the pointer says it; empty if it does not.
    pub position: &'k [u8],
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
    /// Those used later were used since the scan was placed.
    since: u64,
    /// The open value table that was placed last.
    current: usize,
    placements: u64,
    wants: Vec<Want>,
    keys: Vec<u8>,
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
            since: 0,
            current: 0,
            placements: 0,
            wants: Vec::new(),
            keys: Vec::new(),
            gathered: Vec::new(),
            share: WindowShare::default(),
        }
    }

    /// The scan was placed anew: no value table goes on in another one until it was used again.
    pub fn restart(&mut self) {
        self.since = self.placements;
    }

    /// Goes to the first entry at or after a key and number in a value table; `find` finds its extent by the
    /// number, and that of the one in which its group goes on.
    ///
    /// # Errors
    /// `Corrupt`, naming file and offset; `Io`.
    #[inline]
    pub fn place<'e>(
        &mut self,
        table: ValueTableId,
        place: ValuePlace<'_>,
        find: impl Fn(ValueTableId) -> Option<&'e Arc<Extent>>,
    ) -> Result<Placed> {
        self.placements += 1;
        if self.uses.get(self.current).is_none_or(|used| used.table != table) {
            self.current = match self.uses.iter().position(|used| used.table == table) {
                Some(at) => at,
                None => match find(table) {
                    Some(extent) => self.open_another(table, extent, place.backward),
                    None => return Ok(Placed::Nowhere),
                },
            };
        }
        let ValueCursors { open, uses, since, current, gathered, placements, .. } = self;
        let open = &mut open[*current];
        // The value that comes first after a placement of the scan is anywhere: entries behind the last one
        // would be read for nothing.
        let may_step = std::mem::replace(&mut uses[*current].last, *placements) > *since;
        let ValuePlace { key, seq, position, backward, may_wait } = place;
        let near = Near { key, seq, position, backward, is_crossing: open.is_crossing, may_step, may_wait };
        if !open.cursor.go_near(near, |extent, at| held(gathered, extent, at))? {
            return Ok(Placed::Waits);
        }
        open.is_crossing = false;
        if !open.is_told && open.cursor.is_reading_ahead() {
            open.is_told = true;
            open.cursor.follow(following(open.cursor.extent(), table, backward, find));
        }
        Ok(Placed::Done)
    }

    /// The entry at the last placement, if there is one.
    #[inline]
    #[must_use]
    pub fn entry(&self) -> Option<Entry<'_>> {
        self.open.get(self.current)?.cursor.entry()
    }

    /// The value table of the last placement.
    #[inline]
    #[must_use]
    pub fn table(&self) -> Option<ValueTableId> {
        self.uses.get(self.current).map(|used| used.table)
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
                self.open[at].cursor.cross_to(extent.clone());
                (self.open[at].is_crossing, self.open[at].is_told) = (passed.is_some(), false);
                self.uses[at].table = table;
                at
            }
            None => {
                let cursor = ExtentCursor::new(extent.clone(), self.cache.clone(), self.options);
                self.open.push(Open { cursor, is_crossing: false, is_told: false });
                self.uses.push(Use { table, last: 0 });
                self.open.len() - 1
            }
        };
        assert!(self.open.len() == self.uses.len(), "each open value table has its use");
        assert!(self.open.len() <= OPEN_MAX, "a scan has too many value tables open");
        at
    }

    /// Forgets the values that were wanted.
    pub fn want_none(&mut self) {
        self.wants.clear();
        self.keys.clear();
    }

    /// The key of the value that was wanted last.
    #[must_use]
    pub fn last_wanted(&self) -> Option<&[u8]> {
        self.wants.last().map(|want| &self.keys[want.key.clone()])
    }

    /// Tells that the value of `key` in the value table `extent` will be asked for; in the place of the last
    /// one with `instead`.
    pub fn want(&mut self, extent: &Arc<Extent>, key: &[u8], instead: bool) {
        if instead && let Some(last) = self.wants.pop() {
            self.keys.truncate(last.key.start);
        }
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        self.wants.push(Want { extent: extent.clone(), key: start..self.keys.len() });
    }

    /// Reads the parts that the values that are wanted lack, in batches.
    pub fn gather(&mut self) {
        self.gathered.clear();
        let keys = &self.keys;
        // In key order within an extent, so that equal parts are neighbours.
        self.wants.sort_by(|a, b| {
            let order = a.extent.meta.id.cmp(&b.extent.meta.id);
            order.then_with(|| a.extent.meta.collation.cmp(&keys[a.key.clone()], &keys[b.key.clone()]))
        });
        let lacks_index = |want: &&Want| self.loader(&want.extent).cached_part(&Part::Index).is_none();
        let mut needs: Vec<_> =
            self.wants.iter().filter(lacks_index).map(|want| (&*want.extent, Need::Index)).collect();
        needs.dedup_by(|a, b| std::ptr::eq(a.0, b.0));
        let mut reads = needs.len();
        // Held until their blocks are read.
        let indexes: Vec<_> =
            needs.chunks(BATCH_READS).flat_map(|part| load_many(&self.cache, part)).collect();
        let mut share = std::mem::take(&mut self.share);
        let blocks = self.blocks_lacking(&mut share);
        let needs: Vec<_> = blocks.iter().map(|(extent, at)| (&**extent, Need::Block(*at))).collect();
        reads += needs.len();
        let loaded = load_many(&self.cache, &needs);
        drop(indexes);
        self.share = share;
        if reads > 0 {
            count(|cells| {
                add(&cells.value_batches, 1);
                add(&cells.value_batch_reads, reads as u64);
            });
        }
        let gathered = blocks.into_iter().zip(loaded);
        self.gathered.extend(
            gathered.filter_map(|((extent, at), block)| Some(Gathered { extent, at, block: block? })),
        );
        assert!(self.gathered.len() <= BATCH_READS, "a scan holds too many gathered blocks");
    }

    /// The blocks of the values that are wanted and that are not cached, as many as a scan may hold.
    fn blocks_lacking(&self, share: &mut WindowShare) -> Vec<(Arc<Extent>, usize)> {
        let mut blocks: Vec<(Arc<Extent>, usize)> = Vec::new();
        let mut bytes = 0;
        for want in &self.wants {
            // What has left the cache again is read by the placement.
            let Some(index) = self.loader(&want.extent).cached_part(&Part::Index) else { continue };
            let rows = &index.index().rows;
            let at = rows.find(&self.keys[want.key.clone()]);
            let is_known =
                |(extent, known): &(Arc<Extent>, usize)| Arc::ptr_eq(extent, &want.extent) && *known == at;
            if at >= rows.len() || blocks.last().is_some_and(is_known) {
                continue;
            }
            if self.loader(&want.extent).cached_block(&index, at).is_some() {
                continue;
            }
            bytes += u64::from(rows.row(at).raw_len);
            let has_room = bytes <= GATHERED_BYTES_MAX && share.grow(&self.cache, bytes);
            if blocks.len() == BATCH_READS || (!has_room && !blocks.is_empty()) {
                break;
            }
            blocks.push((want.extent.clone(), at));
        }
        blocks
    }

    fn loader<'e>(&self, extent: &'e Extent) -> Loader<'e> {
        Loader { extent, cache: extent.bind(&self.cache), fill_cache: self.options.fill_cache }
    }
}

/// Whether a sorted group may go on from one value table to another, by their keys.
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

/// A gathered block, if it is among them.
fn held(gathered: &[Gathered], extent: &Arc<Extent>, at: usize) -> Option<ObjectRef> {
    let found = gathered.iter().find(|block| block.at == at && Arc::ptr_eq(&block.extent, extent))?;
    Some(found.block.object())
}
