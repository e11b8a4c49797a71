//! Point reads of many keys of one moment.
//!
//! Steps, for groups of distinct keys under one epoch: 1. filters of memory asked for, 2. the memory tier,
//! source by source, for the keys that its filters let pass, and the row cache, 3. the sorted runs of
//! extents, newest first, for the keys that are still open, 4. copies of the values into one buffer. Each
//! step does a part for every key of the group before it goes on, and asks for the memory that the next part
//! needs, so that cache misses overlap ([`terrane_table::probe_many`]).
//!
//! Keys that the cache cannot answer are fetched behind the epoch, side by side (`fetch.rs`). Cached keys are
//! not sorted: that costs more than it gains (`docs/design/0010-reads.md`).
//!
//! All keys are read at one number, from one read view that was loaded before it.

use terrane_base::prefetch::prefetch;
use terrane_base::{Result, SeqKind, SeqNo, key};
use terrane_format::filter::hash as key_hash;
use terrane_levels::Metasnapshot;
use terrane_memtable::{Memtable, Version};
use terrane_table::{Answer, Epoch, Lookup, enter, probe_many};

use crate::read::get::{ReadMode, Reading, count_reads, find_extent, hidden_in, is_hidden, tree_len};
use crate::read::merge_operands::Sources;
use crate::read::multi_get::fetch::Missing;
use crate::read::multi_get::pending::{Open, Rest};
use crate::read::multi_get::pointers::Pointed;
use crate::read::multi_get::values::Values;
use crate::read::row_cache::Rows;
use crate::shared::Shared;
use crate::table::Table;
use crate::table::filter_policy::Asking;
use crate::table::read_view::ReadView;
use crate::table::semantics::{ReadClock, Shown};

/// Keys that take their steps side by side: enough to have as many misses under way as the machine serves at
/// once, few enough that what was asked for is still there when it is needed.
pub(super) const GROUP: usize = 32;
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
            if self.samples_now() {
                return self
                    .sampled(table, keys, mode, || self.multi_get_unsampled(table, keys, mode, values));
            }
            self.multi_get_unsampled(table, keys, mode, values)
        };
        self.slow_log.read(&table.name, keys.len(), read)
    }

    fn multi_get_unsampled(
        &self,
        table: &Table,
        keys: &[&[u8]],
        mode: ReadMode,
        values: &mut Values,
    ) -> Result<()> {
        keys.iter().try_for_each(|key| key::check_key(key))?;
        values.begin(keys.len());
        let mut distinct = values.take_distinct();
        distinct.find(keys, key_hash);
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
        &self,
        table: &Table,
        keys: &[&[u8]],
        mode: ReadMode,
        distinct: &[(usize, u64)],
        values: &mut Values,
    ) -> Result<()> {
        let mut rest = Rest::default();
        let (rows, now) = (self.rows_of(mode), ReadClock::new(&table.semantics));
        let batch = |seq| Batch { shared: self, table, keys, mode, rows, seq, now: &now };
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
        let batch = batch(seq);
        for (at, hash) in rest.chains {
            let sources = Sources { memory: Some(&view), tree: &view.tree };
            values.set_by(at, |value| {
                self.resolve_versions(sources, &batch.reading(keys[at], hash), &now, value)
            })?;
        }
        batch.fetch(&view.tree, values, rest.missing, rest.values)
    }

    fn pinned_present(&self, table: &Table, mode: ReadMode) -> (ReadView, SeqNo) {
        let guard = terrane_base::epoch::pin();
        let (view, seq) = self.present(table, &guard, mode);
        (view.clone(), seq)
    }

    /// One key after the other, in key order: what the steps side by side are measured against.
    fn get_in_turn(
        &self,
        table: &Table,
        keys: &[&[u8]],
        mode: ReadMode,
        distinct: &[(usize, u64)],
        values: &mut Values,
    ) -> Result<()> {
        let (rows, now) = (self.rows_of(mode), ReadClock::new(&table.semantics));
        let (view, seq) = self.pinned_present(table, mode);
        let batch = Batch { shared: self, table, keys, mode, rows, seq, now: &now };
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
    pub(crate) shared: &'b Shared,
    pub(crate) table: &'b Table,
    pub(crate) keys: &'b [&'b [u8]],
    mode: ReadMode,
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
        let asking = self.shared.asking(self.table, self.mode, hash);
        Reading { key, hash, seq: self.seq, asking, filter_use: &self.table.filter_use }
    }
}

/// Up to [`GROUP`] keys whose lookups run side by side.
pub(super) struct Group<'g> {
    batch: Batch<'g>,
    /// Indexes and hashes.
    pub(super) keys: &'g [(usize, u64)],
    asking: [Asking; GROUP],
    pub(super) values: [Option<&'g [u8]>; GROUP],
    open: Open,
    /// Those whose newest version is an operand.
    pub(super) chains: Open,
    /// Those whose newest version is a pointer.
    pub(super) pointers: Vec<(usize, Pointed)>,
    runs: u64,
}

impl<'g> Group<'g> {
    fn new(batch: Batch<'g>, view: &ReadView, keys: &'g [(usize, u64)]) -> Self {
        let mut group = Group {
            batch,
            keys,
            asking: [Asking::ALL; GROUP],
            values: [None; GROUP],
            open: Open::all(keys.len()),
            chains: Open::none(),
            pointers: Vec::new(),
            runs: 0,
        };
        for (at, &(_, hash)) in keys.iter().enumerate() {
            group.asking[at] = batch.shared.asking(batch.table, batch.mode, hash);
            view.active.prefetch(hash);
        }
        group
    }

    fn ask_memory(&mut self, view: &'g ReadView) {
        let memtables = std::iter::once(&*view.active).chain(view.frozen.iter().map(|memtable| &**memtable));
        for memtable in memtables.chain(view.generations.iter().map(|generation| &**generation.index())) {
            self.runs += self.open.len as u64;
            self.ask_memtable(memtable);
        }
    }

    fn ask_memtable(&mut self, memtable: &'g Memtable) {
        let mut asked = Open::none();
        let mut keys: [&[u8]; GROUP] = [&[]; GROUP];
        for at in self.open.iter().filter(|at| memtable.may_contain(self.keys[*at].1)) {
            keys[asked.len] = self.key(at);
            asked.push(at);
        }
        let is_ranged = memtable.range_deletes().is_some();
        if asked.len == 0 && !is_ranged {
            return;
        }
        let mut versions: [Option<Version<'g>>; GROUP] = [None; GROUP];
        memtable.get_each(&keys[..asked.len], self.batch.seq, &mut versions[..asked.len]);
        let mut found = [None; GROUP];
        for (at, version) in asked.iter().zip(versions) {
            found[at] = version;
        }
        let (before, mut open) = (self.open, Open::none());
        for at in before.iter() {
            if is_ranged
                && let kind = found[at].map(|version: Version<'_>| version.seq_kind)
                && is_hidden(kind, memtable.hidden(self.key(at), self.batch.seq))
            {
                continue;
            }
            match found[at] {
                Some(version) => self.show(at, version.seq_kind, version.value),
                None => open.push(at),
            }
        }
        self.open = open;
    }

    /// Looks into the row cache, which copies at once.
    fn ask_rows(&mut self, epoch: &Epoch, values: &mut Values) {
        let Batch { rows, table, .. } = self.batch;
        if rows.is_off() {
            return;
        }
        let mut open = Open::none();
        for at in self.open.iter() {
            let reading = self.reading(at);
            let mut kind = None;
            let is_shown = values.set_if(self.keys[at].0, |value| {
                let start = value.len();
                kind = rows.get(epoch, table.id, &reading, value);
                // Rows were read from checked blocks, and none is an operand.
                let now = self.batch.now;
                kind.is_some_and(|kind| !kind.is_wrapped() || now.unwrap(kind, value, start).unwrap_or(false))
            });
            if !is_shown && kind.is_none() {
                open.push(at);
            }
        }
        self.open = open;
    }

    /// Looks into overflow runs and levels; notes which keys need the store, from which run on.
    fn ask_runs(
        &mut self,
        epoch: &'g Epoch,
        tree: &'g Metasnapshot,
        lookups: &mut Vec<Lookup<'g>>,
        missing: &mut Vec<Missing>,
    ) {
        for run in 0..tree_len(tree) {
            if self.open.len == 0 {
                return;
            }
            lookups.clear();
            let (mut open, mut asked) = (Open::none(), Open::none());
            // By lookup, up to the last one that is under a range delete. Asked once: it may leave the cache
            // meanwhile.
            let mut hidden_by: Vec<Option<SeqNo>> = Vec::new();
            for at in self.open.iter() {
                let Some(extent) = find_extent(tree, run, self.key(at)) else {
                    open.push(at);
                    continue;
                };
                match hidden_in(epoch, extent, self.key(at), self.batch.seq) {
                    Ok(hidden) => {
                        if hidden.is_some() {
                            hidden_by.resize(lookups.len(), None);
                            hidden_by.push(hidden);
                        }
                        let hash = self.reading(at).hash_for(tree, run);
                        lookups.push(Lookup::new(extent, self.key(at), hash));
                        asked.push(at);
                    }
                    Err(need) => {
                        let (at, hash) = self.keys[at];
                        missing.push(Missing { at, hash, run, need });
                    }
                }
            }
            probe_many(epoch, lookups, self.batch.seq);
            for (number, (at, lookup)) in asked.iter().zip(lookups.iter()).enumerate() {
                let answer = lookup.answer();
                if let Answer::Unknown(need) = answer {
                    let (at, hash) = self.keys[at];
                    missing.push(Missing { at, hash, run, need });
                    continue;
                }
                self.runs += 1;
                self.reading(at).count_answer(tree, run, matches!(answer, Answer::Refused));
                let found = if let Answer::Found(entry) = answer { Some(entry.seq_kind) } else { None };
                if is_hidden(found, hidden_by.get(number).copied().flatten()) {
                    continue;
                }
                match answer {
                    Answer::Found(entry) => self.show(at, entry.seq_kind, entry.value),
                    _ => open.push(at),
                }
            }
            self.open = open;
        }
    }

    /// Notes the version that was found.
    #[inline]
    fn show(&mut self, at: usize, seq_kind: SeqKind, bytes: &'g [u8]) {
        match self.batch.now.shown(seq_kind, bytes) {
            Shown::Value(value) => self.values[at] = Some(value),
            Shown::Nothing => {}
            Shown::Chain => match Pointed::of(seq_kind, bytes, self.batch.now) {
                Some(pointed) => self.pointers.push((at, pointed)),
                None => self.chains.push(at),
            },
        }
    }

    pub(super) fn key(&self, at: usize) -> &'g [u8] {
        self.batch.keys[self.keys[at].0]
    }

    fn reading(&self, at: usize) -> Reading<'g> {
        Reading {
            key: self.key(at),
            hash: self.keys[at].1,
            seq: self.batch.seq,
            asking: self.asking[at],
            filter_use: &self.batch.table.filter_use,
        }
    }

    /// Copies what was found.
    fn copy(&self, values: &mut Values) {
        count_reads(self.keys.len() as u64, self.runs);
        for value in self.values.iter().flatten() {
            prefetch(value.as_ptr());
            prefetch(value.as_ptr_range().end);
        }
        for (at, value) in self.values.iter().enumerate() {
            if let Some(value) = value {
                values.set(self.keys[at].0, value);
            }
        }
    }
}
