//! Notes: a program's own text for each table.

use terrane_base::Result;

use crate::Table;

impl Table {
    /// The last note of [`Table::set_note`]; `None` for a table without one.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// assert_eq!(table.note(), None);
    /// table.set_note("layout 2")?;
    /// assert_eq!(table.note().as_deref(), Some("layout 2"));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn note(&self) -> Option<String> {
        self.engine.table_note(&self.inner)
    }

    /// Replaces the table's note: for facts that a program must know before it reads a row, such as the
    /// layout of its values. Durable on return; checkpoints, backups and repairs keep it. The library does
    /// not read it. It is not an option, and no part of a commit.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let table = db.default_table();
    /// table.set_note("layout 2")?;
    /// assert_eq!(table.note().as_deref(), Some("layout 2"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` beyond 2,048 bytes, `NotFound` if the table was dropped, `Poisoned`, `Io`.
    pub fn set_note(&self, note: &str) -> Result<()> {
        self.refuse_if_dropped()?;
        self.engine.set_table_note(&self.inner, note)
    }
}
