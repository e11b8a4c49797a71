//! Where the time of one operation goes: the waits of its thread are added up, part by part, while a caller
//! [watches](watch).
//!
//! Thread-local cells without a destructor, as in [`crate::counters`]. Each part checks whether it is watched
//! before it reads the clock, so that unwatched operations cost nothing.

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::Duration;

use crate::env::Clock;

/// The parts of an operation whose waiting times are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The background: pacing, and memory.
    HeldBack,
    /// The journal's device makes a commit durable. Of a commit group, only the thread that does it is
    /// counted.
    Persist,
    /// Reads of the store.
    DeviceReads,
}

/// The time of one operation by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// Held back by pacing, or for memory.
    pub held_back: Duration,
    /// Made its group of commits durable.
    pub persist: Duration,
    /// Read from the store.
    pub device_reads: Duration,
}

struct Cells {
    is_watched: Cell<bool>,
    sums: Cell<Timing>,
}

thread_local! {
    static CELLS: Cells = const {
        let none = Timing { held_back: Duration::ZERO, persist: Duration::ZERO, device_reads: Duration::ZERO };
        Cells { is_watched: Cell::new(false), sums: Cell::new(none) }
    };
}

/// A watch over the time of the calling thread, from [`Watched::begin`] until it is dropped. Watches nest:
/// one within another leaves the sums of the outer one as they were.
#[derive(Debug)]
pub struct Watched {
    /// True if the thread was watched before; with the sums of that watch.
    outer: (bool, Timing),
    /// The cells belong to one thread.
    _not_send: PhantomData<*const ()>,
}

impl Watched {
    /// Begins a watch over this thread.
    #[must_use]
    pub fn begin() -> Watched {
        let outer =
            CELLS.with(|cells| (cells.is_watched.replace(true), cells.sums.replace(Timing::default())));
        Watched { outer, _not_send: PhantomData }
    }

    /// Where the time went since the watch began.
    #[must_use]
    pub fn timing(&self) -> Timing {
        CELLS.with(|cells| cells.sums.get())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        CELLS.with(|cells| {
            debug_assert!(
                cells.is_watched.get(),
                "watches of a thread end in the reverse order of their beginnings"
            );
            cells.is_watched.set(self.outer.0);
            cells.sums.set(self.outer.1);
        });
    }
}

/// Runs `operation`; returns its result and where the time of this thread went meanwhile.
pub fn watch<R>(operation: impl FnOnce() -> R) -> (R, Timing) {
    let watched = Watched::begin();
    let done = operation();
    let timing = watched.timing();
    (done, timing)
}

/// Adds to a part, if this thread is watched.
pub fn add(part: Part, took: Duration) {
    CELLS.with(|cells| {
        if cells.is_watched.get() {
            let mut sums = cells.sums.get();
            match part {
                Part::HeldBack => sums.held_back += took,
                Part::Persist => sums.persist += took,
                Part::DeviceReads => sums.device_reads += took,
            }
            cells.sums.set(sums);
        }
    });
}

/// Runs `call`; adds the time that it takes to a part, if this thread is watched.
#[inline]
pub fn time<R>(part: Part, clock: &dyn Clock, call: impl FnOnce() -> R) -> R {
    if !CELLS.with(|cells| cells.is_watched.get()) {
        return call();
    }
    let start = clock.now();
    let done = call();
    add(part, clock.now().saturating_sub(start));
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_while_they_are_watched() {
        let millis = Duration::from_millis;
        add(Part::Persist, millis(1));
        let (inner, timing) = watch(|| {
            add(Part::Persist, millis(2));
            let ((), inner) = watch(|| add(Part::DeviceReads, millis(4)));
            add(Part::Persist, millis(3));
            std::thread::scope(|scope| scope.spawn(|| add(Part::Persist, millis(50))).join().expect("ends"));
            inner
        });
        assert_eq!((timing.persist, timing.device_reads), (millis(5), Duration::ZERO));
        assert_eq!((inner.persist, inner.device_reads), (Duration::ZERO, millis(4)));
        assert_eq!(watch(|| ()).1, Timing::default());
    }

    #[test]
    fn a_panic_ends_the_watch() {
        let panicked = std::panic::catch_unwind(|| watch(|| panic!("on purpose")));
        assert!(panicked.is_err() && !CELLS.with(|cells| cells.is_watched.get()));
    }
}
