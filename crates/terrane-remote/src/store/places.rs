//! Where data objects lie: those of a clone in its own folder, or in that of the original whose number they
//! have.

use std::sync::Arc;

use terrane_base::Result;

use super::names::{DataName, Folders};
use super::object_names;
use crate::Bucket;
use crate::clones::Originals;

/// The buckets and folders of the data objects of one database.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) bucket: Arc<dyn Bucket>,
    pub(super) folders: Folders,
    pub(super) originals: Originals,
}

impl Places {
    /// The bucket and the whole name of an object.
    ///
    /// # Errors
    /// Those of opening the bucket of an original.
    pub(super) fn of(&self, name: DataName) -> Result<(&Arc<dyn Bucket>, String)> {
        match self.originals.of(name.number) {
            None => Ok((&self.bucket, self.folders.data_name(name))),
            Some(original) => Ok((original.bucket()?, original.folders.data_name(name))),
        }
    }

    /// Where an object lies, for messages.
    pub(super) fn text(&self, name: DataName) -> String {
        match self.originals.of(name.number) {
            None => object_names::place(self.bucket.url(), &self.folders.data_name(name)),
            Some(original) => format!("{}/data/{name}", original.place()),
        }
    }
}
