//! Notes: what a program keeps with a table for itself.

use terrane_base::Result;

use crate::Table;

impl Table {
    /// What was noted with the table last, by [`Table::set_note`]; `None` if nothing was.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        self.engine.table_note(&self.inner)
    }

    /// Notes something with the table, in the place of what was noted before: for what a program must know before it reads a
    /// row, such as how its values are laid out. Durable on return; checkpoints, backups and repairs keep it. The library
    /// does not look at it. It is no option, and no part of a commit.
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
