//! The keys of a multi-get that the cache cannot answer.
//!
//! In rounds: 1. the next part that each key lacks (a filter, an index block, a data block) is sorted, so
//! that keys which lack the same want it once, 2. the parts are read in batches
//! ([`terrane_table::load_many`]), 3. each key of a batch goes on until it has its answer or lacks the next
//! part, and the batch is released before the next one: a call holds at most one batch of blocks. A key whose
//! part did not come, or left the cache before it was used, is read by itself: that ends in any case, and has
//! the error that says why.

use terrane_base::counters::{add, count};
use terrane_base::{Result, SeqKind};
use terrane_levels::Metasnapshot;
use terrane_table::{BATCH_READS, Extent, Loaded, Need, enter, load_many};

use crate::read::get::{Walk, find_extent, get_cached};
use crate::read::merge_operands::Sources;
use crate::read::multi_get::lookup::Batch;
use crate::read::multi_get::pointers::{MissingValue, Pointed};
use crate::read::multi_get::values::Values;

/// A key whose answer needs the store.
#[derive(Clone, Copy)]
pub(crate) struct Missing {
    /// Its place among the keys.
    pub(crate) at: usize,
    pub(crate) hash: u64,
    /// The sorted run it has come to.
    pub(crate) run: usize,
    /// The missing part there.
    pub(crate) need: Need,
}

/// How far a key came in a round.
enum Step {
    /// It is answered: the version found, if any; its value was appended.
    Done(Option<SeqKind>),
    /// It lacks the next part.
    On(Missing),
}

impl Batch<'_> {
    /// Answers the keys that need the store; of those in `pointed` only the values are missing.
    pub(crate) fn fetch(
        &self,
        tree: &Metasnapshot,
        values: &mut Values,
        mut missing: Vec<Missing>,
        mut pointed: Vec<MissingValue>,
    ) -> Result<()> {
        while !missing.is_empty() {
            // One run after the other, in key order within it: equal parts are neighbours.
            missing.sort_unstable_by(|a, b| (a.run, self.keys[a.at]).cmp(&(b.run, self.keys[b.at])));
            let round = std::mem::take(&mut missing);
            for part in round.chunks(BATCH_READS) {
                let needs: Vec<_> = part.iter().map(|key| (self.extent(tree, key), key.need)).collect();
                let loaded = load_many(&self.reader.cache, &needs);
                debug_assert!(loaded.len() == part.len(), "each key gets the part that it lacks, or none");
                for (key, loaded) in part.iter().zip(loaded) {
                    missing.extend(self.go_on(tree, *key, loaded, values, &mut pointed)?);
                }
            }
        }
        self.fetch_values(tree, values, pointed)
    }

    /// The extent in which a key lacks something.
    fn extent<'t>(&self, tree: &'t Metasnapshot, key: &Missing) -> &'t Extent {
        find_extent(tree, key.run, self.keys[key.at]).expect("a key that lacks a part has come to an extent")
    }

    /// Brings a key on with the part that it lacked; returns what it lacks next, if anything. A pointer that
    /// it finds comes to `pointed`.
    fn go_on(
        &self,
        tree: &Metasnapshot,
        key: Missing,
        loaded: Option<Loaded>,
        values: &mut Values,
        pointed: &mut Vec<MissingValue>,
    ) -> Result<Option<Missing>> {
        let mut next = None;
        values.set_by(key.at, |value| {
            let start = value.len();
            match self.step(tree, key, loaded, value)? {
                Step::On(on) => {
                    debug_assert!(
                        (on.run, on.need) > (key.run, key.need),
                        "a key that lacks a part goes forward"
                    );
                    next = Some(on);
                    Ok(false)
                }
                Step::Done(kind) => {
                    let reading = self.reading(self.keys[key.at], key.hash);
                    let found = kind.and_then(|kind| Pointed::of(kind, &value[start..], self.now));
                    if let Some(found) = found {
                        value.truncate(start);
                        pointed.push(MissingValue { at: key.at, hash: key.hash, pointed: found });
                        return Ok(false);
                    }
                    let kind = self.reader.follow(tree, &reading, kind, self.now, (value, start))?;
                    self.rows.fill(&enter(), self.table.id, &reading, kind, &value[start..]);
                    let sources = Sources { memory: None, tree };
                    self.reader.end_read(sources, &reading, kind, self.now, (value, start))
                }
            }
        })?;
        Ok(next)
    }

    fn step(
        &self,
        tree: &Metasnapshot,
        key: Missing,
        loaded: Option<Loaded>,
        value: &mut Vec<u8>,
    ) -> Result<Step> {
        let reading = self.reading(self.keys[key.at], key.hash);
        let Some(loaded) = loaded else {
            return Ok(Step::Done(self.reader.get_from_store(tree, key.run, &reading, value)?));
        };
        // A block in hand is searched as it is: the cache may have had no room for it.
        let hash = reading.hash_for(tree, key.run);
        let extent = self.extent(tree, &key);
        if let Need::Block(_) = key.need
            && !extent.is_ranged()
            && let Some(entry) = extent.find_in(&loaded, reading.key, hash, reading.seq)
        {
            count(|cells| add(&cells.runs_searched, 1));
            reading.count_answer(tree, key.run, false);
            value.extend_from_slice(entry.value);
            return Ok(Step::Done(Some(entry.seq_kind)));
        }
        let mut runs = 0;
        let walk = get_cached(&enter(), tree, key.run, &reading, value, &mut runs);
        count(|cells| add(&cells.runs_searched, runs));
        debug_assert!(
            !matches!(walk, Walk::Missing(run, _) if run < key.run),
            "a walk does not go back to a newer sorted run"
        );
        Ok(match walk {
            Walk::Done(kind) => Step::Done(kind),
            // Only forward: parts that evict each other must not have a key ask for them in turns, for ever.
            Walk::Missing(run, need) if (run, need) > (key.run, key.need) => {
                Step::On(Missing { run, need, ..key })
            }
            Walk::Missing(run, _) => Step::Done(self.reader.get_from_store(tree, run, &reading, value)?),
        })
    }
}
