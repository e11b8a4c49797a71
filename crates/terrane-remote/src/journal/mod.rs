//! The journal as numbered objects of a bucket: what its commit ring writes outlives the machine.
//!
//! `<prefix>/journal/<20 digits>`: each object is created if absent, has the hash of the one before, the
//! epoch of its writer and a number that it drew. The objects up to the first number that is absent are the
//! journal, and a commit is durable once all objects up to its own exist.
//!
//! Fencing. A writer begins with a fence: the next object, with the epoch that the manifest gave it. A writer
//! before it finds the fence under its own next number, and acknowledges nothing more. So fences are never
//! deleted. A writer has several objects under way, so objects with numbers behind the fence may exist or
//! still come to be; none of them was acknowledged, and none has a number of [`FENCE_SPAN`] or more behind
//! it: there the new writer goes on.
//!
//! * `chain.rs`: lists and reads the objects that are needed. * `fence.rs`: takes over. * `restore.rs`:
//!   brings the directory of the journal up to date. * `log.rs`: appends. * `trim.rs`: deletes. * `tail.rs`:
//!   goes on with them as a follower. * `past.rs`: reads those that are there of earlier moments.
//!
//! [`FENCE_SPAN`]: terrane_format::journal_object::FENCE_SPAN

mod chain;
mod fence;
mod log;
mod past;
mod restore;
mod segments;
mod tail;
mod trim;

use std::sync::Arc;
use std::time::Duration;

use terrane_base::{Error, Kind, Result};
use terrane_format::journal_object::{FENCE_SPAN, JOURNAL_PAYLOAD_BYTES_MAX, JournalObject};

use crate::bucket::Bucket;
use crate::bucket::folder::NumberedFolder;
pub use chain::JournalChain;
pub use fence::{Fence, TakeJournal};
pub use log::ObjectCommitLog;
pub(crate) use past::{PastJournal, Until};
pub use restore::Restored;
pub(crate) use restore::{has_segments, remove_segments};
pub(crate) use tail::{JournalTail, Looked};

/// Most objects of a writer that are under way. The format allows fewer than [`FENCE_SPAN`].
const UNDER_WAY_MAX: usize = 8;
const _: () = assert!((UNDER_WAY_MAX as u64) < FENCE_SPAN);

/// The id of a journal in objects, for one opening of the directory that is its working copy.
pub(crate) fn in_objects(journal: u128) -> u128 {
    journal & !1
}

/// Returns true if a journal with this id lies in objects.
pub(crate) fn is_in_objects(journal: u128) -> bool {
    journal & 1 == 0
}

/// How a journal in a bucket is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectJournalSettings {
    /// An object is created at the latest when it has so many bytes of segments.
    pub batch_bytes: u64,
    /// An unsynced commit is in the bucket after this time, and one request.
    pub batch: Duration,
    /// An object that is no longer needed is deleted once the object that says so is older than this, by the
    /// clock of the object store. A [`Deployment`](crate::Deployment) keeps them for its `garbage_age` at
    /// least.
    pub replaced_age: Duration,
    /// Most objects that are kept for readers although none is needed: half as many stay when there are more,
    /// and a few when the bucket is crowded. A journal service takes thousands in a second.
    pub garbage_objects_max: usize,
}

impl Default for ObjectJournalSettings {
    /// 4 MiB, 250 ms, an hour, 100,000 objects.
    fn default() -> Self {
        ObjectJournalSettings {
            batch_bytes: 4 << 20,
            batch: Duration::from_millis(250),
            replaced_age: Duration::from_secs(3600),
            garbage_objects_max: 100_000,
        }
    }
}

impl ObjectJournalSettings {
    pub(crate) fn check(&self) -> Result<()> {
        if !(4096..=JOURNAL_PAYLOAD_BYTES_MAX / 2).contains(&self.batch_bytes) {
            return Err(Error::invalid("key \"batch_bytes\" of [journal]: accepted is 4 KiB to 64 MiB"));
        }
        if self.batch.is_zero() {
            return Err(Error::invalid("key \"batch_ms\" of [journal]: expected a whole number from 1"));
        }
        Ok(())
    }
}

/// The folder of a journal in a bucket.
#[derive(Clone, Debug)]
pub struct JournalFolder {
    objects: NumberedFolder,
}

impl JournalFolder {
    /// The folder of the database `prefix`.
    ///
    /// # Errors
    /// `Invalid` if the prefix is not a valid name.
    pub fn new(bucket: Arc<dyn Bucket>, prefix: &str) -> Result<JournalFolder> {
        Ok(JournalFolder { objects: NumberedFolder::new(bucket, prefix, "journal")? })
    }

    /// The bucket that has it.
    pub(crate) fn bucket(&self) -> &Arc<dyn Bucket> {
        &self.objects.bucket
    }

    /// Where it lies, for messages.
    #[must_use]
    pub fn place(&self) -> String {
        self.objects.place()
    }

    /// The error of a writer of epoch `own` that another one has replaced.
    #[cold]
    fn fenced(&self, own: u64, other: Option<JournalObject>) -> Error {
        let by = match other {
            Some(other) if other.epoch > own => format!("the writer of epoch {}", other.epoch),
            _ => "another writer".to_owned(),
        };
        Error::new(
            Kind::Poisoned,
            format!(
                "{by} has taken over the journal in {}: this writer, of epoch {own}, was replaced and \
                 accepts no writes; close it, and open the database again only if this process is to be its writer",
                self.objects.place(),
            ),
        )
    }
}
