//! The operations of one thread.
//!
//! The same definition, run, data, seed and thread give the same operations, but for the numbers of inserts
//! when several threads insert, and for choices among keys while their number grows.
//!
//! A thread that takes an `Insert` from a stream must [`KeySpace::acknowledge`] its number once it is
//! written.

use std::sync::Arc;

use super::catalogue::{Background, Definition, KeyChoice, Kind, Mix, RANGE_KEYS, Rows};
use super::distribution::{Chooser, Part};
use super::operation::{Operation, OperationKind};
use super::permutation::Permutation;
use super::random::Random;
use super::sizes::{Sizes, pareto};
use super::space::KeySpace;
use crate::engine::Direction;
use crate::error::{Error, Result};
use crate::plan::{Data, Distribution, Run, Until};

/// Number that stands for the background thread where threads have numbers.
const BACKGROUND: u32 = u32::MAX;

/// A stream of operations.
#[derive(Clone, Debug)]
pub struct Stream {
    random: Random,
    keys: Source,
    space: Arc<KeySpace>,
    kinds: Kinds,
    sizes: Sizes,
    rows: Rows,
    scan_rows: u64,
    multi_get: usize,
    transaction_keys: usize,
    direction: Direction,
}

#[derive(Clone, Debug)]
enum Source {
    /// Each number below the bound once.
    Fill { bound: u64, order: Option<Permutation> },
    /// Keys that exist, and new ones for inserts.
    Existing(Chooser),
}

impl Stream {
    /// The stream of thread `thread` of `threads`.
    ///
    /// # Errors
    /// `Plan`: the workload is not a stream; an option of the run that it cannot follow (a distribution for a
    /// fill, scans of no rows, multi-gets of no keys, sizes that make no sense); no keys where some must
    /// exist.
    pub fn new(
        definition: &Definition,
        run: &Run,
        data: &Data,
        space: Arc<KeySpace>,
        seed: u64,
        thread: u32,
        threads: u32,
    ) -> Result<Self> {
        let Kind::Stream(mix) = &definition.kind else {
            return Err(Error::plan(format!("{} is not a stream of operations", definition.name)));
        };
        let part = Part { thread, threads, inserts: expected_inserts(mix, run) };
        Self::of_mix(definition, mix, run, data, space, seed, part)
    }

    /// The stream of the background thread of a workload that has one which writes.
    ///
    /// It chooses its keys uniformly, whatever the distribution of the run, as db_bench does.
    ///
    /// # Errors
    /// `Plan`: the workload has no such thread; as [`Stream::new`].
    pub fn background(
        definition: &Definition,
        run: &Run,
        data: &Data,
        space: Arc<KeySpace>,
        seed: u64,
    ) -> Result<Self> {
        let Some(Background::Write(mix)) = &definition.background else {
            return Err(Error::plan(format!("{} has no background thread that writes", definition.name)));
        };
        let run = Run { distribution: Distribution::Uniform, ..run.clone() };
        Self::of_mix(
            definition,
            mix,
            &run,
            data,
            space,
            seed,
            Part { thread: BACKGROUND, threads: 1, inserts: 0 },
        )
    }

    fn of_mix(
        definition: &Definition,
        mix: &Mix,
        run: &Run,
        data: &Data,
        space: Arc<KeySpace>,
        seed: u64,
        part: Part,
    ) -> Result<Self> {
        let refuse = |what: &str| Err(Error::plan(format!("{}: {what}", definition.name)));
        if mix.share(OperationKind::Scan) > 0.0 && run.scan_rows == 0 {
            return refuse("scan_rows must be at least 1");
        }
        if mix.share(OperationKind::MultiRead) > 0.0 && run.multi_get == 0 {
            return refuse("multi_get must be at least 1");
        }
        if mix.share(OperationKind::Transaction) > 0.0 {
            let most = (space.count() / 2).max(1);
            if run.transaction_keys == 0 || u64::from(run.transaction_keys) > most {
                return refuse("transaction_keys must be at least 1, and at most half of the keys");
            }
        }
        let keys = match (mix.keys, run.distribution) {
            (KeyChoice::Ascending | KeyChoice::Shuffled, Distribution::Default) => {
                let order = (mix.keys == KeyChoice::Shuffled).then(|| Permutation::new(data.keys, seed));
                Source::Fill { bound: data.keys, order }
            }
            (KeyChoice::Ascending | KeyChoice::Shuffled, _) => {
                return refuse("it has its own order of keys and takes no distribution");
            }
            (KeyChoice::KeyRanges, Distribution::Default) => Source::Existing(Chooser::key_ranges(&space)?),
            (KeyChoice::Existing | KeyChoice::KeyRanges, chosen) => {
                let chosen = match (chosen, definition.distribution) {
                    (Distribution::Default, Some(distribution)) => distribution,
                    (chosen, _) => chosen,
                };
                Source::Existing(Chooser::new(chosen, &space, part)?)
            }
        };
        Ok(Stream {
            // Threads must differ, and thread 1 of seed 7 must not be thread 0 of seed 8.
            random: Random::new(Random::new(seed).next_u64() ^ u64::from(part.thread)),
            keys,
            space,
            kinds: Kinds::new(mix.shares),
            sizes: mix.sizes(data)?,
            rows: mix.rows,
            scan_rows: run.scan_rows,
            multi_get: run.multi_get as usize,
            transaction_keys: run.transaction_keys as usize,
            direction: run.direction,
        })
    }

    /// Puts the next operation into `operation`; `false`: the stream has ended. The vector of a `MultiRead`
    /// is reused.
    #[inline]
    pub fn next(&mut self, operation: &mut Operation) -> bool {
        let chooser = match &mut self.keys {
            Source::Existing(chooser) => chooser,
            Source::Fill { bound, order } => {
                let Some(place) = self.space.claim_below(*bound) else { return false };
                let number = order.as_ref().map_or(place, |order| order.at(place));
                *operation = Operation::Insert(number, self.sizes.next(&mut self.random));
                return true;
            }
        };
        let random = &mut self.random;
        let kind = self.kinds.next(random);
        if kind == OperationKind::Insert {
            *operation = Operation::Insert(self.space.claim_insert(), self.sizes.next(random));
            return true;
        }
        let number = chooser.next(&self.space, random);
        *operation = match kind {
            OperationKind::Read => Operation::Read(number),
            OperationKind::ReadMissing => Operation::ReadMissing(number),
            OperationKind::Update => Operation::Update(number, self.sizes.next(random)),
            OperationKind::ReadModifyWrite => Operation::ReadModifyWrite(number, self.sizes.next(random)),
            OperationKind::Delete => Operation::Delete(number),
            OperationKind::DeleteRange => Operation::DeleteRange(number, RANGE_KEYS),
            OperationKind::Scan => {
                let rows = rows(self.rows, self.scan_rows, random);
                Operation::Scan(number, rows, self.direction)
            }
            OperationKind::MultiRead => {
                let mut numbers = match operation {
                    Operation::MultiRead(numbers) => std::mem::take(numbers),
                    _ => Vec::with_capacity(self.multi_get),
                };
                numbers.clear();
                numbers.push(number);
                numbers.extend((1..self.multi_get).map(|_| chooser.next(&self.space, random)));
                Operation::MultiRead(numbers)
            }
            OperationKind::Transaction => {
                let mut numbers = match operation {
                    Operation::Transaction(numbers, _) => std::mem::take(numbers),
                    _ => Vec::with_capacity(self.transaction_keys),
                };
                numbers.clear();
                numbers.push(number);
                while numbers.len() < self.transaction_keys {
                    let mut number = chooser.next(&self.space, random);
                    // A neighbour instead: a hot set may have fewer keys than the transaction.
                    while numbers.contains(&number) {
                        number = (number + 1) % self.space.count();
                    }
                    numbers.push(number);
                }
                Operation::Transaction(numbers, self.sizes.next(random))
            }
            OperationKind::Insert => unreachable!("inserts are made above"),
        };
        true
    }
}

/// How many keys the run will insert, as far as the plan tells.
fn expected_inserts(mix: &Mix, run: &Run) -> u64 {
    match run.until {
        Until::Operations(operations) => (operations as f64 * mix.share(OperationKind::Insert)) as u64,
        Until::Seconds(_) => 0,
    }
}

#[inline]
fn rows(rows: Rows, scan_rows: u64, random: &mut Random) -> u64 {
    match rows {
        Rows::Fixed => scan_rows,
        Rows::Uniform => 1 + random.below(scan_rows),
        // db_bench takes the remainder, which may be 0: a seek alone.
        Rows::Pareto(shape, scale) => pareto(random, shape, scale) % scan_rows,
    }
}

/// Draws the kind of an operation.
#[derive(Clone, Debug)]
struct Kinds {
    /// Upper ends of the shares of the numbers below 2^64; the last share takes the rest.
    ends: Vec<(u64, OperationKind)>,
    last: OperationKind,
}

impl Kinds {
    fn new(shares: &[(OperationKind, f64)]) -> Self {
        let (&(last, _), others) = shares.split_last().expect("a mix has at least one kind");
        let mut so_far = 0.0;
        let ends = others
            .iter()
            .map(|(kind, share)| {
                so_far += share;
                ((so_far * 2f64.powi(64)) as u64, *kind)
            })
            .collect();
        Kinds { ends, last }
    }

    #[inline]
    fn next(&self, random: &mut Random) -> OperationKind {
        if self.ends.is_empty() {
            return self.last;
        }
        let draw = random.next_u64();
        self.ends.iter().find(|(end, _)| draw < *end).map_or(self.last, |(_, kind)| *kind)
    }
}
