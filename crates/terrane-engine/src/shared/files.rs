//! The device and the directory of an open database, and what passes between the engine and the device.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_device::Disk;

use crate::observe::io_accounting::Flows;

/// See the [module](self).
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    flows: Flows,
}

impl Files {
    /// The files in `dir`.
    pub(crate) fn new(disk: Arc<dyn Disk>, dir: &Path, flows: Flows) -> Files {
        Files { disk, dir: dir.to_owned(), flows }
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

    /// The streams between the engine and its device.
    pub(crate) fn flows(&self) -> &Flows {
        &self.flows
    }
}
