//! The device and the directory of an open database, and what passes between the engine, the device and the
//! buckets.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_device::Disk;
use terrane_storage::BucketRequests;

use crate::observe::io_accounting::Flows;

/// Returns the requests to the buckets of a database so far, since they were opened.
#[derive(Clone)]
pub struct CountRequests(Arc<dyn Fn() -> BucketRequests + Send + Sync>);

impl CountRequests {
    /// Returns what `count` returns.
    #[must_use]
    pub fn new(count: impl Fn() -> BucketRequests + Send + Sync + 'static) -> CountRequests {
        CountRequests(Arc::new(count))
    }

    fn now(&self) -> BucketRequests {
        (self.0)()
    }
}

impl fmt::Debug for CountRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CountRequests")
    }
}

/// See the [module](self).
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    flows: Flows,
    requests: Option<CountRequests>,
}

impl Files {
    /// The files in `dir`.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        dir: &Path,
        flows: Flows,
        requests: Option<CountRequests>,
    ) -> Files {
        Files { disk, dir: dir.to_owned(), flows, requests }
    }

    /// The device under everything.
    #[inline]
    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Directory of the database.
    pub(crate) fn dir(&self) -> &PathBuf {
        &self.dir
    }

    /// The requests to buckets so far; none if no part of the database lies in one.
    pub(crate) fn requests(&self) -> BucketRequests {
        self.requests.as_ref().map_or_else(BucketRequests::default, CountRequests::now)
    }

    /// The streams between the engine and its device.
    pub(crate) fn flows(&self) -> &Flows {
        &self.flows
    }
}
