//! Iterators over versions.
//!
//! Going forward the cursor is at the row that shows. Going back it is before all versions of the key that
//! shows, whose row is held: the newest version that counts is met last.

use std::ops::Bound;
use std::sync::Arc;

use terrane::{Cursor, Table};

use crate::db::Family;
use crate::db::timestamps::{DELETE, History, SINGLE_DELETE};
use crate::ffi::failure::Result;
use crate::options::read_write::ReadOptions;

/// How the position is moved.
#[derive(Clone, Copy)]
pub(crate) enum Motion<'k> {
    First,
    Last,
    Seek(&'k [u8]),
    SeekBack(&'k [u8]),
    Next,
    Prev,
}

/// Kinds of versions in RocksDB's internal keys.
const INTERNAL_VALUE: u64 = 1;
const INTERNAL_SINGLE_DELETE: u64 = 7;
const INTERNAL_DELETE: u64 = 0x14;

/// The rows that show at one timestamp: of each key the newest version at or below it, or all versions from
/// another one on.
pub(crate) struct Versions {
    cursor: Cursor,
    history: Arc<History>,
    /// The newest timestamp that shows.
    newest: Vec<u8>,
    /// The oldest one, if all versions show.
    oldest: Option<Vec<u8>>,
    is_forward: bool,
    is_valid: bool,
    /// True if the moment that it is pinned at was not held against the lowest timestamp yet.
    is_unchecked: bool,
    /// The row that shows: its key with its timestamp, and its value.
    kept: Vec<u8>,
    value: Vec<u8>,
    /// Its key as it is shown.
    shown: Vec<u8>,
}

impl Versions {
    /// Pins the moment of the options, or the present one.
    ///
    /// # Errors
    /// `Invalid argument` for a timestamp of another size, or one whose versions may be gone.
    pub(crate) fn new(
        family: &Family,
        table: &Table,
        options: &ReadOptions,
        history: &Arc<History>,
        timestamp: &[u8],
    ) -> Result<Versions> {
        let oldest = options.start_timestamp.clone();
        if let Some(oldest) = &oldest {
            family.history_for(oldest)?;
        }
        // Newer versions of the first key do not show.
        let with = |key: &Option<Vec<u8>>| key.as_ref().map(|key| history.kept(key, timestamp));
        let (lower, upper) = (with(&options.lower), with(&options.upper));
        let range = (
            lower.as_deref().map_or(Bound::Unbounded, Bound::Included),
            upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
        );
        let cursor = match &options.snapshot {
            Some(snapshot) => snapshot.range_cursor(table, range)?,
            None => table.range_cursor(range)?,
        };
        let mut versions = Versions {
            cursor,
            history: history.clone(),
            newest: timestamp.to_vec(),
            oldest,
            is_forward: true,
            is_valid: false,
            is_unchecked: true,
            kept: Vec::new(),
            value: Vec::new(),
            shown: Vec::new(),
        };
        versions.check()?;
        Ok(versions)
    }

    fn check(&mut self) -> Result<()> {
        if self.is_unchecked {
            self.history.refuse_below_low(&self.newest)?;
            self.is_unchecked = false;
        }
        Ok(())
    }

    pub(crate) fn refresh(&mut self) {
        self.is_valid = false;
        self.is_unchecked = true;
        self.cursor.refresh();
    }

    /// Returns true if a refresh would show nothing new.
    pub(crate) fn is_current(&self) -> bool {
        self.cursor.is_current()
    }

    pub(crate) fn row(&self) -> Option<(&[u8], &[u8])> {
        self.is_valid.then_some((&self.shown, &self.value))
    }

    /// The timestamp of the row.
    pub(crate) fn timestamp(&self) -> Option<&[u8]> {
        let at = self.kept.len().checked_sub(self.history.size())?;
        self.is_valid.then(|| &self.kept[at..])
    }

    pub(crate) fn go(&mut self, motion: Motion<'_>) -> Result<()> {
        let was_valid = std::mem::take(&mut self.is_valid);
        self.check()?;
        match motion {
            Motion::First => {
                self.cursor.seek_first()?;
                self.find_next(None)
            }
            Motion::Seek(key) => {
                self.cursor.seek(self.history.kept(key, &self.newest))?;
                self.find_next(None)
            }
            Motion::Last => {
                self.cursor.seek_last()?;
                self.find_prev(None)
            }
            Motion::SeekBack(key) => self.seek_back(key),
            Motion::Next | Motion::Prev if !was_valid => Ok(()),
            Motion::Next => self.next(),
            Motion::Prev => self.prev(),
        }
    }

    fn next(&mut self) -> Result<()> {
        let kept = std::mem::take(&mut self.kept);
        if !self.is_forward {
            self.cursor.seek(&kept)?;
        }
        self.cursor.next()?;
        match self.oldest {
            Some(_) => self.find_next(None),
            None => self.find_next(Some(&kept[..kept.len() - self.history.size()])),
        }
    }

    fn prev(&mut self) -> Result<()> {
        let kept = std::mem::take(&mut self.kept);
        if self.is_forward {
            self.cursor.seek(&kept)?;
            self.cursor.prev()?;
        }
        match self.oldest {
            Some(_) => self.find_prev(None),
            None => self.find_prev(Some(&kept[..kept.len() - self.history.size()])),
        }
    }

    /// At the last key that is not greater than `key`: its versions may be behind the one that is sought.
    fn seek_back(&mut self, key: &[u8]) -> Result<()> {
        self.cursor.seek(self.history.kept(key, &self.newest))?;
        while let Some((kept, stored)) = self.cursor.row() {
            let version = self.history.version(kept, stored)?;
            if self.history.compare_keys(version.key, key).is_gt() {
                break;
            }
            self.cursor.next()?;
        }
        match self.cursor.row() {
            Some(_) => self.cursor.prev()?,
            None => self.cursor.seek_last()?,
        }
        self.find_prev(None)
    }

    /// Finds the next row that shows, from where the cursor is; none of the key `passed`.
    fn find_next(&mut self, passed: Option<&[u8]>) -> Result<()> {
        self.is_forward = true;
        let mut passed = passed.map(<[u8]>::to_vec);
        while let Some((kept, stored)) = self.cursor.row() {
            let version = self.history.version(kept, stored)?;
            let is_passed =
                passed.as_ref().is_some_and(|passed| self.history.compare_keys(version.key, passed).is_eq());
            if !is_passed && self.counts(version.timestamp) {
                if self.oldest.is_some() || !version.is_deleted() {
                    self.show()?;
                    return Ok(());
                }
                passed = Some(version.key.to_vec());
            }
            self.cursor.next()?;
        }
        Ok(())
    }

    /// Finds the row before that shows, from where the cursor is; none of the key `passed`. The cursor ends
    /// before its key.
    fn find_prev(&mut self, passed: Option<&[u8]>) -> Result<()> {
        self.is_forward = false;
        // Whose versions are met, and whether the newest one that counts so far is a value.
        let mut key: Option<Vec<u8>> = passed.map(<[u8]>::to_vec);
        let (is_passed, mut found) = (passed.is_some(), false);
        let mut skips = is_passed;
        while let Some((kept, stored)) = self.cursor.row() {
            let version = self.history.version(kept, stored)?;
            let is_same = key.as_ref().is_some_and(|key| self.history.compare_keys(version.key, key).is_eq());
            if !is_same {
                if found {
                    break;
                }
                key = Some(version.key.to_vec());
                skips = false;
            }
            if !skips && self.counts(version.timestamp) {
                found = self.oldest.is_some() || !version.is_deleted();
                if found {
                    self.show()?;
                }
            }
            self.cursor.prev()?;
            if found && self.oldest.is_some() {
                break;
            }
        }
        self.is_valid = found;
        Ok(())
    }

    /// Returns true if a version with this timestamp is among those that count.
    fn counts(&self, timestamp: &[u8]) -> bool {
        let is_old_enough = self.history.compare(timestamp, &self.newest).is_le();
        let oldest = self.oldest.as_ref();
        is_old_enough && oldest.is_none_or(|oldest| self.history.compare(timestamp, oldest).is_ge())
    }

    /// Shows the row that the cursor is at.
    fn show(&mut self) -> Result<()> {
        let Some((kept, stored)) = self.cursor.row() else { return Ok(()) };
        let version = self.history.version(kept, stored)?;
        self.kept.clear();
        self.kept.extend_from_slice(kept);
        self.value.clear();
        self.value.extend_from_slice(version.value);
        self.shown.clear();
        if self.oldest.is_some() {
            // As RocksDB shows it: an internal key, with the sequence number 0.
            let kind = match version.kind {
                DELETE => INTERNAL_DELETE,
                SINGLE_DELETE => INTERNAL_SINGLE_DELETE,
                _ => INTERNAL_VALUE,
            };
            self.shown.extend_from_slice(kept);
            self.shown.extend_from_slice(&kind.to_le_bytes());
        } else {
            self.shown.extend_from_slice(version.key);
        }
        self.is_valid = true;
        Ok(())
    }
}
