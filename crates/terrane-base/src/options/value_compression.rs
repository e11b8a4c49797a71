//! Compression of value tables: a codec of their own, or that of the levels.

use super::{Compression, Setting};

/// How the blocks of value tables are compressed.
///
/// ```
/// # use terrane_base::options::{Compression, ValueCompression};
/// let small = ValueCompression::ZstdLevel(19); // for values that are written once and kept
/// assert!(small.is_possible() && !ValueCompression::ZstdLevel(23).is_possible());
/// assert_eq!(small.over(Compression::Lz4), (Compression::Zstd, Some(19)));
/// assert_eq!(ValueCompression::AsTable.over(Compression::Lz4), (Compression::Lz4, None));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ValueCompression {
    /// As the other extents of the level that the values were written for.
    #[default]
    AsTable,
    /// With this codec; Zstandard at its default level.
    Codec(Compression),
    /// With Zstandard at this level, from 1 (fast) to 22 (small).
    ZstdLevel(u8),
}

impl ValueCompression {
    /// Highest level of Zstandard.
    const LEVEL_MAX: u8 = 22;

    /// The codec, where extents of the level are compressed with `table`; and the level of Zstandard, if it
    /// is not the default one.
    #[must_use]
    pub fn over(self, table: Compression) -> (Compression, Option<u8>) {
        debug_assert!(self.is_possible(), "{self:?} is not a compression that options accept");
        match self {
            ValueCompression::AsTable => (table, None),
            ValueCompression::Codec(codec) => (codec, None),
            ValueCompression::ZstdLevel(level) => (Compression::Zstd, Some(level)),
        }
    }

    /// Returns true if the level is one that Zstandard has.
    #[must_use]
    pub fn is_possible(self) -> bool {
        !matches!(self, ValueCompression::ZstdLevel(level) if !(1..=Self::LEVEL_MAX).contains(&level))
    }
}

impl Setting for ValueCompression {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let expected = "expected table, none, lz4, zstd or zstd:LEVEL";
        match text.strip_prefix("zstd:") {
            Some(level) => level.parse().map(ValueCompression::ZstdLevel).map_err(|_| expected.to_owned()),
            None if text == "table" => Ok(ValueCompression::AsTable),
            None => Compression::parse(text).map(ValueCompression::Codec).map_err(|_| expected.to_owned()),
        }
    }

    fn show(&self) -> String {
        match self {
            ValueCompression::AsTable => "table".to_owned(),
            ValueCompression::Codec(codec) => codec.show(),
            ValueCompression::ZstdLevel(level) => format!("zstd:{level}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_codec_is_parsed_and_levels_have_limits() {
        let given = ["table", "none", "lz4", "zstd", "zstd:1", "zstd:22"];
        for text in given {
            let parsed = ValueCompression::parse(text).unwrap();
            assert_eq!((parsed.show(), parsed.is_possible()), (text.to_owned(), true));
        }
        for text in ["", "zstd:", "zstd:x", "zstd:256", "lz4:3", "snappy"] {
            assert!(ValueCompression::parse(text).is_err(), "{text}");
        }
        for text in ["zstd:0", "zstd:23"] {
            assert!(!ValueCompression::parse(text).unwrap().is_possible(), "{text}");
        }
    }

    #[test]
    fn the_table_chooses_where_nothing_else_is_said() {
        let over = |text: &str| ValueCompression::parse(text).unwrap().over(Compression::Lz4);
        assert_eq!(over("table"), (Compression::Lz4, None));
        assert_eq!(over("none"), (Compression::None, None));
        assert_eq!(over("zstd"), (Compression::Zstd, None));
        assert_eq!(over("zstd:19"), (Compression::Zstd, Some(19)));
    }
}
