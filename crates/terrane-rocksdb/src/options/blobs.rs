//! From RocksDB's options of blob files to the engine's of value tables.
//!
//! A blob file is here a value table: an extent of values that entries of the levels point to. Collection
//! depends on the share of dead values in value tables, never on their age.

use crate::ffi::failure::Result;
use crate::options::codec::codec;
use crate::options::database::Options;

/// Shortest value that the engine separates, and the longest one that there can be.
const SEPARATED_BYTES_MIN: u64 = 32;
const VALUE_BYTES_MAX: u64 = 64 << 20;
/// Ceilings of the space of value tables, in percent of their live part: the engine's own, and its limits.
const PERCENT: u64 = 125;
const PERCENT_MIN: f64 = 105.0;
const PERCENT_MAX: f64 = 1000.0;

/// The engine's options of value tables for a column family.
pub(crate) fn value_options(family: &Options) -> Result<[(&'static str, String); 3]> {
    let is_on = family.fields.enable_blob_files != 0;
    let from = match family.fields.min_blob_size {
        _ if !is_on => 0,
        bytes if bytes > VALUE_BYTES_MAX => 0,
        bytes => bytes.max(SEPARATED_BYTES_MIN),
    };
    let compression = if is_on { codec(family.fields.blob_compression_type)? } else { "table" };
    Ok([
        ("value_separation_bytes", from.to_string()),
        ("value_space_max_percent", percent_max(family).to_string()),
        ("value_compression", compression.to_owned()),
    ])
}

/// The ceiling that the garbage collection of blobs stands for; 0 for none.
fn percent_max(family: &Options) -> u64 {
    let dead_max = family.fields.blob_gc_force_threshold;
    match family.fields.enable_blob_gc {
        0 => 0,
        // RocksDB's default, which forces no collection, and values that are not a share.
        _ if !(0.0..1.0).contains(&dead_max) => PERCENT,
        _ => (100.0 / (1.0 - dead_max)).clamp(PERCENT_MIN, PERCENT_MAX).round() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(change: impl Fn(&mut Options)) -> [String; 3] {
        let mut family = Options::default();
        family.fields.enable_blob_files = 1;
        change(&mut family);
        value_options(&family).expect("all codecs are known").map(|(_, value)| value)
    }

    #[test]
    fn without_blob_files_nothing_is_separated() {
        let off = options(|family| family.fields.enable_blob_files = 0);
        assert_eq!(off, ["0", "0", "table"].map(str::to_owned));
        let unknown = options(|family| {
            (family.fields.enable_blob_files, family.fields.blob_compression_type) = (0, 77);
        });
        assert_eq!(unknown, off, "a codec that is not used is not asked for");
    }

    #[test]
    fn limits_are_those_that_the_engine_has() {
        for (bytes, expected) in
            [(0, "32"), (31, "32"), (4096, "4096"), (64 << 20, "67108864"), (1 << 40, "0")]
        {
            assert_eq!(options(|family| family.fields.min_blob_size = bytes)[0], expected, "{bytes}");
        }
        assert_eq!(options(|family| family.fields.blob_compression_type = 4)[2], "lz4");
        assert_eq!(options(|_| ())[2], "none", "RocksDB's default");
    }

    #[test]
    fn a_share_of_dead_values_is_a_ceiling_of_space() {
        let ceiling = |share| {
            options(|family| {
                (family.fields.enable_blob_gc, family.fields.blob_gc_force_threshold) = (1, share);
            })[1]
                .clone()
        };
        for (share, expected) in [
            (1.0, "125"),
            (0.2, "125"),
            (0.5, "200"),
            (0.0, "105"),
            (0.99, "1000"),
            (-1.0, "125"),
            (f64::NAN, "125"),
        ] {
            assert_eq!(ceiling(share), expected, "{share}");
        }
        assert_eq!(
            options(|family| family.fields.blob_gc_force_threshold = 0.5)[1],
            "0",
            "collection is off"
        );
    }
}
