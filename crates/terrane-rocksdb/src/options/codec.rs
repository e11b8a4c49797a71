//! From RocksDB's numbers of codecs to the engine's names.
//!
//! A program that names a codec wishes for a class of them: a fast one, or one that makes data small. Snappy,
//! Zlib and others are not built in; programs name them for what they are like, and nothing that is stored
//! here is read by anybody else. So they become the codec of their class. ZSTD itself is refused where the
//! library is built without it: a program that names it needs a library with it.

use std::ffi::c_int;

use crate::ffi::failure::{Failure, Result};
use crate::options::database::Options;

const FAST: &str = "lz4";
const SMALL: &str = if HAS_ZSTD { "zstd" } else { FAST };
const HAS_ZSTD: bool = cfg!(feature = "zstd");
/// No codec of its own for the last level.
const AS_OTHERS: c_int = 255;

/// The codecs of a column family: of all levels but the last, and of the last.
pub(crate) fn codecs(family: &Options) -> Result<(&'static str, &'static str)> {
    let (others, last) = match family.codec_of_levels[..] {
        [] => (family.fields.compression, family.fields.compression),
        [one] => (one, one),
        [.., others, last] => (others, last),
    };
    let last = match family.fields.bottommost_compression {
        AS_OTHERS => last,
        bottommost => bottommost,
    };
    Ok((codec(others)?, codec(last)?))
}

/// The engine's name of the codec that RocksDB's number stands for.
pub(crate) fn codec(number: c_int) -> Result<&'static str> {
    match number {
        0 => Ok("none"),
        // Snappy, LZ4, Xpress.
        1 | 4 | 6 => Ok(FAST),
        // Zlib, BZip2, LZ4HC.
        2 | 3 | 5 => Ok(SMALL),
        7 if HAS_ZSTD => Ok("zstd"),
        7 => Err(Failure::invalid(
            "Compression type ZSTD is not linked with the binary. (Build the library with --features zstd.)",
        )),
        _ => Err(Failure::invalid(format_args!("Compression type {number} is not known."))),
    }
}

/// The codecs of a text such as `kNoCompression:kLZ4Compression`.
pub(crate) fn of_levels(text: &str) -> Result<Vec<c_int>> {
    let codecs = text.split(':').filter(|name| !name.is_empty());
    codecs.map(|name| crate::ffi::option_fields::parsed("compression_per_level", name)).collect()
}

export! {
    fn rocksdb_options_set_compression_per_level(
        options: Option<&mut Options>,
        codecs: List<'_, c_int>[count],
        count: usize,
    ) {
        if let Some(options) = options {
            options.codec_of_levels = codecs.to_vec();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(compression: c_int, bottommost: c_int, levels: &[c_int]) -> (&'static str, &'static str) {
        let mut options = Options { codec_of_levels: levels.to_vec(), ..Options::default() };
        options.fields.compression = compression;
        options.fields.bottommost_compression = bottommost;
        codecs(&options).expect("all are known")
    }

    #[test]
    fn codecs_that_are_not_built_in_become_the_one_of_their_class() {
        for (fast, small) in [(1, 2), (4, 3), (6, 5)] {
            assert_eq!(both(fast, small, &[]), (FAST, SMALL));
            assert_eq!(both(small, fast, &[]), (SMALL, FAST));
        }
        assert_eq!(both(0, AS_OTHERS, &[]), ("none", "none"));
    }

    #[test]
    fn levels_have_codecs_of_their_own() {
        assert_eq!(both(4, AS_OTHERS, &[0]), ("none", "none"));
        assert_eq!(both(0, AS_OTHERS, &[0, 0, 4, 2]), (FAST, SMALL));
        assert_eq!(both(4, 0, &[0, 0, 4, 2]), (FAST, "none"));
        assert_eq!(of_levels("kNoCompression:kLZ4Compression").expect("both are known"), [0, 4]);
        assert!(of_levels("").expect("none").is_empty());
        assert!(of_levels("kNoCompression:lz5").is_err());
    }

    #[test]
    fn a_number_of_no_codec_is_refused() {
        let options = Options { codec_of_levels: vec![0, 77, 0], ..Options::default() };
        let refused = codecs(&options).expect_err("77 is not a codec");
        assert!(refused.text().contains("77"), "{}", refused.text());
        assert_eq!(codec(7).is_ok(), HAS_ZSTD);
    }
}
