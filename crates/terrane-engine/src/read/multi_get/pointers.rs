//! The pointers to values that a multi-get finds: followed side by side, like keys.
//!
//! 1. In a group, under its epoch: the value tables of all pointers are searched as the sorted runs are
//!    ([`probe_many`]), and their values are copied after all others. 2. Behind the epoch: the blocks that
//!    values lack are sorted by value table and key, which is the order of positions, and read in batches,
//!    index blocks before data blocks, each block once and neighbours in one read. A value whose block did
//!    not come is read by itself, which ends in any case and has the error that says why.

use terrane_base::counters::{add, count};
use terrane_base::stored::put_prefix;
use terrane_base::{Entry, Moment, Result, SeqKind, SeqNo, Stored, ValuePointer};
use terrane_levels::Metasnapshot;
use terrane_table::{Answer, BATCH_READS, Epoch, Extent, Loaded, Lookup, Need, enter, load_many, probe_many};

use crate::read::merge_operands::Sources;
use crate::read::multi_get::group::Group;
use crate::read::multi_get::lookup::Batch;
use crate::read::multi_get::pending::Rest;
use crate::read::multi_get::values::Values;
use crate::read::separated::wanted;
use crate::table::semantics::{ReadClock, Shown};

/// A version that is a pointer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointed {
    kind: SeqKind,
    expires_at: Moment,
    pointer: ValuePointer,
}

/// A value that must be fetched, by the place of its key among the keys and the key's hash.
#[derive(Clone, Copy)]
pub(crate) struct MissingValue {
    pub(crate) at: usize,
    pub(crate) hash: u64,
    pub(crate) pointed: Pointed,
}

impl Pointed {
    /// A version whose bytes are as stored; `None` if it is not a pointer, damaged, or has expired.
    #[inline]
    pub(crate) fn of(kind: SeqKind, bytes: &[u8], now: &ReadClock<'_>) -> Option<Pointed> {
        if !kind.is_pointer() || matches!(now.shown(kind, bytes), Shown::Nothing) {
            return None;
        }
        let stored = Stored::of_entry(kind, bytes).ok()?;
        let pointer = ValuePointer::decode(stored.value).ok()?;
        Some(Pointed { kind, expires_at: stored.expires_at, pointer })
    }

    fn wanted(&self) -> SeqNo {
        wanted(self.kind.seq())
    }

    /// Returns true if an entry that was found at [`Pointed::wanted`] is what the pointer leads to.
    fn leads_to(&self, entry: &Entry<'_>) -> bool {
        let is_exact = self.wanted() == self.kind.seq();
        entry.seq_kind.is_plain_put()
            && (!is_exact || entry.seq_kind.seq() == self.kind.seq())
            && (!is_exact || entry.value.len() == self.pointer.len as usize)
    }
}

impl<'g> Group<'g> {
    /// Follows the pointers of the group; notes which values need the store.
    pub(super) fn ask_values(
        &mut self,
        epoch: &'g Epoch,
        tree: &'g Metasnapshot,
        lookups: &mut Vec<Lookup<'g>>,
        rest: &mut Rest,
    ) {
        if self.pointers.is_empty() {
            return;
        }
        lookups.clear();
        let pointers = std::mem::take(&mut self.pointers);
        let mut asked = Vec::with_capacity(pointers.len());
        for (at, pointed) in pointers {
            match tree.values.get(pointed.pointer.table) {
                Some(values) => {
                    let lookup = Lookup::new(&values.extent, self.key(at), None);
                    lookups.push(lookup.up_to(pointed.wanted()).written_at(pointed.pointer.position));
                    asked.push((at, pointed));
                }
                // A single read returns the error.
                None => self.chains.push(at),
            }
        }
        probe_many(epoch, lookups, SeqNo::MAX);
        assert!(asked.len() == lookups.len(), "one lookup for each pointer");
        for ((at, pointed), lookup) in asked.into_iter().zip(lookups.iter()) {
            match lookup.answer() {
                Answer::Found(entry) if pointed.leads_to(&entry) => {
                    count(|cells| add(&cells.values_followed, 1));
                    self.values[at] = Some(entry.value);
                }
                Answer::Unknown(_) => {
                    let (at, hash) = self.keys[at];
                    rest.values.push(MissingValue { at, hash, pointed });
                }
                _ => self.chains.push(at),
            }
        }
    }
}

impl Batch<'_> {
    /// Fetches values.
    pub(super) fn fetch_values(
        &self,
        tree: &Metasnapshot,
        values: &mut Values,
        mut missing: Vec<MissingValue>,
    ) -> Result<()> {
        let place = |value: &MissingValue| (value.pointed.pointer.table, self.keys[value.at]);
        // In key order within a value table: equal parts are neighbours.
        missing.sort_unstable_by(|a, b| place(a).cmp(&place(b)));
        for part in missing.chunks(BATCH_READS) {
            let extents = part.iter().map(|value| tree.values.get(value.pointed.pointer.table));
            let extents: Vec<Option<&Extent>> = extents.map(|values| Some(&*values?.extent)).collect();
            let loaded = self.load_values(part, &extents);
            debug_assert!(loaded.len() == part.len(), "an answer for each value");
            for ((value, extent), loaded) in part.iter().zip(extents).zip(loaded) {
                self.end_value(tree, values, value, extent.zip(loaded))?;
            }
        }
        Ok(())
    }

    /// The blocks of values, as far as they can be loaded.
    fn load_values(&self, part: &[MissingValue], extents: &[Option<&Extent>]) -> Vec<Option<Loaded>> {
        debug_assert!(extents.len() == part.len(), "each value has an extent, or none");
        let cache = &self.reader.cache;
        let mut indexes: Vec<_> = extents.iter().flatten().map(|extent| (*extent, Need::Index)).collect();
        indexes.dedup_by(|a, b| std::ptr::eq(a.0, b.0));
        // Held until the blocks are read.
        let held = load_many(cache, &indexes);
        let mut asked = Vec::with_capacity(part.len());
        let mut needs = Vec::with_capacity(part.len());
        for (number, (value, extent)) in part.iter().zip(extents).enumerate() {
            let need = |extent: &Extent| match value.pointed.pointer.position {
                Some(position) => extent.value_need(position),
                None => extent.block_need(self.keys[value.at]),
            };
            if let Some((extent, need)) = extent.and_then(|extent| Some((extent, need(extent)?))) {
                asked.push(number);
                needs.push((extent, need));
            }
        }
        count(|cells| {
            add(&cells.value_batches, 1);
            add(&cells.value_batch_reads, (indexes.len() + needs.len()) as u64);
        });
        let mut loaded = vec![None; part.len()];
        for (number, block) in asked.into_iter().zip(load_many(cache, &needs)) {
            loaded[number] = block;
        }
        drop(held);
        loaded
    }

    /// Sets the answer of a key whose version is a pointer, from the block that was loaded or by itself.
    fn end_value(
        &self,
        tree: &Metasnapshot,
        values: &mut Values,
        MissingValue { at, hash, pointed }: &MissingValue,
        block: Option<(&Extent, Loaded)>,
    ) -> Result<()> {
        let Pointed { kind, expires_at, pointer } = *pointed;
        debug_assert!(kind.is_pointer(), "a value is fetched that a pointer leads to");
        let reading = self.reading(self.keys[*at], *hash);
        values.set_by(*at, |value| {
            let start = value.len();
            put_prefix(value, expires_at, None);
            let found = block.as_ref().and_then(|(extent, block)| {
                extent
                    .find_in(block, reading.key, None, pointed.wanted())
                    .filter(|entry| pointed.leads_to(entry))
            });
            let Some(entry) = found else {
                pointer.encode(value);
                let kind = self.reader.follow(tree, &reading, Some(kind), self.now, (value, start))?;
                self.rows.fill(&enter(), self.table.id, &reading, kind, &value[start..]);
                let sources = Sources { memory: None, tree };
                return self.reader.end_read(sources, &reading, kind, self.now, (value, start));
            };
            count(|cells| add(&cells.values_followed, 1));
            value.extend_from_slice(entry.value);
            let kind = kind.inlined();
            self.rows.fill(&enter(), self.table.id, &reading, Some(kind), &value[start..]);
            if kind.is_wrapped() { self.now.unwrap(kind, value, start) } else { Ok(true) }
        })
    }
}
