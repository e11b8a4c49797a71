//! Reading and writing extents: search, cache, cursors.
//!
//! Layer 5: knows single extents and sorted lists of them, but no levels, no versions of the tree and no
//! jobs.
//!
//! * [`swip`]: the pointers that a hit follows. [`cache`]: manages the objects behind them.
//! * [`extent`]: a handle with swips for its parts, and the point read. [`probe_many()`]: many point reads at
//!   once. [`load_many()`]: loads the parts that they lacked. [`heat`]: how often an extent is read.
//! * [`row_cache`]: caches single rows, beside the blocks.
//! * [`cursor`], [`level_cursor`]: walk an extent, or a list of disjoint extents. [`merge`]: merges any
//!   sources. [`Scope`]: the restriction of a scan within one prefix. [`ValueCursors`]: the positions of a
//!   scan in value tables.
//! * [`external`]: files of extents written without a database.
//! * [`loser_tree`]: the least of many sources, for every merge.
//! * [`ExtentWriter`]: builds extents. [`scanner`]: reads whole extents without the cache, for compaction.
//!   [`verify`]: all checks of an extent. [`FreshExtents`]: keeps filters and index blocks of new extents in
//!   the cache. [`CacheTransfer`]: loads their blocks.

pub mod cache;
mod cache_transfer;
pub mod cursor;
pub mod extent;
pub mod external;
mod fresh;
pub mod heat;
pub mod level_cursor;
mod load_many;
mod loader;
pub mod loser_tree;
mod measure;
pub mod merge;
mod probe_many;
mod read_ahead;
pub mod row_cache;
pub mod scanner;
mod scope;
mod shared_prefix;
pub mod swip;
mod value_cursors;
pub mod verify;
mod writer;

pub use cache::{Cache, CacheUsage, ObjectKind};
pub use cache_transfer::CacheTransfer;
pub use cursor::{CursorOptions, ExtentCursor};
pub use extent::{Extent, Probe, RangeDeletes};
pub use external::{ExternalFile, ExternalSummary, ExternalWriter};
pub use fresh::FreshExtents;
pub use heat::Heat;
pub use level_cursor::{ExtentList, LevelCursor};
pub use load_many::{BATCH_READS, Loaded, Need, load_many};
pub use measure::Share;
pub use merge::MergeCursor;
pub use probe_many::{Answer, Lookup, probe_many};
pub use row_cache::{RowCache, Stamp};
pub use scanner::ExtentScanner;
pub use scope::Scope;
pub use swip::{Epoch, enter};
pub use value_cursors::{Placed, ValueCursors, ValuePlace};
pub use verify::{verify_extent, verify_extent_counting};
pub use writer::{ExtentWriter, WriterSettings};
