//! Which existing key an operation is on.
//!
//! As YCSB defines them, with these differences:
//! * Scrambled zipfian: YCSB draws a rank out of ten billion whatever the number of keys, hashes it, and
//!   takes the hash modulo the number of keys that it expects: those at the start and twice the inserts that
//!   the run will make; a number that does not exist yet is drawn again. So it is here, for every constant.
//!   But at most as many new keys are expected as exist at the start (a small store under a long run would
//!   otherwise draw again almost for ever), and none in a run bounded by time, whose number of inserts is not
//!   known: there the keys of the start are chosen from.
//! * Latest: the newest key has rank 0 of all that exist; YCSB leaves out the very first key.
//! * Uniform: over all keys that exist at the moment; YCSB leaves out those inserted during the run.

use super::permutation::fnv;
use super::random::Random;
use super::ranges::{HotRanges, KeyRanges};
use super::space::KeySpace;
use super::zipfian::Zipfian;
use crate::error::{Error, Result};
use crate::plan::Distribution;

/// Ranks from which YCSB draws for its scrambled zipfian.
const SCRAMBLED_RANKS: u64 = 10_000_000_000;
/// The zipfian constant of YCSB; its distribution `latest` has the same.
pub const ZIPFIAN_CONSTANT: f64 = 0.99;

/// Chooses keys for one thread.
#[derive(Clone, Debug)]
pub struct Chooser(Method);

#[derive(Clone, Debug)]
enum Method {
    Uniform,
    Sequential { first: u64, last: u64, next: u64 },
    Scrambled { ranks: Zipfian, items: u64 },
    Latest(Zipfian),
    Hot(HotRanges),
    Ranges(KeyRanges),
}

/// Facts about a run that a [`Chooser`] needs.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Number of the thread, from 0.
    pub thread: u32,
    /// Threads of the run, at least 1.
    pub threads: u32,
    /// Inserts that the run is expected to make over all threads; 0 if it is bounded by time.
    pub inserts: u64,
}

impl Chooser {
    /// A chooser over the keys that exist in `space`.
    ///
    /// # Errors
    /// `Plan`: a parameter out of range; `Default`, which the workload must have replaced; a space without
    /// keys.
    pub fn new(distribution: Distribution, space: &KeySpace, part: Part) -> Result<Self> {
        let count = space.count();
        if count == 0 {
            return Err(Error::plan("there are no keys to choose from: load data first"));
        }
        let method = match distribution {
            Distribution::Default => {
                return Err(Error::plan("the default distribution is a workload's: name one"));
            }
            Distribution::Uniform => Method::Uniform,
            Distribution::Sequential => sequential(count, part),
            Distribution::Zipfian(theta) if theta.is_finite() && theta > 0.0 => Method::Scrambled {
                ranks: Zipfian::new(SCRAMBLED_RANKS, theta),
                items: count + part.inserts.saturating_mul(2).min(count),
            },
            Distribution::Zipfian(theta) => {
                return Err(Error::plan(format!("the zipfian constant must be above 0, not {theta}")));
            }
            Distribution::Latest => Method::Latest(Zipfian::new(count, ZIPFIAN_CONSTANT)),
            Distribution::HotRange(keys, operations) => {
                let share = |share: f64| share > 0.0 && share <= 1.0;
                if !share(keys) || !share(operations) {
                    let message = "the shares of a hot range must be above 0 and at most 1";
                    return Err(Error::plan(format!("{message}, not {keys} and {operations}")));
                }
                Method::Hot(HotRanges::new(count, keys, operations))
            }
        };
        Ok(Chooser(method))
    }

    /// The model of db_bench's mixgraph over the keys that exist in `space`.
    ///
    /// # Errors
    /// `Plan`: a space without keys.
    pub fn key_ranges(space: &KeySpace) -> Result<Self> {
        match space.count() {
            0 => Err(Error::plan("there are no keys to choose from: load data first")),
            count => Ok(Chooser(Method::Ranges(KeyRanges::new(count)))),
        }
    }

    /// The number of an existing key.
    #[inline]
    pub fn next(&mut self, space: &KeySpace, random: &mut Random) -> u64 {
        let count = space.count();
        match &mut self.0 {
            Method::Uniform => random.below(count),
            Method::Sequential { first, last, next } => {
                let number = *next;
                *next = if number + 1 < *last { number + 1 } else { *first };
                number
            }
            Method::Scrambled { ranks, items } => loop {
                let number = fnv(ranks.next(random)) % *items;
                if number < count {
                    return number;
                }
            },
            Method::Latest(ranks) => {
                ranks.resize(count);
                count - 1 - ranks.next(random)
            }
            Method::Hot(ranges) => ranges.next(count, random),
            Method::Ranges(ranges) => ranges.next(random),
        }
    }
}

/// The thread's own stretch of the keys that exist now, again and again.
fn sequential(count: u64, part: Part) -> Method {
    let at = |thread: u32| (u128::from(count) * u128::from(thread) / u128::from(part.threads.max(1))) as u64;
    // With more threads than keys a stretch would be empty: it then is one key.
    let first = at(part.thread).min(count - 1);
    let last = at(part.thread + 1).clamp(first + 1, count);
    Method::Sequential { first, last, next: first }
}
