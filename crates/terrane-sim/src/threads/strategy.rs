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
pub(crate) enum Kind {
    /// Mean weight of the points of one turn.
    Random { mean: u64 },
    /// Orderings.
    Pct { depth: u64 },
    /// Preemptions.
    Bounded { preemptions: u64 },
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
    pub(crate) fn of_schedule(number: u64, numbers: &mut Rng) -> Kind {
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
pub(crate) struct Strategy {
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
    pub(crate) fn new(kind: Kind, length: u64, mut numbers: Rng) -> Strategy {
        let count = match kind {
            Kind::Random { .. } => 0,
            Kind::Pct { depth } => depth.saturating_sub(1),
            Kind::Bounded { preemptions } => preemptions,
        };
        let mut changes: Vec<u64> = (0..count).map(|_| numbers.below(length.max(1))).collect();
        changes.sort_unstable_by(|left, right| right.cmp(left));
        Strategy { kind, numbers, changes, priorities: Vec::new(), lowest: 1 << 32 }
    }

    pub(crate) fn add_thread(&mut self, id: usize) {
        debug_assert_eq!(id, self.priorities.len());
        self.priorities.push((1 << 33) + (self.numbers.next_u64() >> 1));
    }

    /// Weight of the points until the turn is over, at `passed`.
    pub(crate) fn next_gap(&mut self, passed: u64) -> u64 {
        if let Kind::Random { mean } = self.kind {
            return 1 + self.numbers.below(2 * mean);
        }
        while self.changes.last().is_some_and(|change| *change <= passed) {
            self.changes.pop();
        }
        self.changes.last().map_or(u64::MAX / 2, |change| change - passed)
    }

    /// One of those that are ready, after the turn of `me`. With `gives_way` it is another one if there is
    /// any; what blocked is not among them.
    pub(crate) fn choose(&mut self, ready: &[usize], me: usize, gives_way: bool, passed: u64) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_preempts_so_often_and_no_more() {
        let mut strategy = Strategy::new(Kind::Bounded { preemptions: 3 }, 1000, Rng::new(7));
        (0..3).for_each(|id| strategy.add_thread(id));
        let (mut passed, mut me, mut preemptions) = (0, 0, 0);
        loop {
            let gap = strategy.next_gap(passed);
            if gap > 2000 {
                break;
            }
            passed += gap;
            let next = strategy.choose(&[0, 1, 2], me, false, passed);
            preemptions += u64::from(next != me);
            me = next;
        }
        assert!((1..=3).contains(&preemptions), "{preemptions}");
        assert!(passed <= 1000);
    }

    #[test]
    fn pct_runs_the_thread_of_highest_priority_and_lowers_a_thread_that_yields() {
        let mut strategy = Strategy::new(Kind::Pct { depth: 1 }, 1000, Rng::new(9));
        (0..3).for_each(|id| strategy.add_thread(id));
        let first = strategy.choose(&[0, 1, 2], 0, false, 0);
        assert_eq!(strategy.choose(&[0, 1, 2], first, false, 10), first, "it goes on");
        let second = strategy.choose(&[0, 1, 2], first, true, 20);
        assert_ne!(second, first);
        assert_eq!(strategy.choose(&[0, 1, 2], second, false, 30), second);
    }
}
