//! Synced commits with the journal in a directory and in a bucket, at 1 and at 16 threads, and the time
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

/// One row: commits of both numbers of threads, objects, the opening elsewhere.
fn measure(name: &str, root: &Path, is_in_bucket: bool, wait: Duration, time: Duration) -> Result<()> {
    let env = Env::real();
    let clock = env.clock.clone();
    let place = root.join(name);
    PosixDisk::new().create_dir(&place.join("bucket"))?;
    let files: Arc<dyn Bucket> = Arc::new(DirectoryBucket::open(&place.join("bucket"), env.clone())?);
    let bucket: Arc<dyn Bucket> = Arc::new(SlowBucket { inner: files.clone(), wait, clock: clock.clone() });
    let deployment = |directory: &str| Deployment {
        bucket_journal: is_in_bucket
            .then(|| BucketJournal { url: None, settings: ObjectJournalSettings::default() }),
        settings: BucketStoreSettings { probe: false, ..BucketStoreSettings::default() },
        ..Deployment::new(place.join(directory), "file:".to_owned())
    };
    let open = |directory: &str| {
        deployment(directory).open_in(bucket.clone(), &Options::default(), Functions::default(), env.clone())
    };
    let objects = || files.list("terrane/journal", None).map_or(0, |listed| listed.len());
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
    if is_in_bucket {
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
    measure("journal in a directory", &root, false, Duration::ZERO, time)?;
    measure("journal in a bucket", &root, true, Duration::ZERO, time)?;
    measure("journal in a bucket that waits", &root, true, wait, time)
}
