//! The arbiter on a clock that stands but for what a test lets pass.

use terrane_base::SegmentId;
use terrane_base::SeqNo;
use terrane_base::env::SleepClock;
use terrane_base::options::Experiments;
use terrane_journal::{ChainLink, JournalSettings, JournalStart, NullJournal};

use super::*;

const MIB: u64 = 1 << 20;

struct World {
    arbiter: MemoryArbiter,
    clock: Arc<SleepClock>,
    /// Memory of writers beside an empty journal.
    used: Arc<AtomicU64>,
}

fn world(adaptive: bool) -> World {
    let experiments = Experiments { adaptive_memory: adaptive, ..Experiments::default() };
    let asked = Options { memory_bytes: 256 * MIB, experiments, ..Options::default() };
    let options = asked.resolve(2).expect("options");
    let start = JournalStart {
        next_segment: SegmentId(1),
        next_file: 1,
        next_seq: SeqNo(1),
        previous: ChainLink::default(),
        salt: 0,
        unlisted_files: Vec::new(),
        replayed: Vec::new(),
    };
    let settings = JournalSettings { segment_bytes: 4096, ..JournalSettings::default() };
    let journal = Arc::new(NullJournal::new(&settings, &start).expect("a journal"));
    let used = Arc::new(AtomicU64::new(0));
    let writers = WriterMemory { journal, tables: Arc::default(), window_bytes: used.clone() };
    let budget = Budget::new(asked, &options);
    let cache = Cache::new(budget.plan().cache_bytes);
    let clock = Arc::new(SleepClock::default());
    World { arbiter: MemoryArbiter::new(clock.clone(), budget, cache, writers, true), clock, used }
}

impl World {
    fn limit(&self) -> u64 {
        self.arbiter.cache.limit_bytes()
    }

    fn lease(&self) -> Lease {
        self.arbiter.division.lock().state.lease
    }
}

#[test]
fn the_limit_of_the_cache_follows_writers_at_each_tick() {
    let world = world(true);
    let tick = || world.arbiter.tick_of_writer(Counted { written: 0, replaced: 0 });
    let before = tick();
    let limit = world.limit();
    world.used.store(50 * MIB, Ordering::Relaxed);
    let balance = tick();
    assert_eq!(balance.write_bytes, before.write_bytes + 50 * MIB);
    assert_eq!(world.limit(), limit - 50 * MIB);
    assert!(!balance.is_over);
    world.used.store(250 * MIB, Ordering::Relaxed);
    assert!(tick().is_over && world.limit() == 0);
    assert!(world.arbiter.debt() > 1.0);
}

/// A segment of 8 MiB may come after an admitted batch, and what the cache holds may be in use by a
/// reader: no eviction makes room for it.
#[test]
fn writers_wait_before_the_next_segment_exceeds_the_shared_memory() {
    let world = world(true);
    let shared = world.arbiter.plan().shared_bytes();
    let is_over = |used: u64| {
        world.used.store(used, Ordering::Relaxed);
        world.arbiter.tick_of_writer(Counted { written: 0, replaced: 0 }).is_over
    };
    assert!(!is_over(shared - 9 * MIB));
    assert!(is_over(shared - 7 * MIB), "a segment of 8 MiB does not fit any more");
}

#[test]
fn a_batch_has_room_within_the_write_memory_only() {
    let world = world(true);
    world.used.store(100 * MIB, Ordering::Relaxed);
    let free = world.arbiter.budget().write_bytes() - world.arbiter.use_of_writers();
    assert!(world.arbiter.has_room_for(free));
    assert!(!world.arbiter.has_room_for(free + 1));
}

#[test]
fn the_memory_of_jobs_is_lent_at_rest_and_back_before_a_job_runs() {
    let world = world(true);
    world.arbiter.tick_of_background();
    assert_eq!(world.lease(), Lease::Jobs, "no time has passed");
    world.clock.sleep(Duration::from_secs(1));
    world.arbiter.tick_of_background();
    let lent = world.limit();
    assert_eq!(world.lease(), Lease::Cache);
    world.arbiter.during_job(|| {
        assert_eq!(world.lease(), Lease::Jobs);
        assert_eq!(world.limit(), lent - world.arbiter.plan().lent_bytes);
        world.clock.sleep(Duration::from_secs(1));
        world.arbiter.tick_of_background();
        assert_eq!(world.lease(), Lease::Jobs, "one runs");
    });
    world.arbiter.tick_of_background();
    assert_eq!(world.lease(), Lease::Jobs, "one ran just now");
    world.clock.sleep(Duration::from_secs(1));
    world.arbiter.tick_of_background();
    assert_eq!(world.lease(), Lease::Cache);
}

#[test]
fn a_job_that_panics_has_ended() {
    let world = world(true);
    let job = std::panic::AssertUnwindSafe(|| world.arbiter.during_job(|| panic!("planned")));
    assert!(std::panic::catch_unwind(job).is_err());
    assert_eq!(world.arbiter.division.lock().jobs, 0);
}

#[test]
fn fixed_shares_stay_as_they_are() {
    let world = world(false);
    let limit = world.limit();
    world.clock.sleep(Duration::from_secs(1));
    world.used.store(100 * MIB, Ordering::Relaxed);
    world.arbiter.tick_of_background();
    assert!(!world.arbiter.tick_of_writer(Counted { written: 1, replaced: 0 }).is_over);
    assert_eq!((world.limit(), world.lease()), (limit, Lease::Jobs));
}

/// Rule 3: a thread that evicts holds no lock, and a thread that finds another evicting goes on.
#[test]
fn evictions_hold_no_lock_and_hold_up_no_other_writer() {
    let world = world(true);
    {
        // A lock that an eviction took would never be had.
        let _division = world.arbiter.division.lock();
        world.arbiter.evict_step();
        world.arbiter.evict_excess();
    }
    world.arbiter.is_evicting.store(true, Ordering::Relaxed);
    world.arbiter.tick_of_writer(Counted { written: 1, replaced: 0 });
    assert!(world.arbiter.has_room_for(MIB));
    assert!(world.arbiter.is_evicting.load(Ordering::Relaxed), "the eviction of the other thread goes on");
}

#[test]
fn a_changed_ceiling_is_in_force_at_once() {
    let world = world(true);
    let now = world.arbiter.budget().plan();
    let options = Options { memory_bytes: 256 * MIB, ..Options::default() }.resolve(2).expect("options");
    let more = world.arbiter.options_under(512 * MIB, &options).expect("more");
    world.arbiter.set_ceiling(&more);
    assert_eq!(world.arbiter.plan().ceiling_bytes, 2 * now.ceiling_bytes);
    assert!(world.limit() > now.cache_bytes_max());
}
