//! A comment per table, called a note, which the program sets. It is stored with the table's options, under a
//! reserved name that is not an option.

use terrane_base::{Error, Kind, Result};
use terrane_format::manifest::EditOp;

use crate::shared::Shared;
use crate::table::Table;
use crate::table::settings::TABLE_NOTE;

/// Longest note, in bytes.
const NOTE_BYTES_MAX: usize = 2048;

impl Shared {
    /// The last note of a table; `None` if it has no note, or the table was dropped.
    #[must_use]
    pub fn table_note(&self, table: &Table) -> Option<String> {
        let state = self.manifest.state();
        let stored = state.tables.get(&table.id).filter(|stored| !stored.dropped)?;
        stored.options.iter().find(|(name, _)| name == TABLE_NOTE).map(|(_, note)| note.clone())
    }

    /// Sets the note of a table, in the place of the one before. Durable on return.
    ///
    /// # Errors
    /// `Invalid` beyond 2,048 bytes, `NotFound` if the table was dropped, `Poisoned`, `Io`.
    pub fn set_table_note(&self, table: &Table, note: &str) -> Result<()> {
        self.refuse_if_read_only()?;
        if note.len() > NOTE_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a note of {} bytes with table {:?}: the limit is {NOTE_BYTES_MAX}; store longer text in a row",
                note.len(),
                table.name
            )));
        }
        let _change = self.catalog.change();
        let state = self.manifest.state();
        let stored = state.tables.get(&table.id).filter(|stored| !stored.dropped);
        let stored = stored
            .ok_or_else(|| Error::new(Kind::NotFound, format!("table {:?} was dropped", table.name)))?;
        let mut options: Vec<_> =
            stored.options.iter().filter(|(name, _)| name != TABLE_NOTE).cloned().collect();
        options.push((TABLE_NOTE.to_owned(), note.to_owned()));
        let notes = options.iter().filter(|(name, _)| name == TABLE_NOTE).count();
        debug_assert_eq!(notes, 1, "the note that was there before has gone");
        self.append_edit(vec![EditOp::SetOptions { id: table.id, options }])
    }
}
