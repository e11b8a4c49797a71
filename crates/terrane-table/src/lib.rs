//! Extents as readers and writers see them: search, cache, cursors.
//!
//! Layer 5: knows one extent at a time and sorted lists of them, not levels, versions of the tree or jobs.
//!
//! * [`swip`]: the pointers that a hit follows. [`cache`]: the manager of what is behind them.
//! * [`extent`]: a handle with swips for its parts, and the point read. [`probe_many()`]: many of them at once.
//!   [`load_many()`]: what they lacked. [`heat`]: how often it is read.
//! * [`row_cache`]: single rows, beside the blocks.
//! * [`cursor`], [`level_cursor`]: in order over an extent, over a list of disjoint extents. [`merge`]: over any
//!   sources. [`Scope`]: what a scan within one prefix is confined to.
//! * [`external`]: files of extents that come from outside.
//! * [`loser_tree`]: the least of many sources, for every merge.
//! * [`ExtentWriter`]: builds extents. [`scanner`]: whole extents past the cache, for compaction. [`verify`]:
//!   everything that can be checked. [`Inheritance`]: what new extents take over of the cache.

pub mod cache;
pub mod cursor;
pub mod extent;
pub mod external;
pub mod heat;
pub mod level_cursor;
mod load_many;
mod loader;
pub mod loser_tree;
mod measure;
pub mod merge;
mod probe_many;
mod read_ahead;
mod replace;
pub mod row_cache;
pub mod scanner;
mod scope;
mod shared_prefix;
pub mod swip;
pub mod verify;
mod writer;

pub use cache::{Cache, CacheUsage, ObjectKind};
pub use cursor::{CursorOptions, ExtentCursor};
pub use extent::{Extent, Probe, RangeDeletes};
pub use external::{ExternalFile, ExternalSummary, ExternalWriter};
pub use heat::Heat;
pub use level_cursor::{ExtentList, LevelCursor};
pub use load_many::{BATCH_READS, Loaded, Need, load_many};
pub use measure::Share;
pub use merge::MergeCursor;
pub use probe_many::{Answer, Lookup, probe_many};
pub use replace::Inheritance;
pub use row_cache::{RowCache, Stamp};
pub use scanner::ExtentScanner;
pub use scope::Scope;
pub use swip::{Epoch, enter};
pub use verify::verify_extent;
pub use writer::{ExtentWriter, WriterSettings};
