//! Ranges: `visible.rs` shows of a sorted source what a snapshot sees, `iterator.rs` merges the sources of a
//! table and walks them in both directions, `values.rs` goes to separated values, `value_groups.rs` marks
//! ranges in which a scan meets too many value tables, `range_tombstones.rs` hides what range deletes cover,
//! `bounds.rs` ends a scan.

mod bounds;
pub(crate) mod iterator;
pub(crate) mod range_tombstones;
mod steps;
mod value_groups;
mod values;
mod visible;

pub use bounds::Bounds;
pub use visible::Scan;
