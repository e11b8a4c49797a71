//! Values that are more than one version: operands of merges, folded onto an older version.
//!
//! A point read comes here when the first version that it finds is an operand: 1. the versions of the key,
//! newest first through all sources, until one ends the chain ([`terrane_base::chain`]), 2. the table's merge
//! operator. No epoch is held meanwhile: the read view is kept by its counts, the store may be asked, and the
//! operator is a user's callback.

use terrane_base::chain::Chain;
use terrane_base::counters::{add, count};
use terrane_base::{RecordKind, Result, SeqKind, SeqNo, Stored};
use terrane_levels::Metasnapshot;

use crate::read::Reader;
use crate::read::get::{Reading, find_extent, tree_len};
use crate::read::hidden::is_hidden;
use crate::read::separated;
use crate::table::read_view::ReadView;
use crate::table::semantics::{ReadClock, Shown};

/// Where the versions of a key may lie.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'p> {
    /// The memory tier, unless it is known that it has none.
    pub(crate) memory: Option<&'p ReadView>,
    /// Overflow runs and levels, of the same read view.
    pub(crate) tree: &'p Metasnapshot,
}

impl Reader<'_> {
    /// Ends a point read that found the version `kind`, whose bytes were appended to `value` from `start` on:
    /// makes them what the reader sees, and returns whether there is a value.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from the store; `Invalid` from the merge operator.
    pub(crate) fn end_read(
        self,
        sources: Sources<'_>,
        reading: &Reading<'_>,
        kind: Option<SeqKind>,
        now: &ReadClock<'_>,
        (value, start): (&mut Vec<u8>, usize),
    ) -> Result<bool> {
        debug_assert!(start <= value.len(), "the version lies behind the bytes that the caller had");
        let kind = self.follow(sources.tree, reading, kind, now, (value, start))?;
        match kind {
            None => Ok(false),
            Some(kind) if !kind.is_wrapped() => Ok(!kind.is_delete()),
            Some(kind) if !kind.is_merge() => now.unwrap(kind, value, start),
            Some(_) => {
                value.truncate(start);
                self.resolve_versions(sources, reading, now, value)
            }
        }
    }

    /// The version `kind`, whose bytes were appended to `value` from `start` on, with its value in the place
    /// of a pointer; a pointer that has expired is not followed, and becomes a delete.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from the store.
    #[inline]
    pub(crate) fn follow(
        self,
        tree: &Metasnapshot,
        reading: &Reading<'_>,
        kind: Option<SeqKind>,
        now: &ReadClock<'_>,
        (value, start): (&mut Vec<u8>, usize),
    ) -> Result<Option<SeqKind>> {
        let Some(kind) = kind.filter(|kind| kind.is_pointer()) else { return Ok(kind) };
        debug_assert!(start <= value.len(), "a pointer lies behind the bytes that the caller had");
        if matches!(now.shown(kind, &value[start..]), Shown::Nothing) {
            value.truncate(start);
            return Ok(Some(kind.with_kind(RecordKind::Delete)));
        }
        separated::inline(tree, &self.cache, (reading.key, kind), (value, start)).map(Some)
    }

    /// Appends the value that the versions of a key make; returns whether there is one.
    ///
    /// # Errors
    /// As [`Reader::end_read`].
    #[cold]
    pub(crate) fn resolve_versions(
        self,
        sources: Sources<'_>,
        reading: &Reading<'_>,
        now: &ReadClock<'_>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let mut chain = Chain::new();
        self.collect(sources, reading, now, &mut chain)?;
        count_folded(&chain);
        chain.fold(now.semantics().operator().map(|operator| &**operator), reading.key, value)
    }

    fn collect(
        self,
        sources: Sources<'_>,
        reading: &Reading<'_>,
        now: &ReadClock<'_>,
        chain: &mut Chain,
    ) -> Result<()> {
        if let Some(view) = sources.memory {
            debug_assert!(std::ptr::eq(&*view.tree, sources.tree), "memory and levels are of one read view");
            let memtables = std::iter::once(&*view.active).chain(view.frozen.iter().map(|frozen| &**frozen));
            let memtables = memtables.chain(view.generations.iter().map(|generation| &**generation.index()));
            for memtable in memtables {
                let hidden = memtable.hidden(reading.key, reading.seq);
                let versions = memtable.versions(reading.key, reading.hash, reading.seq);
                for version in versions.take_while(|version| !is_hidden(Some(version.seq_kind), hidden)) {
                    if !chain.take(version.seq_kind, version.value, now.get())? {
                        return Ok(());
                    }
                }
                if let Some(hidden) = hidden {
                    return chain.end_by_range_delete(hidden);
                }
            }
        }
        for run in 0..tree_len(sources.tree) {
            if !self.collect_from(sources.tree, run, reading, now, chain)? {
                break;
            }
        }
        Ok(())
    }

    /// Takes the versions of the key in a sorted run; returns whether older ones may count.
    fn collect_from(
        self,
        tree: &Metasnapshot,
        run: usize,
        reading: &Reading<'_>,
        now: &ReadClock<'_>,
        chain: &mut Chain,
    ) -> Result<bool> {
        let Some(extent) = find_extent(tree, run, reading.key) else { return Ok(true) };
        count(|cells| add(&cells.runs_searched, 1));
        let hash = reading.hash_for(tree, run);
        let hidden = extent.hidden(&self.cache, reading.key, reading.seq)?;
        let mut bytes = Vec::new();
        let mut seq = Some(reading.seq);
        while let Some(at) = seq {
            bytes.clear();
            let found = extent.get_hashed(&self.cache, reading.key, hash, at, &mut bytes)?;
            let Some(kind) = found.filter(|kind| !is_hidden(Some(*kind), hidden)) else { break };
            let first = Stored::of_entry(kind, &bytes)?.first(kind.seq());
            let kind = self.follow(tree, reading, Some(kind), now, (&mut bytes, 0))?.unwrap_or(kind);
            if !chain.take(kind, &bytes, now.get())? {
                return Ok(false);
            }
            seq = first.0.checked_sub(1).map(SeqNo);
        }
        hidden.map(|hidden| chain.end_by_range_delete(hidden)).transpose()?;
        Ok(hidden.is_none())
    }
}

/// Counts what a read folds.
pub(crate) fn count_folded(chain: &Chain) {
    count(|cells| add(&cells.operands_resolved, chain.operands().len() as u64));
}
