//! Selects the operations of a thread that are measured: about one in [`EVERY`], so that the others pay only
//! for a countdown of their own thread.
//!
//! The gaps vary, so that periodic operations are neither always nor never hit. They follow from a fixed
//! start, so that a single-threaded world is repeatable ([`restart`]).

use std::cell::Cell;

/// Operations per sample, on average.
pub const EVERY: u64 = 64;

/// Shortest gap; the longest is as far above the average.
const GAP_MIN: u32 = 32;
/// State of the generator of gaps at the beginning: any number but 0.
const BEGINNING: u32 = 0x9e37_79b9;

thread_local! {
    // Without destructors and made at compile time, as the read counters.
    static LEFT: Cell<u32> = const { Cell::new(1) };
    static STATE: Cell<u32> = const { Cell::new(BEGINNING) };
}

/// Returns true if the calling operation is sampled.
#[inline]
#[must_use]
pub fn is_due() -> bool {
    LEFT.with(|left| {
        let now = left.get();
        if now > 1 {
            left.set(now - 1);
            return false;
        }
        left.set(next_gap());
        true
    })
}

/// Begins again on the calling thread: the next operations are sampled as in a new thread.
pub fn restart() {
    LEFT.set(1);
    STATE.set(BEGINNING);
}

#[cold]
fn next_gap() -> u32 {
    let mut state = STATE.get();
    // Xorshift: never 0 if it was not.
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    STATE.set(state);
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
        let in_phase = first.iter().filter(|index| *index % 2 == 0).count();
        assert!((400..600).contains(&in_phase), "every other operation is hit like the others: {in_phase}");
    }
}
