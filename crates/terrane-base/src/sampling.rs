//! Selects the operations of a thread that are measured: about one in [`EVERY`], so that the others pay only
//! for a countdown of their own thread.
//!
//! The gaps vary, so that periodic operations are neither always nor never hit. They follow from a fixed
//! start, so that a single-threaded world is repeatable ([`restart`]).

use std::cell::Cell;

use crate::thread_cells;

/// Operations per sample, on average.
pub const EVERY: u64 = 64;

/// Shortest gap; the longest is as far above the average.
const GAP_MIN: u32 = 32;
/// State of the generator of gaps at the beginning: any number but 0.
const BEGINNING: u32 = 0x9e37_79b9;

/// How many operations of a thread are left until one is sampled, and the state of the generator of gaps.
pub(crate) struct Countdown {
    left: Cell<u32>,
    state: Cell<u32>,
}

impl Countdown {
    pub(crate) const fn new() -> Countdown {
        Countdown { left: Cell::new(1), state: Cell::new(BEGINNING) }
    }
}

impl Countdown {
    #[inline]
    fn is_due(&self) -> bool {
        let now = self.left.get();
        if now > 1 {
            self.left.set(now - 1);
            return false;
        }
        self.left.set(next_gap(&self.state));
        true
    }
}

/// Returns true if the calling read is sampled.
#[inline]
#[must_use]
pub fn is_due() -> bool {
    thread_cells::with(|cells| cells.countdown.is_due())
}

/// Returns true if the calling commit is sampled. Commits have a countdown of their own, so that they leave
/// the samples of reads as they are.
#[inline]
#[must_use]
pub fn is_commit_due() -> bool {
    thread_cells::with(|cells| cells.commit_countdown.is_due())
}

/// Begins again on the calling thread: the next operations are sampled as in a new thread.
pub fn restart() {
    thread_cells::with(|cells| {
        for countdown in [&cells.countdown, &cells.commit_countdown] {
            countdown.left.set(1);
            countdown.state.set(BEGINNING);
        }
    });
}

#[cold]
fn next_gap(kept: &Cell<u32>) -> u32 {
    let mut state = kept.get();
    // Xorshift: never 0 if it was not.
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    kept.set(state);
    let spread = 2 * (EVERY as u32 - GAP_MIN) + 1;
    GAP_MIN + state % spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_one_in_every_is_looked_at_and_a_restart_repeats_it() {
        let draw = || {
            restart();
            (0..64_000u32).filter(|_| is_due()).collect::<Vec<_>>()
        };
        let first = draw();
        assert!((950..1050).contains(&first.len()), "{} of 64,000", first.len());
        assert_eq!(draw(), first);
        let commits = || (0..64_000u32).filter(|_| is_commit_due()).collect::<Vec<_>>();
        restart();
        assert_eq!(commits(), first, "reads do not move the samples of commits");
        let in_phase = first.iter().filter(|index| *index % 2 == 0).count();
        assert!((400..600).contains(&in_phase), "every other operation is hit like the others: {in_phase}");
    }
}
