//! Iterators.
//!
//! An iterator is a cursor of the engine within the bounds of its options, and what the options ask for
//! beside: to stay within the prefix that it was placed in, to see what is written later at each placement
//! and step forward (`tailing`; a step begins anew only where anything was written), to keep every key that
//! it gave out (`pin_data`). It may also be a batch over another iterator ([`overlay`]). After a failure it
//! is not valid, and says the failure until it is placed again.

pub(crate) mod live_count;
pub(crate) mod overlay;
pub(crate) mod prefix;
mod shown;
pub(crate) mod source;

use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::ffi::c_char;
use std::ops::Bound;
use std::sync::Arc;

use terrane::{Table, read_counters};

use crate::callbacks::operator_registry::Slot;
use crate::callbacks::order::Order;
use crate::db::timestamps::versions::{Motion, Versions};
use crate::db::{Database, Family, FamilyHandle, family};
use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::{Absent, Out, Slice};
use crate::iterator::live_count::Counted;
use crate::iterator::prefix::WithinPrefix;
use crate::iterator::shown::Shown;
use crate::iterator::source::Source;
use crate::options::objects::statistics::{Statistics, moment};
use crate::options::read_write::ReadOptions;

/// An iterator.
pub(crate) struct Iter {
    source: Source,
    /// The row that is shown: callers ask for it several times between two motions.
    shown: Shown,
    failure: Option<Failure>,
    /// Whether nothing is asked for but rows: neither a prefix, nor what is written later, nor counts.
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
    pub(crate) fn new(family: &Family, options: Option<&ReadOptions>) -> Box<Iter> {
        match options {
            Some(options) => Iter::of(family, &family.seen(), options),
            None => Iter::of(family, &family.seen(), &ReadOptions::default()),
        }
    }

    /// An iterator over a table of a family, as it is seen at one moment.
    fn of(family: &Family, table: &Table, options: &ReadOptions) -> Box<Iter> {
        let transform = family.transform.clone().filter(|_| options.fields.prefix_same_as_start != 0);
        let is_tailing = options.fields.tailing != 0 && options.snapshot.is_none();
        let mut iter = Box::new(Iter {
            source: Source::Nothing,
            shown: Shown::nothing(),
            failure: None,
            is_plain: transform.is_none() && !is_tailing && family.statistics.is_none(),
            is_tailing,
            prefix: transform.map(|transform| WithinPrefix { transform, current: None }),
            statistics: family.statistics.clone(),
            pinned: (options.fields.pin_data != 0).then(RefCell::default),
            slot: family.slot.clone(),
            order: family.order.clone(),
            _counted: Some(Counted::new(&family.iterators)),
        });
        if let Err(failure) = iter.begin(family, table, options) {
            iter.failure = Some(failure);
        }
        iter
    }

    /// Gets the source of the rows. It is large, so it goes to its place at once.
    fn begin(&mut self, family: &Family, table: &Table, options: &ReadOptions) -> Result<()> {
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
        options.refuse_start()?;
        if let Some((history, timestamp)) = family.read_by(Some(options))? {
            options.objects.refuse_filter()?;
            let versions = Versions::new(family, table, options, history, timestamp)?;
            self.source = Source::Versions(Box::new(versions));
        } else {
            self.source = Source::Cursor(
                match (&options.snapshot, options.objects.extent_filter(&family.table, &family.order)) {
                    (Some(snapshot), Some(shows)) => snapshot.filtered_cursor(table, range, shows)?,
                    (Some(snapshot), None) => snapshot.range_cursor(table, range)?,
                    (None, Some(shows)) => table.filtered_cursor(range, shows)?,
                    (None, None) => table.range_cursor(range)?,
                },
            );
        }
        if is_empty {
            self.source = Source::Nothing;
        }
        Ok(())
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
            statistics.found_blocks(counters);
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
        if let Some(statistics) = &self.statistics {
            statistics.stepped(matches!(motion, Motion::Next));
        }
        self.step(motion);
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

cf_variants! {
    fn rocksdb_create_iterator | rocksdb_create_iterator_cf(
        database: Option<&Database>,
        options: Option<&ReadOptions>;
    ) -> Option<Box<Iter>> as target {
        Some(Iter::new(target.family(database).ok()?, options))
    }
}

export! {
    fn rocksdb_create_iterators(
        database: Option<&Database>,
        options: Option<&ReadOptions>,
        handles: List<'_, Option<&FamilyHandle>>[count],
        iterators: OutList<'_, Option<Box<Iter>>>[count],
        count: usize,
        error: ErrPtr<'_>,
    ) {
        // All of them see one moment.
        let mut options = options.given()?.clone();
        let sight = database.given()?.sight();
        if options.fields.tailing == 0 {
            options.snapshot.get_or_insert_with(|| sight.snapshot());
        }
        let families = handles.iter().map(|handle| family(*handle)).collect::<Result<Vec<_>>>()?;
        for (place, family) in iterators.iter_mut().zip(families) {
            place.write(Some(Iter::of(family, &sight.table(family), &options)));
        }
        Ok(())
    }

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
