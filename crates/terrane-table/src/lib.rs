//! Extents as readers and writers see them: search, cache, cursors.
//!
//! Layer 5: knows one extent at a time and sorted lists of them, not levels, versions of the tree or jobs.
//!
//! * [`swip`]: the pointers that a hit follows. [`cache`]: the manager of what is behind them.
//! * [`extent`]: a handle with swips for its parts, and the point read.
//! * [`cursor`], [`level_cursor`]: in order over an extent, over a list of disjoint extents. [`merge`]: over any
//!   sources.
//! * [`scanner`]: whole extents past the cache, for compaction. [`verify`]: everything that can be checked.

mod loser_tree;
pub mod merge;
pub mod swip;

pub use merge::MergeCursor;
