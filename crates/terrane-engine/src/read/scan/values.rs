//! The separated values of a scan: positions in value tables that move on with the rows.
//!
//! 1. The value of a row is, as a rule, in the block of the last value of its value table, at the position
//!    that the pointer says ([`terrane_table::ValueCursors`]); it is not copied.
//! 2. If a block of it is not cached and no read-ahead has it, the scan looks ahead at its next rows,
//!    announces the values that they point to, and all blocks that these lack are read in one batch. Then the
//!    scan goes back to its row. Looking ahead begins with [`ROWS_AHEAD_MIN`] rows behind a placement, or
//!    with fewer where values are long, and grows with the scan. It ends where a batch has no room for more:
//!    the next look ahead announces the values that this one could not.
//!
//! Only rows that the scan is going to show are looked up: within its bounds, visible, not expired.

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::{Entry, Error, Result, SeqKind, SeqNo, Stored, ValuePointer};
use terrane_levels::Metasnapshot;
use terrane_table::{Cache, CursorOptions, Placed, ValueCursors, ValuePlace};

use crate::read::scan::value_groups::ValueGroups;
use crate::read::separated::{inline, nowhere, of_value, wanted};

/// Rows that a scan looks ahead for values, at first and at most: a batch is as long as the queue of a
/// device, and rows of one value table share blocks.
const ROWS_AHEAD_MIN: u32 = 8;
const ROWS_AHEAD_MAX: u32 = 512;
/// How much further each look ahead goes than the one before.
const ROWS_AHEAD_GROWTH: u32 = 2;
/// Bytes of values of a look ahead, at first; it ends once its values have more.
const BYTES_AHEAD_MIN: u64 = 64 << 10;
/// Bytes of a later look ahead: those of all before it, divided by this, if that is more. So beyond the first
/// ones a scan that ends early has read about half of the bytes that it used for nothing. A long value costs
/// its transfer and its decompression; more of them at once make neither cheaper.
const BYTES_AHEAD_DIVISOR: u64 = 2;

/// The state with which a scan follows pointers.
#[derive(Debug)]
pub(crate) struct ScanValues {
    tree: Arc<Metasnapshot>,
    cache: Arc<Cache>,
    cursors: ValueCursors,
    /// Rows of the next look ahead.
    rows_ahead: u32,
    /// Bytes of values that this look ahead may still announce.
    bytes_left: u64,
    /// Bytes of the values that were announced since the scan was placed.
    bytes_announced: u64,
}

impl ScanValues {
    /// State that follows the pointers of `tree`; `None` if it has no value tables: most scans take no part
    /// in the counts of tree and cache for it.
    pub(crate) fn of(tree: &Arc<Metasnapshot>, cache: &Arc<Cache>, read_ahead_bytes: u64) -> Option<Self> {
        // At most 4 MiB by its range.
        let options = CursorOptions { fill_cache: true, read_ahead_bytes: read_ahead_bytes as u32 };
        (!tree.values.is_empty()).then(|| ScanValues {
            tree: tree.clone(),
            cache: cache.clone(),
            cursors: ValueCursors::new(cache.clone(), options),
            rows_ahead: ROWS_AHEAD_MIN,
            bytes_left: 0,
            bytes_announced: 0,
        })
    }

    /// The scan was placed again.
    pub(super) fn restart(&mut self) {
        self.rows_ahead = ROWS_AHEAD_MIN;
        self.bytes_announced = 0;
        self.cursors.restart();
    }

    /// As [`inline`], in the tree of the scan.
    pub(super) fn inline(&self, key: &[u8], seq_kind: SeqKind, bytes: &mut Vec<u8>) -> Result<SeqKind> {
        inline(&self.tree, &self.cache, (key, seq_kind), (bytes, 0))
    }

    /// The value at the last placement.
    #[inline]
    pub(super) fn value(&self) -> Option<&[u8]> {
        self.cursors.value()
    }

    /// Notes the value at the last placement, which is that of `key`, in `groups`.
    #[inline]
    pub(super) fn note(&self, key: &[u8], groups: &mut Option<Box<ValueGroups>>) {
        debug_assert!(self.cursors.table().is_some(), "a value was placed");
        if let (Some(groups), Some(table), Some(value)) = (groups, self.cursors.table(), self.value()) {
            groups.note(key, table, value.len());
        }
    }

    /// Goes to the value that the pointer of an entry leads to; `pointer` are its bytes. Returns false if it
    /// would have to wait and `may_wait` is false.
    ///
    /// # Errors
    /// `Corrupt`, naming the value table, its file and the key, if the pointer leads nowhere; `Io`.
    #[inline]
    pub(super) fn place(
        &mut self,
        (key, seq): (&[u8], SeqNo),
        pointer: &[u8],
        backward: bool,
        may_wait: bool,
    ) -> Result<bool> {
        let pointer = match ValuePointer::read(pointer) {
            Some(pointer) => pointer,
            None => ValuePointer::decode(pointer)?,
        };
        let ScanValues { tree, cursors, .. } = self;
        let place = ValuePlace { key, seq: wanted(seq), pointer, backward, may_wait };
        let placed = cursors.place(place, |table| Some(&tree.values.get(table)?.extent));
        let is_it = match placed.map_err(|error| of_value(error, key, seq, pointer.table))? {
            Placed::Exact => true,
            Placed::Near => self.is_at((key, seq), pointer),
            Placed::Waits => return Ok(false),
            Placed::Nowhere => return Err(nowhere(key, seq, pointer)),
        };
        count(|cells| add(&cells.values_followed, 1));
        if is_it { Ok(true) } else { Err(lost(&self.tree, key, seq, pointer)) }
    }

    /// The value of an entry of a scan going forward, which is a plain pointer, if it lies at the position
    /// that the pointer says and need not be waited for; notes the value table in `groups`. `None` says
    /// nothing.
    #[inline(never)]
    pub(super) fn value_at_position(
        &mut self,
        entry: Entry<'_>,
        groups: &mut Option<Box<ValueGroups>>,
    ) -> Option<&[u8]> {
        debug_assert!(entry.seq_kind.is_plain_pointer(), "the bytes are those of a pointer alone");
        let pointer = ValuePointer::read(entry.value)?;
        let (key, seq) = (entry.key, wanted(entry.seq_kind.seq()));
        let is_there =
            self.cursors.is_in_block(&pointer) && self.cursors.value_in_block(&pointer, key, seq).is_some();
        if !is_there && !self.place_now(key, seq, pointer) {
            return None;
        }
        count(|cells| add(&cells.values_followed, 1));
        if let Some(groups) = groups {
            groups.note(key, pointer.table, pointer.len as usize);
        }
        self.cursors.value()
    }

    /// Places at the value of a pointer, unless that would have to wait; returns true if it did.
    /// [`ScanValues::place`] returns the error of a pointer that leads nowhere.
    #[inline(never)]
    fn place_now(&mut self, key: &[u8], seq: SeqNo, pointer: ValuePointer) -> bool {
        let ScanValues { tree, cursors, .. } = self;
        let place = ValuePlace { key, seq, pointer, backward: false, may_wait: false };
        match cursors.place(place, |table| Some(&tree.values.get(table)?.extent)) {
            Ok(Placed::Exact) => true,
            Ok(Placed::Near) => self.is_at((key, seq), pointer),
            _ => false,
        }
    }

    /// Returns true if a placement led to the value of the pointer.
    #[inline(never)]
    fn is_at(&self, (key, seq): (&[u8], SeqNo), pointer: ValuePointer) -> bool {
        let is_exact = wanted(seq) == seq;
        self.cursors.entry().is_some_and(|entry| {
            entry.key == key
                && entry.seq_kind.is_plain_put()
                && (!is_exact || entry.seq_kind.seq() == seq && entry.value.len() == pointer.len as usize)
        })
    }

    /// Begins to look ahead; returns how many rows.
    pub(super) fn begin_ahead(&mut self) -> u32 {
        let rows = self.rows_ahead;
        self.rows_ahead = (rows * ROWS_AHEAD_GROWTH).min(ROWS_AHEAD_MAX);
        self.bytes_left = bytes_ahead(self.bytes_announced);
        self.cursors.want_none();
        assert!(rows >= ROWS_AHEAD_MIN, "a scan looks ahead at no row");
        rows
    }

    /// Returns true if the value of this key was announced last.
    pub(super) fn has_announced(&self, key: &[u8]) -> bool {
        self.cursors.last_wanted() == Some(key)
    }

    /// Announces that the scan will read the value of an entry, whose bytes are as stored; with `instead` it
    /// replaces the last one. The scan returns the error of a damaged entry when it comes there. Returns
    /// false if the look ahead ends here.
    pub(super) fn announce(&mut self, key: &[u8], seq_kind: SeqKind, bytes: &[u8], instead: bool) -> bool {
        debug_assert!(seq_kind.is_pointer(), "a look ahead announces the values of pointers");
        let Ok(stored) = Stored::of_entry(seq_kind, bytes) else { return true };
        let Ok(pointer) = ValuePointer::decode(stored.value) else { return true };
        let Some(values) = self.tree.values.get(pointer.table) else { return true };
        self.bytes_left = self.bytes_left.saturating_sub(u64::from(pointer.len));
        self.bytes_announced = self.bytes_announced.saturating_add(u64::from(pointer.len));
        self.cursors.want(&values.extent, key, pointer, instead) && self.bytes_left > 0
    }

    /// Reads the blocks that the announced values lack.
    pub(super) fn end_ahead(&mut self) {
        self.cursors.gather();
    }
}

/// Bytes of values of a look ahead of a scan that has announced so many.
fn bytes_ahead(announced: u64) -> u64 {
    (announced / BYTES_AHEAD_DIVISOR).max(BYTES_AHEAD_MIN)
}

/// The error of a pointer into a value table that does not have the value.
#[cold]
fn lost(tree: &Metasnapshot, key: &[u8], seq: SeqNo, pointer: ValuePointer) -> Error {
    let error = nowhere(key, seq, pointer);
    tree.values.get(pointer.table).map_or_else(|| error.clone(), |values| values.extent.placed(error.clone()))
}
