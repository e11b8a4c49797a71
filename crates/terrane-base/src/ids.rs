//! Numbers of different kinds, as types that cannot be confused.

use std::fmt;

/// Names a table within a database; 0 is the default table. Never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

impl TableId {
    /// The table that exists in every database.
    pub const DEFAULT: TableId = TableId(0);
    /// No table: a record of it takes a number in the order of commits, and changes nothing.
    pub const NONE: TableId = TableId(u32::MAX);
}

/// Names a segment of the journal; grows by one per segment, never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u64);

/// Names an extent by its place: a data file and the first of its 2 MB slots in it.
///
/// A place is reused after its extent was freed; a re-linked extent keeps its id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtentId {
    /// Number of the data file, from 1.
    pub file: u32,
    /// Index of the first slot in the file.
    pub slot: u32,
}

/// Names a value table within a database. Never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueTableId(pub u64);

impl fmt::Display for ValueTableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

impl fmt::Display for ExtentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.slot)
    }
}
