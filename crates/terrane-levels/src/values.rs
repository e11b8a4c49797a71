//! The value tables of a table: extents of values that entries of other extents point to.
//!
//! ```text
//! ValueTables   least number of each chunk | chunks | sums
//! Chunk         up to 128 value tables by number, shared between metasnapshots
//! ```
//!
//! How much of a value table is live follows from the lists of references of the extents in levels and runs
//! ([`Reference`]): an extent that comes adds to it, one that goes takes away. A value table whose last live
//! entry goes leaves in the same step. So no count is written anywhere that could differ from what there is.
//!
//! Invariants: numbers ascend strictly; no chunk is empty; every live count is the sum over all references.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::{Error, Result, ValueTableId};
use terrane_format::extent::{ExtentMeta, Reference};

use crate::chunk::{HasMeta, Totals};

/// Most value tables in a chunk: a change copies this many.
const CHUNK_LEN_MAX: usize = 128;

/// A value table, and its live entries.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueTable<E> {
    /// That of its extent; beside the counts, because every read of a separated value searches for it.
    number: ValueTableId,
    /// Its extent.
    pub extent: E,
    /// Entries that point into it.
    pub live_entries: u64,
    /// Bytes of their values.
    pub live_bytes: u64,
}

impl<E: HasMeta> ValueTable<E> {
    /// Its number.
    #[inline]
    #[must_use]
    pub fn number(&self) -> ValueTableId {
        self.number
    }

    /// The share of its stored bytes that live values need, in bytes; at most all of them.
    #[must_use]
    pub fn live_stored_bytes(&self) -> u64 {
        let meta = self.extent.meta();
        let entries = meta.entries.max(1);
        let live = share(u64::from(meta.bytes), self.live_entries.min(entries), entries);
        debug_assert!(live <= u64::from(meta.bytes), "{live} live bytes of {}", meta.bytes);
        live
    }
}

/// The value tables of a table, by number; immutable but for what a metasnapshot applies.
#[derive(Debug)]
pub struct ValueTables<E> {
    /// The least number of each chunk.
    firsts: Vec<ValueTableId>,
    chunks: Vec<Arc<Vec<ValueTable<E>>>>,
    totals: Totals,
    live_bytes: u64,
    live_entries: u64,
}

impl<E> Clone for ValueTables<E> {
    fn clone(&self) -> Self {
        let (firsts, chunks) = (self.firsts.clone(), self.chunks.clone());
        let ValueTables { totals, live_bytes, live_entries, .. } = *self;
        ValueTables { firsts, chunks, totals, live_bytes, live_entries }
    }
}

impl<E> Default for ValueTables<E> {
    fn default() -> Self {
        let (firsts, chunks, totals) = (Vec::new(), Vec::new(), Totals::default());
        ValueTables { firsts, chunks, totals, live_bytes: 0, live_entries: 0 }
    }
}

/// Pointers that come and go, by value table.
#[derive(Debug, Default)]
pub(crate) struct Moves(BTreeMap<ValueTableId, Move>);

#[derive(Clone, Copy, Debug, Default)]
struct Move {
    came: (u64, u64),
    went: (u64, u64),
}

impl Moves {
    /// The pointers of an extent come.
    pub(crate) fn come(&mut self, meta: &ExtentMeta) -> Result<()> {
        meta.references().iter().try_for_each(|reference| {
            let came = &mut self.0.entry(reference.table).or_default().came;
            *came = plus(*came, reference)?;
            if terrane_base::planted!(CountReferenceTwice) {
                *came = plus(*came, reference)?;
            }
            Ok(())
        })
    }

    /// The pointers of an extent go.
    pub(crate) fn go(&mut self, meta: &ExtentMeta) -> Result<()> {
        meta.references().iter().try_for_each(|reference| {
            let went = &mut self.0.entry(reference.table).or_default().went;
            *went = plus(*went, reference)?;
            Ok(())
        })
    }
}

impl<E: HasMeta> ValueTables<E> {
    /// The value table with this number.
    #[inline]
    #[must_use]
    pub fn get(&self, number: ValueTableId) -> Option<&ValueTable<E>> {
        let chunk = self.firsts.partition_point(|first| *first <= number).checked_sub(1)?;
        let chunk = &**self.chunks.get(chunk)?;
        // Jobs take numbers one after the other: where none of the chunk has left, this is its place. Where
        // some have, its place is before.
        let ahead = number.0.saturating_sub(chunk.first()?.number.0);
        let guess = usize::try_from(ahead).unwrap_or(usize::MAX).min(chunk.len() - 1);
        if chunk[guess].number == number {
            return Some(&chunk[guess]);
        }
        debug_assert!(
            guess + 1 == chunk.len() || chunk[guess].number > number,
            "numbers ascend strictly, so value table {number} lies before its guess"
        );
        let index = chunk[..guess].binary_search_by_key(&number, ValueTable::number).ok()?;
        Some(&chunk[index])
    }

    /// The value table with the least number above `number`; the first one for `None`.
    #[must_use]
    pub fn next_behind(&self, number: Option<ValueTableId>) -> Option<&ValueTable<E>> {
        debug_assert!(self.firsts.is_sorted_by(|a, b| a < b), "chunks ascend");
        let at = number.map_or(0, |number| self.firsts.partition_point(|first| *first <= number));
        let chunks = at.saturating_sub(1)..self.chunks.len().min(at + 1);
        let mut found = chunks.flat_map(|chunk| self.chunks[chunk].iter());
        found.find(|table| number.is_none_or(|number| table.number() > number))
    }

    /// All value tables, by number.
    pub fn iter(&self) -> impl Iterator<Item = &ValueTable<E>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// Number of value tables.
    #[must_use]
    pub fn len(&self) -> usize {
        self.totals.extents as usize
    }

    /// Returns true if there is no value table.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Sums over all value tables.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Bytes of the values that entries point to, without keys and before compression.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Entries that point to a value.
    #[must_use]
    pub fn live_entries(&self) -> u64 {
        self.live_entries
    }

    /// The share of the stored bytes that live values need, in bytes, by the number of entries.
    #[must_use]
    pub fn live_stored_bytes(&self) -> u64 {
        let entries = self.totals.entries.max(1);
        let live = share(self.totals.bytes, self.live_entries.min(entries), entries);
        debug_assert!(live <= self.totals.bytes, "{live} live bytes of {}", self.totals.bytes);
        live
    }

    /// About the stored bytes that values of so many bytes take, by the mean over all live ones.
    #[must_use]
    pub fn stored_bytes_of(&self, value_bytes: u64) -> u64 {
        share(self.live_stored_bytes(), value_bytes, self.live_bytes)
    }

    /// Adds a value table without live entries.
    ///
    /// # Errors
    /// `Invalid` if the extent is not a value table, or there is one with its number.
    pub(crate) fn add(&mut self, extent: E) -> Result<()> {
        let meta = extent.meta();
        let Some(number) = meta.value_table.map(|section| section.number) else {
            return Err(Error::invalid(format!("extent {} is not a value table", meta.id)));
        };
        if self.get(number).is_some() {
            return Err(Error::invalid(format!("value table {number} exists already")));
        }
        self.totals = self.totals.plus(Totals::of(meta));
        debug_assert!(meta.references.is_none(), "a value table points into no other");
        let added = ValueTable { number, extent, live_entries: 0, live_bytes: 0 };
        let Some(at) = self.firsts.partition_point(|first| *first <= number).checked_sub(1) else {
            self.firsts.insert(0, number);
            self.chunks.insert(0, Arc::new(vec![added]));
            return Ok(());
        };
        let chunk = Arc::make_mut(&mut self.chunks[at]);
        let index = chunk.partition_point(|table| table.number() < number);
        chunk.insert(index, added);
        debug_assert!(
            chunk.is_sorted_by(|a, b| a.number() < b.number()),
            "numbers of value tables ascend in a chunk"
        );
        if chunk.len() > CHUNK_LEN_MAX {
            // Numbers grow, so the chunk before is left full where the new one is the last.
            let behind = if index + 1 == chunk.len() { index } else { chunk.len() / 2 };
            let behind = chunk.split_off(behind);
            assert!(!behind.is_empty(), "a chunk that is split has two parts");
            self.firsts.insert(at + 1, behind[0].number());
            self.chunks.insert(at + 1, Arc::new(behind));
        }
        Ok(())
    }

    /// Counts what came and went; returns the value tables whose last live entry went, which leave.
    ///
    /// # Errors
    /// `Invalid` if there is no such value table, or more would go than is there, or come than it has.
    pub(crate) fn count(&mut self, moves: &Moves) -> Result<Vec<E>> {
        let mut emptied = Vec::new();
        for (number, Move { came, went }) in &moves.0 {
            let at = self.firsts.partition_point(|first| first <= number).checked_sub(1);
            let missing =
                || Error::invalid(format!("an entry points into value table {number}, which does not exist"));
            let found = at.and_then(|at| {
                let index = self.chunks[at].binary_search_by_key(number, ValueTable::number).ok()?;
                Some((at, index))
            });
            if found.is_none() && terrane_base::planted!(PointNowhere) {
                continue;
            }
            let (at, index) = found.ok_or_else(missing)?;
            let table = &self.chunks[at][index];
            let live = (table.live_entries, table.live_bytes);
            let next = |live: u64, came: u64, went: u64| live.checked_add(came)?.checked_sub(went);
            let (entries, bytes) = (next(live.0, came.0, went.0), next(live.1, came.1, went.1));
            let (Some(entries), Some(bytes)) = (entries, bytes) else {
                return Err(Error::invalid(format!(
                    "value table {number} has {live:?} live entries and bytes: {came:?} cannot come and {went:?} go"
                )));
            };
            self.live_entries = self.live_entries.wrapping_add(entries).wrapping_sub(live.0);
            self.live_bytes = self.live_bytes.wrapping_add(bytes).wrapping_sub(live.1);
            let chunk = Arc::make_mut(&mut self.chunks[at]);
            let least = if terrane_base::planted!(DropValueTableEarly) { 1 } else { 0 };
            if entries > least || went.0 == 0 {
                (chunk[index].live_entries, chunk[index].live_bytes) = (entries, bytes);
                continue;
            }
            debug_assert!(entries == 0 && bytes == 0, "{bytes} bytes of no entry are live in {number}");
            let gone = chunk.remove(index).extent;
            self.totals = self.totals.minus(Totals::of(gone.meta()));
            match chunk.first().map(ValueTable::number) {
                Some(first) => self.firsts[at] = first,
                None => {
                    self.firsts.remove(at);
                    self.chunks.remove(at);
                }
            }
            emptied.push(gone);
        }
        assert!(self.firsts.len() == self.chunks.len(), "one least number for each chunk");
        Ok(emptied)
    }

    /// The same value tables with what `make` returns for their extents.
    ///
    /// # Errors
    /// Any error of `make`.
    pub(crate) fn try_map<F: HasMeta>(
        &self,
        mut make: impl FnMut(&E) -> Result<F>,
    ) -> Result<ValueTables<F>> {
        let mut map = |table: &ValueTable<E>| {
            let ValueTable { number, live_entries, live_bytes, .. } = *table;
            let extent = make(&table.extent)?;
            let is_same = extent.meta().value_table.is_some_and(|section| section.number == number);
            assert!(is_same, "the extent of value table {number} is made of another one");
            Ok(ValueTable { number, extent, live_entries, live_bytes })
        };
        let chunks = self.chunks.iter();
        let chunks = chunks.map(|chunk| chunk.iter().map(&mut map).collect::<Result<_>>().map(Arc::new));
        Ok(ValueTables {
            firsts: self.firsts.clone(),
            chunks: chunks.collect::<Result<_>>()?,
            totals: self.totals,
            live_bytes: self.live_bytes,
            live_entries: self.live_entries,
        })
    }

    /// Checks the invariants, against all extents that may point here.
    ///
    /// # Errors
    /// `Invalid`, naming what breaks one.
    pub(crate) fn check<'e>(&self, extents: impl Iterator<Item = &'e E>) -> Result<()>
    where
        E: 'e,
    {
        let mut moves = Moves::default();
        extents.map(HasMeta::meta).try_for_each(|meta| moves.come(meta))?;
        let mut again = ValueTables::default();
        self.iter().try_for_each(|table| again.add(table.extent.clone()))?;
        again.count(&moves)?;
        let counts = |tables: &ValueTables<E>| -> Vec<(ValueTableId, u64, u64)> {
            tables.iter().map(|table| (table.number(), table.live_entries, table.live_bytes)).collect()
        };
        if let Some(dead) = self.iter().find(|table| table.live_entries == 0) {
            return Err(Error::invalid(format!("no entry points into value table {}", dead.number())));
        }
        let sums = |tables: &ValueTables<E>| (tables.totals, tables.live_bytes, tables.live_entries);
        if counts(self) != counts(&again) || sums(self) != sums(&again) || !self.firsts.is_sorted() {
            return Err(Error::invalid("live entries of value tables differ from the pointers into them"));
        }
        Ok(())
    }
}

impl<E: HasMeta> PartialEq for ValueTables<E> {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&ValueTable<E>, &ValueTable<E>)| {
            a.extent.meta() == b.extent.meta()
                && (a.live_entries, a.live_bytes) == (b.live_entries, b.live_bytes)
        };
        self.len() == other.len() && self.iter().zip(other.iter()).all(same)
    }
}

/// `bytes * of / whole`; 0 if `whole` is 0.
fn share(bytes: u64, of: u64, whole: u64) -> u64 {
    let share = (u128::from(bytes) * u128::from(of)).checked_div(u128::from(whole)).unwrap_or(0);
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn plus(sum: (u64, u64), reference: &Reference) -> Result<(u64, u64)> {
    let entries = sum.0.checked_add(reference.entries);
    let bytes = sum.1.checked_add(reference.bytes);
    entries.zip(bytes).ok_or_else(|| Error::invalid("more pointers to values than can be counted"))
}
