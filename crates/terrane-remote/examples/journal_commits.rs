//! Synced commits with the journal in a directory, in a bucket, and, with the feature `grpc`, in a bucket and
//! in a log of journals that this process serves on the loopback, at 1 and at 16 threads; and the time
//! that an opening on another machine takes. The buckets are directories of this machine, the second one
//! behind a wait for each request. No benchmark: one run, no histogram.
//!
//! `cargo run --release -p terrane-remote --example journal_commits -- [DIRECTORY [SECONDS [WAIT_MS]]]`

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use terrane::{Db, Durability, Options};
use terrane_base::env::{Clock, Env};
use terrane_base::{Functions, Result};
use terrane_device::{Disk, PosixDisk};
use terrane_remote::bucket::DirectoryBucket;
use terrane_remote::{
    Bucket, BucketJournal, BucketStoreSettings, Create, Deployment, Listed, ObjectJournalSettings, Pending,
};

const VALUE_BYTES: usize = 100;

/// Each request takes a time at least; requests that run beside each other wait beside each other.
struct SlowBucket {
    inner: Arc<dyn Bucket>,
    wait: Duration,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for SlowBucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlowBucket").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl SlowBucket {
    fn later<T: Send + 'static>(&self, pending: Pending<T>) -> Pending<T> {
        let (clock, due) = (self.clock.clone(), self.clock.now() + self.wait);
        Pending::new(move || {
            let outcome = pending.wait();
            clock.sleep(due.saturating_sub(clock.now()));
            outcome
        })
    }
}

impl Bucket for SlowBucket {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        self.later(self.inner.begin_create(name, parts))
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        self.later(self.inner.begin_get_ranges(name, ranges))
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        self.clock.sleep(self.wait);
        self.inner.get_tail(name, bytes_max)
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        self.clock.sleep(self.wait);
        self.inner.list(folder, after)
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        self.clock.sleep(self.wait);
        self.inner.delete(names)
    }
}

/// Commits until the time is over; returns how many.
fn commit(db: &Db, threads: u64, clock: &dyn Clock, time: Duration) -> Result<u64> {
    let (count, end) = (AtomicU64::new(0), clock.now() + time);
    let run = |thread: u64| -> Result<()> {
        for number in 0u64.. {
            if clock.now() >= end {
                break;
            }
            let key = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ thread).to_be_bytes();
            db.default_table().put_with(key, [7; VALUE_BYTES], Durability::Synced)?;
            count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    Ok(count.into_inner())
}

/// Where the journal of a row lies.
#[derive(Clone)]
enum JournalAt {
    Directory,
    Bucket,
    /// A service at this address.
    #[cfg(feature = "grpc")]
    Service(String),
}

/// One row: commits of both numbers of threads, objects, the opening elsewhere.
fn measure(name: &str, root: &Path, journal: &JournalAt, wait: Duration, time: Duration) -> Result<()> {
    let env = Env::real();
    let clock = env.clock.clone();
    let place = root.join(name);
    PosixDisk::new().create_dir(&place.join("bucket"))?;
    let files: Arc<dyn Bucket> = Arc::new(DirectoryBucket::open(&place.join("bucket"), env.clone())?);
    let bucket: Arc<dyn Bucket> = Arc::new(SlowBucket { inner: files.clone(), wait, clock: clock.clone() });
    let deployment = |directory: &str| Deployment {
        bucket_journal: match journal {
            JournalAt::Directory => None,
            JournalAt::Bucket => {
                Some(BucketJournal { url: None, settings: ObjectJournalSettings::default() })
            }
            #[cfg(feature = "grpc")]
            JournalAt::Service(url) => {
                Some(BucketJournal { url: Some(url.clone()), settings: ObjectJournalSettings::default() })
            }
        },
        settings: BucketStoreSettings { probe: false, ..BucketStoreSettings::default() },
        ..Deployment::new(place.join(directory), "file:".to_owned())
    };
    let open = |directory: &str| {
        deployment(directory).open_in(bucket.clone(), &Options::default(), Functions::default(), env.clone())
    };
    let journals = match journal {
        #[cfg(feature = "grpc")]
        JournalAt::Service(url) => terrane_remote::bucket::open(url, &env)?,
        _ => files.clone(),
    };
    let objects = || journals.list("terrane/journal", None).map_or(0, |listed| listed.len());
    let db = open("a")?;
    print!("{name}:");
    for threads in [1, 16] {
        let before = objects();
        let start = clock.now();
        let commits = commit(&db, threads, &*clock, time)?;
        let rate = commits as f64 / (clock.now() - start).as_secs_f64();
        let per_commit = (objects() - before) as f64 / commits as f64;
        print!(" {threads} threads {rate:.0} commits/s, {per_commit:.3} objects a commit;");
    }
    if !matches!(journal, JournalAt::Directory) {
        let kept = objects();
        let start = clock.now();
        let elsewhere = open("b")?;
        println!(
            " opened elsewhere in {:.0} ms, with {kept} objects",
            (clock.now() - start).as_secs_f64() * 1e3
        );
        elsewhere.close()?;
    } else {
        println!();
        db.close()?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let own = tempfile::tempdir().expect("a temporary directory");
    let root = arguments.next().map_or(own.path().to_owned(), Into::into);
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (time, wait) = (Duration::from_secs(number(3)), Duration::from_millis(number(20)));
    measure("journal in a directory", &root, &JournalAt::Directory, Duration::ZERO, time)?;
    #[cfg(feature = "grpc")]
    served(&root, time)?;
    measure("journal in a bucket", &root, &JournalAt::Bucket, Duration::ZERO, time)?;
    measure("journal in a bucket that waits", &root, &JournalAt::Bucket, wait, time)
}

/// The rows with a service on the loopback.
#[cfg(feature = "grpc")]
fn served(root: &Path, time: Duration) -> Result<()> {
    use terrane_remote::bucket::{LogBucket, LogSettings};
    use terrane_remote::grpc::{Server, ServerSettings};
    let env = Env::real();
    let log = LogBucket::on_disk(&root.join("log"), LogSettings::default(), env.clone())?;
    PosixDisk::new().create_dir(&root.join("served"))?;
    let files = DirectoryBucket::open(&root.join("served"), env.clone())?;
    let places: [(&str, Arc<dyn Bucket>); 2] =
        [("journal service", Arc::new(log)), ("journal in a bucket that is served", Arc::new(files))];
    for (name, bucket) in places {
        let server = Server::start(bucket, &ServerSettings::new(([127, 0, 0, 1], 0).into()), &env)?;
        let journal = JournalAt::Service(format!("grpc://{}", server.address()));
        measure(name, root, &journal, Duration::ZERO, time)?;
    }
    Ok(())
}
