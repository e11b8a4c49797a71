//! What an operator looks at: statistics.

use terrane_engine::Statistics;

use crate::{Db, Table};

impl Db {
    /// All metrics of the database and of each of its tables at this moment, by name. [`metrics`](crate::metrics) lists what
    /// there is; [`Db::stats`] has the numbers of the database as fields.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put(b"k", b"v")?;
    /// let statistics = db.statistics();
    /// assert_eq!(statistics.get("records_written").map(|value| value.number()), Some(1));
    /// let table = statistics.table("default").expect("every database has it");
    /// assert_eq!(table.get("table_memory_entries").map(|value| value.number()), Some(1));
    /// assert!(statistics.to_prometheus().contains("terrane_records_written_total 1\n"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.engine().statistics()
    }
}

impl Table {
    /// Its number in the database, by which [`Change::table_id`](crate::Change::table_id) names it: 0 for the default table, and
    /// never given to another one.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.id().0
    }
}
