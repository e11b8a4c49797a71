//! Rows that are more than one version: operands, folded onto an older version.

use terrane_base::{Cursor, Result, Stored};

use super::{Meaning, Scan, no_value_tables};
use crate::read::merge_operands::count_folded;

impl<C: Cursor> Scan<C> {
    /// Takes the versions of `self.key`, the newest of which is an operand and the cursor's entry, and copies
    /// the value that they make to `self.value`. Returns false if they make no value. Leaves the cursor at or
    /// behind the key's versions.
    #[cold]
    pub(super) fn fold_here(&mut self) -> Result<bool> {
        debug_assert!(
            self.cursor
                .entry()
                .is_some_and(|entry| entry.seq_kind.is_merge() && entry.key == self.key.as_slice()),
            "versions are folded from an operand of the key on"
        );
        let Meaning { semantics, now, chain } = &mut self.meaning;
        let now = *now.get_or_insert_with(|| semantics.now());
        chain.clear();
        while let Some(entry) = self.cursor.entry() {
            if entry.key != self.key.as_slice() {
                break;
            }
            let is_expired =
                || Stored::of_entry(entry.seq_kind, entry.value).map(|stored| stored.is_expired(now));
            // What has expired ends the chain without its value.
            let goes_on = if entry.seq_kind.is_pointer() && !is_expired()? {
                let separated = self.separated.as_ref().ok_or_else(no_value_tables)?;
                let mut bytes = entry.value.to_vec();
                let kind = separated.inline(entry.key, entry.seq_kind, &mut bytes)?;
                chain.take(kind, &bytes, now)?
            } else {
                chain.take(entry.seq_kind, entry.value, now)?
            };
            if !goes_on {
                break;
            }
            self.cursor.next()?;
        }
        count_folded(chain);
        self.value.clear();
        chain.fold(semantics.operator().map(|operator| &**operator), &self.key, &mut self.value)
    }
}
