//! A job over extents of a bucket, a writer that offers it, and a clock whose sleeps let workers go on: what
//! happens is the same in every run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::{Clock, Env, SleepClock};
use terrane_base::options::{BlockEncoding, Compression, ValueCompression};
use terrane_base::sync::Mutex;
use terrane_base::{Entry, RecordKind, SeqKind, SeqNo, TableId};
use terrane_compaction::{
    Compactor, Input, JobControl, JobKind, JobResult, JobSpec, KeyRange, LocalCompactor, OutputSettings,
};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;
use terrane_remote::bucket::MemoryBucket;
use terrane_remote::jobs::{
    BucketCompactor, BucketCompactorSettings, Claim, Coordinator, JobTable, Stop, Worker, WorkerSettings,
};
use terrane_remote::{Bucket, BucketStore};
use terrane_storage::{SLOT_BYTES, Store};
use terrane_table::{ExtentWriter, WriterSettings};

use crate::support::small;

const TABLE: TableId = TableId(3);
pub(super) const EPOCH: u64 = 2;

type Hook = Box<dyn FnMut(Duration) + Send>;

/// A clock that moves on by sleeps only, and calls a hook at the end of each: there workers get their turn.
#[derive(Default)]
pub(super) struct HookClock {
    time: SleepClock,
    hook: Mutex<Option<Hook>>,
}

impl HookClock {
    /// Calls `hook` with the time at the end of each sleep, in place of the hook before.
    pub(super) fn set(&self, hook: impl FnMut(Duration) + Send + 'static) {
        *self.hook.lock() = Some(Box::new(hook));
    }
}

impl fmt::Debug for HookClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookClock").field("time", &self.time).finish_non_exhaustive()
    }
}

impl Clock for HookClock {
    fn now(&self) -> Duration {
        self.time.now()
    }

    fn wall(&self) -> Duration {
        self.time.now()
    }

    fn sleep(&self, duration: Duration) {
        self.time.sleep(duration);
        // A hook that sleeps calls no hook.
        if let Some(mut hook) = self.hook.try_lock()
            && let Some(hook) = &mut *hook
        {
            hook(self.time.now());
        }
    }
}

pub(super) struct Fixture {
    pub(super) clock: Arc<HookClock>,
    pub(super) bucket: Arc<MemoryBucket>,
    pub(super) store: Arc<BucketStore>,
    pub(super) coordinator: Arc<Coordinator>,
    pub(super) compactor: BucketCompactor,
    pub(super) spec: JobSpec,
}

impl Fixture {
    pub(super) fn new() -> Fixture {
        Fixture::over(|bucket| bucket)
    }

    /// A fixture whose table of jobs sees the bucket as `seen` makes it; the store sees all of it.
    pub(super) fn over(seen: impl FnOnce(Arc<dyn Bucket>) -> Arc<dyn Bucket>) -> Fixture {
        let clock = Arc::new(HookClock::default());
        let env = Env { clock: clock.clone(), ..Env::real() };
        let bucket = Arc::new(MemoryBucket::new(clock.clone() as Arc<dyn Clock>));
        let own = seen(bucket.clone());
        let store = BucketStore::open(bucket.clone(), "db", EPOCH, small(), env.clone()).expect("opens");
        let store = Arc::new(store);
        let spec = job(&*store);
        let table = JobTable::new(own, "db", env.random.clone()).expect("a table");
        let coordinator = Arc::new(table.coordinate(EPOCH).expect("the only one"));
        let local = LocalCompactor::new(store.clone());
        let settings = BucketCompactorSettings::default();
        let compactor = BucketCompactor::new(coordinator.clone(), store.clone(), local, settings, env)
            .expect("possible settings");
        Fixture { clock, bucket, store, coordinator, compactor, spec }
    }

    /// A worker that sees the bucket so.
    pub(super) fn worker(&self, bucket: Arc<dyn Bucket>, name: &str) -> Worker {
        let settings =
            WorkerSettings { name: name.to_owned(), poll: Duration::from_millis(10), store: small() };
        // Its rests take no time.
        let env = Env { clock: Arc::new(SleepClock::default()), ..Env::real() };
        Worker::new(bucket, "db", settings, env).expect("possible settings")
    }

    /// Lets a sound worker look for jobs at each turn.
    pub(super) fn with_worker(self) -> Fixture {
        let worker = self.worker(self.bucket.clone(), "sound");
        self.clock.set(move |_| drop(worker.step(&Stop::default())));
        self
    }

    pub(super) fn control(&self) -> JobControl {
        JobControl::new(self.clock.clone(), None)
    }

    /// Runs the job, and checks that its output is what a merge in this process writes.
    pub(super) fn run(&self) -> (JobResult, JobControl) {
        let control = self.control();
        let result = self.compactor.run(&self.spec, &control).expect("runs, wherever");
        self.check(&result);
        (result, control)
    }

    /// The output of a job is what a merge in this process writes, byte for byte, and each extent is one of
    /// the store: it can be freed.
    pub(super) fn check(&self, result: &JobResult) {
        let local = LocalCompactor::new(self.store.clone());
        let expected = local.run(&self.spec, &self.control()).expect("runs here");
        assert_eq!(result.removed, expected.removed);
        assert_eq!(result.added.len(), expected.added.len());
        assert!(result.added.len() > 1, "the job writes several extents");
        for (meta, expected) in result.added.iter().zip(&expected.added) {
            assert!(self.bytes(meta) == self.bytes(expected), "extent {} differs", meta.id);
            assert_eq!((&meta.smallest, &meta.largest), (&expected.smallest, &expected.largest));
        }
        for meta in result.written().chain(expected.written()) {
            self.store.free(meta.id, meta.slots).expect("an extent of the store");
        }
    }

    fn bytes(&self, meta: &ExtentMeta) -> Vec<u8> {
        let mut bytes = vec![0; meta.bytes as usize];
        self.store.read(meta.id, 0, &mut bytes).expect("reads");
        bytes
    }

    /// Names of the objects of jobs that are there.
    pub(super) fn objects_of_jobs(&self) -> Vec<String> {
        let listed = self.bucket.list("db/jobs", None).expect("lists");
        let of_jobs = listed.into_iter().map(|object| object.name).filter(|name| name.contains("offer"));
        of_jobs.collect()
    }
}

/// Writes an extent or several of these keys.
fn load(store: &dyn Store, numbers: impl Iterator<Item = usize>, seq: u64, fill: u8) -> Vec<ExtentMeta> {
    let settings = WriterSettings {
        table: TABLE,
        block_bytes: 4096,
        block_encoding: BlockEncoding::TwoLayer,
        filter_bits_per_key: 10,
        compression: Compression::None,
        zstd_level: None,
        value_table: None,
        may_point: false,
    };
    let mut writer = ExtentWriter::new(settings).expect("possible settings");
    let mut metas = Vec::new();
    for number in numbers {
        let (key, value) = (format!("key-{number:06}"), vec![fill; 1500]);
        if !writer.fits(key.len(), value.len()) {
            metas.push(writer.finish(store).expect("written"));
        }
        let is_delete = fill == b'n' && number % 3 == 0;
        let kind = if is_delete { RecordKind::Delete } else { RecordKind::Put };
        let value = if is_delete { &[][..] } else { &value };
        let seq_kind = SeqKind::new(SeqNo(seq + number as u64), kind);
        writer.add(Entry { key: key.as_bytes(), seq_kind, value }).expect("in order");
    }
    metas.push(writer.finish(store).expect("written"));
    store.sync().expect("uploaded");
    metas
}

/// Two levels that overlap.
fn job(store: &dyn Store) -> JobSpec {
    let lower = load(store, 0..4000, 1, b'o');
    let upper = load(store, (500..3500).step_by(4), 10_000, b'n');
    JobSpec {
        kind: JobKind::Level,
        request: None,
        table: TABLE,
        range: KeyRange::closed(&lower[0].smallest, &lower[lower.len() - 1].largest),
        inputs: vec![
            Input { place: Place::Level(1), extents: upper },
            Input { place: Place::Level(2), extents: lower },
        ],
        values: Vec::new(),
        mended: None,
        target: Place::Level(2),
        below: Vec::new(),
        below_seq_max: SeqNo(0),
        grandparents: Vec::new(),
        grandparent_bytes_max: u64::MAX,
        snapshots: Vec::new(),
        output: OutputSettings {
            block_bytes: 4096,
            block_encoding: BlockEncoding::TwoLayer,
            filter_bits_per_key: 10,
            compression: Compression::None,
            value_compression: ValueCompression::AsTable,
            separate_from: u64::MAX,
        },
        drops_deletes: false,
        rewrites: false,
        part_bytes: u64::MAX,
        extent_bytes_max: SLOT_BYTES as u64,
    }
}

/// Claims the oldest open attempt, as a worker that the test plays.
pub(super) fn claim(table: &JobTable) -> Option<Claim> {
    let open = table.list_open().expect("lists");
    open.first().and_then(|open| table.claim(*open, "played").expect("claims"))
}
