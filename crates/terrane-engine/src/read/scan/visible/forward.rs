//! The way forward where the cursor is not yet at the row: hidden versions, deletes, operands, pointers.

use terrane_base::{Cursor, Result};

use super::{Position, STEPS_BEFORE_SEEK, Scan};
use crate::read::scan::steps::{Skipped, is_same, seek_past};

impl<C: Cursor> Scan<C> {
    /// [`Scan::find_forward`] where the cursor is at anything else.
    #[inline(never)]
    pub(super) fn look_forward(&mut self, skip: bool) -> Result<()> {
        let mut skipped = Skipped::default();
        let found = self.pass_hidden(skip, &mut skipped);
        skipped.count();
        self.meaning.semantics.skips().note(skipped.versions);
        debug_assert!(
            !matches!(
                self.position,
                Position::Backward | Position::BackwardFollowed | Position::BackwardPointed(_)
            ),
            "a scan that goes forward rests at or behind the versions of its key"
        );
        found
    }

    /// [`Scan::find_forward`]; adds what it passes over to `skipped`.
    fn pass_hidden(&mut self, mut skip: bool, skipped: &mut Skipped) -> Result<()> {
        self.position = Position::Nowhere;
        let mut steps = 0;
        while let Some(entry) = self.cursor.entry() {
            let decided = skip && is_same(entry.key, &self.key);
            if !decided && !self.bounds.below_upper(entry.key) {
                return Ok(());
            }
            if !decided && entry.seq_kind.seq() <= self.seq {
                if entry.seq_kind.is_merge() {
                    self.key.clear();
                    self.key.extend_from_slice(entry.key);
                    if self.fold_here()? {
                        self.position = Position::Folded;
                        return Ok(());
                    }
                    skip = true;
                    steps = 0;
                    continue;
                }
                if let Some(prefix) = self.meaning.prefix(entry.seq_kind, entry.value)? {
                    self.prefix = prefix;
                    self.position = Position::Forward;
                    return if entry.seq_kind.is_pointer() { self.meet_pointer() } else { Ok(()) };
                }
                skipped.versions += 1;
                skipped.deletes += u64::from(entry.seq_kind.is_delete());
                self.meaning.semantics.skips().check(skipped.versions)?;
                self.key.clear();
                self.key.extend_from_slice(entry.key);
                skip = true;
                steps = 0;
                self.cursor.next_key()?;
                continue;
            }
            skipped.versions += 1;
            self.meaning.semantics.skips().check(skipped.versions)?;
            steps += 1;
            if steps <= STEPS_BEFORE_SEEK {
                if decided { self.cursor.next_key()? } else { self.cursor.next()? }
            } else if decided {
                seek_past(&mut self.cursor, &self.key)?;
                steps = 0;
            } else {
                // Many versions that are too new, or many keys in a row that each have one.
                let key = entry.key.to_vec();
                self.cursor.seek(&key, self.seq)?;
                steps = 0;
            }
        }
        Ok(())
    }
}
