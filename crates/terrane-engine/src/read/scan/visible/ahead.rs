//! Rows whose newest version is a pointer: the way to their values, and the look ahead at the next rows where
//! a value would have to be waited for.

use terrane_base::{Cursor, Result, SeqKind, SeqNo};

use super::{Position, Scan, no_value_tables};
use crate::read::scan::steps::is_same;

impl<C: Cursor> Scan<C> {
    /// The scan is at a row whose value is where the pointer at the cursor leads.
    #[inline]
    pub(super) fn meet_pointer(&mut self) -> Result<()> {
        debug_assert!(self.position == Position::Forward, "the pointer is the entry of the cursor");
        if self.leaves_values {
            self.position = Position::Pointed;
            return Ok(());
        }
        self.follow_here()
    }

    /// Goes to the value of the row at the position, if it was left where it is. Without look ahead: the scan
    /// does not know that other values are asked for.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from a source.
    pub fn fetch(&mut self) -> Result<()> {
        match self.position {
            Position::Pointed => self.follow_here(),
            Position::BackwardPointed(pointer) => {
                self.position = Position::Nowhere;
                self.follow_backward(pointer)
            }
            _ => Ok(()),
        }?;
        debug_assert!(
            self.key().is_none() || self.entry().is_some(),
            "a row whose value was fetched has one"
        );
        Ok(())
    }

    /// Goes to the value that the pointer at the cursor leads to.
    #[inline(never)]
    pub(super) fn follow_here(&mut self) -> Result<()> {
        debug_assert!(
            matches!(self.position, Position::Forward | Position::Pointed),
            "the pointer that is followed is the entry of the cursor"
        );
        self.position = Position::Nowhere;
        let Some(entry) = self.cursor.entry() else { return Ok(()) };
        let separated = self.separated.as_mut().ok_or_else(no_value_tables)?;
        let seq = entry.seq_kind.seq();
        let may_wait = self.leaves_values;
        if separated.place((entry.key, seq), &entry.value[self.prefix..], false, may_wait)? {
            separated.note(entry.key, &mut self.groups);
        } else {
            self.follow_after_look_ahead(seq)?;
        }
        self.position = Position::Followed;
        Ok(())
    }

    /// [`Scan::follow_here`] of the version `seq`, whose value has to be waited for.
    #[cold]
    fn follow_after_look_ahead(&mut self, seq: SeqNo) -> Result<()> {
        let Some(entry) = self.cursor.entry() else { return Ok(()) };
        self.key.clear();
        self.key.extend_from_slice(entry.key);
        self.look_ahead();
        self.cursor.seek(&self.key, seq)?;
        let Some(entry) = self.cursor.entry() else { return Ok(()) };
        debug_assert!(entry.key == self.key && entry.seq_kind.seq() == seq, "the scan is back at its row");
        let separated = self.separated.as_mut().ok_or_else(no_value_tables)?;
        separated.place((entry.key, seq), &entry.value[self.prefix..], false, true)?;
        separated.note(entry.key, &mut self.groups);
        Ok(())
    }

    /// Goes to the value that a pointer leads to, which is `self.value`, of `self.key`. The cursor is before
    /// every version of the key.
    #[inline(never)]
    pub(super) fn follow_backward(&mut self, pointer: SeqKind) -> Result<()> {
        debug_assert!(self.position == Position::Nowhere, "there is no row before its value is known");
        let separated = self.separated.as_mut().ok_or_else(no_value_tables)?;
        let seq = pointer.seq();
        if !separated.place((&self.key, seq), &self.value, true, self.leaves_values)? {
            self.look_back(pointer);
            self.cursor.seek_before(&self.key)?;
            let separated = self.separated.as_mut().ok_or_else(no_value_tables)?;
            separated.place((&self.key, seq), &self.value, true, true)?;
        }
        self.position = Position::BackwardFollowed;
        Ok(())
    }

    /// Reads the blocks that the values of this row and the next ones lack. The cursor is at any place then.
    /// An error ends the look ahead: the scan returns it when it comes there.
    #[cold]
    fn look_ahead(&mut self) {
        debug_assert!(self.position == Position::Nowhere, "a scan that looks ahead is at no row");
        let Some(separated) = &mut self.separated else { return };
        let mut decided = self.key.clone();
        let mut is_first = true;
        for _ in 0..separated.begin_ahead() {
            let Some(entry) = self.cursor.entry().filter(|entry| self.bounds.below_upper(entry.key)) else {
                break;
            };
            let is_decided = !is_first && is_same(entry.key, &decided);
            if !is_decided && entry.seq_kind.seq() <= self.seq {
                is_first = false;
                decided.clear();
                decided.extend_from_slice(entry.key);
                if entry.seq_kind.is_pointer()
                    && matches!(self.meaning.prefix(entry.seq_kind, entry.value), Ok(Some(_)))
                    && !separated.announce(entry.key, entry.seq_kind, entry.value, false)
                {
                    break;
                }
            }
            if self.cursor.next_key().is_err() {
                break;
            }
        }
        separated.end_ahead();
    }

    /// As [`Scan::look_ahead`], going backward: of each key the versions come oldest first.
    #[cold]
    fn look_back(&mut self, pointer: SeqKind) {
        debug_assert!(self.position == Position::Nowhere, "a scan that looks back is at no row");
        let Some(separated) = &mut self.separated else { return };
        let rows = separated.begin_ahead();
        let mut has_room = separated.announce(&self.key, pointer, &self.value, false);
        for _ in 1..rows {
            // Newer versions of the last key, if there are any, come in its place.
            let Some(entry) = self.cursor.entry().filter(|entry| self.bounds.above_lower(entry.key)) else {
                break;
            };
            if entry.seq_kind.seq() <= self.seq
                && entry.seq_kind.is_pointer()
                && matches!(self.meaning.prefix(entry.seq_kind, entry.value), Ok(Some(_)))
            {
                let instead = separated.has_announced(entry.key);
                if !has_room && !instead {
                    break;
                }
                has_room = separated.announce(entry.key, entry.seq_kind, entry.value, instead) && has_room;
            }
            if self.cursor.prev().is_err() {
                break;
            }
        }
        separated.end_ahead();
    }
}
