//! Point reads of many keys of one moment.
//!
//! Steps, for groups of distinct keys under one epoch: 1. filters of memory asked for, 2. the memory tier,
//! source by source, for the keys that its filters let pass, and the row cache, 3. the sorted runs of
//! extents, newest first, for the keys that are still open, 4. copies of the values into one buffer. Each
//! step does a part for every key of the group before it goes on, and asks for the memory that the next part
//! needs, so that cache misses overlap ([`terrane_table::probe_many`]).
//!
//! Keys that the cache cannot answer are fetched after the epoch, several at a time (`fetch.rs`). Cached keys
//! are not sorted: that costs more than it gains (`docs/design/0010-reads.md`).
//!
//! All keys are read at one number, from one read view that was loaded before it.

use terrane_base::{Result, SeqNo, key};
use terrane_format::filter::hash as key_hash;
use terrane_table::{Epoch, enter};

use crate::read::Reader;
use crate::read::get::{ReadMode, Reading};
use crate::read::merge_operands::Sources;
use crate::read::multi_get::group::{GROUP, Group};
use crate::read::multi_get::pending::Rest;
use crate::read::multi_get::values::Values;
use crate::read::row_cache::Rows;
use crate::shared::Shared;
use crate::table::Table;
use crate::table::read_view::ReadView;
use crate::table::semantics::ReadClock;

/// Keys that are read under one epoch; beyond that it is left and entered again.
const EPOCH_KEYS: usize = 512;

impl Shared {
    /// Reads several keys of one snapshot or moment; the i-th value answers `keys[i]`.
    ///
    /// # Errors
    /// As [`Shared::get`].
    pub fn multi_get(&self, table: &Table, keys: &[&[u8]], mode: ReadMode) -> Result<Vec<Option<Vec<u8>>>> {
        let mut values = Values::new();
        self.multi_get_into(table, keys, mode, &mut values)?;
        debug_assert!(values.len() == keys.len(), "each key has an answer");
        Ok(values.iter().map(|value| value.map(<[u8]>::to_vec)).collect())
    }

    /// [`Shared::multi_get`] into a buffer that can be used again, without an allocation for each value.
    ///
    /// # Errors
    /// As [`Shared::get`]. What `values` holds then means nothing.
    pub fn multi_get_into(
        &self,
        table: &Table,
        keys: &[&[u8]],
        mode: ReadMode,
        values: &mut Values,
    ) -> Result<()> {
        let read = || {
            let reader = Reader::of(self);
            if reader.samples_now() {
                let read = || reader.multi_get_unsampled(table, keys, mode, values);
                return reader.sampled(table, keys, mode, read);
            }
            reader.multi_get_unsampled(table, keys, mode, values)
        };
        self.slow_log.read(&table.name, keys.len(), read)
    }
}

impl Reader<'_> {
    fn multi_get_unsampled(
        self,
        table: &Table,
        keys: &[&[u8]],
        mode: ReadMode,
        values: &mut Values,
    ) -> Result<()> {
        keys.iter().try_for_each(|key| key::check_key(key))?;
        values.begin(keys.len());
        let mut distinct = values.take_distinct();
        distinct.find(keys, key_hash);
        debug_assert!(distinct.keys.len() <= keys.len(), "a key is read twice");
        if self.options.experiments.interleaved_multi_get {
            self.get_side_by_side(table, keys, mode, &distinct.keys, values)?;
        } else {
            self.get_in_turn(table, keys, mode, &distinct.keys, values)?;
        }
        values.finish(distinct);
        Ok(())
    }

    /// `distinct` are indexes and hashes.
    fn get_side_by_side(
        self,
        table: &Table,
        keys: &[&[u8]],
        mode: ReadMode,
        distinct: &[(usize, u64)],
        values: &mut Values,
    ) -> Result<()> {
        let mut rest = Rest::default();
        let (rows, now) = (Rows::of(self.shared, mode), ReadClock::new(&table.semantics));
        let batch = |seq| Batch { reader: self, table, keys, mode, rows, seq, now: &now };
        let (view, seq) = if distinct.len() <= EPOCH_KEYS {
            let epoch = enter();
            let (view, seq) = self.present(table, epoch.guard(), mode);
            batch(seq).answer(&epoch, view, distinct, values, &mut rest);
            if rest.is_empty() {
                return Ok(());
            }
            (view.clone(), seq)
        } else {
            // The number is of this read view: a later one may lack what the number sees.
            let (view, seq) = self.pinned_present(table, mode);
            for part in distinct.chunks(EPOCH_KEYS) {
                batch(seq).answer(&enter(), &view, part, values, &mut rest);
            }
            (view, seq)
        };
        debug_assert!(rest.len() <= distinct.len(), "a key waits for one thing at a time");
        let batch = batch(seq);
        for (at, hash) in rest.chains {
            let sources = Sources { memory: Some(&view), tree: &view.tree };
            values.set_by(at, |value| {
                self.resolve_versions(sources, &batch.reading(keys[at], hash), &now, value)
            })?;
        }
        batch.fetch(&view.tree, values, rest.missing, rest.values)
    }

    fn pinned_present(self, table: &Table, mode: ReadMode) -> (ReadView, SeqNo) {
        let guard = terrane_base::epoch::pin();
        let (view, seq) = self.present(table, &guard, mode);
        (view.clone(), seq)
    }

    /// One key after the other, in key order: what the steps side by side are measured against.
    fn get_in_turn(
        self,
        table: &Table,
        keys: &[&[u8]],
        mode: ReadMode,
        distinct: &[(usize, u64)],
        values: &mut Values,
    ) -> Result<()> {
        debug_assert!(distinct.len() <= keys.len(), "a key is read twice");
        let (rows, now) = (Rows::of(self.shared, mode), ReadClock::new(&table.semantics));
        let (view, seq) = self.pinned_present(table, mode);
        let batch = Batch { reader: self, table, keys, mode, rows, seq, now: &now };
        let mut order = distinct.to_vec();
        order.sort_unstable_by_key(|&(index, _)| keys[index]);
        order.into_iter().try_for_each(|(index, hash)| {
            let reading = batch.reading(keys[index], hash);
            values.set_by(index, |value| self.get_from(&view, &reading, &now, value))
        })
    }
}

/// One call.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'b> {
    pub(crate) reader: Reader<'b>,
    pub(crate) table: &'b Table,
    pub(crate) keys: &'b [&'b [u8]],
    pub(super) mode: ReadMode,
    pub(crate) rows: Rows<'b>,
    pub(crate) seq: SeqNo,
    pub(crate) now: &'b ReadClock<'b>,
}

impl Batch<'_> {
    /// Answers up to [`EPOCH_KEYS`] keys as far as memory knows them; `keys` are indexes and hashes.
    fn answer(
        &self,
        epoch: &Epoch,
        view: &ReadView,
        keys: &[(usize, u64)],
        values: &mut Values,
        rest: &mut Rest,
    ) {
        debug_assert!(keys.len() <= EPOCH_KEYS, "an epoch is left after so many keys");
        let mut lookups = Vec::with_capacity(GROUP);
        for part in keys.chunks(GROUP) {
            let mut group = Group::new(*self, view, part);
            group.ask_memory(view);
            group.ask_rows(epoch, values);
            group.ask_runs(epoch, &view.tree, &mut lookups, &mut rest.missing);
            group.ask_values(epoch, &view.tree, &mut lookups, rest);
            group.copy(values);
            rest.chains.extend(group.chains.iter().map(|at| group.keys[at]));
        }
    }

    pub(crate) fn reading<'r>(&'r self, key: &'r [u8], hash: u64) -> Reading<'r> {
        debug_assert!(hash == key_hash(key), "filters are asked with the hash of the key");
        let asking = self.reader.asking(self.table, self.mode, hash);
        Reading { key, hash, seq: self.seq, asking, filter_use: &self.table.filter_use }
    }
}
