//! The strings on a running job: progress, pause, cancel, rate.
//!
//! A job calls [`JobControl::check`] at least once per block. As long as nobody pulls a string that costs one
//! load of a line that nobody writes.

use std::sync::{Arc, OnceLock};
use std::time::Duration;
use terrane_base::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use terrane_base::env::Clock;
use terrane_base::prefix_extractor::Extractor;
use terrane_base::sync::{Condvar, Mutex};
use terrane_base::{CompactionFilter, Error, Kind, MergeOperator, Moment, Result, SeqNo};

use crate::job::Work;

const RUNNING: u8 = 0;
const PAUSED: u8 = 1;
const CANCELLED: u8 = 2;

/// Longest time that a throttled job sleeps without looking whether it was cancelled.
const NAP_MAX: Duration = Duration::from_millis(20);
/// How much unused rate may be saved up: long enough to ride over a late wake-up, too short for a burst.
const SAVED_MAX: Duration = Duration::from_millis(50);

/// A ceiling for bytes per second, shared by all jobs that write to one device.
///
/// A token bucket kept as a moment (the generic cell rate algorithm, ITU-T I.371, 1996): what was granted so far
/// is paid up to `paid_until`; who takes bytes moves it on and sleeps until it has come. Grants are in the order
/// in which they were asked for.
#[derive(Debug)]
pub struct RateLimiter {
    clock: Arc<dyn Clock>,
    /// 0: no ceiling.
    bytes_per_second: AtomicU64,
    paid_until: Mutex<Duration>,
}

impl RateLimiter {
    /// A limiter; 0 bytes per second mean no ceiling.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, bytes_per_second: u64) -> Self {
        let paid_until = Mutex::new(clock.now());
        RateLimiter { clock, bytes_per_second: AtomicU64::new(bytes_per_second), paid_until }
    }

    /// Sets the ceiling for what is asked for from now on; 0 removes it.
    pub fn set_rate(&self, bytes_per_second: u64) {
        self.bytes_per_second.store(bytes_per_second, Ordering::Relaxed);
    }

    /// The ceiling in bytes per second; 0 if there is none.
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.bytes_per_second.load(Ordering::Relaxed)
    }

    /// Takes `bytes` and returns how long the taker must wait for them.
    fn take(&self, bytes: u64) -> Duration {
        let rate = self.rate();
        if rate == 0 {
            return Duration::ZERO;
        }
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let mut paid_until = self.paid_until.lock();
        let now = self.clock.now();
        *paid_until = (*paid_until).max(now.saturating_sub(SAVED_MAX)).saturating_add(cost);
        paid_until.saturating_sub(now)
    }
}

/// Why a job was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelCause {
    /// Somebody had the jobs that run given up; they may be begun again.
    Asked,
    /// Only reads would have gained by it, and somebody needs what the background does otherwise.
    Unneeded,
    /// It ran for who asked for the compaction of a range, and such were held back.
    Held,
    /// Its table was dropped.
    Dropped,
    /// The database closes.
    Closing,
}

/// One job's strings, shared between the job and whoever watches it.
#[derive(Debug)]
pub struct JobControl {
    /// [`RUNNING`], [`PAUSED`] or [`CANCELLED`]; changed under `gate`.
    state: AtomicU8,
    /// Whether the job stands in [`JobControl::wait`]; changed under `gate`.
    stands: AtomicBool,
    gate: Mutex<()>,
    /// Set before `state` says so.
    cancelled: OnceLock<CancelCause>,
    changed: Condvar,
    clock: Arc<dyn Clock>,
    limiter: Option<Arc<RateLimiter>>,
    work: AtomicWork,
    operator: OnceLock<Arc<dyn MergeOperator>>,
    extractor: OnceLock<Arc<Extractor>>,
    filtering: OnceLock<Filtering>,
}

/// A compaction filter, and what it is not asked about.
#[derive(Clone, Debug)]
pub(crate) struct Filtering {
    pub(crate) filter: Arc<dyn CompactionFilter>,
    /// What has this number or a smaller one.
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

atomic_work!(
    bytes_read,
    bytes_written,
    bytes_relinked,
    bytes_copied,
    extents_relinked,
    blocks_copied,
    blocks_decoded,
    entries_in,
    entries_out,
    entries_dropped,
    entries_expired,
    entries_filtered,
    operands_folded,
    folds_failed
);

impl JobControl {
    /// Strings for one job. `limiter` bounds what it writes.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, limiter: Option<Arc<RateLimiter>>) -> Self {
        JobControl {
            state: AtomicU8::new(RUNNING),
            stands: AtomicBool::new(false),
            gate: Mutex::new(()),
            cancelled: OnceLock::new(),
            changed: Condvar::new(),
            clock,
            limiter,
            work: AtomicWork::default(),
            operator: OnceLock::new(),
            extractor: OnceLock::new(),
            filtering: OnceLock::new(),
        }
    }

    /// Lets the job fold operands with the merge operator of its table. Without one it keeps them as they are.
    pub fn fold_with(&self, operator: Arc<dyn MergeOperator>) {
        // A control is of one job: whoever comes second brings the same.
        let _ = self.operator.set(operator);
    }

    /// Has the job show rows to a compaction filter, but for what has the number `seen` or a smaller one.
    pub fn filter_with(&self, filter: Arc<dyn CompactionFilter>, seen: SeqNo) {
        // As above.
        let _ = self.filtering.set(Filtering { filter, seen });
    }

    /// What the job shows rows to.
    pub(crate) fn filtering(&self) -> Option<&Filtering> {
        self.filtering.get()
    }

    /// What the job folds operands with.
    pub(crate) fn operator(&self) -> Option<&Arc<dyn MergeOperator>> {
        self.operator.get()
    }

    /// Lets the job put prefixes of keys into the filters that it builds.
    pub fn filter_prefixes(&self, extractor: Arc<Extractor>) {
        let _ = self.extractor.set(extractor);
    }

    /// Whose prefixes filters get.
    pub(crate) fn extractor(&self) -> Option<&Arc<Extractor>> {
        self.extractor.get()
    }

    /// The moment by which a job decides what has expired.
    pub(crate) fn moment(&self) -> Moment {
        Moment(self.clock.wall().as_millis() as u64)
    }

    /// What the job has done so far; fields may be a block apart.
    #[must_use]
    pub fn work(&self) -> Work {
        self.work.load()
    }

    /// Holds the job at its next block until [`JobControl::resume`]. No effect once cancelled.
    pub fn pause(&self) {
        self.turn(PAUSED, |state| state == RUNNING);
    }

    /// Lets a paused job go on.
    pub fn resume(&self) {
        self.turn(RUNNING, |state| state == PAUSED);
    }

    /// Ends the job at its next block with an error of kind `Cancelled`; it gives back what it wrote. The first cause is kept.
    pub fn cancel(&self, cause: CancelCause) {
        let _ = self.cancelled.set(cause);
        self.turn(CANCELLED, |_| true);
    }

    /// Why the job is to end, if it is.
    #[must_use]
    pub fn cancelled(&self) -> Option<CancelCause> {
        self.cancelled.get().copied()
    }

    /// Whether the job is to stop at its next block.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.state.load(Ordering::Relaxed) == PAUSED
    }

    /// Whether the job has come to that block and stands there. One that was paused after its last block ends by itself.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.is_paused() && self.stands.load(Ordering::Relaxed)
    }

    /// Whether the job is to end.
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

    /// Never waits: for callers that hold a lock, which whoever ends the pause may need.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn refuse_if_cancelled(&self) -> Result<()> {
        if self.is_cancelled() { Err(cancelled()) } else { Ok(()) }
    }

    /// Takes `bytes` from the limiter and waits for them.
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

    /// Shows what the job has done. Only the job calls this.
    pub(crate) fn show(&self, work: &Work) {
        self.work.store(work);
    }

    fn turn(&self, to: u8, from: impl FnOnce(u8) -> bool) {
        let _gate = self.gate.lock();
        if from(self.state.load(Ordering::Relaxed)) {
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
                _ => return Err(cancelled()),
            }
        }
    }
}

fn cancelled() -> Error {
    Error::new(Kind::Cancelled, "compaction job was cancelled")
}
