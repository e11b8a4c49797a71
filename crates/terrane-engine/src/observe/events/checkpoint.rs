//! The event of a finished checkpoint.

use std::path::PathBuf;

use terrane_base::SeqNo;

/// The parts of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkpoint {
    /// Its directory.
    pub path: PathBuf,
    /// It has every commit up to this number and no other.
    pub last_seq: SeqNo,
    /// Data files that it shares with its source, without a copy.
    pub files_linked: u64,
    /// Bytes of extents that were copied because their files could not be linked.
    pub bytes_copied: u64,
    /// Bytes of the journal that were written for it.
    pub journal_bytes: u64,
}
