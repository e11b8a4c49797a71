//! The rows that a user sees of a sorted source: for each key the newest version of a snapshot, deletes left
//! out, within bounds, in both directions.
//!
//! Going forward the position *is* the cursor's entry, nothing is copied but the key that must be skipped
//! when moving on. Going backward the cursor meets the versions of a key oldest first, so the best one so far
//! is copied, and the cursor rests on the entry before all versions of the current key.
//!
//! If the newest version is a pointer to a value, the value is where the pointer leads (`values.rs`), and is
//! not copied; the position stays as it is. A scan that leaves values decides by the pointer alone, and goes
//! to the value only when it is asked for ([`Scan::fetch`]).
//!
//! If the newest version is an operand, the versions of the key are folded newest first, in either direction,
//! into a copy. All rows of a scan expire by one moment: that of its first record that expires.

mod ahead;
mod backward;
mod fold;
mod forward;

use std::ops::Bound;
use std::sync::Arc;

use terrane_base::chain::Chain;
use terrane_base::counters::{add, count};
use terrane_base::{Cursor, Error, Moment, Result, SeqKind, SeqNo, Stored};

use crate::read::scan::Bounds;
use crate::read::scan::steps::{is_same, seek_past, seek_to_last_version};
use crate::read::scan::value_groups::ValueGroups;
use crate::read::scan::values::ScanValues;
use crate::table::semantics::TableSemantics;

/// Versions of one key to step over before the cursor seeks past them instead.
const STEPS_BEFORE_SEEK: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// No position.
    Nowhere,
    /// The current key and value are the cursor's entry.
    Forward,
    /// The current key is the cursor's; its entry points to the value.
    Followed,
    /// As `Followed`, but the scan has not gone to the value.
    Pointed,
    /// The current key and value are the copies; the cursor is at or behind the key's versions.
    Folded,
    /// The current key and value are the copies; the cursor is before every version of the key.
    Backward,
    /// As `Backward`, but the value is where a pointer led.
    BackwardFollowed,
    /// As `Backward`, but the copy is the pointer of this version, and the scan has not gone to the value.
    BackwardPointed(SeqKind),
}

/// A position among the keys that a snapshot sees.
#[derive(Debug)]
pub struct Scan<C> {
    cursor: C,
    seq: SeqNo,
    bounds: Bounds,
    position: Position,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Bytes in front of the value of the cursor's entry.
    prefix: usize,
    meaning: Meaning,
    /// Follows pointers to values; `None` if there are no pointers.
    separated: Option<ScanValues>,
    /// True if separated values are left where they are until they are asked for.
    leaves_values: bool,
    /// Counts the value tables that it meets; `None` where nothing counts them.
    groups: Option<Box<ValueGroups>>,
}

/// The key and value at a position, if there are any.
type SeenRow<'r> = Option<(&'r [u8], &'r [u8])>;

/// The meaning of the records for the scan.
#[derive(Debug)]
struct Meaning {
    semantics: Arc<TableSemantics>,
    now: Option<Moment>,
    chain: Chain,
}

impl Meaning {
    fn now(&mut self) -> Moment {
        *self.now.get_or_insert_with(|| self.semantics.now())
    }

    /// Bytes in front of the value of a version that is not an operand; `None` if it is a delete, or has
    /// expired.
    #[inline]
    fn prefix(&mut self, seq_kind: SeqKind, bytes: &[u8]) -> Result<Option<usize>> {
        debug_assert!(!seq_kind.is_merge(), "an operand is not a value of its own");
        if !seq_kind.is_wrapped() {
            return Ok((!seq_kind.is_delete()).then_some(0));
        }
        if seq_kind.is_plain_pointer() {
            return Ok(Some(0));
        }
        let stored = Stored::of_entry(seq_kind, bytes)?;
        let is_expired = stored.expires() && stored.is_expired(self.now());
        Ok((!is_expired).then_some(bytes.len() - stored.value.len()))
    }
}

impl<C: Cursor> Scan<C> {
    /// A scan of `cursor` at `seq` within `bounds`; without a position until it is placed.
    pub fn new(cursor: C, seq: SeqNo, bounds: Bounds, semantics: Arc<TableSemantics>) -> Self {
        let meaning = Meaning { semantics, now: None, chain: Chain::new() };
        Scan {
            cursor,
            seq,
            bounds,
            position: Position::Nowhere,
            key: Vec::new(),
            value: Vec::new(),
            prefix: 0,
            meaning,
            separated: None,
            leaves_values: false,
            groups: None,
        }
    }

    /// Sets what it follows pointers to values with.
    #[must_use]
    pub(crate) fn following(self, separated: Option<ScanValues>) -> Self {
        Scan { separated, ..self }
    }

    /// Sets whether separated values are left where they are until they are asked for ([`Scan::fetch`]), from
    /// the next row on.
    pub fn leave_values(&mut self, leaves_values: bool) {
        self.leaves_values = leaves_values;
    }

    /// Sets what counts the value tables that it meets.
    pub(crate) fn count_groups(&mut self, groups: Option<Box<ValueGroups>>) {
        self.groups = groups;
    }

    /// Goes on at another number, without a position.
    pub(crate) fn renew(&mut self, seq: SeqNo) {
        self.seq = seq;
        self.meaning.now = None;
        self.leave_position();
    }

    /// Forgets the position.
    pub fn leave_position(&mut self) {
        self.position = Position::Nowhere;
        self.leave_groups();
    }

    /// The next row is somewhere else.
    fn leave_groups(&mut self) {
        if let Some(groups) = &mut self.groups {
            groups.leave();
        }
    }

    /// Goes on with another cursor at another number, without a position; keeps bounds and memory.
    pub(crate) fn replace(&mut self, cursor: C, seq: SeqNo, separated: Option<ScanValues>) {
        self.cursor = cursor;
        self.separated = separated;
        self.renew(seq);
    }

    /// The key at the position.
    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        match self.position {
            Position::Nowhere => None,
            Position::Forward | Position::Followed | Position::Pointed => Some(self.cursor.entry()?.key),
            Position::Folded
            | Position::Backward
            | Position::BackwardFollowed
            | Position::BackwardPointed(_) => Some(&self.key),
        }
    }

    /// The key and value at the position; `None` also where the value was left ([`Scan::leave_values`]).
    #[inline]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        // Most scans go forward over values that lie with their keys.
        if matches!(self.position, Position::Forward) {
            let entry = self.cursor.entry()?;
            debug_assert!(self.prefix <= entry.value.len(), "a row would seem to be missing");
            return Some((entry.key, entry.value.get(self.prefix..)?));
        }
        self.entry_elsewhere()
    }

    /// [`Scan::entry`] at any other position.
    fn entry_elsewhere(&self) -> Option<(&[u8], &[u8])> {
        match self.position {
            Position::Nowhere | Position::Pointed | Position::BackwardPointed(_) => None,
            Position::Forward => unreachable!("the entry of the cursor is the row"),
            Position::Followed => Some((self.cursor.entry()?.key, self.separated.as_ref()?.value()?)),
            Position::Folded | Position::Backward => Some((&self.key, &self.value)),
            Position::BackwardFollowed => Some((&self.key, self.separated.as_ref()?.value()?)),
        }
    }

    /// Goes to the first key within the bounds.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from a source.
    pub fn seek_first(&mut self) -> Result<()> {
        self.begin_seek();
        match &self.bounds.lower {
            Bound::Unbounded => self.cursor.seek_first()?,
            Bound::Included(key) => self.cursor.seek(key, SeqNo::MAX)?,
            Bound::Excluded(key) => seek_past(&mut self.cursor, key)?,
        }
        self.find_forward(false)
    }

    /// Goes to the last key within the bounds.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from a source.
    pub fn seek_last(&mut self) -> Result<()> {
        self.begin_seek();
        match &self.bounds.upper {
            Bound::Unbounded => self.cursor.seek_last()?,
            Bound::Excluded(key) => self.cursor.seek_before(key)?,
            Bound::Included(key) => seek_to_last_version(&mut self.cursor, key)?,
        }
        self.find_backward()
    }

    /// Goes to the first key at or after `key` within the bounds.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from a source.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.seek_seen(key, |_| ())
    }

    /// [`Scan::seek`]; returns what `see` makes of the row there ([`Scan::entry`]).
    ///
    /// # Errors
    /// `Io` or `Corrupt` from a source.
    #[inline]
    pub fn seek_seen<R>(&mut self, key: &[u8], see: impl FnOnce(SeenRow<'_>) -> R) -> Result<R> {
        if !self.bounds.above_lower(key) {
            self.seek_first()?;
            return Ok(see(self.entry()));
        }
        self.begin_seek();
        self.cursor.seek(key, self.seq)?;
        self.find_seen(false, see)
    }

    /// Goes to the last key at or before `key` within the bounds.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from a source.
    pub fn seek_back(&mut self, key: &[u8]) -> Result<()> {
        if !self.bounds.below_upper(key) {
            return self.seek_last();
        }
        self.begin_seek();
        seek_to_last_version(&mut self.cursor, key)?;
        self.find_backward()
    }

    /// Goes to the next key. Requires: there is a position.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from a source.
    #[expect(clippy::should_implement_trait, reason = "a lending cursor is not an Iterator")]
    pub fn next(&mut self) -> Result<()> {
        self.next_seen(|_| ())
    }

    /// [`Scan::next`]; returns what `see` makes of the row there ([`Scan::entry`]), which is found only once.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from a source.
    #[inline]
    pub fn next_seen<R>(&mut self, see: impl FnOnce(SeenRow<'_>) -> R) -> Result<R> {
        match self.position {
            Position::Nowhere => return Ok(see(None)),
            Position::Forward | Position::Followed | Position::Pointed => {
                // A step that failed has left the cursor without an entry.
                let Some(entry) = self.cursor.entry() else {
                    self.position = Position::Nowhere;
                    return Ok(see(None));
                };
                self.key.clear();
                self.key.extend_from_slice(entry.key);
                let stepped = self.cursor.next_key();
                self.or_nowhere(stepped)?;
            }
            Position::Folded => {}
            Position::Backward | Position::BackwardFollowed | Position::BackwardPointed(_) => {
                let stepped = seek_past(&mut self.cursor, &self.key);
                self.or_nowhere(stepped)?;
            }
        }
        count(|cells| add(&cells.rows_stepped, 1));
        self.find_seen(true, see)
    }

    /// Goes to the previous key. Requires: there is a position.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from a source.
    pub fn prev(&mut self) -> Result<()> {
        match self.position {
            Position::Nowhere => return Ok(()),
            Position::Forward | Position::Followed | Position::Pointed => {
                // As in `next_seen`.
                let Some(entry) = self.cursor.entry() else {
                    self.position = Position::Nowhere;
                    return Ok(());
                };
                self.key.clear();
                self.key.extend_from_slice(entry.key);
                let stepped = self.cursor.seek_before(&self.key);
                self.or_nowhere(stepped)?;
            }
            Position::Folded => {
                let stepped = self.cursor.seek_before(&self.key);
                self.or_nowhere(stepped)?;
            }
            Position::Backward | Position::BackwardFollowed | Position::BackwardPointed(_) => {}
        }
        count(|cells| add(&cells.rows_stepped, 1));
        self.find_backward()
    }

    /// Leaves the position if a step of the cursor failed: the cursor is at none, then.
    #[inline]
    fn or_nowhere(&mut self, stepped: Result<()>) -> Result<()> {
        if stepped.is_err() {
            self.position = Position::Nowhere;
        }
        stepped
    }

    fn begin_seek(&mut self) {
        // Until it has found a row: it may fail.
        self.position = Position::Nowhere;
        self.leave_groups();
        count(|cells| add(&cells.seeks, 1));
        if let Some(separated) = &mut self.separated {
            separated.restart();
        }
    }

    /// Moves the cursor forward to the first visible entry. With `skip`, versions of `self.key` are passed
    /// over.
    ///
    #[inline]
    fn find_forward(&mut self, skip: bool) -> Result<()> {
        self.find_seen(skip, |_| ())
    }

    /// [`Scan::find_forward`]; returns what `see` makes of the row there.
    ///
    /// As a rule the cursor is there already: at a plain put of another key, or at a pointer to a value that
    /// is cached. Part of each caller, so that what `see` returns stays in registers.
    #[inline(always)]
    fn find_seen<R>(&mut self, skip: bool, see: impl FnOnce(SeenRow<'_>) -> R) -> Result<R> {
        if let Some(entry) = self.cursor.entry()
            && entry.seq_kind.seq() <= self.seq
            && !(skip && is_same(entry.key, &self.key))
            && self.bounds.below_upper(entry.key)
        {
            if entry.seq_kind.is_plain_put() {
                self.prefix = 0;
                self.position = Position::Forward;
                return Ok(see(Some((entry.key, entry.value))));
            }
            if entry.seq_kind.is_plain_pointer()
                && let Some(separated) = self.separated.as_mut().filter(|_| !self.leaves_values)
                && let Some(value) = separated.value_at_position(entry, &mut self.groups)
            {
                self.prefix = 0;
                self.position = Position::Followed;
                return Ok(see(Some((entry.key, value))));
            }
        }
        self.look_forward(skip)?;
        Ok(see(self.entry()))
    }
}

/// The error of a pointer in a scan over a source that has no value tables.
#[cold]
fn no_value_tables() -> Error {
    Error::corrupt("a scan met a pointer to a value where there are no value tables")
}
