//! The control of a running job: progress, pause, cancel, rate.
//!
//! A job calls [`JobControl::check`] at least once per block. Usually that costs one load of a cache line
//! that no thread writes.

mod elsewhere;
mod written;

use std::sync::{Arc, OnceLock};
use std::time::Duration;
use terrane_base::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use terrane_base::env::Clock;
use terrane_base::prefix_extractor::Extractor;
use terrane_base::sync::{Condvar, Mutex};
use terrane_base::{CompactionFilter, Error, Kind, MergeOperator, Moment, Result, SeqNo, ValueTableId};

use terrane_format::extent::Origin;
use terrane_table::FreshExtents;

use crate::job::{Work, with_work_fields};
use elsewhere::AtomicElsewhere;
pub use elsewhere::Elsewhere;

const RUNNING: u8 = 0;
const PAUSED: u8 = 1;
const CANCELLED: u8 = 2;

/// Longest sleep of a throttled job between two checks for cancellation.
const NAP_MAX: Duration = Duration::from_millis(20);
/// How much unused rate may be saved: long enough for a late wake-up, too short for a burst.
const SAVED_MAX: Duration = Duration::from_millis(50);

/// A limit of bytes per second, shared by all jobs that write to one device.
///
/// A token bucket stored as a time (the generic cell rate algorithm, ITU-T I.371, 1996): the bytes granted so
/// far fit the rate up to `granted_until`; a caller that takes bytes moves it forward and sleeps until that
/// time. Grants are in the order of the requests.
#[derive(Debug)]
pub struct RateLimiter {
    clock: Arc<dyn Clock>,
    /// 0: no limit.
    bytes_per_second: AtomicU64,
    granted_until: Mutex<Duration>,
}

impl RateLimiter {
    /// A limiter; 0 bytes per second mean no limit.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, bytes_per_second: u64) -> Self {
        let granted_until = Mutex::new(clock.now());
        RateLimiter { clock, bytes_per_second: AtomicU64::new(bytes_per_second), granted_until }
    }

    /// Sets the limit for later requests; 0 removes it.
    pub fn set_rate(&self, bytes_per_second: u64) {
        self.bytes_per_second.store(bytes_per_second, Ordering::Relaxed);
    }

    /// The limit in bytes per second; 0 means that there is no limit.
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.bytes_per_second.load(Ordering::Relaxed)
    }

    /// Takes `bytes` and returns how long the caller must wait for them.
    fn take(&self, bytes: u64) -> Duration {
        let rate = self.rate();
        if rate == 0 {
            return Duration::ZERO;
        }
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let mut granted_until = self.granted_until.lock();
        let (before, now) = (*granted_until, self.clock.now());
        *granted_until = before.max(now.saturating_sub(SAVED_MAX)).saturating_add(cost);
        debug_assert!(*granted_until >= before, "the time up to which bytes are granted only rises");
        granted_until.saturating_sub(now)
    }
}

/// Why a job was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelCause {
    /// The running jobs were cancelled on request; they may be started again.
    Asked,
    /// Only reads would have gained by it, and other background work is needed.
    Unneeded,
    /// It served a manual compaction of a range, and these are paused.
    Held,
    /// Its table was dropped.
    Dropped,
    /// The database is being closed.
    Closing,
}

/// The control of one job, shared between the job and its observers.
#[derive(Debug)]
pub struct JobControl {
    /// [`RUNNING`], [`PAUSED`] or [`CANCELLED`]; changed under `gate`.
    state: AtomicU8,
    /// True while the job waits in [`JobControl::wait`]; changed under `gate`.
    stands: AtomicBool,
    gate: Mutex<()>,
    /// Set before `state` is.
    cancelled: OnceLock<CancelCause>,
    changed: Condvar,
    clock: Arc<dyn Clock>,
    /// When the job began.
    begun: Duration,
    limiter: Option<Arc<RateLimiter>>,
    work: AtomicWork,
    operator: OnceLock<Arc<dyn MergeOperator>>,
    extractor: OnceLock<Arc<Extractor>>,
    /// The next free number of a value table or overflow run.
    value_numbers: OnceLock<Arc<AtomicU64>>,
    filtering: OnceLock<Filtering>,
    origin: OnceLock<Origin>,
    /// The handles of what the job wrote and its engine has not installed.
    fresh: OnceLock<FreshExtents>,
    moment: OnceLock<Moment>,
    elsewhere: AtomicElsewhere,
}

/// A compaction filter, and the rows that it is not called for.
#[derive(Clone, Debug)]
pub(crate) struct Filtering {
    pub(crate) filter: Arc<dyn CompactionFilter>,
    /// Rows with this number or a smaller one are visible to snapshots.
    pub(crate) seen: SeqNo,
}

macro_rules! atomic_work {
    ($($field:ident),*) => {
        #[derive(Debug, Default)]
        struct AtomicWork { $($field: AtomicU64),* }

        impl AtomicWork {
            fn load(&self) -> Work {
                Work { $($field: self.$field.load(Ordering::Relaxed)),* }
            }

            fn store(&self, work: &Work) {
                // Only the job's thread writes, so that no addition is lost.
                $(self.$field.store(work.$field, Ordering::Relaxed);)*
            }
        }
    };
}

with_work_fields!(atomic_work);

impl JobControl {
    /// The control of one job. `limiter` bounds the bytes that it writes.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, limiter: Option<Arc<RateLimiter>>) -> Self {
        JobControl {
            state: AtomicU8::new(RUNNING),
            stands: AtomicBool::new(false),
            gate: Mutex::new(()),
            cancelled: OnceLock::new(),
            changed: Condvar::new(),
            begun: clock.now(),
            clock,
            limiter,
            work: AtomicWork::default(),
            operator: OnceLock::new(),
            value_numbers: OnceLock::new(),
            extractor: OnceLock::new(),
            filtering: OnceLock::new(),
            origin: OnceLock::new(),
            fresh: OnceLock::new(),
            moment: OnceLock::new(),
            elsewhere: AtomicElsewhere::default(),
        }
    }

    /// Notes where the job was done. Only what runs the job calls this.
    pub fn note_elsewhere(&self, elsewhere: Elsewhere) {
        self.elsewhere.store(elsewhere);
    }

    /// Where the job was done, and how often it was tried elsewhere.
    #[must_use]
    pub fn elsewhere(&self) -> Elsewhere {
        self.elsewhere.load()
    }

    /// Makes the job fold operands with the merge operator of its table. Without one it keeps them.
    pub fn fold_with(&self, operator: Arc<dyn MergeOperator>) {
        debug_assert!(
            self.operator.get().is_none_or(|set| set.name() == operator.name()),
            "a job folds with one operator"
        );
        // A control belongs to one job: a second call passes the same operator.
        let _ = self.operator.set(operator);
    }

    /// Makes the job call a compaction filter, except for rows with the number `seen` or a smaller one.
    pub fn filter_with(&self, filter: Arc<dyn CompactionFilter>, seen: SeqNo) {
        debug_assert!(
            self.filtering.get().is_none_or(|set| set.filter.name() == filter.name()),
            "a job asks one filter"
        );
        // As above.
        let _ = self.filtering.set(Filtering { filter, seen });
    }

    /// The filter that the job calls.
    pub(crate) fn filtering(&self) -> Option<&Filtering> {
        self.filtering.get()
    }

    /// Gives the job the counter of numbers for its value tables, which the overflow runs share.
    pub fn number_values_with(&self, numbers: Arc<AtomicU64>) {
        debug_assert!(
            self.value_numbers.get().is_none_or(|set| Arc::ptr_eq(set, &numbers)),
            "one counter gives out the numbers of a job's value tables"
        );
        // A control belongs to one job: a second call passes the same counter.
        let _ = self.value_numbers.set(numbers);
    }

    /// The number of a new value table.
    pub(crate) fn next_value_table(&self) -> Result<ValueTableId> {
        let numbers = self.value_numbers.get().ok_or_else(crate::merge::no_numbers)?;
        // Relaxed: only that no number is given out twice counts.
        Ok(ValueTableId(numbers.fetch_add(1, Ordering::Relaxed)))
    }

    /// The operator with which the job folds operands.
    pub(crate) fn operator(&self) -> Option<&Arc<dyn MergeOperator>> {
        self.operator.get()
    }

    /// Makes the job add prefixes of keys to the filters that it builds.
    pub fn filter_prefixes(&self, extractor: Arc<Extractor>) {
        let _ = self.extractor.set(extractor);
    }

    /// The extractor of these prefixes.
    pub(crate) fn extractor(&self) -> Option<&Arc<Extractor>> {
        self.extractor.get()
    }

    /// The time by which a job decides what has expired.
    pub(crate) fn moment(&self) -> Moment {
        let decided = self.moment.get().copied();
        decided.unwrap_or_else(|| Moment(self.clock.wall().as_millis() as u64))
    }

    /// Makes the job decide by this time what has expired, whatever its machine's clock says.
    pub fn decide_as_of(&self, moment: Moment) {
        debug_assert!(self.moment.get().is_none_or(|set| *set == moment), "a job has one time");
        // As above.
        let _ = self.moment.set(moment);
    }

    /// Time since the control was made, just before its job began.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.clock.now().saturating_sub(self.begun)
    }

    /// The work that the job has done so far; fields may be a block apart.
    #[must_use]
    pub fn work(&self) -> Work {
        self.work.load()
    }

    /// Pauses the job at its next block until [`JobControl::resume`]. No effect once cancelled.
    pub fn pause(&self) {
        self.turn(PAUSED, |state| state == RUNNING);
    }

    /// Resumes a paused job.
    pub fn resume(&self) {
        self.turn(RUNNING, |state| state == PAUSED);
    }

    /// Ends the job at its next block with an error of kind `Cancelled`; it frees what it wrote. The first
    /// cause is kept.
    pub fn cancel(&self, cause: CancelCause) {
        let _ = self.cancelled.set(cause);
        self.turn(CANCELLED, |_| true);
        debug_assert!(self.cancelled().is_some(), "a cancelled job has a cause");
    }

    /// The cause, if the job was cancelled.
    #[must_use]
    pub fn cancelled(&self) -> Option<CancelCause> {
        self.cancelled.get().copied()
    }

    /// Returns true if the job will pause at its next block.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.state.load(Ordering::Relaxed) == PAUSED
    }

    /// Returns true if the job has reached that block and waits. A job that was paused after its last block
    /// ends.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.is_paused() && self.stands.load(Ordering::Relaxed)
    }

    /// Returns true if the job was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Relaxed) == CANCELLED
    }

    /// Waits while the job is paused.
    ///
    /// # Errors
    /// `Cancelled`.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.state.load(Ordering::Relaxed) == RUNNING { Ok(()) } else { self.wait() }
    }

    /// As [`JobControl::check`] without waiting: for callers with a lock that the resuming thread may need.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn refuse_if_cancelled(&self) -> Result<()> {
        if self.is_cancelled() { Err(cancelled()) } else { Ok(()) }
    }

    /// Takes `bytes` from the limiter and waits until they are granted.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn spend(&self, bytes: u64) -> Result<()> {
        self.check()?;
        let Some(limiter) = &self.limiter else { return Ok(()) };
        let mut wait = limiter.take(bytes);
        while !wait.is_zero() {
            let nap = wait.min(NAP_MAX);
            self.clock.sleep(nap);
            wait -= nap;
            self.check()?;
        }
        Ok(())
    }

    /// Publishes the work done so far. Only what runs the job calls this.
    pub fn show(&self, work: &Work) {
        self.work.store(work);
    }

    fn turn(&self, to: u8, from: impl FnOnce(u8) -> bool) {
        let _gate = self.gate.lock();
        let state = self.state.load(Ordering::Relaxed);
        if from(state) {
            debug_assert!(state != CANCELLED || to == CANCELLED, "a job that was cancelled stays cancelled");
            debug_assert!(
                to != CANCELLED || self.cancelled.get().is_some(),
                "the cause is set before the state"
            );
            self.state.store(to, Ordering::Relaxed);
            self.changed.notify_all();
        }
    }

    #[cold]
    fn wait(&self) -> Result<()> {
        let mut gate = self.gate.lock();
        loop {
            let state = self.state.load(Ordering::Relaxed);
            self.stands.store(state == PAUSED, Ordering::Relaxed);
            match state {
                RUNNING => return Ok(()),
                PAUSED => self.changed.wait(&mut gate),
                _ => {
                    debug_assert!(state == CANCELLED, "a job runs, pauses or is cancelled: state {state}");
                    return Err(cancelled());
                }
            }
        }
    }
}

fn cancelled() -> Error {
    Error::new(Kind::Cancelled, "compaction job was cancelled")
}
