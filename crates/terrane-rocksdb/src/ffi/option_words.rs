//! The words that RocksDB's option files use for the values of options, and the numbers they stand for.

/// LentText for values, in the order of their numbers, and the option that each stands for.
type LentText = &'static [(i128, &'static str)];

const CODECS: LentText = &[
    (0, "kNoCompression"),
    (1, "kSnappyCompression"),
    (2, "kZlibCompression"),
    (3, "kBZip2Compression"),
    (4, "kLZ4Compression"),
    (5, "kLZ4HCCompression"),
    (6, "kXpressCompression"),
    (7, "kZSTD"),
    (255, "kDisableCompressionOption"),
];
/// Codecs as the file LOG names them: no reader looks their numbers up.
const LOGGED_CODECS: LentText = &[
    (0, "NoCompression"),
    (1, "Snappy"),
    (2, "Zlib"),
    (3, "BZip2"),
    (4, "LZ4"),
    (5, "LZ4HC"),
    (6, "Xpress"),
    (7, "ZSTD"),
    (255, "Disabled"),
];
const STYLES: LentText =
    &[(0, "kCompactionStyleLevel"), (1, "kCompactionStyleUniversal"), (2, "kCompactionStyleFIFO")];
const PRIORITIES: LentText = &[
    (0, "kByCompensatedSize"),
    (1, "kOldestLargestSeqFirst"),
    (2, "kOldestSmallestSeqFirst"),
    (3, "kMinOverlappingRatio"),
    (4, "kRoundRobin"),
];
const TEMPERATURES: LentText =
    &[(0, "kUnknown"), (4, "kHot"), (8, "kWarm"), (10, "kCool"), (12, "kCold"), (16, "kIce")];
const LEVELS: LentText = &[
    (0, "DEBUG_LEVEL"),
    (1, "INFO_LEVEL"),
    (2, "WARN_LEVEL"),
    (3, "ERROR_LEVEL"),
    (4, "FATAL_LEVEL"),
    (5, "HEADER_LEVEL"),
];
const RECOVERY: LentText = &[
    (0, "kTolerateCorruptedTailRecords"),
    (1, "kAbsoluteConsistency"),
    (2, "kPointInTimeRecovery"),
    (3, "kSkipAnyCorruptedRecords"),
];
const PREPOPULATION: LentText = &[(0, "kDisable"), (1, "kFlushOnly")];
const TIERS: LentText = &[(0, "kVolatileTier"), (1, "kVolatileCompressedTier"), (2, "kNonVolatileBlockTier")];
const CHECKSUMS: LentText =
    &[(0, "kNoChecksum"), (1, "kCRC32c"), (2, "kxxHash"), (3, "kxxHash64"), (4, "kXXH3")];
const INDEXES: LentText = &[
    (0, "kBinarySearch"),
    (1, "kHashSearch"),
    (2, "kTwoLevelIndexSearch"),
    (3, "kBinarySearchWithFirstKey"),
];
const BLOCK_INDEXES: LentText = &[(0, "kDataBlockBinarySearch"), (1, "kDataBlockBinaryAndHash")];
const SHORTENINGS: LentText =
    &[(0, "kNoShortening"), (1, "kShortenSeparators"), (2, "kShortenSeparatorsAndSuccessor")];
const SEARCHES: LentText = &[(0, "kBinary"), (1, "kInterpolation")];

const WORDS: [LentText; 13] = [
    CODECS,
    STYLES,
    PRIORITIES,
    TEMPERATURES,
    LEVELS,
    RECOVERY,
    PREPOPULATION,
    TIERS,
    CHECKSUMS,
    INDEXES,
    BLOCK_INDEXES,
    SHORTENINGS,
    SEARCHES,
];

fn words_of(option: &str) -> LentText {
    match option {
        "compression" | "bottommost_compression" | "blob_compression_type" | "wal_compression" => CODECS,
        "compaction_style" => STYLES,
        "compaction_pri" => PRIORITIES,
        "info_log_level" => LEVELS,
        "wal_recovery_mode" => RECOVERY,
        "prepopulate_blob_cache" | "prepopulate_block_cache" => PREPOPULATION,
        "lowest_used_cache_tier" => TIERS,
        "checksum" => CHECKSUMS,
        "index_type" => INDEXES,
        "data_block_index_type" => BLOCK_INDEXES,
        "index_shortening" => SHORTENINGS,
        "index_block_search_type" => SEARCHES,
        option if option.ends_with("_temperature") => TEMPERATURES,
        _ => &[],
    }
}

/// The word for the value of an option, where it has one.
pub(crate) fn word(option: &str, number: i128) -> Option<&'static str> {
    words_of(option).iter().find(|(value, _)| *value == number).map(|(_, word)| *word)
}

/// The name of a codec in the file LOG, which is not that of files of options.
pub(crate) fn logged_codec(codec: i128) -> Option<&'static str> {
    LOGGED_CODECS.iter().find(|(value, _)| *value == codec).map(|(_, name)| *name)
}

/// The number that a word stands for: no word stands for two.
pub(crate) fn number(word: &str) -> Option<i128> {
    match word {
        "false" => Some(0),
        "true" => Some(1),
        _ => WORDS.iter().copied().flatten().find(|(_, known)| *known == word).map(|(number, _)| *number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_stands_for_two_numbers() {
        for (value, word) in WORDS.iter().copied().flatten() {
            assert_eq!(number(word), Some(*value), "{word}");
        }
    }

    #[test]
    fn the_log_names_the_codecs_that_files_of_options_name() {
        for ((value, word), (logged_value, name)) in CODECS.iter().zip(LOGGED_CODECS) {
            assert_eq!(value, logged_value, "{word}");
            assert_eq!(logged_codec(*value), Some(*name));
        }
        assert_eq!(CODECS.len(), LOGGED_CODECS.len());
        assert_eq!(logged_codec(77), None, "a number of no codec");
    }
}
