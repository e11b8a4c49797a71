//! Buckets: named immutable objects.
//!
//! The trait has the one conditional operation that object stores get right, the creation of an object that
//! is absent; manifest, fencing and data objects need no other. An object is never overwritten.
//!
//! * [`Pending`]: an operation that was started. [`names`]: which names are possible.
//! * [`MemoryBucket`], [`DirectoryBucket`], [`LogBucket`] (many small objects in few files), [`ClientBucket`]
//!   (over a client of the crate `object_store`). [`open`]: the bucket of an address.
//! * `hedge.rs`: reads that take long are asked for twice. [`RetryingBucket`]: tries again, and finds out
//!   what happened. `counting.rs`: counts requests by the part that they are for. [`probe`]: whether a store
//!   keeps what the trait promises. [`faulty`]: a bucket that fails, for tests.

mod client;
mod counting;
mod directory;
pub mod faulty;
pub(crate) mod folder;
mod hedge;
pub(crate) mod log;
mod memory;
pub mod names;
mod open;
mod pending;
pub mod probe;
mod retry;
#[cfg(feature = "s3")]
mod s3;
pub(crate) mod tasks;

use std::fmt::Debug;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use terrane_base::{Error, Kind, Result};
use terrane_storage::BucketRequests;

pub use client::ClientBucket;
pub use directory::DirectoryBucket;
pub use hedge::HedgeCounts;
pub use log::{LogBucket, LogSettings};
pub use memory::MemoryBucket;
pub(crate) use open::is_absent;
pub use open::{BucketSettings, open, open_with};
pub use pending::Pending;
pub use retry::{RetryLimits, RetryingBucket};

/// The outcome of [`Bucket::create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Create {
    /// The object was absent, and has these bytes now.
    Created,
    /// There was an object of this name; it is unchanged.
    AlreadyExists,
}

/// One object of [`Bucket::list`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The whole name.
    pub name: String,
    /// The size of the object in bytes.
    pub bytes: u64,
    /// When the object was created, by the clock of the object store, since the Unix epoch.
    pub modified: Duration,
}

/// Named immutable objects. Calls may come from any thread, also from one that runs asynchronous tasks.
///
/// An implementer guarantees:
/// 1. Of any number of concurrent creations of one name at most one returns [`Create::Created`]; an object
///    that exists is never changed.
/// 2. An object that was created is durable, and visible to every read and list that begins after that.
/// 3. After an error of kind `Io` or `Busy` the operation may have happened or not, and may be tried again.
///    Every other error is final: nothing was changed.
/// 4. A call ends: an answer that does not come is an error of kind `Io`.
/// 5. Errors name the bucket and the object, and say what to do.
pub trait Bucket: Send + Sync + Debug {
    /// The bucket's address, for messages.
    fn url(&self) -> &str;

    /// Starts to create an object of these bytes, one part behind the other; at least one byte in all,
    /// because not every store reads the end of an empty object.
    ///
    /// Whether an object of unknown outcome is the caller's is decided by its bytes. So a creation that
    /// several writers may compete for contains, in its last megabyte, a number that each draws for itself.
    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create>;

    /// Starts to read ranges of an object, which need not be sorted. Each result has the length of its range.
    ///
    /// Errors: `NotFound` if there is no such object, `Corrupt` if it ends before.
    fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>>;

    /// Reads the last bytes of an object: `bytes_max` of them, or all if it is shorter.
    ///
    /// # Errors
    /// `NotFound` if there is no such object; `Io`, `Busy`.
    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes>;

    /// The objects whose names begin with `folder` and a slash, in the order of their names, behind the name
    /// `after`.
    ///
    /// # Errors
    /// `Corrupt` if there are more than [`names::LISTED_MAX`]; `Invalid`, `Io`, `Busy`.
    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>>;

    /// Deletes objects. One that is absent is not an error.
    ///
    /// # Errors
    /// `Invalid`, `Io`, `Busy`; any part of them may be deleted then.
    fn delete(&self, names: &[String]) -> Result<()>;

    /// Returns true if creations that were begun before the first one is waited for are made durable
    /// together, and beginning one does not block: then it is worth while to hold them back for each other.
    fn syncs_groups(&self) -> bool {
        false
    }

    /// Returns true if the bucket has so many objects, or so little space, that those which are needed no
    /// more should go at once, as far as the last answers said.
    fn is_crowded(&self) -> bool {
        false
    }

    /// Returns true if it creates and deletes nothing more until it is opened again.
    fn is_failed(&self) -> bool {
        false
    }

    /// How often its reads were hedged.
    fn hedges(&self) -> HedgeCounts {
        HedgeCounts::default()
    }

    /// The requests that were made so far, as an object store counts them; none if the bucket does not count.
    fn requests(&self) -> BucketRequests {
        BucketRequests::default()
    }

    /// How its requests are made: further buckets that the same caller needs are opened with the same.
    fn settings(&self) -> BucketSettings {
        BucketSettings::default()
    }

    /// Creates an object if no object has this name, and waits for the outcome.
    ///
    /// # Errors
    /// `Invalid`, `Full`, `Io`, `Busy`.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Create> {
        self.begin_create(name, vec![Bytes::copy_from_slice(bytes)]).wait()
    }

    /// Reads a whole object.
    ///
    /// # Errors
    /// `NotFound` if there is no such object; `Corrupt` if it is longer than `bytes_max`; `Io`, `Busy`.
    fn get(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        let bytes = self.get_tail(name, bytes_max.saturating_add(1))?;
        if bytes.len() as u64 > bytes_max {
            let message = format!(
                "the object has more than {bytes_max} bytes, the most that an object of its kind may have"
            );
            return Err(Error::corrupt(message).at(names::place(self.url(), name), 0));
        }
        Ok(bytes)
    }

    /// Reads a range of an object.
    ///
    /// # Errors
    /// `NotFound` if there is no such object; `Corrupt` if it ends before; `Io`, `Busy`.
    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes> {
        let mut ranges = self.begin_get_ranges(name, vec![range]).wait()?;
        debug_assert_eq!(ranges.len(), 1, "one result for each range");
        Ok(ranges.pop().unwrap_or_default())
    }
}

/// The error of an object that is not there.
#[cold]
fn missing(url: &str, name: &str) -> Error {
    let message = format!("{}: there is no such object in the bucket", names::place(url, name));
    Error::new(Kind::NotFound, message)
}

/// Checks that a range is one and lies in an object of `len` bytes.
pub(crate) fn check_range(url: &str, name: &str, range: &Range<u64>, len: u64) -> Result<()> {
    if range.start <= range.end && range.end <= len {
        return Ok(());
    }
    let message = format!("bytes {} to {} of an object of {len} bytes", range.start, range.end);
    Err(Error::corrupt(message).at(names::place(url, name), range.start))
}

/// Checks that a list is not longer than the limit of a list in memory.
pub(crate) fn check_listed(url: &str, folder: &str, count: usize) -> Result<()> {
    if count <= names::LISTED_MAX {
        return Ok(());
    }
    let message = format!(
        "more than {} objects in one folder: it has objects that are not of a database",
        names::LISTED_MAX
    );
    Err(Error::corrupt(message).at(names::place(url, folder), 0))
}

/// Checks that an object has a byte.
pub(crate) fn check_parts(name: &str, parts: &[Bytes]) -> Result<()> {
    if parts.iter().any(|part| !part.is_empty()) {
        return Ok(());
    }
    Err(Error::invalid(format!("object {name:?} without a byte: an object has at least one")))
}
