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
//!   an earlier moment.

mod chain;
mod log;
mod open;
mod past;
mod tail;
mod trim;

use std::sync::Arc;

use terrane_base::Result;

use crate::bucket::Bucket;
use crate::bucket::folder::NumberedFolder;
pub use chain::Found;
pub(crate) use chain::{without_history, without_journal};
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
    /// `Invalid` if the prefix is no valid name.
    pub fn new(bucket: Arc<dyn Bucket>, prefix: &str) -> Result<ManifestFolder> {
        Ok(ManifestFolder { objects: NumberedFolder::new(bucket, prefix, "manifest")? })
    }
}
