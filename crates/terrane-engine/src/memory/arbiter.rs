//! The memory arbiter: samples the memory in use, decides how the ceiling is divided ([`super::decide`]), and
//! applies it.
//!
//! One tick, from three places: a writer after each quantum of bytes ([`MemoryArbiter::tick_of_writer`]), the
//! background between two pieces of work ([`MemoryArbiter::tick_of_background`]) and after work
//! ([`MemoryArbiter::takes_trim`]). Beside them a job that begins or ends, a batch that asks for room and a
//! changed ceiling divide the memory again at once.
//!
//! Ownership rules:
//! 1. `division` guards everything that decides. It is held for a sample, a decision and a store of the
//!    cache's limit; never while memory is evicted, while a batch waits, or across I/O. Under it the
//!    journal's lock for its segments may be taken, nothing else. Writers take it once in a quantum.
//! 2. The limit of the cache is set under `division` only, from a sample that was taken under it: so the
//!    limit follows the newest sample.
//! 3. Evictions run outside of every lock of the arbiter, in steps of [`STEP_BYTES`], each against the limit
//!    of its moment. At a tick one thread evicts at a time: others go on. A batch that finds no room evicts
//!    for itself, whatever others do, and never waits for their evictions; then it waits for room at the gate
//!    of the throttle.
//! 4. A batch is admitted by the bytes that are really in use, sampled after the evictions, and never by the
//!    limit alone. So it does not matter how far an eviction of another thread is: the ceiling holds. What
//!    writers take before the next sample must fit as well ([`MemoryPlan::step_bytes`]): the segment behind
//!    a small batch is a thousand times as long.
//! 5. A job runs once the cache has evicted what jobs had lent it, by the worker itself.
//! 6. `write_share` is written under `division` and read by every write.
//!
//! Invariant: no sample lets a writer go on while less than a step is left of what writers and the cache may
//! hold together. What a reader holds beyond the limit of the cache is a block each.

use std::sync::Arc;
use std::time::Duration;
use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane_base::Result;
use terrane_base::env::Clock;
use terrane_base::options::Options;
use terrane_base::sync::Mutex;
use terrane_table::{Cache, ObjectKind};

use crate::memory::budget::Budget;
use crate::memory::decide::{Inputs, Lease, Occasion, Shares, State, Traffic, WHOLE, decide, part_of};
use crate::memory::writers::WriterMemory;
use crate::table::settings::MemoryPlan;

/// Bytes that the cache gives up in one step: several times what writers take from one tick to the next.
const STEP_BYTES: u64 = 2 << 20;
/// Highest debt of writers that are over their share and within the limit of write memory: it slows them, and
/// never stops them.
const SHARE_DEBT_MAX: f64 = 0.98;

/// See the [module](self).
pub(crate) struct MemoryArbiter {
    clock: Arc<dyn Clock>,
    budget: Budget,
    cache: Arc<Cache>,
    writers: WriterMemory,
    /// True if writers do with less memory while reads miss the cache.
    yields: bool,
    division: Mutex<Division>,
    /// The part of their memory that writers use, in 256ths.
    write_share: AtomicU64,
    /// Bytes of a batch larger than its share that is admitted, or for which room is made: the cache leaves
    /// them, and writers count them as taken.
    promised_bytes: AtomicU64,
    /// True if a tick evicts now.
    is_evicting: AtomicBool,
}

/// State that the next division begins with.
#[derive(Default)]
struct Division {
    state: State,
    /// When the last one was.
    at: Duration,
    jobs: u32,
    /// All that was written and loaded up to the last tick of a writer.
    written: u64,
    loads: u64,
}

/// Counts since the opening, for a tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// Bytes that writers brought.
    pub(crate) written: u64,
    /// Blocks that jobs loaded in the place of their inputs: no read missed them.
    pub(crate) replaced: u64,
}

/// The result of a tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Balance {
    /// Segments, the indexes over them, and the conflict window.
    pub(crate) write_bytes: u64,
    /// True if writers and the cache together hold so much that writers wait.
    pub(crate) is_over: bool,
}

impl MemoryArbiter {
    /// Divides the ceiling of `budget` between `writers` and `cache`.
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        budget: Budget,
        cache: Arc<Cache>,
        writers: WriterMemory,
        yields: bool,
    ) -> MemoryArbiter {
        MemoryArbiter {
            clock,
            budget,
            cache,
            writers,
            yields,
            division: Mutex::default(),
            write_share: AtomicU64::new(WHOLE),
            promised_bytes: AtomicU64::new(0),
            is_evicting: AtomicBool::new(false),
        }
    }

    /// The sizes in force.
    #[inline]
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The cache that it divides memory with.
    pub(crate) fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// Bytes of a row cache that gets `percent` of the cache's own share.
    pub(crate) fn row_cache_bytes(&self, percent: u64) -> u64 {
        self.plan().cache_bytes / 100 * percent
    }

    /// Bytes that writers use: segments, the indexes over them, and the commits that are kept for
    /// transactions. Does not look at the tables.
    pub(crate) fn use_of_writers(&self) -> u64 {
        self.writers.bytes()
    }

    /// The part of their memory that writers use, 1 at the limit.
    pub(crate) fn debt(&self) -> f64 {
        self.debt_of(self.use_of_writers())
    }

    /// The debt of writers that use `write_bytes`. Memory beyond a smaller share counts as debt, and does not
    /// stop them.
    pub(crate) fn debt_of(&self, write_bytes: u64) -> f64 {
        let limit = self.budget.write_bytes();
        debug_assert!(limit > 0, "without write memory no batch is ever admitted");
        let of_limit = write_bytes as f64 / limit as f64;
        let of_share = write_bytes as f64 / self.share_of(limit) as f64;
        of_limit.max(of_share.min(SHARE_DEBT_MAX))
    }

    /// Bytes of a memtable at which it is full now.
    #[inline]
    pub(crate) fn memtable_limit(&self) -> u64 {
        self.share_of(self.budget.memtable_bytes())
    }

    /// Bytes of a generation of the global index at which it is full now.
    pub(crate) fn generation_limit(&self) -> u64 {
        self.share_of(self.budget.generation_bytes())
    }

    #[inline]
    fn share_of(&self, bytes: u64) -> u64 {
        // Relaxed: a measure.
        part_of(bytes, self.write_share.load(Ordering::Relaxed))
    }

    /// The tick of a writer: divides memory and lets the cache evict a part of its excess.
    pub(crate) fn tick_of_writer(&self, counted: Counted) -> Balance {
        let loads = self.cache.misses(ObjectKind::Data).saturating_sub(counted.replaced);
        let level_bytes = self.writers.tables.level_bytes();
        let yields = self.yields;
        let divided = self.divide(0, |division| {
            let written = counted.written.saturating_sub(division.written);
            let traffic = Traffic { written, loads: loads.saturating_sub(division.loads), level_bytes };
            // Two writers may come in another order than they counted in.
            division.written = division.written.max(counted.written);
            division.loads = division.loads.max(loads);
            if yields { Occasion::Write(traffic) } else { Occasion::Ask }
        });
        self.evict_step();
        let taken = divided.writers + self.promised_bytes();
        let is_over = divided.is_adaptive && taken + self.cache.used_bytes() > divided.stop_at;
        Balance { write_bytes: divided.writers, is_over }
    }

    /// The tick of the background between two pieces of work. Requires: no lock is held.
    pub(crate) fn tick_of_background(&self) {
        self.divide(0, |_| Occasion::Background);
        self.evict_step();
    }

    /// Returns true if the cache gave up enough since the last trim for another one. Of several
    /// callers one gets `true`.
    pub(crate) fn takes_trim(&self) -> bool {
        self.divide(0, |_| Occasion::Trim).shares.trim
    }

    /// Returns true if `reserved` bytes of batches find room beside what writers and the cache hold; the
    /// cache makes some.
    pub(crate) fn has_room_for(&self, reserved: u64) -> bool {
        let divided = self.divide(0, |_| Occasion::Ask);
        self.evict_step();
        if divided.writers + reserved > self.budget.write_bytes() {
            return terrane_base::planted!(UnlimitedWriteMemory);
        }
        let has_room = |stop_at: u64| self.use_of_writers() + reserved + self.cache.used_bytes() <= stop_at;
        if !divided.is_adaptive || has_room(divided.stop_at) {
            return true;
        }
        let divided = self.divide(reserved, |_| Occasion::Ask);
        // Not only where no other thread evicts: this batch waits for room, never for the evictions of
        // others.
        self.cache.shrink_some(reserved + STEP_BYTES);
        has_room(divided.stop_at)
    }

    /// Promises `bytes` to a batch that is larger than its share, in the place of the promise before; 0 once
    /// the journal counts them.
    pub(crate) fn promise(&self, bytes: u64) {
        debug_assert!(bytes < u64::MAX / 4, "{bytes} bytes of one batch");
        // Relaxed: the next look sees it.
        self.promised_bytes.store(bytes, Ordering::Relaxed);
    }

    fn promised_bytes(&self) -> u64 {
        self.promised_bytes.load(Ordering::Relaxed)
    }

    /// The bytes that the cache leaves for a promise: with those that writers take until the next look.
    fn promised_ahead(&self, plan: MemoryPlan) -> u64 {
        match self.promised_bytes() {
            0 => 0,
            promised => promised + plan.step_bytes(),
        }
    }

    /// Most bytes of a batch with the index over it, where nothing else is in memory and the cache has given
    /// up what it can.
    pub(crate) fn largest_batch(&self) -> u64 {
        self.plan().largest_batch()
    }

    /// Bytes that only readers keep.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.writers.held_bytes()
    }

    /// As [`MemoryArbiter::has_room_for`], for a batch larger than its share: up to what writers and the
    /// cache may hold together, beside what readers hold of tables and the journal.
    pub(crate) fn has_room_for_large(&self, reserved: u64) -> bool {
        // Beyond the share of writers the limit of the cache leaves no step free for them.
        let divided = self.divide(reserved + self.plan().step_bytes(), |_| Occasion::Ask);
        if !divided.is_adaptive {
            return divided.writers + reserved <= self.budget.write_bytes();
        }
        let used = || self.use_of_writers() + reserved + self.writers.held_bytes() + self.cache.used_bytes();
        if used() > divided.stop_at {
            self.cache.shrink_some(self.cache.used_bytes());
        }
        used() <= divided.stop_at
    }

    /// Runs a job with the memory of jobs.
    pub(crate) fn during_job<T>(&self, job: impl FnOnce() -> T) -> T {
        if !self.plan().adaptive {
            return job();
        }
        let begun = self.divide(0, |division| {
            division.jobs += 1;
            Occasion::Job { is_returned: false }
        });
        let end = JobEnd(self);
        debug_assert!(begun.shares.state.lease != Lease::Cache, "the cache keeps what jobs need again");
        if begun.shares.state.lease != Lease::Jobs {
            self.evict_excess();
            self.divide(0, |_| Occasion::Job { is_returned: true });
        }
        let done = job();
        drop(end);
        done
    }

    /// The options of a database under another ceiling.
    ///
    /// # Errors
    /// `Invalid`, naming what contradicts it.
    pub(crate) fn options_under(&self, memory_bytes: u64, now: &Options) -> Result<Options> {
        self.budget.under(memory_bytes, now)
    }

    /// Changes the ceiling. On return the cache has evicted its excess, except for blocks that readers hold.
    pub(crate) fn set_ceiling(&self, options: &Options) {
        self.divide(0, |_| {
            self.budget.set(options);
            self.cache.set_lasting_limit(self.plan().cache_bytes);
            Occasion::Ceiling
        });
        self.evict_excess();
    }

    fn plan(&self) -> MemoryPlan {
        self.budget.plan()
    }

    /// Divides memory as it is in use now, with `reserved` bytes that writers are about to take.
    fn divide(&self, reserved: u64, occasion: impl FnOnce(&mut Division) -> Occasion) -> Divided {
        let mut division = self.division.lock();
        let occasion = occasion(&mut division);
        let (now, plan) = (self.clock.now(), self.plan());
        let writers = self.writers.bytes();
        let shares = decide(&Inputs {
            plan,
            writers: writers + reserved.max(self.promised_ahead(plan)),
            held: self.writers.held_bytes(),
            cache: self.cache.used_bytes(),
            jobs: division.jobs,
            elapsed: now.saturating_sub(division.at),
            occasion,
            before: division.state,
        });
        (division.at, division.state) = (now, shares.state);
        debug_assert!(
            reserved > 0 || shares.cache_limit <= plan.cache_bytes_max(),
            "the cache has no room for more"
        );
        self.write_share.store(shares.state.write_share, Ordering::Relaxed);
        self.cache.set_limit(shares.cache_limit);
        let stop_at = shares.together - plan.step_bytes();
        Divided { shares, writers, stop_at, is_adaptive: plan.adaptive }
    }

    /// Evicts one step of the excess over the limit of the cache, unless another tick does.
    fn evict_step(&self) {
        struct Ended<'a>(&'a AtomicBool);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                let was_evicting = self.0.swap(false, Ordering::Release);
                debug_assert!(was_evicting, "one thread evicts");
            }
        }
        if self.cache.used_bytes() <= self.cache.limit_bytes()
            || self.is_evicting.swap(true, Ordering::Acquire)
        {
            return;
        }
        let _ended = Ended(&self.is_evicting);
        self.cache.shrink_some(STEP_BYTES);
    }

    /// Evicts all that is beyond the limit of the cache, step by step.
    fn evict_excess(&self) {
        let mut before = u64::MAX;
        loop {
            let used = self.cache.used_bytes();
            if used <= self.cache.limit_bytes() || used >= before {
                break;
            }
            before = used;
            self.cache.shrink_some(STEP_BYTES);
        }
        // What steps cannot free: gaps in chunks, and what readers have left meanwhile.
        self.cache.shrink();
    }
}

/// A division that is in force.
struct Divided {
    shares: Shares,
    /// Bytes that writers use.
    writers: u64,
    /// Where writers and the cache together hold more, writers wait.
    stop_at: u64,
    is_adaptive: bool,
}

/// Ends a job, also one that panics.
struct JobEnd<'a>(&'a MemoryArbiter);

impl Drop for JobEnd<'_> {
    fn drop(&mut self) {
        self.0.divide(0, |division| {
            assert!(division.jobs > 0, "every job that ends has begun");
            division.jobs -= 1;
            Occasion::Job { is_returned: false }
        });
    }
}

#[cfg(test)]
mod tests;
