//! The engine's side of the row cache: which reads look into it, which reads fill it, and when rows are
//! forgotten. Why no read gets an old value is in [`terrane_table::row_cache`].

use std::collections::BTreeMap;

use terrane_base::counters::{add, count};
use terrane_base::{SeqKind, SeqNo, TableId};
use terrane_format::extent::ExtentMeta;
use terrane_format::filter::hash as key_hash;
use terrane_memtable::Memtable;
use terrane_table::{Epoch, ObjectKind, RowCache, Stamp, enter};

use crate::read::get::{ReadMode, Reading};
use crate::shared::Shared;
use crate::table::Table;

/// Keys that are forgotten under one epoch.
const EPOCH_KEYS: usize = 256;

/// The row cache as one read uses it.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'e> {
    cache: Option<&'e RowCache>,
    /// Taken before the read view; `None` for reads that do not fill.
    stamp: Option<Stamp>,
}

impl<'e> Rows<'e> {
    /// The row cache for a read that has not loaded its read view yet.
    #[inline]
    pub(crate) fn of(shared: &'e Shared, mode: ReadMode) -> Rows<'e> {
        // A read without filters measures the way through the levels.
        let cache = shared.rows.as_ref().filter(|_| mode.filters);
        // What a snapshot finds may be not the newest version.
        let stamp = cache.filter(|_| mode.at.is_none()).map(RowCache::stamp);
        Rows { cache, stamp }
    }
}

/// Lets the row cache give memory back to blocks if reads are mostly of other kinds.
pub(crate) fn rest_rows(shared: &Shared) {
    if let Some(rows) = &shared.rows {
        rows.rest(shared.cache.misses(ObjectKind::Data));
    }
}

/// Makes sure that no row is older than what `memtable` has, before its records may move into the levels.
/// Requires: all of its records are visible; the table's read view has it.
pub(crate) fn forget_rows(shared: &Shared, table: &Table, memtable: &Memtable) {
    let Some(rows) = &shared.rows else { return };
    debug_assert!(
        memtable.last_seq() <= shared.journal.visible(),
        "a record that moves into the levels is visible"
    );
    rows.raise_stamp();
    if terrane_base::planted!(KeepForgottenRow) {
        return;
    }
    let is_ranged = memtable.range_deletes().is_some();
    if rows.places() < memtable.entry_count() || is_ranged {
        return rows.forget_where(|of, key| {
            let is_hidden = is_ranged && memtable.hidden(key, SeqNo::MAX).is_some();
            of == table.id && (is_hidden || memtable.holds(key, key_hash(key)))
        });
    }
    let mut epoch = None;
    let mut keys = 0;
    memtable.each_key(|key| {
        if keys % EPOCH_KEYS == 0 {
            // Left before it is entered again: others wait for what they retired.
            drop(epoch.take());
        }
        keys += 1;
        rows.forget(epoch.get_or_insert_with(enter), (table.id, key), key_hash(key));
    });
}

/// Removes rows of keys that these extents cover from the row cache. Requires: the table has its new read
/// view.
pub(crate) fn forget_rows_within<'m>(
    shared: &Shared,
    table: &Table,
    metas: impl Iterator<Item = &'m ExtentMeta>,
) {
    let Some(rows) = &shared.rows else { return };
    if !table.semantics.collation().is_bytes() {
        // Rows are found by the bytes of their keys, which do not show whether a key lies within the
        // range.
        rows.raise_stamp();
        return rows.forget_where(|of, _| of == table.id);
    }
    let mut spans: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
    for meta in metas {
        let largest = spans.entry(&meta.smallest).or_insert(&meta.largest);
        *largest = (*largest).max(&meta.largest);
    }
    // Spans of several places may lie over each other: made disjoint, the one that begins last before a
    // key decides.
    let mut reach: &[u8] = &[];
    for (_, largest) in spans.iter_mut() {
        reach = reach.max(largest);
        *largest = reach;
    }
    debug_assert!(spans.values().is_sorted(), "a span ends before one that begins before it");
    rows.raise_stamp();
    rows.forget_where(|of, key| {
        of == table.id && spans.range(..=key).next_back().is_some_and(|(_, largest)| key <= *largest)
    });
}

impl Rows<'_> {
    /// Returns true if there is no row cache for this read.
    #[inline]
    pub(crate) fn is_off(&self) -> bool {
        self.cache.is_none()
    }

    /// Returns true if the row cache may have keys with this hash.
    #[inline]
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        self.cache.is_some_and(|cache| cache.is_awake(hash))
    }

    /// Appends the value of a key that the memory tier does not have, as stored, if the row cache has it.
    #[inline]
    pub(crate) fn get(
        &self,
        epoch: &Epoch,
        table: TableId,
        reading: &Reading<'_>,
        value: &mut Vec<u8>,
    ) -> Option<SeqKind> {
        let found = self.cache?.get(epoch, (table, reading.key), reading.hash, reading.seq, value);
        if found.is_some() {
            count(|cells| add(&cells.rows_cached, 1));
        }
        debug_assert!(
            found.is_none_or(|kind| !kind.is_delete() && !kind.is_merge()),
            "a row is a version with a value of its own"
        );
        found
    }

    /// Hands the row cache what runs and levels had as the newest version, as stored: with its expiry, if it
    /// has one. An operand is not a row: it means nothing alone.
    #[inline]
    pub(crate) fn fill(
        &self,
        epoch: &Epoch,
        table: TableId,
        reading: &Reading<'_>,
        kind: Option<SeqKind>,
        value: &[u8],
    ) {
        if let (Some(cache), Some(stamp), Some(kind)) = (self.cache, self.stamp, kind)
            && !kind.is_delete()
            && !kind.is_merge()
        {
            debug_assert!(!kind.is_pointer(), "a row has its value in the place of a pointer");
            cache.fill(epoch, (stamp, reading.seq), (table, reading.key), reading.hash, (kind, value));
        }
    }
}
