//! The way back: the cursor meets the versions of a key oldest first.

use terrane_base::{Cursor, Result, SeqKind};

use super::{Position, STEPS_BEFORE_SEEK, Scan};
use crate::read::scan::steps::{Skipped, is_same};

impl<C: Cursor> Scan<C> {
    /// Moves the cursor backward over whole keys until one has a visible version, and copies that.
    pub(super) fn find_backward(&mut self) -> Result<()> {
        self.position = Position::Nowhere;
        let mut skipped = 0;
        let found = self.pass_hidden_backward(&mut skipped);
        self.meaning.semantics.skips().note(skipped);
        debug_assert!(
            !matches!(
                self.position,
                Position::Forward | Position::Followed | Position::Pointed | Position::Folded
            ),
            "a scan that goes back rests before the versions of its key"
        );
        found
    }

    /// [`Scan::find_backward`]; adds the keys that it passes over to `skipped`.
    fn pass_hidden_backward(&mut self, skipped: &mut u64) -> Result<()> {
        debug_assert!(self.position == Position::Nowhere, "a scan that finds no key is at no row");
        while let Some(entry) = self.cursor.entry() {
            if !self.bounds.above_lower(entry.key) {
                return Ok(());
            }
            self.key.clear();
            self.key.extend_from_slice(entry.key);
            let mut pointer = None;
            if self.take_best_version(&mut pointer)? {
                if let Some(pointer) = pointer {
                    if self.leaves_values {
                        self.position = Position::BackwardPointed(pointer);
                        return Ok(());
                    }
                    return self.follow_backward(pointer);
                }
                self.position = Position::Backward;
                return Ok(());
            }
            *skipped += 1;
            self.meaning.semantics.skips().check(*skipped)?;
        }
        Ok(())
    }

    /// Walks the versions of `self.key` from oldest to newest; copies the newest visible one. Returns whether
    /// it is a value; of a pointer the pointer is copied, and `pointer` is set. Leaves the cursor before all
    /// versions of the key.
    fn take_best_version(&mut self, pointer: &mut Option<SeqKind>) -> Result<bool> {
        debug_assert!(
            self.cursor.entry().is_some_and(|entry| entry.key == self.key.as_slice()),
            "the walk begins at a version of the key"
        );
        let (mut is_value, mut is_operand) = (false, false);
        let (mut steps, mut deletes) = (0, 0);
        while let Some(entry) = self.cursor.entry() {
            // The first is that of the key itself.
            if steps > 0 && !is_same(entry.key, &self.key) {
                break;
            }
            if entry.seq_kind.seq() > self.seq || steps > STEPS_BEFORE_SEEK {
                // Everything from here up to the key's newest version is invisible, or there are many
                // versions.
                Skipped::of_key(steps, is_value, deletes).count();
                return self.jump_over_versions(is_value, is_operand || steps > STEPS_BEFORE_SEEK, pointer);
            }
            self.value.clear();
            *pointer = entry.seq_kind.is_pointer().then(|| entry.seq_kind.as_plain());
            if entry.seq_kind.is_plain_put() {
                (is_value, is_operand) = (true, false);
                self.value.extend_from_slice(entry.value);
            } else {
                is_operand = entry.seq_kind.is_merge();
                deletes += u64::from(entry.seq_kind.is_delete());
                let prefix =
                    if is_operand { None } else { self.meaning.prefix(entry.seq_kind, entry.value)? };
                is_value = prefix.is_some();
                self.value.extend_from_slice(&entry.value[prefix.unwrap_or(0)..]);
            }
            steps += 1;
            self.cursor.prev()?;
        }
        Skipped::of_key(steps, is_value, deletes).count();
        if is_operand {
            return self.jump_over_versions(is_value, true, pointer);
        }
        Ok(is_value)
    }

    fn jump_over_versions(
        &mut self,
        mut is_value: bool,
        look: bool,
        pointer: &mut Option<SeqKind>,
    ) -> Result<bool> {
        if look {
            *pointer = None;
            self.cursor.seek(&self.key, self.seq)?;
            let entry = self.cursor.entry().filter(|entry| entry.key == self.key.as_slice());
            if let Some(entry) = entry {
                if entry.seq_kind.is_merge() {
                    is_value = self.fold_here()?;
                } else {
                    let prefix = self.meaning.prefix(entry.seq_kind, entry.value)?;
                    is_value = prefix.is_some();
                    *pointer = entry.seq_kind.is_pointer().then(|| entry.seq_kind.as_plain());
                    self.value.clear();
                    self.value.extend_from_slice(&entry.value[prefix.unwrap_or(0)..]);
                }
            }
        }
        self.cursor.seek_before(&self.key)?;
        Ok(is_value)
    }
}
