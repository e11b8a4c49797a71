//! Operations on whole ranges that do not visit each row.

use std::sync::Arc;

use terrane_base::key_order::FilterInOrder;
use terrane_base::{CompactionFilter, Result};
use terrane_engine::{DroppedExtents, Estimate, RangeEstimate};

use crate::{KeyBounds, Table};

impl Table {
    /// Bytes that a range takes, about, and how far off that can be: extents as stored, with their part of
    /// indexes and filters, and records in memory. Reads no data; at most two index blocks for each sorted
    /// run.
    ///
    /// An extent within the range counts exactly; of the blocks that the range cuts, two for each sorted run,
    /// half is counted, and half is the error. In memory it is exact where the range, or what lies around it,
    /// has few thousand keys; else the error says between which two counts it lies. What newer versions or
    /// range deletes hide is counted until a compaction drops it.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let table = db.default_table();
    /// table.put("2024-01-30", "..")?;
    /// table.put("2024-02-01", "..")?;
    /// let january = table.approximate_count("2024-01".."2024-02")?;
    /// assert_eq!((january.value, january.error), (1, 0));
    /// assert!(table.approximate_size(..)?.value > 20);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` if the table was dropped, `Io` or `Corrupt` from the store.
    pub fn approximate_size(&self, range: impl KeyBounds) -> Result<Estimate> {
        Ok(self.approximate(range)?.bytes)
    }

    /// [`Table::approximate_size`] and [`Table::approximate_count`] in one call, and how many of the bytes
    /// are in memory.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("k", "v")?;
    /// let all = table.approximate(..)?;
    /// println!("{} bytes, {} of them in memory", all.bytes.value, all.memory_bytes.value);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::approximate_size`].
    pub fn approximate(&self, range: impl KeyBounds) -> Result<RangeEstimate> {
        self.refuse_if_dropped()?;
        self.engine.approximate(&self.inner, &self.bounds(range.lower(), range.upper())?)
    }

    /// Approximate number of versions of keys in a range, and the largest error: as
    /// [`Table::approximate_size`]. Deletes and hidden versions count until a compaction drops them: if every
    /// key was written once, it is the number of rows.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// for number in 0..100u32 {
    ///     table.put(number.to_be_bytes(), "v")?;
    /// }
    /// assert_eq!(table.approximate_count(..50u32.to_be_bytes())?.value, 50);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::approximate_size`].
    pub fn approximate_count(&self, range: impl KeyBounds) -> Result<Estimate> {
        Ok(self.approximate(range)?.entries)
    }

    /// Drops, at once and durably, the extents whose keys all lie within a range: for data that is not needed
    /// any more, when waiting for compactions takes too long. It costs one edit of the manifest, and the
    /// space comes back at once.
    ///
    /// This is not a delete: rows of the range stay that are only in memory, that share an extent with keys
    /// outside, or that lie above older versions which stay. Afterwards every key of the range is unchanged
    /// or gone; no older value becomes visible. To remove all rows, call [`Table::delete_range`] first, and
    /// then this to free the space.
    ///
    /// Every commit before is durable, too, when it returns.
    ///
    /// Transactions that read the range take no notice of it, and a snapshot that is taken while it runs may
    /// see the range before and after.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let table = db.default_table();
    /// table.put("2024-01-30", "..")?;
    /// db.flush()?;
    /// let dropped = table.delete_files_in_range("2024-01".."2024-02")?;
    /// assert_eq!((dropped.extents, dropped.entries), (1, 1));
    /// assert_eq!(table.get("2024-01-30")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Busy`, and nothing is dropped, while a snapshot, an iterator or a transaction sees any of it, or a
    /// paused compaction works on it. `NotFound` if the table was dropped, `Cancelled` when the database
    /// closes, `Poisoned`, also if background work on the table has stopped, `Io`.
    pub fn delete_files_in_range(&self, range: impl KeyBounds) -> Result<DroppedExtents> {
        self.refuse_if_dropped()?;
        self.engine.drop_extents(&self.inner, &self.bounds(range.lower(), range.upper())?)
    }

    /// Has compactions of the table that begin from now on show rows to `filter`, which may take them out or
    /// change them; `None` ends that. It belongs to the open database and is not stored: an opening without
    /// it compacts without it. [`CompactionFilter`] has the rules, those about snapshots first of all.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// use terrane::FilterDecision;
    /// #[derive(Debug)]
    /// struct NoDrafts;
    /// impl terrane::CompactionFilter for NoDrafts {
    ///     fn name(&self) -> &str {
    ///         "no-drafts"
    ///     }
    ///     fn filter(&self, _key: &[u8], value: &[u8]) -> FilterDecision {
    ///         if value == b"draft" { FilterDecision::Remove } else { FilterDecision::Keep }
    ///     }
    ///     fn sees_all(&self) -> bool {
    ///         true
    ///     }
    /// }
    /// let table = db.default_table();
    /// table.set_compaction_filter(Some(std::sync::Arc::new(NoDrafts)));
    /// table.put("a", "draft")?;
    /// table.put("b", "text")?;
    /// db.compact_range(table, ..)?;
    /// assert_eq!(table.iter().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_compaction_filter(&self, filter: Option<Arc<dyn CompactionFilter>>) {
        let filter = filter.map(|filter| match &self.order {
            None => filter,
            Some(order) => Arc::new(FilterInOrder::new(filter, order.clone())),
        });
        self.inner.set_compaction_filter(filter);
    }
}
