//! Buckets of tests.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::{Clock, Env, SleepClock};
use terrane_base::{ExtentId, Kind, Result, Rng};
use terrane_device::MemDisk;
use terrane_remote::bucket::{
    Bucket, ClientBucket, DirectoryBucket, LogBucket, LogSettings, MemoryBucket, RetryLimits, RetryingBucket,
};
#[cfg(feature = "grpc")]
use terrane_remote::grpc::{GrpcBucket, GrpcBucketSettings, Server, ServerSettings};
use terrane_remote::{BucketStore, BucketStoreSettings};
use terrane_storage::{SLOT_BYTES, Store};

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
    let limits = RetryLimits { pause_min: pause, pause_max: 4 * pause, deadline: 100 * pause };
    Arc::new(RetryingBucket::new(inner, limits, env.clone()))
}

/// The name of a kind, a bucket, and what must live as long.
type OfKind = (&'static str, Arc<dyn Bucket>, Box<dyn Any + Send>);

/// One bucket of each kind.
pub(crate) fn every_kind() -> Vec<OfKind> {
    let (env, clock) = env();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let files = DirectoryBucket::open(directory.path(), Env::real()).expect("opens");
    let client =
        ClientBucket::new(Arc::new(object_store::memory::InMemory::new()), "client:").expect("opens");
    let repeated = retrying(memory(&clock), &env);
    let none = || Box::new(());
    #[cfg_attr(not(feature = "grpc"), expect(unused_mut, reason = "one kind fewer"))]
    let mut kinds: Vec<OfKind> = vec![
        ("memory", memory(&clock), none()),
        ("directory", Arc::new(files), Box::new(directory)),
        ("client", Arc::new(client), none()),
        ("retrying", repeated, none()),
        ("log", object_log(), none()),
    ];
    #[cfg(feature = "grpc")]
    {
        let server = serve(memory(&clock));
        kinds.push(("grpc", Arc::new(connect(server.address())), Box::new(server)));
        let server = serve(object_log());
        kinds.push(("grpc to a log", Arc::new(connect(server.address())), Box::new(server)));
    }
    kinds
}

/// A log of objects in memory.
pub(crate) fn object_log() -> Arc<dyn Bucket> {
    let disk = Arc::new(MemDisk::new());
    Arc::new(LogBucket::open(disk, Path::new("/log"), LogSettings::default(), Env::real()).expect("opens"))
}

/// Serves a bucket on the loopback.
#[cfg(feature = "grpc")]
pub(crate) fn serve(bucket: Arc<dyn Bucket>) -> Server {
    let settings = ServerSettings::new(([127, 0, 0, 1], 0).into());
    Server::start(bucket, &settings, &Env::real()).expect("starts")
}

/// The bucket that is served at an address.
#[cfg(feature = "grpc")]
pub(crate) fn connect(address: std::net::SocketAddr) -> GrpcBucket {
    let url = format!("grpc://{address}");
    GrpcBucket::new(&url, GrpcBucketSettings::default(), Env::real()).expect("an address")
}

#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T>, kind: Kind) -> String {
    let error = result.expect_err("an error was due");
    assert_eq!(error.kind(), kind, "{error}");
    error.to_string()
}

/// Settings with which tests fill several objects fast; no probe, whose calls they would count.
pub(crate) fn small() -> BucketStoreSettings {
    BucketStoreSettings {
        object_bytes: 1 << 20,
        stage_bytes: 64 << 20,
        garbage_age: Duration::from_secs(60),
        probe: false,
    }
}

/// Opens the store `db` for a writer of this epoch.
pub(crate) fn open(bucket: Arc<dyn Bucket>, epoch: u64) -> Result<BucketStore> {
    BucketStore::open(bucket, "db", epoch, small(), env().0)
}

/// Opens the store for a writer of this epoch, and restores extents.
pub(crate) fn reopened(bucket: Arc<dyn Bucket>, epoch: u64, live: &[(ExtentId, u32)]) -> BucketStore {
    let store = open(bucket, epoch).expect("opens");
    store.restore(&mut live.iter().copied()).expect("restores");
    store
}

/// `len` bytes that depend on `salt`.
pub(crate) fn pattern(len: usize, salt: u64) -> Vec<u8> {
    let mut rng = Rng::new(salt);
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}

/// Allocates an extent and writes such bytes.
pub(crate) fn put(store: &dyn Store, len: usize, salt: u64) -> Result<ExtentId> {
    let id = store.allocate_for(len.div_ceil(SLOT_BYTES).max(1) as u32, len as u64)?;
    store.write(id, &pattern(len, salt))?;
    Ok(id)
}

#[track_caller]
pub(crate) fn check(store: &dyn Store, id: ExtentId, len: usize, salt: u64) {
    let mut bytes = vec![0; len];
    store.read(id, 0, &mut bytes).expect("reads");
    assert!(bytes == pattern(len, salt), "the bytes of extent {id}");
}

/// The names of the objects below a folder.
pub(crate) fn names(bucket: &dyn Bucket, folder: &str) -> Vec<String> {
    bucket.list(folder, None).expect("lists").into_iter().map(|object| object.name).collect()
}
