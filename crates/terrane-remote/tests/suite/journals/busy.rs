//! A bucket with which another caller is at work whenever a folder is listed, gets an object, or an object of
//! it is read.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use terrane_base::Result;
use terrane_remote::{Bucket, Create, Listed, Pending};

/// Does `work` in front of each list of the folder, of each creation there, or of each read of an object.
pub(crate) struct BusyBucket<F> {
    inner: Arc<dyn Bucket>,
    calls: Calls,
    work: F,
}

/// In front of which calls the work is done.
enum Calls {
    ListsOf(&'static str),
    CreationsIn(&'static str),
    ReadsOf(String),
    Looks,
}

impl<F> BusyBucket<F> {
    pub(crate) fn new(inner: Arc<dyn Bucket>, folder: &'static str, work: F) -> BusyBucket<F> {
        BusyBucket { inner, calls: Calls::ListsOf(folder), work }
    }

    /// In front of creations in the folder.
    pub(crate) fn at_creations(inner: Arc<dyn Bucket>, folder: &'static str, work: F) -> BusyBucket<F> {
        BusyBucket { inner, calls: Calls::CreationsIn(folder), work }
    }

    /// In front of looks whether the bucket is crowded.
    pub(crate) fn at_looks(inner: Arc<dyn Bucket>, work: F) -> BusyBucket<F> {
        BusyBucket { inner, calls: Calls::Looks, work }
    }

    /// In front of reads of the object.
    pub(crate) fn at_reads(inner: Arc<dyn Bucket>, name: &str, work: F) -> BusyBucket<F> {
        BusyBucket { inner, calls: Calls::ReadsOf(name.to_owned()), work }
    }
}

impl<F> std::fmt::Debug for BusyBucket<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BusyBucket").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<F: Fn() + Send + Sync> Bucket for BusyBucket<F> {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        let is_inside = |folder: &str| name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        if matches!(&self.calls, Calls::CreationsIn(folder) if is_inside(folder)) {
            (self.work)();
        }
        self.inner.begin_create(name, parts)
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        if matches!(&self.calls, Calls::ReadsOf(object) if object == name) {
            (self.work)();
        }
        self.inner.begin_get_ranges(name, ranges)
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        self.inner.get_tail(name, bytes_max)
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        if matches!(self.calls, Calls::ListsOf(own) if own == folder) {
            (self.work)();
        }
        self.inner.list(folder, after)
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        self.inner.delete(names)
    }

    fn is_crowded(&self) -> bool {
        if matches!(self.calls, Calls::Looks) {
            (self.work)();
        }
        self.inner.is_crowded()
    }
}
