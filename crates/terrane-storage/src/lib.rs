//! The store of extents: space in data files, whole-extent writes, positional reads.
//!
//! Layer 4: knows slots and bytes, not the content of extents. The layout of a store's directory is in
//! `docs/format/data-file.md`.
//!
//! * [`store`]: the trait [`Store`]. [`conformance`]: the suite that every implementation passes.
//! * [`metered`]: a view of a store that counts calls and bytes. `delegate.rs`: calls that such a view passes
//!   on. [`fill`]: data files with extents from elsewhere.
//! * [`local`]: data files in a directory, with `copy.rs` (another directory with the same extents) and
//!   `adopt.rs` (files from outside). [`space`]: which slots are taken.
//! * `requests.rs`: counts of requests to buckets, for stores whose extents lie there.

pub mod conformance;
mod data_file;
mod delegate;
pub mod fill;
pub mod local;
pub mod metered;
mod requests;
mod settings;
mod slots;
pub mod space;
pub mod store;

pub use data_file::data_files;
pub use fill::ExtentFiles;
pub use local::LocalStore;
pub use metered::MeteredStore;
pub use requests::{BucketPart, BucketRequests, PartRequests};
pub use settings::StoreSettings;
pub use store::{EXTENT_SLOTS_MAX, ReadRequest, RemoteReads, SLOT_BYTES, Store, StoreCopy, StoreUsage};
