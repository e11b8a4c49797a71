//! The division of the memory ceiling, as a pure function of what was sampled: no clock, no lock, no engine.
//!
//! Jobs in flight have a share of their own, half of which the cache has while none runs; the rest is
//! *shared*. Writers may take up to their share of it, and what they do not use is lent to the cache.
//!
//! ```text
//! | jobs | lent |                         shared                                  |
//!               | segments and indexes ->  | slack |  <- blocks, index blocks, filters  |
//! ```
//!
//! Rules, one function each:
//! 1. *Lease* ([`lease`]): the cache gets its half of the jobs' share when no job has run for [`REST_MIN`]; a
//!    job that comes every few milliseconds must not cost the cache a part of it each time. The first job
//!    takes it back; until the cache has evicted it, it belongs to neither, so that no writer waits for it.
//! 2. *Share of writers* ([`write_share`]): while reads load a block for every [`SHORT_BYTES`] that are
//!    written, writers do with less and less, down to half; the share comes back once hardly a block was
//!    loaded for [`CALM_MIN`]. Write memory above the size of a useful generation saves the levels some
//!    merging; memory of the cache saves every read that would miss a load. Where the data are far larger
//!    than the memory that writers would give up, they keep it: the hit ratio would not change. A smaller
//!    share makes memtables and generations full earlier and counts memory as debt earlier; the limit of
//!    write memory stays, so a batch that fits once always fits.
//! 3. *Limit of the cache* ([`MemoryPlan::cache_limit`]): the shared memory that writers leave, less a slack:
//!    room for the bytes that writers take from one tick to the next, so that they need not wait for
//!    evictions. Writers wait once half of the slack is left ([`MemoryPlan::step_bytes`]). Mostly the cache
//!    has evicted by then. But an evicted block is free only when no reader is in the middle of a look, and a
//!    reader without a processor may stay there for long.
//! 4. *Readers* ([`MemoryPlan::beside_readers`]): an index that left its table while readers hold it belongs
//!    to no part. The limit of the cache is smaller by as much, down to half of the cache's own share.
//!    Writers do not wait for such memory: no event that they could wait for frees it.
//! 5. *Trim* ([`trim`]): an allocator keeps what was freed. When the cache has given up one part in
//!    [`TRIM_SHARE`] of the ceiling since the last trim, or a job has ended, the background returns freed
//!    memory to the system: glibc keeps up to some megabytes of a job's buffers for each thread.
//!
//! Invariant: what the parts get is at most the ceiling.

use std::time::Duration;

use crate::table::settings::MemoryPlan;

/// How long no job must have run.
const REST_MIN: Duration = Duration::from_millis(500);

/// Time over which loads and bytes are compared.
const WINDOW: Duration = Duration::from_millis(100);
/// A load for so many bytes written, or fewer, and the cache is short.
const SHORT_BYTES: u64 = 4 << 10;
/// A load for so many bytes written, or more, and it is short no longer.
const ENOUGH_BYTES: u64 = 16 << 10;
/// Time for which the cache must not have been short.
const CALM_MIN: Duration = Duration::from_millis(500);
/// Loads in a window that say nothing.
const LOADS_MIN: u64 = 16;
/// The whole share of writers; the least; and by how much it falls and rises in a window.
pub(super) const WHOLE: u64 = 256;
const LEAST: u64 = WHOLE / 2;
const STEP_DOWN: u64 = WHOLE / 8;
const STEP_UP: u64 = WHOLE / 16;
/// Writers give memory up only if it is at least one part in so many of the data.
const DATA_SHARE: u64 = 10;

/// Of the ceiling, one part in this many given up by the cache is worth a trim.
const TRIM_SHARE: u64 = 16;
/// Less is never worth one.
const TRIM_BYTES_MIN: u64 = 4 << 20;

/// Beside a batch that has the rest, the cache and empty memtables keep one part in this many.
const KEPT_SHARE: u64 = 16;

/// Which part has the memory that jobs lend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Lease {
    /// Jobs.
    #[default]
    Jobs,
    /// The cache: its limit is higher by it.
    Cache,
    /// The limit of the cache is not higher any more, but the cache still has the lent bytes, which do not
    /// count as excess yet.
    Returning,
}

/// State that is kept from tick to tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) lease: Lease,
    /// Jobs that ran at the last tick, and for how long none has run.
    jobs_running: u32,
    jobs_rest: Duration,
    /// The part of their memory that writers use, in 256ths.
    pub(super) write_share: u64,
    /// Time since the last look at loads and bytes, and what came in it.
    window: Duration,
    written: u64,
    loads: u64,
    /// For how long the cache has not been short.
    calm: Duration,
    /// The most that the cache held since the last trim.
    cache_peak: u64,
    /// True if a job has ended since the last trim.
    job_ended: bool,
}

impl Default for State {
    fn default() -> State {
        State {
            lease: Lease::Jobs,
            jobs_running: 0,
            jobs_rest: Duration::ZERO,
            write_share: WHOLE,
            window: Duration::ZERO,
            written: 0,
            loads: 0,
            calm: Duration::ZERO,
            cache_peak: 0,
            job_ended: false,
        }
    }
}

/// Bytes that writers brought and blocks that readers missed since the last tick that carried such counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    /// Bytes written.
    pub(super) written: u64,
    /// Blocks that reads loaded.
    pub(super) loads: u64,
    /// Bytes of the extents of all tables.
    pub(super) level_bytes: u64,
}

/// Where a tick comes from: what it may change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Occasion {
    /// A writer: the only one that moves the share of writers. A pause says nothing of what comes after it.
    Write(Traffic),
    /// The background between two pieces of work: may lend the memory of jobs.
    Background,
    /// A job begins or ends, or lent memory is back.
    Job {
        /// True if the cache has evicted the lent bytes.
        is_returned: bool,
    },
    /// The background after work: trims.
    Trim,
    /// A batch asks for room.
    Ask,
    /// The ceiling has changed.
    Ceiling,
}

/// The sample of a tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inputs {
    /// The ceiling, and how much of it each part may have.
    pub(super) plan: MemoryPlan,
    /// Bytes that writers use, and those that they are about to take.
    pub(super) writers: u64,
    /// Bytes of indexes that left their tables and that readers hold.
    pub(super) held: u64,
    /// Bytes that the cache holds.
    pub(super) cache: u64,
    /// Jobs that run.
    pub(super) jobs: u32,
    /// Time since the last tick.
    pub(super) elapsed: Duration,
    pub(super) occasion: Occasion,
    pub(super) before: State,
}

/// The share of each part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    /// The limit of the cache.
    pub(super) cache_limit: u64,
    /// Bytes that writers and the cache may hold together now.
    pub(super) together: u64,
    /// True if freed memory goes back to the system.
    pub(super) trim: bool,
    /// The lease, the share of writers, and what the next tick needs.
    pub(super) state: State,
}

/// Divides memory. See the [module](self).
pub(super) fn decide(inputs: &Inputs) -> Shares {
    let (plan, before) = (&inputs.plan, &inputs.before);
    let mut state = *before;
    state.window += inputs.elapsed;
    state.jobs_rest = match before.jobs_running.max(inputs.jobs) {
        0 => before.jobs_rest + inputs.elapsed,
        _ => Duration::ZERO,
    };
    state.job_ended |= inputs.jobs < before.jobs_running;
    state.jobs_running = inputs.jobs;
    if plan.adaptive {
        state.lease = lease(inputs, &state);
        if let Occasion::Write(traffic) = &inputs.occasion {
            write_share(plan, traffic, &mut state);
        }
    }
    let trim = trim(inputs, &mut state);
    let lent = if state.lease == Lease::Cache { plan.lent_bytes } else { 0 };
    let out = if state.lease == Lease::Jobs { 0 } else { plan.lent_bytes };
    let shares = Shares {
        cache_limit: plan.beside_readers(plan.cache_limit(inputs.writers, lent), inputs.held),
        together: plan.shared_bytes() + out,
        trim,
        state,
    };
    check(inputs, &shares);
    shares
}

/// The parts get at most the ceiling.
fn check(inputs: &Inputs, shares: &Shares) {
    let plan = &inputs.plan;
    let divided = plan.write_bytes + plan.cache_bytes + plan.job_bytes;
    assert!(divided <= plan.ceiling_bytes, "{divided} bytes are divided of {}", plan.ceiling_bytes);
    assert!(plan.lent_bytes <= plan.job_bytes, "jobs lend at most what they have");
    let fits = !plan.adaptive || inputs.writers + shares.cache_limit <= shares.together;
    assert!(fits || shares.cache_limit == 0, "writers and the cache: {inputs:?} {shares:?}");
    assert!((LEAST..=WHOLE).contains(&shares.state.write_share), "the share of writers: {shares:?}");
}

/// Rule 1.
fn lease(inputs: &Inputs, state: &State) -> Lease {
    match (state.lease, &inputs.occasion) {
        (Lease::Cache, _) if inputs.jobs > 0 => Lease::Returning,
        (Lease::Returning, Occasion::Job { is_returned: true }) => Lease::Jobs,
        (Lease::Jobs, Occasion::Background) if inputs.jobs == 0 && state.jobs_rest >= REST_MIN => {
            Lease::Cache
        }
        (lease, _) => lease,
    }
}

/// Rule 2, at the end of each window.
fn write_share(plan: &MemoryPlan, traffic: &Traffic, state: &mut State) {
    state.written += traffic.written;
    state.loads += traffic.loads;
    if state.window < WINDOW {
        return;
    }
    let (window, written, loads) = (state.window, state.written, state.loads);
    (state.window, state.written, state.loads) = (Duration::ZERO, 0, 0);
    if written == 0 {
        return;
    }
    state.calm += window;
    let is_one_in = |bytes: u64| loads >= LOADS_MIN && loads.saturating_mul(bytes) >= written;
    let pays = plan.write_bytes / WHOLE * LEAST >= traffic.level_bytes / DATA_SHARE;
    if is_one_in(ENOUGH_BYTES) && pays {
        state.calm = Duration::ZERO;
        if is_one_in(SHORT_BYTES) {
            state.write_share = state.write_share.saturating_sub(STEP_DOWN).max(LEAST);
        }
    } else if state.calm >= CALM_MIN {
        state.write_share = (state.write_share + STEP_UP).min(WHOLE);
    }
    debug_assert!(
        (LEAST..=WHOLE).contains(&state.write_share),
        "writers have a share of {}",
        state.write_share
    );
}

/// Rule 5.
fn trim(inputs: &Inputs, state: &mut State) -> bool {
    if !matches!(inputs.occasion, Occasion::Trim) {
        // With fixed shares memory moves only when the ceiling does.
        if inputs.plan.adaptive || matches!(inputs.occasion, Occasion::Ceiling) {
            state.cache_peak = state.cache_peak.max(inputs.cache);
        }
        return false;
    }
    let least = (inputs.plan.ceiling_bytes / TRIM_SHARE).max(TRIM_BYTES_MIN);
    let trims = state.job_ended || state.cache_peak.saturating_sub(inputs.cache) >= least;
    if trims {
        state.cache_peak = inputs.cache;
        state.job_ended = false;
    }
    trims
}

impl MemoryPlan {
    /// Rule 3: the limit of the cache while writers use `write_bytes` and jobs have lent it `lent_bytes`.
    fn cache_limit(&self, write_bytes: u64, lent_bytes: u64) -> u64 {
        debug_assert!(lent_bytes <= self.lent_bytes, "jobs lend {lent_bytes} bytes of {}", self.lent_bytes);
        if !self.adaptive {
            return self.cache_bytes;
        }
        // Beyond their share writers get only half of the slack: what they take until they are stopped.
        let end = self.write_bytes + self.slack_bytes / 2;
        let foreseen = (write_bytes + self.slack_bytes).min(end).max(write_bytes);
        (self.shared_bytes() + lent_bytes).saturating_sub(foreseen)
    }

    /// Rule 4: the limit of the cache beside indexes of `held_bytes` that readers hold.
    fn beside_readers(&self, limit: u64, held_bytes: u64) -> u64 {
        if !self.adaptive {
            return limit;
        }
        let left = limit.saturating_sub(held_bytes).max(limit.min(self.cache_bytes / 2));
        debug_assert!(left <= limit, "readers that hold memory never make the cache larger");
        left
    }

    /// Bytes that writers may take from one look that lets them go on to the next: a segment, and chunks of
    /// indexes. They wait where less is left of the bytes that they and the cache may hold together.
    ///
    /// Beside a cache at its limit so much is always left for writers within their share, so the wait ends:
    /// at most half of the slack, and half of what the cache has of its own.
    pub(super) fn step_bytes(&self) -> u64 {
        self.slack_bytes.min(self.cache_bytes) / 2
    }

    /// Most bytes of a batch that is alone in memory, with the index over it: what writers and the cache may
    /// hold together, or writers alone where that is fixed. Less a step that stays free up to the next look,
    /// the bytes that the cache and empty memtables cannot give up, and two segments: the one that was
    /// prepared before the batch, and the one after it.
    pub(super) fn largest_batch(&self) -> u64 {
        let most = if self.adaptive { self.shared_bytes() - self.step_bytes() } else { self.write_bytes };
        let left = most.saturating_sub(most / KEPT_SHARE + 2 * self.segment_bytes);
        debug_assert!(left < self.ceiling_bytes, "a batch of {left} bytes of {}", self.ceiling_bytes);
        left
    }
}

/// The part of `bytes` that a share of writers leaves them.
#[inline]
pub(super) fn part_of(bytes: u64, share: u64) -> u64 {
    debug_assert!((1..=WHOLE).contains(&share), "a share of {share} in {WHOLE}");
    match share {
        WHOLE => bytes,
        share => (u128::from(bytes) * u128::from(share) / u128::from(WHOLE)) as u64,
    }
}

#[cfg(test)]
mod tests;
