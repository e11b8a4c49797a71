//! How long no writer has written, and which work for such times is done.

use std::time::Duration;

use terrane_base::sync::Mutex;

/// How long there must have been no write.
const IDLE_MIN: Duration = Duration::from_millis(1000);

/// The state at the last look.
#[derive(Debug, Default)]
pub(crate) struct IdleWatch(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    bytes_written: u64,
    since: Option<Duration>,
    /// True if space was given back since.
    has_reclaimed: bool,
    /// Less than this is left of any table, since when nothing was written.
    remains_below: Option<u64>,
}

impl IdleWatch {
    /// Returns true if nothing was written for [`IDLE_MIN`], as far as looks at `bytes_written` show.
    pub(in crate::background) fn is_idle(&self, bytes_written: u64, now: Duration) -> bool {
        let mut seen = self.0.lock();
        debug_assert!(
            seen.since.is_some() || !seen.has_reclaimed,
            "space was given back before the first look"
        );
        match seen.since {
            Some(since) if seen.bytes_written == bytes_written => now.saturating_sub(since) >= IDLE_MIN,
            _ => {
                let has_reclaimed = terrane_base::planted!(ReclaimOnce) && seen.has_reclaimed;
                *seen = Seen { bytes_written, since: Some(now), has_reclaimed, remains_below: None };
                false
            }
        }
    }

    /// Space becomes free without writes.
    pub(crate) fn reclaim_again(&self) {
        if !terrane_base::planted!(ReclaimOnce) {
            self.0.lock().has_reclaimed = false;
        }
    }

    /// Returns true if less than `bytes` is left of any table, by the last [`Self::note_remains`].
    pub(in crate::background) fn has_less_than(&self, bytes: u64) -> bool {
        self.0.lock().remains_below.is_some_and(|below| below <= bytes)
    }

    /// Notes that less than `bytes` is left of any table; without a write it stays so.
    pub(in crate::background) fn note_remains(&self, bytes: u64) {
        self.0.lock().remains_below = Some(bytes);
    }

    /// Returns true if this is the first call since the last look that found something written, or since
    /// [`Self::reclaim_again`].
    pub(in crate::background) fn begins_reclaim(&self) -> bool {
        !std::mem::replace(&mut self.0.lock().has_reclaimed, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_restarts_the_wait() {
        let watch = IdleWatch::default();
        let at = Duration::from_millis;
        assert!(!watch.is_idle(5, at(0)), "the first look knows nothing of before");
        assert!(!watch.is_idle(5, at(999)));
        assert!(watch.is_idle(5, at(1000)));
        assert!(!watch.is_idle(6, at(1500)));
        assert!(!watch.is_idle(6, at(2499)));
        assert!(watch.is_idle(6, at(2500)));
    }

    #[test]
    fn space_is_given_back_again_behind_each_write_and_each_request() {
        let watch = IdleWatch::default();
        let begins_at_rest = |bytes_written: u64, from: u64| {
            watch.is_idle(bytes_written, Duration::from_millis(from));
            assert!(watch.is_idle(bytes_written, Duration::from_millis(from + 1000)));
            watch.begins_reclaim()
        };
        assert!(begins_at_rest(5, 0));
        assert!(!begins_at_rest(5, 5000), "once without a write");
        assert!(begins_at_rest(6, 10_000), "again behind a write");
        assert!(!begins_at_rest(6, 15_000));
        watch.reclaim_again();
        assert!(begins_at_rest(6, 20_000), "again behind a request");
    }
}
