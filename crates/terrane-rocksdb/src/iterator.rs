//! Iterators.
//!
//! An iterator is a cursor of the engine within the bounds of its options, and what the options ask for beside: to stay within
//! the prefix that it was placed in, to see what is written later at each placement and step forward (`tailing`), to keep every key that it
//! gave out (`pin_data`). It may also be a batch over another iterator ([`overlay`]). After a failure it is not valid, and says the
//! failure until it is placed again.

mod counted;
mod overlay;
mod prefix;

use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::ffi::c_char;
use std::ops::Bound;
use std::sync::Arc;

use terrane::{Cursor, Table};

use crate::border::{Absent, Bytes, List, Out, OutList, Slice};
use crate::callbacks::Slot;
use crate::database::{Database, Family, FamilyHandle, family};
use crate::failure::{Failure, Given, Result};
use crate::objects::{ReadOptions, Statistics, moment};
use crate::order::Order;
use crate::timestamps::Versions;
use counted::Counted;
use overlay::Overlay;
use prefix::WithinPrefix;

/// An iterator.
pub(crate) struct Iter {
    source: Source,
    failure: Option<Failure>,
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

/// Where rows come from.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every iterator has a cursor, and lies in a box of its own"
)]
enum Source {
    /// There is nothing between the bounds.
    Nothing,
    Cursor(Cursor),
    /// A batch over another iterator.
    Overlay(Box<Overlay>),
    /// Versions of keys with timestamps.
    Versions(Box<Versions>),
}

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

impl Source {
    #[inline]
    fn row(&self) -> Option<(&[u8], &[u8])> {
        match self {
            Source::Nothing => None,
            Source::Cursor(cursor) => cursor.row(),
            Source::Overlay(overlay) => overlay.row(),
            Source::Versions(versions) => versions.row(),
        }
    }

    #[inline]
    fn go(&mut self, motion: Motion<'_>) -> Result<()> {
        let cursor = match self {
            Source::Nothing => return Ok(()),
            Source::Cursor(cursor) => cursor,
            Source::Overlay(overlay) => return overlay.go(motion),
            Source::Versions(versions) => return versions.go(motion),
        };
        match motion {
            Motion::First => cursor.seek_first(),
            Motion::Last => cursor.seek_last(),
            Motion::Seek(key) => cursor.seek(key),
            Motion::SeekBack(key) => cursor.seek_back(key),
            Motion::Next => cursor.next(),
            Motion::Prev => cursor.prev(),
        }
        .map_err(Failure::from)
    }

    /// Moves to the first row behind `key`.
    fn go_behind(&mut self, key: &[u8]) -> Result<()> {
        self.go(Motion::Seek(key))?;
        match self.row() {
            Some((at, _)) if at == key => self.go(Motion::Next),
            _ => Ok(()),
        }
    }

    fn refresh(&mut self) {
        match self {
            Source::Nothing => {}
            Source::Cursor(cursor) => cursor.refresh(),
            Source::Overlay(overlay) => overlay.refresh(),
            Source::Versions(versions) => versions.refresh(),
        }
    }
}

impl Iter {
    pub(crate) fn new(family: &Family, options: Option<&ReadOptions>) -> Iter {
        Iter::of(family, &family.seen(), options)
    }

    /// An iterator over a table of a family, as it is seen at one moment.
    fn of(family: &Family, table: &Table, options: Option<&ReadOptions>) -> Iter {
        let default = ReadOptions::default();
        let options = options.unwrap_or(&default);
        let lower = options.lower.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let upper = options.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let bounds = options.lower.as_deref().zip(options.upper.as_deref());
        let is_empty = bounds.is_some_and(|(lower, upper)| {
            // An order that cannot say it says so to the cursor.
            match &family.history {
                Some(history) => history.compare_keys(lower, upper).is_ge(),
                None => family.table.compare_keys(lower, upper).is_ok_and(Ordering::is_ge),
            }
        });
        let range = (lower, upper);
        let source = options.refuse_start().and_then(|()| options.more.refuse()).and_then(|()| {
            if let Some((history, timestamp)) = family.read_by(Some(options))? {
                let versions = Versions::new(family, table, options, history, timestamp)?;
                return Ok(Source::Versions(Box::new(versions)));
            }
            Ok(Source::Cursor(match &options.snapshot {
                Some(snapshot) => snapshot.range_cursor(table, range)?,
                None => table.range_cursor(range)?,
            }))
        });
        let (source, failure) = match source {
            Ok(source) if !is_empty => (source, None),
            Ok(_) => (Source::Nothing, None),
            Err(failure) => (Source::Nothing, Some(failure)),
        };
        let transform = family.transform.clone().filter(|_| options.knobs.prefix_same_as_start != 0);
        Iter {
            source,
            failure,
            is_tailing: options.knobs.tailing != 0 && options.snapshot.is_none(),
            prefix: transform.map(|transform| WithinPrefix { transform, current: None }),
            statistics: family.statistics.clone(),
            pinned: (options.knobs.pin_data != 0).then(RefCell::default),
            slot: family.slot.clone(),
            order: family.order.clone(),
            _counted: Some(Counted::new(&family.iterators)),
        }
    }

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

    /// Places the position.
    fn place(&mut self, motion: Motion<'_>) {
        if matches!(self.source, Source::Nothing) {
            return;
        }
        if self.is_tailing {
            self.source.refresh();
        }
        let began = self.statistics.as_ref().map(|_| moment());
        self.failure = self.source.go(motion).err();
        if let (Some(statistics), Some(began)) = (&self.statistics, began) {
            statistics.sought(moment().saturating_sub(began));
        }
        if let Some(prefix) = &mut self.prefix {
            let by = match motion {
                Motion::Seek(target) | Motion::SeekBack(target) => Some(target),
                _ => self.source.row().map(|(key, _)| key),
            };
            prefix.current = by.and_then(|by| prefix.transform.prefix(by)).map(Cow::into_owned);
        }
    }

    #[inline]
    fn count_step(&self, is_forward: bool) {
        if let Some(statistics) = &self.statistics {
            statistics.stepped(is_forward);
        }
    }

    /// Takes a step, from a row that is shown.
    #[inline]
    fn step(&mut self, motion: Motion<'_>) {
        let Some((key, _)) = self.row() else { return };
        self.failure = match (self.is_tailing, motion) {
            (true, Motion::Next) => {
                let key = key.to_vec();
                self.source.refresh();
                self.source.go_behind(&key)
            }
            _ => self.source.go(motion),
        }
        .err();
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
        self.source.refresh();
    }

    /// The key at the position, where it stays as long as the options say.
    fn key(&self) -> Slice {
        let Some((key, _)) = self.row() else { return Slice::of(&[]) };
        let Some(pinned) = &self.pinned else { return Slice::of(key) };
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

    fn value(&self) -> Slice {
        Slice::of(self.row().map_or(&[], |(_, value)| value))
    }
}

export! {
    fn rocksdb_create_iterator(
        database: Option<&Database>,
        options: Option<&ReadOptions>,
    ) -> Option<Box<Iter>> {
        Some(Box::new(Iter::new(database?.default_family(), options)))
    }

    fn rocksdb_create_iterator_cf(
        _database: Option<&Database>,
        options: Option<&ReadOptions>,
        handle: Option<&FamilyHandle>,
    ) -> Option<Box<Iter>> {
        Some(Box::new(Iter::new(&handle?.family, options)))
    }

    fn rocksdb_create_iterators(
        database: Option<&Database>,
        options: Option<&ReadOptions>,
        handles: List<'_, Option<&FamilyHandle>>,
        iterators: OutList<'_, Option<Box<Iter>>>,
        count: usize,
        error: ErrPtr<'_>,
    ) {
        // All of them see one moment.
        let mut options = options.given()?.clone();
        let sight = database.given()?.sight();
        if options.knobs.tailing == 0 {
            options.snapshot.get_or_insert_with(|| sight.snapshot());
        }
        let families = handles.of(count).iter().map(|handle| family(*handle)).collect::<Result<Vec<_>>>()?;
        for (place, family) in iterators.of(count).iter_mut().zip(families) {
            place.write(Some(Box::new(Iter::of(family, &sight.table(family), Some(&options)))));
        }
        Ok(())
    }

    fn rocksdb_iter_destroy(iter: Option<Box<Iter>>) {
        drop(iter);
    }

    fn rocksdb_iter_valid(iter: Option<&Iter>) -> u8 {
        u8::from(iter.is_some_and(|iter| iter.row().is_some()))
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
            iter.place(Motion::Seek(key.of(len)));
        }
    }

    fn rocksdb_iter_seek_for_prev(iter: Option<&mut Iter>, key: Bytes<'_>, len: usize) {
        if let Some(iter) = iter {
            iter.place(Motion::SeekBack(key.of(len)));
        }
    }

    fn rocksdb_iter_next(iter: Option<&mut Iter>) {
        if let Some(iter) = iter {
            iter.count_step(true);
            iter.step(Motion::Next);
        }
    }

    fn rocksdb_iter_prev(iter: Option<&mut Iter>) {
        if let Some(iter) = iter {
            iter.count_step(false);
            iter.step(Motion::Prev);
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
