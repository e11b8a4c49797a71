//! Write deadlines: how long a write may be held back by the throttle and for memory, by locks of
//! transactions, and by ingests.

use std::time::Duration;

use crate::shared::Shared;

/// How long a write that is not a part of a transaction and has no deadline waits for locks of transactions.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// When the admission of a batch ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    /// The moment of the clock.
    pub(crate) at: Duration,
    /// The wait that was allowed, for the error.
    pub(crate) wait_max: Duration,
}

/// How long one write may be held back, and by what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteWait {
    /// By when it must be admitted, if that is bounded.
    pub(crate) admission: Option<Deadline>,
    /// By when it must have the locks of transactions; without it a write waits as long as writes do by
    /// default.
    pub(crate) locks_until: Option<Duration>,
    /// By when ingests must release its keys, if that is bounded.
    pub(crate) ingest_until: Option<Duration>,
}

impl WriteWait {
    /// Waits as the options say.
    #[inline]
    pub(crate) fn by_options(shared: &Shared) -> WriteWait {
        let admission = shared.write_wait_max().map(|wait_max| shared.deadline_after(wait_max));
        WriteWait { admission, locks_until: None, ingest_until: admission.map(|deadline| deadline.at) }
    }

    /// As [`WriteWait::by_options`], but without any wait for locks of transactions.
    pub(crate) fn without_locks(shared: &Shared) -> WriteWait {
        WriteWait { locks_until: Some(Duration::ZERO), ..WriteWait::by_options(shared) }
    }

    /// Waits for `wait_max` in all, and for admission and ingests no longer than the options say either.
    pub(crate) fn within(shared: &Shared, wait_max: Duration) -> WriteWait {
        let by_options = WriteWait::by_options(shared);
        let own = shared.deadline_after(wait_max);
        let admission = by_options.admission.filter(|longest| longest.wait_max < wait_max).unwrap_or(own);
        WriteWait { admission: Some(admission), locks_until: Some(own.at), ..by_options }
    }
}

impl Shared {
    /// How long any write may be held back, where that is bounded.
    #[inline]
    pub(crate) fn write_wait_max(&self) -> Option<Duration> {
        let millis = self.options.write_wait_max_ms;
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// By when a batch that comes now must be admitted, if that is bounded.
    pub(crate) fn admission_deadline(&self) -> Option<Deadline> {
        WriteWait::by_options(self).admission
    }

    fn deadline_after(&self, wait_max: Duration) -> Deadline {
        Deadline { at: self.env.clock.now().saturating_add(wait_max), wait_max }
    }
}

#[cfg(test)]
mod tests;
