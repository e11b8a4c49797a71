//! The keys of a multi-get whose lookups run side by side: each step does a part for every key before the
//! next one begins, so that cache misses overlap.

use terrane_base::prefetch::prefetch;
use terrane_base::{SeqKind, SeqNo};
use terrane_levels::Metasnapshot;
use terrane_memtable::{Memtable, Version};
use terrane_table::{Answer, Epoch, Lookup, probe_many};

use crate::read::get::{Reading, find_extent, tree_len};
use crate::read::hidden::{hidden_in, is_hidden};
use crate::read::memory::count_reads;
use crate::read::multi_get::fetch::Missing;
use crate::read::multi_get::lookup::Batch;
use crate::read::multi_get::pending::Open;
use crate::read::multi_get::pointers::Pointed;
use crate::read::multi_get::values::Values;
use crate::table::filter_policy::Asking;
use crate::table::read_view::ReadView;
use crate::table::semantics::Shown;

/// Keys that take their steps side by side: enough to have as many misses under way as the machine serves at
/// once, few enough that what was asked for is still there when it is needed.
pub(super) const GROUP: usize = 32;

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
    pub(super) fn new(batch: Batch<'g>, view: &ReadView, keys: &'g [(usize, u64)]) -> Self {
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
            group.asking[at] = batch.reader.asking(batch.table, batch.mode, hash);
            view.active.prefetch(hash);
        }
        group
    }

    pub(super) fn ask_memory(&mut self, view: &'g ReadView) {
        debug_assert!(
            self.open.len == self.keys.len() && self.runs == 0,
            "memory is asked first, for every key"
        );
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
        debug_assert!(open.len <= before.len, "a key that is answered is asked again");
        self.open = open;
    }

    /// Looks into the row cache, which copies at once.
    pub(super) fn ask_rows(&mut self, epoch: &Epoch, values: &mut Values) {
        let Batch { rows, table, .. } = self.batch;
        if rows.is_off() {
            return;
        }
        let mut open = Open::none();
        for at in self.open.iter() {
            if !rows.may_have(self.keys[at].1) {
                open.push(at);
                continue;
            }
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
        debug_assert!(open.len <= self.open.len, "a key that is answered is asked again");
        self.open = open;
    }

    /// Looks into overflow runs and levels; notes which keys need the store, from which run on.
    pub(super) fn ask_runs(
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
                let reading = self.reading(at);
                let Some(extent) = find_extent(tree, run, reading.key) else {
                    open.push(at);
                    continue;
                };
                match hidden_in(epoch, extent, reading.key, reading.seq) {
                    Ok(hidden) => {
                        if hidden.is_some() {
                            hidden_by.resize(lookups.len(), None);
                            hidden_by.push(hidden);
                        }
                        lookups.push(Lookup::new(extent, reading.key, reading.hash_for(tree, run)));
                        asked.push(at);
                    }
                    Err(need) => {
                        let (at, hash) = self.keys[at];
                        missing.push(Missing { at, hash, run, need });
                    }
                }
            }
            debug_assert!(asked.len == lookups.len(), "each key that is asked has a lookup");
            debug_assert!(
                hidden_by.len() <= lookups.len(),
                "a range delete is noted with the lookup under it"
            );
            probe_many(epoch, lookups, self.batch.seq);
            for (number, (at, lookup)) in asked.iter().zip(lookups.iter()).enumerate() {
                let answer = lookup.answer();
                if let Answer::Unknown(need) = answer {
                    let (at, hash) = self.keys[at];
                    missing.push(Missing { at, hash, run, need });
                    continue;
                }
                self.runs += 1;
                if self.asking[at].counts {
                    self.reading(at).count_answer(tree, run, matches!(answer, Answer::Refused));
                }
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
        debug_assert!(self.values[at].is_none(), "the newest version of a key is shown once");
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
    pub(super) fn copy(&self, values: &mut Values) {
        debug_assert!(
            self.open.iter().all(|at| self.values[at].is_none()),
            "a key that is open has no value"
        );
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
