//! Separated values in a job: the value tables that it meets, and the keys whose values move.

use terrane_base::ValueTableId;
use terrane_format::extent::ExtentMeta;

use crate::range::KeyRange;

/// A value table that entries of a job's inputs point into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueInput {
    /// The value table.
    pub meta: ExtentMeta,
    /// True if the job writes its live values to new value tables.
    pub is_rewritten: bool,
}

impl ValueInput {
    /// Its number.
    #[must_use]
    pub fn number(&self) -> ValueTableId {
        self.meta.value_table.map_or_else(ValueTableId::default, |section| section.number)
    }
}

/// A range of keys whose values a job rewrites, in the order of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// The keys.
    pub range: KeyRange,
    /// After so many bytes of values, the other pointers stay as they are.
    pub bytes_max: u64,
}
