//! A bucket whose writer is at work whenever a folder is listed.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use terrane_base::Result;
use terrane_remote::{Bucket, Create, Listed, Pending};

/// Does `work` in front of each list of the folder.
pub(crate) struct BusyBucket<F> {
    inner: Arc<dyn Bucket>,
    folder: &'static str,
    work: F,
}

impl<F> BusyBucket<F> {
    pub(crate) fn new(inner: Arc<dyn Bucket>, folder: &'static str, work: F) -> BusyBucket<F> {
        BusyBucket { inner, folder, work }
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
        self.inner.begin_create(name, parts)
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        self.inner.begin_get_ranges(name, ranges)
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        self.inner.get_tail(name, bytes_max)
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        if folder == self.folder {
            (self.work)();
        }
        self.inner.list(folder, after)
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        self.inner.delete(names)
    }
}
