//! How the next thread is chosen, and after how many points.
//!
//! * *Random*: turns of random length around a mean, then any thread that is ready.
//! * *PCT* (Burckhardt, Kothari, Musuvathi, Nagarakatte 2010): random priorities, the ready thread with the
//!   highest one runs; at `depth - 1` random points of the program the thread that runs gets a priority below
//!   all others. Finds a bug that needs `depth` orderings with a probability that has a lower bound.
//! * *Bounded* (Musuvathi, Qadeer 2007): a thread runs until it blocks, but for a small number of preemptions
//!   at random points. Most bugs need two.

use std::fmt;
use terrane_base::Rng;

/// Kind of strategy, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Random turns.
    Random {
        /// Mean weight of the points of one turn.
        mean: u64,
    },
    /// Priorities.
    Pct {
        /// Orderings.
        depth: u64,
    },
    /// Few preemptions.
    Bounded {
        /// How many at most.
        preemptions: u64,
    },
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Random { mean } => write!(f, "random turns of {mean}"),
            Kind::Pct { depth } => write!(f, "PCT of depth {depth}"),
            Kind::Bounded { preemptions } => write!(f, "{preemptions} preemptions"),
        }
    }
}

impl Kind {
    /// The kind of the schedule with this number: the first of a history has no preemption and measures its
    /// length.
    #[must_use]
    pub fn of_schedule(number: u64, numbers: &mut Rng) -> Kind {
        if number == 0 {
            return Kind::Bounded { preemptions: 0 };
        }
        match number % 3 {
            0 => Kind::Random { mean: *numbers.pick(&[30, 100, 300, 1_000, 3_000, 10_000]) },
            1 => Kind::Pct { depth: 2 + numbers.below(4) },
            _ => Kind::Bounded { preemptions: 1 + numbers.below(4) },
        }
    }
}

/// A strategy under way.
#[derive(Clone, Debug)]
pub struct Strategy {
    kind: Kind,
    numbers: Rng,
    /// Points at which the turn ends, descending.
    changes: Vec<u64>,
    /// Of each thread; the greatest runs. Not of the random strategy.
    priorities: Vec<u64>,
    /// The next priority below all others.
    lowest: u64,
}

impl Strategy {
    /// A strategy for a program whose points have about the weight `length` together.
    #[must_use]
    pub fn new(kind: Kind, length: u64, mut numbers: Rng) -> Strategy {
        let count = match kind {
            Kind::Random { .. } => 0,
            Kind::Pct { depth } => depth.saturating_sub(1),
            Kind::Bounded { preemptions } => preemptions,
        };
        let mut changes: Vec<u64> = (0..count).map(|_| numbers.below(length.max(1))).collect();
        changes.sort_unstable_by(|left, right| right.cmp(left));
        Strategy { kind, numbers, changes, priorities: Vec::new(), lowest: 1 << 32 }
    }

    /// Adds the next thread; the first has the number 0.
    pub fn add_thread(&mut self, id: usize) {
        debug_assert_eq!(id, self.priorities.len());
        self.priorities.push((1 << 33) + (self.numbers.next_u64() >> 1));
    }

    /// Weight of the points until the turn is over, at `passed`.
    pub fn next_gap(&mut self, passed: u64) -> u64 {
        if let Kind::Random { mean } = self.kind {
            return 1 + self.numbers.below(2 * mean);
        }
        while self.changes.last().is_some_and(|change| *change <= passed) {
            self.changes.pop();
        }
        self.changes.last().map_or(u64::MAX / 2, |change| change - passed)
    }

    /// One of those that are ready, after the turn of `me`. With `gives_way` it is another one if there is
    /// any; what blocked is not among them. Requires: all of them were added.
    pub fn choose(&mut self, ready: &[usize], me: usize, gives_way: bool, passed: u64) -> usize {
        let others: Vec<usize> = ready.iter().copied().filter(|id| *id != me).collect();
        if others.is_empty() {
            return me;
        }
        let is_preempted = !gives_way && self.changes.last().is_some_and(|change| *change <= passed);
        match self.kind {
            Kind::Random { .. } if gives_way => *self.numbers.pick(&others),
            Kind::Random { .. } => *self.numbers.pick(ready),
            Kind::Pct { .. } => {
                if is_preempted || gives_way && ready.contains(&me) {
                    // A thread that spins waits for one that is below it.
                    self.lowest -= 1;
                    self.priorities[me] = self.lowest;
                }
                let greatest = ready.iter().copied().max_by_key(|id| self.priorities[*id]);
                greatest.unwrap_or(me)
            }
            Kind::Bounded { .. } if gives_way || is_preempted => *self.numbers.pick(&others),
            Kind::Bounded { .. } => me,
        }
    }
}
