//! The manifest as numbered objects of a bucket.
//!
//! `<prefix>/manifest/<20 digits>`: each object is created if absent, has the hash of the one before, the
//! epoch of its writer and a number that it drew. The listed objects from the last snapshot on, with no
//! number missing, are the manifest; of those before it take-overs stay, others may be deleted.
//!
//! Fencing. A writer begins with a take-over: the next object, with the next epoch. A writer before it that
//! goes on, or wakes, finds that object under its own next number, and is refused. So take-overs are never
//! deleted: the number behind the last object of any writer stays occupied for ever, and no listing is needed
//! after a commit.
//!
//! * `chain.rs`: reads the objects from the last snapshot on. * `log.rs`: appends to them. * `open.rs`:
//!   takes over. * `trim.rs`: deletes objects that a later snapshot replaced. * `past.rs`: reads those of
//!   an earlier moment. * `clone.rs`: makes the manifest of a clone.

mod chain;
mod clone;
mod log;
mod open;
mod past;
mod tail;
mod trim;

use std::sync::Arc;

use terrane_base::{Kind, Result};
use terrane_format::manifest::object::OBJECT_HEADER_BYTES;
use terrane_format::manifest::{DatabaseId, ManifestObject};

use crate::bucket::Bucket;
use crate::bucket::folder::NumberedFolder;
pub use chain::Found;
pub(crate) use chain::{without_history, without_journal};
pub(crate) use clone::{NewManifest, Rest};
pub(crate) use open::JournalFit;
pub use open::{OpenedManifest, TakeOver};
pub(crate) use past::PastManifest;
pub(crate) use tail::ManifestTail;

/// The folder of a manifest in a bucket.
#[derive(Clone, Debug)]
pub struct ManifestFolder {
    objects: NumberedFolder,
}

impl ManifestFolder {
    /// The folder of the database `prefix`.
    ///
    /// # Errors
    /// `Invalid` if the prefix is not a valid name.
    pub fn new(bucket: Arc<dyn Bucket>, prefix: &str) -> Result<ManifestFolder> {
        Ok(ManifestFolder { objects: NumberedFolder::new(bucket, prefix, "manifest")? })
    }

    /// The id of the database, which its first object has for ever; `None` without such an object.
    ///
    /// # Errors
    /// `Corrupt`, `Invalid`, `Io`, `Busy`.
    pub(crate) fn database(&self) -> Result<Option<DatabaseId>> {
        let name = self.objects.name(1);
        let front = match self.objects.bucket.get_range(&name, 0..OBJECT_HEADER_BYTES as u64) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            front => front?,
        };
        let header = ManifestObject::decode_front(&front).map_err(|error| self.objects.at(1, error))?;
        Ok(Some(header.database))
    }
}
