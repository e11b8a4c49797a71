//! Requests and bytes that gets cost at the bucket, without and with a cache on local disk.
//!
//! ```sh
//! cargo run --release -p terrane-remote --example tier_reads -- DIRECTORY [KEYS] [GETS]
//! ```
//!
//! The bucket is in memory and counts its reads. Keys are read at random, after openings with an empty cache
//! in memory of 16 MiB.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use terrane::{Db, Options};
use terrane_base::env::Env;
use terrane_base::{Functions, Result, Rng};
use terrane_remote::bucket::MemoryBucket;
use terrane_remote::{Bucket, BucketStoreSettings, Create, Deployment, Listed, Pending, TierSettings};

/// Counts the reads of ranges and tails.
#[derive(Debug)]
struct CountingBucket {
    inner: MemoryBucket,
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl CountingBucket {
    fn count(&self, bytes: u64) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn so_far(&self) -> (u64, u64) {
        (self.requests.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

impl Bucket for CountingBucket {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        self.inner.begin_create(name, parts)
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        ranges.iter().for_each(|range| self.count(range.end - range.start));
        self.inner.begin_get_ranges(name, ranges)
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        self.count(bytes_max);
        self.inner.get_tail(name, bytes_max)
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        self.inner.list(folder, after)
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        self.inner.delete(names)
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let root = PathBuf::from(arguments.next().unwrap_or_else(|| "tier-reads".to_owned()));
    let mut number = |default: u64| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (keys, gets) = (number(500_000), number(100_000));
    let env = Env::real();
    let inner = MemoryBucket::new(env.clock.clone());
    let bucket = Arc::new(CountingBucket { inner, requests: 0.into(), bytes: 0.into() });
    let cache = TierSettings { directory: root.join("cache"), bytes: 256 << 20 };
    let open = |cache: Option<&TierSettings>| {
        let deployment = Deployment {
            settings: BucketStoreSettings { probe: false, ..BucketStoreSettings::default() },
            cache: cache.cloned(),
            options: vec![("memory_bytes".to_owned(), "16MiB".to_owned())],
            ..Deployment::new(root.join("journal"), "memory:".to_owned())
        };
        deployment.open_in(bucket.clone(), &Options::default(), Functions::default(), env.clone())
    };
    // Without the cache, so that the first reads with one are those of an empty one.
    let db = open(None)?;
    let mut rng = Rng::new(1);
    for key in 0..keys {
        let value: Vec<u8> = (0..25).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        db.put(name(key), value)?;
    }
    db.flush()?;
    db.compact_range(db.default_table(), ..)?;
    db.close()?;
    let read = |what: &str, db: &Db| -> Result<()> {
        let (before, mut rng) = (bucket.so_far(), Rng::new(2));
        for _ in 0..gets {
            assert!(db.get(name(rng.below(keys)))?.is_some(), "it was put");
        }
        let (requests, bytes) = bucket.so_far();
        let each = |count: u64| count as f64 / gets as f64;
        println!(
            "{what}: {:.4} requests, {:.0} bytes a get",
            each(requests - before.0),
            each(bytes - before.1)
        );
        Ok(())
    };
    let db = open(None)?;
    read("no cache on disk, first pass", &db)?;
    read("no cache on disk, second pass", &db)?;
    db.close()?;
    let db = open(Some(&cache))?;
    read("empty cache on disk", &db)?;
    read("filled cache on disk", &db)?;
    db.close()?;
    let db = open(Some(&cache))?;
    read("filled cache on disk, after a restart", &db)?;
    db.close()
}

fn name(key: u64) -> String {
    format!("key{:016x}", key.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
