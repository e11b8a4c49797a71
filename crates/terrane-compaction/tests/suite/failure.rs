//! Jobs that end early: cancelled, out of space, on damaged inputs, with a failing device. Their inputs stay
//! unchanged, and their output is removed from the store.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use support::{Row, RowCursor, World};
use terrane_base::env::{Clock, Env};
use terrane_base::{ExtentId, Kind, Result};
use terrane_compaction::{
    CancelCause, Claims, Compactor, FlushPlan, JobControl, JobSpec, LocalCompactor, RateLimiter, plan_flush,
};
use terrane_storage::{Store, delegate_store};

fn rows(step: usize, seq: u64) -> Vec<Row> {
    let numbers = (0..12_000).step_by(step).enumerate();
    numbers.map(|(index, n)| Row::put(format!("key-{n:08}"), seq + index as u64, vec![b'v'; 1000])).collect()
}

/// A table with a job of several megabytes to do.
fn world() -> (World, JobSpec) {
    let mut world = World::new();
    world.limits.level_base_bytes = 1;
    world.limits.job_bytes_max = 1 << 30;
    world.flush(&rows(2, 1));
    let spec = world.pick().unwrap();
    world.run(&spec);
    world.flush(&rows(3, 100_000));
    let spec = world.pick().unwrap();
    assert!(spec.inputs.len() == 2 && spec.input_bytes() > 8 << 20);
    (world, spec)
}

/// A store that counts its calls and does something at one of them.
struct Trap {
    inner: Arc<dyn Store>,
    writes: AtomicU64,
    at_write: u64,
    action: Box<dyn Fn() -> Result<()> + Send + Sync>,
}

impl std::fmt::Debug for Trap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trap").field("at_write", &self.at_write).finish_non_exhaustive()
    }
}

impl Store for Trap {
    delegate_store!(inner: allocate, allocate_for, sync, read, prefetch, free);
    delegate_store!(inner: restore, reclaim, reclaim_all, usage, place);

    fn write(&self, id: ExtentId, bytes: &[u8]) -> Result<()> {
        if self.writes.fetch_add(1, Ordering::Relaxed) == self.at_write {
            (self.action)()?;
        }
        self.inner.write(id, bytes)
    }

    fn hold(&self) {}

    fn release(&self) {}
}

fn trapped(
    world: &World,
    at_write: u64,
    action: impl Fn() -> Result<()> + Send + Sync + 'static,
) -> LocalCompactor {
    let inner = Arc::clone(&world.store);
    LocalCompactor::new(Arc::new(Trap {
        inner,
        writes: AtomicU64::new(0),
        at_write,
        action: Box::new(action),
    }))
}

#[test]
fn a_cancelled_job_gives_back_what_it_wrote() {
    for at_write in 0..4 {
        let (mut world, spec) = world();
        let control = Arc::new(World::control());
        let string = Arc::clone(&control);
        let compactor = trapped(&world, at_write, move || {
            string.cancel(CancelCause::Asked);
            Ok(())
        });
        let error = compactor.run(&spec, &control).unwrap_err();
        assert_eq!(error.kind(), Kind::Cancelled);
        assert!(control.is_cancelled() && control.work().blocks_decoded > 0);
        world.check_space();
        world.check_content();
        world.run(&spec);
        world.check_content();
    }
}

#[test]
fn a_failing_write_leaves_the_inputs_as_they_are() {
    let (mut world, spec) = world();
    let fail = || Err(terrane_base::Error::new(Kind::Io, "the device is gone"));
    let error = trapped(&world, 2, fail).run(&spec, &World::control()).unwrap_err();
    assert_eq!(error.kind(), Kind::Io);
    world.check_space();
    world.check_content();
    world.run(&spec);
    world.check_content();
}

#[test]
fn a_full_store_leaves_the_inputs_as_they_are() {
    let (mut world, spec) = world();
    // Room for two of the four extents of the output.
    world.disk.set_capacity(world.disk.used_bytes());
    let mut taken: Vec<ExtentId> = std::iter::from_fn(|| world.store.allocate(1).ok()).collect();
    for id in taken.drain(..2) {
        world.store.free(id, 1).unwrap();
    }
    let live_bytes = world.store.usage().live_bytes;
    let error = world.compactor.run(&spec, &World::control()).unwrap_err();
    assert_eq!(error.kind(), Kind::Full, "{error}");
    assert_eq!(world.store.usage().live_bytes, live_bytes);
    for id in taken {
        world.store.free(id, 1).unwrap();
    }
    world.check_space();
    world.check_content();
    world.disk.set_capacity(u64::MAX);
    world.run(&spec);
    world.check_content();
}

#[test]
fn a_flush_that_is_cancelled_can_be_done_again() {
    let (mut world, _) = world();
    let more = rows(5, 200_000);
    let plan = plan_flush(&world.shape(), &world.limits, &Claims::new(), &[], 1 << 20);
    let FlushPlan::Step(spec) = plan else { panic!("{plan:?}") };
    let control = Arc::new(World::control());
    let string = Arc::clone(&control);
    let compactor = trapped(&world, 1, move || {
        string.cancel(CancelCause::Asked);
        Ok(())
    });
    let mut cursor = RowCursor::new(more.clone());
    let error = compactor.flush_step(&spec, &mut cursor, &[], &control).unwrap_err();
    assert_eq!(error.kind(), Kind::Cancelled);
    world.check_space();
    world.flush(&more);
    world.check_content();
}

#[test]
fn damage_is_reported_with_its_place_and_costs_nothing_else() {
    let (world, spec) = world();
    let meta = &spec.inputs[1].extents[1];
    // In the middle of the blocks.
    let mut bytes = vec![0; meta.bytes as usize];
    world.store.read(meta.id, 0, &mut bytes).unwrap();
    bytes[meta.index.offset as usize / 2] ^= 1;
    world.store.write(meta.id, &bytes).unwrap();
    let error = world.compactor.run(&spec, &World::control()).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.place().is_some(), "{error}");
    world.check_space();
    // In the index.
    bytes[meta.index.offset as usize / 2] ^= 1;
    bytes[meta.index.offset as usize + 5] ^= 1;
    world.store.write(meta.id, &bytes).unwrap();
    let error = world.compactor.run(&spec, &World::control()).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    world.check_space();
}

#[test]
fn a_paused_job_waits_and_goes_on() {
    let (mut world, spec) = world();
    let control = Arc::new(World::control());
    control.pause();
    assert!(control.is_paused() && !control.is_held(), "it has not begun");
    let result = std::thread::scope(|scope| {
        let job = scope.spawn(|| world.compactor.run(&spec, &control));
        while !control.is_held() {
            std::thread::yield_now();
        }
        assert_eq!(control.work().blocks_decoded, 0, "nothing happens while it is paused");
        assert!(!job.is_finished());
        control.resume();
        job.join().unwrap().unwrap()
    });
    assert_eq!(control.work(), result.work);
    control.pause();
    assert!(!control.is_held(), "it has ended");
    world.publish(&result);
    world.check_content();
}

#[test]
fn a_paused_job_can_be_cancelled() {
    let (world, spec) = world();
    let control = Arc::new(World::control());
    control.pause();
    let error = std::thread::scope(|scope| {
        let job = scope.spawn(|| world.compactor.run(&spec, &control));
        control.cancel(CancelCause::Held);
        control.cancel(CancelCause::Closing);
        control.resume();
        job.join().unwrap().unwrap_err()
    });
    assert_eq!(error.kind(), Kind::Cancelled);
    assert_eq!(control.cancelled(), Some(CancelCause::Held), "the first cause");
    world.check_space();
}

/// A clock that moves only when someone sleeps.
#[derive(Debug, Default)]
struct SleepClock {
    nanos: AtomicU64,
    longest_nap: AtomicU64,
}

impl Clock for SleepClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    fn wall(&self) -> Duration {
        self.now()
    }

    fn sleep(&self, duration: Duration) {
        let nanos = duration.as_nanos() as u64;
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        self.longest_nap.fetch_max(nanos, Ordering::Relaxed);
    }
}

#[test]
fn the_rate_holds_and_naps_are_short() {
    let (mut world, spec) = world();
    let clock = Arc::new(SleepClock::default());
    let limiter = Arc::new(RateLimiter::new(clock.clone(), 4 << 20));
    let control = JobControl::new(clock.clone(), Some(limiter));
    let result = world.compactor.run(&spec, &control).unwrap();
    let seconds = clock.now().as_secs_f64();
    let allowed = seconds * f64::from(4 << 20) + f64::from(4 << 20) * 0.06;
    assert!((result.work.bytes_written as f64) <= allowed * 1.01, "{seconds} s");
    assert!(result.work.bytes_written as f64 >= allowed * 0.9, "{seconds} s: slower than allowed");
    assert!(clock.longest_nap.load(Ordering::Relaxed) <= 20_000_000);
    world.publish(&result);
    world.check_content();
}

#[test]
fn jobs_share_a_limiter() {
    let clock = Arc::new(SleepClock::default());
    let limiter = Arc::new(RateLimiter::new(clock.clone(), 1000));
    let controls: Vec<_> =
        (0..4).map(|_| JobControl::new(clock.clone(), Some(Arc::clone(&limiter)))).collect();
    for control in &controls {
        control.spend(1000).unwrap();
    }
    assert_eq!(clock.now().as_secs(), 4);
    limiter.set_rate(0);
    controls[0].spend(u64::MAX).unwrap();
    assert_eq!(clock.now().as_secs(), 4, "no ceiling, no wait");
    assert!(Env::real().clock.now() >= Duration::ZERO);
}
