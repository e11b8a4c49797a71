//! Options of one table.

use std::time::Duration;

use terrane_base::Result;
use terrane_base::options::{Compression, Setting, TimeToLive, ValueCompression};

/// Options of one table, which override those of the database: at its creation
/// ([`Db::create_table`](crate::Db::create_table)), or of an open table
/// ([`Table::set_options`](crate::Table::set_options)), all but the merge operator and the order of keys.
///
/// The methods take whatever their type allows; the call that the options are given to checks the values and
/// names the one that is out of range. [`Options`](crate::Options) describes each option.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// use terrane::{Compression, TableOptions};
/// let db = terrane::Db::open_in_memory()?;
/// let options = TableOptions::new().compression_last(Compression::None).block_bytes(4 << 10);
/// let pictures = db.create_table("pictures", &options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    pub(crate) overrides: Vec<(String, String)>,
}

/// Methods that set an option of a type.
macro_rules! typed {
    ($($(#[$about:meta])* $name:ident($value:ident: $type:ty) = $show:expr, $example:literal;)*) => {
        impl TableOptions {
            $(
                $(#[$about])*
                ///
                /// ```
                #[doc = concat!("let options = terrane::TableOptions::new().", stringify!($name), "(", $example, ");")]
                /// ```
                #[must_use]
                pub fn $name(mut self, $value: $type) -> Self {
                    self.replace(stringify!($name), $show);
                    self
                }
            )*
        }
    };
}

impl TableOptions {
    /// No option of its own: the database's apply.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// let db = terrane::Db::open_in_memory()?;
    /// db.create_table("users", &terrane::TableOptions::new())?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets one option by its name and as text: for settings that come from a file or a command line, and for
    /// `block_encoding`, which has no method. Names and values are those of [`Options`](crate::Options).
    ///
    /// ```
    /// use terrane::TableOptions;
    /// let options = TableOptions::new().set("compression_last", "none")?.set("block_bytes", "4KiB")?;
    /// assert!(TableOptions::new().set("block_bytes", "4 pounds").is_err());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for another option or a value out of range.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self> {
        terrane_engine::check_table_option(name, value)?;
        self.replace(name, value.to_owned());
        Ok(self)
    }

    fn replace(&mut self, name: &str, value: String) {
        self.overrides.retain(|(known, _)| known != name);
        self.overrides.push((name.to_owned(), value));
        debug_assert!(
            self.overrides.iter().filter(|(known, _)| known == name).count() == 1,
            "the engine takes each option once"
        );
    }
}

typed! {
    /// The merge operator that folds the operands of [`Table::merge`](crate::Table::merge), by its name: a
    /// built-in one (`counter`, `append`, `max`, `min`) or one that the database is opened with. A table
    /// keeps it.
    merge_operator(name: impl Into<String>) = name.into(), "\"counter\"";
    /// The order of the keys, by its name: `bytewise`, `reverse`, or one that the database is opened with. A
    /// table keeps it.
    key_order(name: impl Into<String>) = name.into(), "\"reverse\"";
    /// The part of a key that filters hold beside the whole key: `fixed:BYTES`, `capped:BYTES`,
    /// `until:DELIMITER`, or the name of an extractor that the database is opened with.
    prefix_extractor(name: impl Into<String>) = name.into(), "\"until:/\"";
    /// How long rows live from their write on.
    time_to_live(ttl: Duration) = TimeToLive::of(ttl).show(), "std::time::Duration::from_secs(3600)";
    /// Compression of the levels above the last.
    compression(compression: Compression) = compression.show(), "terrane::Compression::Lz4";
    /// Compression of the last level, where most data rest.
    compression_last(compression: Compression) = compression.show(), "terrane::Compression::None";
    /// Bytes of entries of a data block before compression.
    block_bytes(bytes: u64) = bytes.show(), "4 << 10";
    /// Memory of a filter per key, in bits; 0 for no filter.
    filter_bits_per_key(bits: u64) = bits.show(), "16";
    /// Bytes of level 1 above which its extents move down.
    level_base_bytes(bytes: u64) = bytes.show(), "64 << 20";
    /// How many times larger a level may grow than the one above it.
    level_fanout(fanout: u64) = fanout.show(), "8";
    /// Overflow runs at which writers are slowed.
    overflow_runs_max(runs: u64) = runs.show(), "20";
    /// Compact the table automatically.
    auto_compaction(is_on: bool) = is_on.show(), "false";
    /// Percentage of the live bytes of the largest level that all stored bytes may reach before levels are
    /// merged early; 0 for no limit.
    space_amplification_max_percent(percent: u64) = percent.show(), "150";
    /// Bytes from which on values are written to value tables, apart from the levels, when they are flushed;
    /// 0 for none. As the database, if the table has no length of its own: 16 KiB by default.
    value_separation_bytes(bytes: u64) = bytes.show(), "1024";
    /// Percentage of their live part that the value tables may take before dead values are collected; 0 for
    /// no limit.
    value_space_max_percent(percent: u64) = percent.show(), "150";
    /// Compression of the value tables.
    value_compression(compression: ValueCompression) = compression.show(), "terrane::ValueCompression::ZstdLevel(9)";
}
