//! Counts and sizes of an extent, as events and displays report them.

use terrane_base::options::Compression;
use terrane_base::{ExtentId, SeqNo};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;

/// Counts and sizes of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtentSummary {
    /// Where it lies: number of the data file, first slot.
    pub id: ExtentId,
    /// Its level; 0 if it is part of an overflow run.
    pub level: u8,
    /// Bytes as stored, index and filter included.
    pub bytes: u64,
    /// Bytes of all blocks before compression.
    pub raw_bytes: u64,
    /// Bytes of the index block.
    pub index_bytes: u64,
    /// Bytes of the filter; 0 without a filter.
    pub filter_bytes: u64,
    /// Data blocks.
    pub blocks: u64,
    /// Entries, deletes included.
    pub entries: u64,
    /// Entries that are deletes.
    pub deletes: u64,
    /// Fragments of range deletes.
    pub range_deletes: u64,
    /// Smallest sequence number.
    pub seq_min: SeqNo,
    /// Largest sequence number.
    pub seq_max: SeqNo,
    /// Codec that was tried on every block.
    pub compression: Compression,
}

impl ExtentSummary {
    /// Of the extent that `meta` describes, in this place.
    pub(crate) fn of(meta: &ExtentMeta, place: Place) -> ExtentSummary {
        ExtentSummary {
            id: meta.id,
            level: level_number(place),
            bytes: meta.bytes.into(),
            raw_bytes: meta.raw_bytes,
            index_bytes: meta.index.len.into(),
            filter_bytes: meta.filter.len.into(),
            blocks: meta.blocks.into(),
            entries: meta.entries,
            deletes: meta.deletes,
            range_deletes: meta.range_deletes.as_ref().map_or(0, |section| section.fragments.into()),
            seq_min: meta.seq_min,
            seq_max: meta.seq_max,
            compression: meta.compression,
        }
    }
}

/// The number of a level, 0 for a run.
pub(crate) fn level_number(place: Place) -> u8 {
    match place {
        Place::Level(number) => number,
        Place::Run(_) | Place::Values => 0,
    }
}
