//! The files of a database one by one: live files, levels, segments of the journal, files to copy.
//!
//! RocksDB's files are extents here. One has the number `data file << 32 | first slot` and the name that
//! RocksDB gives a file of that number; no file of the name is on the disk. The overflow runs are level 0;
//! how the others are numbered, [`levels`] says.

pub(crate) mod levels;
pub(crate) mod merged;

use terrane::{Compression, ExtentId, ExtentSummary};

use crate::generated::values::TableProperties;

/// Levels that RocksDB has by default.
pub(crate) const LEVELS: usize = 7;
const SUFFIX: &str = ".sst";

/// The number of an extent as a file.
pub(crate) fn extent_number(id: ExtentId) -> u64 {
    u64::from(id.file) << 32 | u64::from(id.slot)
}

/// The name of an extent as a file: `/NUMBER.sst`.
pub(crate) fn extent_name(id: ExtentId) -> String {
    format!("/{:06}{SUFFIX}", extent_number(id))
}

/// The extent of a file's name, with or without a directory in front of it.
pub(crate) fn extent_of(name: &str) -> Option<ExtentId> {
    let name = name.rsplit('/').next()?.strip_suffix(SUFFIX)?;
    let number: u64 = name.parse().ok()?;
    let file = u32::try_from(number >> 32).ok()?;
    Some(ExtentId { file, slot: (number & u64::from(u32::MAX)) as u32 })
}

/// RocksDB's number of a codec.
pub(crate) fn codec_number(codec: Compression) -> u32 {
    match codec {
        Compression::None => 0,
        Compression::Lz4 => 4,
        Compression::Zstd => 7,
    }
}

/// RocksDB's name of a codec.
fn codec_name(codec: Compression) -> &'static str {
    match codec {
        Compression::None => "NoCompression",
        Compression::Lz4 => "LZ4",
        Compression::Zstd => "ZSTD",
    }
}

/// The column family of extents, as their properties tell it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub(crate) id: u32,
    pub(crate) name: &'a str,
    /// Name of its comparator.
    pub(crate) comparator: &'a str,
}

impl TableProperties {
    /// Of no extent.
    pub(crate) fn none(owner: Owner<'_>) -> TableProperties {
        TableProperties {
            column_family_id: owner.id.into(),
            column_family_name: owner.name.into(),
            comparator_name: owner.comparator.into(),
            ..TableProperties::default()
        }
    }

    /// The properties of an extent.
    pub(crate) fn of(extent: &ExtentSummary, owner: Owner<'_>) -> TableProperties {
        TableProperties {
            orig_file_number: extent_number(extent.id),
            data_size: extent.bytes.saturating_sub(extent.index_bytes + extent.filter_bytes),
            uncompressed_data_size: extent.raw_bytes,
            index_size: extent.index_bytes,
            filter_size: extent.filter_bytes,
            num_data_blocks: extent.blocks,
            // Range deletes are counted among both, as RocksDB counts them.
            num_entries: extent.entries + extent.range_deletes,
            num_deletions: extent.deletes + extent.range_deletes,
            num_range_deletions: extent.range_deletes,
            compression_name: codec_name(extent.compression).into(),
            key_smallest_seqno: extent.seq_min.0,
            key_largest_seqno: extent.seq_max.0,
            has_key_smallest_seqno: 1,
            has_key_largest_seqno: 1,
            ..TableProperties::none(owner)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_which_extent_it_is() {
        for id in [ExtentId { file: 1, slot: 0 }, ExtentId { file: 7, slot: u32::MAX }] {
            let name = extent_name(id);
            assert_eq!(extent_of(&name), Some(id), "{name}");
            assert_eq!(extent_of(&format!("/somewhere/else{name}")), Some(id));
            assert_eq!(extent_of(name.trim_start_matches('/')), Some(id));
        }
        for name in ["", "000001", "x.sst", "/99999999999999999999999.sst", "000001.log"] {
            assert_eq!(extent_of(name), None, "{name}");
        }
    }
}
