//! Stall events: when writers begin to be held back, and when they are free again.
//!
//! The rate of the throttle changes all the time, often without effect. A stall is what writers notice: it
//! begins when a writer is held back, and ends when no writer was held back for a second.

use std::time::Duration;
use terrane_base::sync::atomic::{AtomicBool, Ordering};

use terrane_base::sync::Mutex;

use crate::observe::events::{Event, StallBegan, StallCause, StallEnded};
use crate::observe::stats::add;
use crate::throttle::control::WriteControl;

/// A stall has ended when no writer was held back for so long.
const CALM: Duration = Duration::from_secs(1);

/// The stall of writers, while they are held back.
#[derive(Debug, Default)]
pub(crate) struct StallEvents {
    /// True during a stall. A write without a stall reads only this.
    is_on: AtomicBool,
    now: Mutex<Option<Stall>>,
}

#[derive(Debug)]
struct Stall {
    began: Duration,
    last: Duration,
    held_back: Duration,
}

impl StallEvents {
    /// Notes that a writer was held back for `took` until `now`; returns whether a stall begins with it.
    fn note(&self, now: Duration, took: Duration) -> bool {
        let mut stall = self.now.lock();
        match &mut *stall {
            Some(stall) => {
                stall.last = stall.last.max(now);
                stall.held_back += took;
                debug_assert!(stall.began <= stall.last, "a stall ends behind its begin: {stall:?}");
                false
            }
            none => {
                *none = Some(Stall { began: now.saturating_sub(took), last: now, held_back: took });
                // Relaxed: a thread that looks too early looks again.
                self.is_on.store(true, Ordering::Relaxed);
                true
            }
        }
    }

    /// The stall that has ended by `now`, if there was one.
    fn end(&self, now: Duration) -> Option<StallEnded> {
        let mut stall = self.now.lock();
        let ended = stall.take_if(|stall| now.saturating_sub(stall.last) >= CALM)?;
        self.is_on.store(false, Ordering::Relaxed);
        debug_assert!(ended.began <= ended.last, "a stall ends behind its begin: {ended:?}");
        Some(StallEnded { lasted: ended.last - ended.began, held_back: ended.held_back })
    }
}

impl WriteControl<'_> {
    /// Notes that a writer was held back for so long.
    pub(crate) fn note_stall(&self, took: Duration, cause: impl FnOnce() -> StallCause) {
        if self.throttle.stalls.note(self.env.clock.now(), took) {
            add(&self.counters.stalls, 1);
            let pressure = self.throttle.debt();
            self.events.enqueue(|| Event::StallBegan(StallBegan { cause: cause(), pressure }));
        }
    }

    /// Looks whether writers are free again. Called by writers and by the background now and then.
    #[inline]
    pub(crate) fn look_at_stall(&self) {
        if self.throttle.stalls.is_on.load(Ordering::Relaxed)
            && let Some(ended) = self.throttle.stalls.end(self.env.clock.now())
        {
            self.events.enqueue(|| Event::StallEnded(ended));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_lasts_until_no_writer_was_held_back_for_a_second() {
        let (stalls, at) = (StallEvents::default(), Duration::from_millis);
        assert!(stalls.end(at(5000)).is_none());
        assert!(stalls.note(at(1010), at(10)));
        assert!(!stalls.note(at(1500), at(20)) && !stalls.note(at(1400), at(30)));
        assert!(stalls.end(at(2499)).is_none());
        let ended = stalls.end(at(2500)).expect("calm for a second");
        assert_eq!((ended.lasted, ended.held_back), (at(500), at(60)));
        assert!(stalls.end(at(9000)).is_none() && stalls.note(at(9000), at(1)), "the next one");
    }
}
