//! Options of one table.

use terrane_base::Result;

/// Options of one table, which override those of the database when the table is created.
///
/// ```
/// let options = terrane::TableOptions::new().set("compression_last", "none")?.set("block_bytes", "4KiB")?;
/// # Ok::<(), terrane::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    pub(crate) overrides: Vec<(String, String)>,
}

impl TableOptions {
    /// No option of its own: the database's apply.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets one option: `auto_compaction`, `block_bytes`, `block_encoding`, `compression`,
    /// `compression_last`, `filter_bits_per_key`, `level_base_bytes`, `level_fanout`, `overflow_runs_max`,
    /// `merge_operator`, `key_order`, `time_to_live` or `prefix_extractor`. All but `merge_operator` and
    /// `key_order` can be changed later by [`crate::Table::set_option`].
    ///
    /// # Errors
    /// `Invalid` for another option or a value out of range.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self> {
        terrane_engine::check_table_option(name, value)?;
        self.overrides.retain(|(known, _)| known != name);
        self.overrides.push((name.to_owned(), value.to_owned()));
        Ok(self)
    }
}
