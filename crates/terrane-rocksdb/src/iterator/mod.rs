//! Iterators.
//!
//! An iterator is a cursor of the engine within the bounds of its options, with further options: it stays
//! within the prefix that it was placed in, it sees later writes at each placement and step forward
//! (`tailing`; a step begins again only after a write), it keeps every key that it gave out (`pin_data`). It
//! may also be a batch over another iterator ([`overlay`]). After a failure it is not valid, and returns the
//! failure until it is placed again.

pub(crate) mod live_count;
mod open;
pub(crate) mod overlay;
pub(crate) mod prefix;
mod shown;
pub(crate) mod source;

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::c_char;
use std::sync::Arc;

use terrane::read_counters;

use crate::callbacks::operator_registry::Slot;
use crate::callbacks::order::Order;
use crate::db::timestamps::versions::Motion;
use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::{Absent, Out, Slice};
use crate::iterator::live_count::Counted;
use crate::iterator::prefix::WithinPrefix;
use crate::iterator::shown::Shown;
use crate::iterator::source::Source;
use crate::options::objects::statistics::{Statistics, moment};

/// An iterator.
pub(crate) struct Iter {
    source: Source,
    /// The row that is shown: callers ask for it several times between two motions.
    shown: Shown,
    failure: Option<Failure>,
    /// True if the options ask only for rows: no prefix, no later writes, no counts.
    is_plain: bool,
    is_tailing: bool,
    prefix: Option<WithinPrefix>,
    /// Where placements and steps are counted, if they are.
    statistics: Option<Arc<Statistics>>,
    /// Keys that were given out, where they must stay.
    pinned: Option<RefCell<Vec<Box<[u8]>>>>,
    /// The operator of its column family.
    slot: Arc<Slot>,
    /// How its keys are ordered.
    order: Order,
    /// Those of its database, of which it is one.
    _counted: Option<Counted>,
}

impl Iter {
    /// The row at the position, if there is one that may be shown.
    #[inline]
    fn row(&self) -> Option<(&[u8], &[u8])> {
        if self.failure.is_some() {
            return None;
        }
        let row = self.source.row()?;
        match &self.prefix {
            None => Some(row),
            Some(prefix) => prefix.shows(row.0).then_some(row),
        }
    }

    /// Keeps where the row at the position lies. Due whenever the position has moved.
    fn show(&mut self) {
        self.shown = Shown::of(self.row());
    }

    /// Places the position.
    #[inline]
    fn place(&mut self, motion: Motion<'_>) {
        // What nearly every placement is: of a cursor, and nothing else is asked for.
        let Source::Cursor(cursor) = &mut self.source else { return self.place_any(motion) };
        if !self.is_plain {
            return self.place_any(motion);
        }
        // Where it lay says nothing from here on, even if the motion ends by a panic.
        self.shown = Shown::nothing();
        let placed = match motion {
            Motion::Seek(key) => cursor.seek_seen(key, Shown::of),
            motion => source::go(cursor, motion).map(|()| Shown::of(cursor.row())),
        };
        match placed {
            Ok(shown) => {
                self.failure = None;
                self.shown = shown;
            }
            Err(error) => self.failure = Some(error.into()),
        }
    }

    #[inline(never)]
    fn place_any(&mut self, motion: Motion<'_>) {
        if matches!(self.source, Source::Nothing) {
            return;
        }
        // Where it lay says nothing from here on, even if the motion ends by a panic.
        self.shown = Shown::nothing();
        if self.is_tailing {
            self.source.refresh();
        }
        let began = self.statistics.as_ref().map(|_| (moment(), read_counters()));
        self.failure = self.source.go(motion).err();
        if let (Some(statistics), Some((began, counters))) = (&self.statistics, began) {
            statistics.searched(counters);
            statistics.sought(moment().saturating_sub(began));
        }
        if let Some(prefix) = &mut self.prefix {
            let by = match motion {
                Motion::Seek(target) | Motion::SeekBack(target) => Some(target),
                _ => self.source.row().map(|(key, _)| key),
            };
            prefix.current = by.and_then(|by| prefix.transform.prefix(by)).map(Cow::into_owned);
        }
        self.show();
    }

    /// Takes a step of the caller, and counts it.
    #[inline(never)]
    fn counted_step(&mut self, motion: Motion<'_>) {
        let before = self.statistics.as_ref().map(|_| read_counters());
        let is_forward = matches!(motion, Motion::Next);
        self.step(motion);
        if let (Some(statistics), Some(before)) = (&self.statistics, before) {
            statistics.stepped(is_forward);
            statistics.searched(before);
        }
    }

    /// [`Iter::counted_step`] to the next row.
    #[inline]
    fn next(&mut self) {
        // What nearly every step is.
        if let Source::Cursor(cursor) = &mut self.source
            && self.is_plain
            && self.shown.is_there
        {
            // As it is placed.
            self.shown.is_there = false;
            match cursor.next_seen(Shown::of) {
                Ok(shown) => self.shown = shown,
                Err(error) => self.failure = Some(error.into()),
            }
            return;
        }
        self.counted_step(Motion::Next);
    }

    /// Takes a step, from a row that is shown.
    fn step(&mut self, motion: Motion<'_>) {
        if !self.shown.is_there {
            return;
        }
        // As it is placed.
        self.shown.is_there = false;
        if self.failure.is_none() {
            let gone = match motion {
                Motion::Next if self.is_tailing && !self.source.is_current() => self.next_of_now(),
                _ => self.source.go(motion),
            };
            self.failure = gone.err();
        }
        self.show();
    }

    /// Goes to the next row among those that are there now.
    #[cold]
    fn next_of_now(&mut self) -> Result<()> {
        let Some((key, _)) = self.row() else { return Ok(()) };
        let key = key.to_vec();
        self.source.refresh();
        self.source.go_behind(&key)
    }

    /// Moves it as the base of another one.
    fn moved(&mut self, motion: Motion<'_>) -> Result<()> {
        match motion {
            Motion::Next | Motion::Prev => self.step(motion),
            _ => self.place(motion),
        }
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn refresh(&mut self) {
        self.failure = None;
        self.shown = Shown::nothing();
        // Without a position: there is no row to show.
        self.source.refresh();
        debug_assert!(self.row().is_none(), "a refreshed iterator is at no row until it is placed");
    }

    /// The key at the position, where it stays as long as the options say.
    #[inline]
    fn key(&self) -> Slice {
        match &self.pinned {
            None => self.shown.key,
            Some(pinned) => self.pinned_key(pinned),
        }
    }

    /// The key at the position, in memory of its own.
    #[cold]
    fn pinned_key(&self, pinned: &RefCell<Vec<Box<[u8]>>>) -> Slice {
        let Some((key, _)) = self.row() else { return Slice::of(&[]) };
        let mut keys = pinned.borrow_mut();
        if keys.last().is_none_or(|last| **last != *key) {
            keys.push(key.into());
        }
        Slice::of(keys.last().expect("pushed above"))
    }

    /// The timestamp at the position; empty where keys have none, null where there is no row.
    fn timestamp(&self) -> Slice {
        match (&self.source, self.row()) {
            (Source::Versions(versions), Some(_)) => Slice::of(versions.timestamp().unwrap_or_default()),
            (_, Some(_)) => Slice::of(&[]),
            (_, None) => Slice::absent(),
        }
    }

    #[inline]
    fn value(&self) -> Slice {
        self.shown.value
    }
}

export! {
    fn rocksdb_iter_destroy(iter: Option<Box<Iter>>) {
        drop(iter);
    }

    fn rocksdb_iter_valid(iter: Option<&Iter>) -> u8 {
        u8::from(iter.is_some_and(|iter| iter.shown.is_there))
    }

    fn rocksdb_iter_seek_to_first(iter: Option<&mut Iter>) {
        if let Some(iter) = iter {
            iter.place(Motion::First);
        }
    }

    fn rocksdb_iter_seek_to_last(iter: Option<&mut Iter>) {
        if let Some(iter) = iter {
            iter.place(Motion::Last);
        }
    }

    fn rocksdb_iter_seek(iter: Option<&mut Iter>, key: Bytes<'_>, len: usize) {
        if let Some(iter) = iter {
            iter.place(Motion::Seek(key));
        }
    }

    fn rocksdb_iter_seek_for_prev(iter: Option<&mut Iter>, key: Bytes<'_>, len: usize) {
        if let Some(iter) = iter {
            iter.place(Motion::SeekBack(key));
        }
    }

    fn rocksdb_iter_next(iter: Option<&mut Iter>) {
        if let Some(iter) = iter {
            iter.next();
        }
    }

    fn rocksdb_iter_prev(iter: Option<&mut Iter>) {
        if let Some(iter) = iter {
            iter.counted_step(Motion::Prev);
        }
    }

    fn rocksdb_iter_key(iter: Option<&Iter>, len: Out<'_, usize>) -> *const c_char {
        iter.map_or(Slice::of(&[]), Iter::key).parts(len)
    }

    fn rocksdb_iter_value(iter: Option<&Iter>, len: Out<'_, usize>) -> *const c_char {
        iter.map_or(Slice::of(&[]), Iter::value).parts(len)
    }

    fn rocksdb_iter_key_slice(iter: Option<&Iter>) -> Slice {
        iter.map_or(Slice::of(&[]), Iter::key)
    }

    fn rocksdb_iter_value_slice(iter: Option<&Iter>) -> Slice {
        iter.map_or(Slice::of(&[]), Iter::value)
    }

    fn rocksdb_iter_timestamp(iter: Option<&Iter>, len: Out<'_, usize>) -> *const c_char {
        iter.map_or(Slice::absent(), Iter::timestamp).parts(len)
    }

    fn rocksdb_iter_timestamp_slice(iter: Option<&Iter>) -> Slice {
        iter.map_or(Slice::absent(), Iter::timestamp)
    }

    fn rocksdb_iter_get_error(iter: Option<&Iter>, error: ErrPtr<'_>) {
        match iter.and_then(|iter| iter.failure.clone()) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    fn rocksdb_iter_refresh(iter: Option<&mut Iter>, error: ErrPtr<'_>) {
        iter.given()?.refresh();
        Ok(())
    }
}
