//! Counts requests by the part of a database that they are for.
//!
//! Counted is what an object store is asked for and bills, whatever the bucket is: ranges that are read by
//! one request count once, lists and deletions count once for each thousand objects. Every attempt counts,
//! so this bucket stands below the one that repeats. A read that is requested a second time because it takes
//! long (`hedge.rs`) counts once; [`super::HedgeCounts`] has the second requests.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use terrane_base::Result;
use terrane_storage::{BucketPart, BucketRequests, PartRequests};

use super::client::merged;
use super::{Bucket, BucketSettings, Create, HedgeCounts, Listed, Pending};

/// Objects that one request lists or deletes, at S3 and at what speaks its protocol.
const OBJECTS_PER_REQUEST: usize = 1000;

/// The counters of one part; [`PartRequests`] says what each counts.
#[derive(Debug, Default)]
struct PartCounters {
    creates: AtomicU64,
    reads: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
}

impl PartCounters {
    fn snapshot(&self) -> PartRequests {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PartRequests {
            creates: of(&self.creates),
            reads: of(&self.reads),
            lists: of(&self.lists),
            deletes: of(&self.deletes),
            bytes_sent: of(&self.bytes_sent),
            bytes_received: of(&self.bytes_received),
        }
    }
}

/// Passes requests on to another bucket, and counts them.
#[derive(Clone, Debug)]
pub(super) struct CountingBucket {
    inner: Arc<dyn Bucket>,
    counters: Arc<[PartCounters; BucketPart::ALL.len()]>,
}

impl CountingBucket {
    pub(super) fn new(inner: Arc<dyn Bucket>) -> CountingBucket {
        CountingBucket { inner, counters: Arc::default() }
    }

    /// The counters of the part that has the object or the folder `name`.
    fn of(&self, name: &str) -> &PartCounters {
        let part = part_of(name) as usize;
        debug_assert!(part < self.counters.len(), "each part has counters");
        &self.counters[part]
    }
}

/// The part that has the object or the folder `name`: the last part of the name that is the name of a folder
/// decides, because a prefix may have any name.
fn part_of(name: &str) -> BucketPart {
    let folder = |part: &str| match part {
        "journal" => Some(BucketPart::Journal),
        "manifest" => Some(BucketPart::Manifest),
        "data" => Some(BucketPart::Data),
        "jobs" => Some(BucketPart::Jobs),
        "gc" | "originals" | "probe" => Some(BucketPart::Other),
        _ => None,
    };
    name.rsplit('/').find_map(folder).unwrap_or(BucketPart::Other)
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

fn requests_for(objects: usize) -> u64 {
    objects.div_ceil(OBJECTS_PER_REQUEST).max(1) as u64
}

/// Requests and bytes of a read of several ranges.
fn reads_of(ranges: &[Range<u64>]) -> (u64, u64) {
    match ranges {
        [one] => (u64::from(!one.is_empty()), one.end.saturating_sub(one.start)),
        several => {
            let merged = merged(several);
            debug_assert!(merged.len() <= several.len(), "ranges are joined, and none is divided");
            (merged.len() as u64, merged.iter().map(|range| range.end - range.start).sum())
        }
    }
}

impl Bucket for CountingBucket {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        let counters = self.of(name);
        add(&counters.creates, 1);
        add(&counters.bytes_sent, parts.iter().map(|part| part.len() as u64).sum());
        self.inner.begin_create(name, parts)
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        let (requests, bytes) = reads_of(&ranges);
        add(&self.of(name).reads, requests);
        let (pending, counters, part) =
            (self.inner.begin_get_ranges(name, ranges), Arc::clone(&self.counters), part_of(name));
        Pending::new(move || pending.wait().inspect(|_| add(&counters[part as usize].bytes_received, bytes)))
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        let counters = self.of(name);
        add(&counters.reads, 1);
        let tail = self.inner.get_tail(name, bytes_max);
        tail.inspect(|bytes| add(&counters.bytes_received, bytes.len() as u64))
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        let listed = self.inner.list(folder, after);
        add(&self.of(folder).lists, requests_for(listed.as_ref().map_or(0, Vec::len)));
        listed
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        if let Some(first) = names.first() {
            add(&self.of(first).deletes, requests_for(names.len()));
        }
        self.inner.delete(names)
    }

    fn syncs_groups(&self) -> bool {
        self.inner.syncs_groups()
    }

    fn is_crowded(&self) -> bool {
        self.inner.is_crowded()
    }

    fn is_failed(&self) -> bool {
        self.inner.is_failed()
    }

    fn hedges(&self) -> HedgeCounts {
        self.inner.hedges()
    }

    fn settings(&self) -> BucketSettings {
        self.inner.settings()
    }

    fn requests(&self) -> BucketRequests {
        debug_assert_eq!(self.counters.len(), BucketPart::ALL.len(), "each part has counters");
        let mut requests = BucketRequests::default();
        for part in BucketPart::ALL {
            *requests.part_mut(part) = self.counters[part as usize].snapshot();
        }
        requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_folder_of_a_name_is_its_part() {
        for (name, part) in [
            ("db/manifest/00000000000000000001", BucketPart::Manifest),
            ("db/manifest", BucketPart::Manifest),
            ("data/journal/00000000000000000001", BucketPart::Journal),
            ("journal/data/1-2-3", BucketPart::Data),
            ("db/jobs/1-2/1/claim", BucketPart::Jobs),
            ("data/gc/lists/1-2", BucketPart::Other),
            ("data/probe/12ab/1", BucketPart::Other),
            ("db/originals/1-2", BucketPart::Other),
            ("db/x", BucketPart::Other),
        ] {
            assert_eq!(part_of(name), part, "{name}");
        }
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "a list of one range")]
    fn ranges_that_one_request_reads_count_once() {
        assert_eq!(reads_of(&[3..9]), (1, 6));
        assert_eq!(reads_of(&[3..3]), (0, 0));
        assert_eq!(reads_of(&[0..4, 10..12]), (1, 12));
        assert_eq!(reads_of(&[0..4, 1 << 30..(1 << 30) + 2]), (2, 6));
        assert_eq!((requests_for(0), requests_for(1000), requests_for(1001)), (1, 1, 2));
    }
}
