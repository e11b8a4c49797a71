//! Buckets of tests.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::{Clock, Env, SleepClock};
use terrane_base::{Kind, Result};
use terrane_remote::bucket::{Bucket, ClientBucket, DirectoryBucket, MemoryBucket, Patience, RetryingBucket};

/// The real threads and random numbers, and a clock that moves on by sleeps only.
pub(crate) fn env() -> (Env, Arc<SleepClock>) {
    let clock = Arc::new(SleepClock::default());
    (Env { clock: clock.clone(), ..Env::real() }, clock)
}

/// A bucket in memory whose objects are created at the time of `clock`.
pub(crate) fn memory(clock: &Arc<SleepClock>) -> Arc<MemoryBucket> {
    Arc::new(MemoryBucket::new(clock.clone() as Arc<dyn Clock>))
}

pub(crate) fn retrying(inner: Arc<dyn Bucket>, env: &Env) -> Arc<RetryingBucket> {
    let pause = Duration::from_millis(10);
    let patience = Patience { pause_min: pause, pause_max: 4 * pause, deadline: 100 * pause };
    Arc::new(RetryingBucket::new(inner, patience, env.clone()))
}

/// One bucket of each kind, and what must live as long.
pub(crate) fn every_kind() -> Vec<(&'static str, Arc<dyn Bucket>, Option<tempfile::TempDir>)> {
    let (env, clock) = env();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let files = DirectoryBucket::open(directory.path(), Env::real()).expect("opens");
    let client =
        ClientBucket::new(Arc::new(object_store::memory::InMemory::new()), "client:").expect("opens");
    let repeated = retrying(memory(&clock), &env);
    vec![
        ("memory", memory(&clock) as Arc<dyn Bucket>, None),
        ("directory", Arc::new(files), Some(directory)),
        ("client", Arc::new(client), None),
        ("retrying", repeated, None),
    ]
}

#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T>, kind: Kind) -> String {
    let error = result.expect_err("an error was due");
    assert_eq!(error.kind(), kind, "{error}");
    error.to_string()
}
