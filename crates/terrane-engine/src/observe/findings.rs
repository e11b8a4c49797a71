//! Findings: damage that a check of the stored bytes or a background job found.

use std::path::PathBuf;

use terrane_base::Error;

/// One thing that is wrong.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// Name of the table it concerns, if it concerns one.
    pub table: Option<String>,
    /// The damage, and its place.
    pub error: Error,
}

/// How far a check is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckProgress {
    /// Bytes of extents that were read.
    pub bytes_done: u64,
    /// Bytes of all extents.
    pub bytes: u64,
    /// Versions in the extents that were read.
    pub entries_done: u64,
}

/// The result of a check.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// The damage that was found; empty if there is no damage.
    pub findings: Vec<Finding>,
    /// Names of tables whose key order is not registered: the order of their keys was not checked.
    pub unordered: Vec<String>,
    /// Names of tables with operands of merges, in the levels or in memory. The rows of the others are read
    /// without their merge operator.
    pub with_operands: Vec<String>,
    /// Files with records that lay behind a break of the journal when the database was opened: they are not a
    /// part of it, [`repair`](crate::repair()) reads them, and nothing but the caller removes them.
    pub set_aside: Vec<PathBuf>,
    /// Tables looked at.
    pub tables: u64,
    /// Extents looked at.
    pub extents: u64,
    /// Versions in them.
    pub entries: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Journal segments looked at.
    pub segments: u64,
    /// True if the caller ended it before everything was looked at.
    pub is_cancelled: bool,
}
