//! Counts of the work of a job.

/// The bytes and entries that a job read, wrote and reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Stored bytes read.
    pub bytes_read: u64,
    /// Stored bytes written.
    pub bytes_written: u64,
    /// Stored bytes of extents that were re-linked.
    pub bytes_relinked: u64,
    /// Stored bytes of blocks that were copied without decoding.
    pub bytes_copied: u64,
    /// Extents that were re-linked.
    pub extents_relinked: u64,
    /// Blocks that were copied without decoding.
    pub blocks_copied: u64,
    /// Blocks that were decoded.
    pub blocks_decoded: u64,
    /// Entries of all inputs, reused ones included.
    pub entries_in: u64,
    /// Entries of all outputs, reused ones included.
    pub entries_out: u64,
    /// Entries that were dropped.
    pub entries_dropped: u64,
    /// Entries that had expired.
    pub entries_expired: u64,
    /// Rows that a compaction filter removed or changed.
    pub entries_filtered: u64,
    /// Operands that were folded, with others or with a value.
    pub operands_folded: u64,
    /// Failed calls of a merge operator: the operands stayed unchanged.
    pub folds_failed: u64,
    /// Values that went from their entries into value tables.
    pub values_separated: u64,
    /// Values that went from value tables into new ones.
    pub values_moved: u64,
    /// Stored bytes of value tables that were written; `bytes_written` includes them.
    pub value_bytes_written: u64,
}

/// Calls a macro with the fields of [`Work`], in the order in which reports have them.
macro_rules! with_work_fields {
    ($macro:ident) => {
        $macro!(
            bytes_read,
            bytes_written,
            bytes_relinked,
            bytes_copied,
            extents_relinked,
            blocks_copied,
            blocks_decoded,
            entries_in,
            entries_out,
            entries_dropped,
            entries_expired,
            entries_filtered,
            operands_folded,
            folds_failed,
            values_separated,
            values_moved,
            value_bytes_written
        );
    };
}
pub(crate) use with_work_fields;

macro_rules! in_order {
    ($($field:ident),*) => {
        impl Work {
            /// Its numbers, in the order of a report.
            #[must_use]
            pub(super) fn numbers(&self) -> [u64; Work::NUMBERS] {
                [$(self.$field),*]
            }

            /// The work that has these numbers.
            pub(super) fn of_numbers(numbers: [u64; Work::NUMBERS]) -> Work {
                let [$($field),*] = numbers;
                Work { $($field),* }
            }
        }
    };
}

with_work_fields!(in_order);

impl Work {
    /// How many numbers it has.
    pub(super) const NUMBERS: usize = 17;
}
