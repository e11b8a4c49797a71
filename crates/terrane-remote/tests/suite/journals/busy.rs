//! A bucket with which another caller is at work whenever a folder is listed, or gets an object.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use terrane_base::Result;
use terrane_remote::{Bucket, Create, Listed, Pending};

/// Does `work` in front of each list of the folder, or of each creation there.
pub(crate) struct BusyBucket<F> {
    inner: Arc<dyn Bucket>,
    folder: &'static str,
    is_at_creations: bool,
    work: F,
}

impl<F> BusyBucket<F> {
    pub(crate) fn new(inner: Arc<dyn Bucket>, folder: &'static str, work: F) -> BusyBucket<F> {
        BusyBucket { inner, folder, is_at_creations: false, work }
    }

    /// In front of creations, and not of lists.
    pub(crate) fn at_creations(self) -> BusyBucket<F> {
        BusyBucket { is_at_creations: true, ..self }
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
        let is_inside = name.strip_prefix(self.folder).is_some_and(|rest| rest.starts_with('/'));
        if self.is_at_creations && is_inside {
            (self.work)();
        }
        self.inner.begin_create(name, parts)
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        self.inner.begin_get_ranges(name, ranges)
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        self.inner.get_tail(name, bytes_max)
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        if folder == self.folder && !self.is_at_creations {
            (self.work)();
        }
        self.inner.list(folder, after)
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        self.inner.delete(names)
    }
}
