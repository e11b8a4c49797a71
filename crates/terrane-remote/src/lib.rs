//! Parts of a database elsewhere.
//!
//! Layer 10: the library that programs embed does not depend on it, so it stays without a runtime for
//! asynchronous tasks. What the objects of a database are is in `docs/format/objects.md`, why they are so in
//! `docs/design/0040-elastic.md`.
//!
//! * [`bucket`]: named objects that are created once, read and deleted: the trait [`Bucket`] and what it
//!   stands on.
//! * [`store`]: [`BucketStore`], a store of extents in data objects of a bucket, and the collection of its
//!   garbage.
//! * [`tier`]: a cache on local disk between the cache in memory and a bucket.
//! * `grpc`: the service of a bucket for other machines, and its client; with the feature `grpc`.
//! * [`manifest`]: the manifest as numbered objects, whose writers fence each other off.
//! * [`journal`]: the journal as numbered objects, so that a commit outlives the machine.
//! * [`jobs`]: the table of jobs that workers on other machines run.
//! * `fuzzing`: decoders for the fuzz targets, no part of the interface.
//! * `clones`: databases that read data objects of another one.
//! * [`deployment`]: which part lies where, said by one file; [`open`] opens the database of one.

pub mod bucket;
mod clones;
pub mod deployment;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "grpc")]
pub mod grpc;
pub mod jobs;
pub mod journal;
pub mod manifest;
pub mod store;
pub mod tier;

pub use bucket::{Bucket, Create, Listed, Pending};
pub use deployment::{
    At, BucketJournal, ClonePin, CloneProgress, Cloned, Deployment, Earlier, JournalRead, Reading, TellClone,
    UnfinishedClone, open,
};
pub use journal::{JournalFolder, ObjectCommitLog, ObjectJournalSettings};
pub use manifest::ManifestFolder;
pub use store::{BucketStore, BucketStoreSettings, Collected, Marked, Roots};
pub use tier::{Tier, TierCounts, TierSettings};

/// The page on asynchronous programs: its programs are compiled and run as tests of this crate, which has the
/// runtime that they need.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/async.md")]
pub struct AsyncPage;
