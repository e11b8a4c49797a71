//! Values by key.

use std::cell::Cell;
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

use terrane::read_counters;

use crate::db::plain::multi_get::MultiGetValues;
use crate::db::timestamps::read::Reader;
use crate::db::{Database, Family};
use crate::ffi::failure::{Failure, Result};
use crate::ffi::types::{Out, lasting, put};
use crate::options::objects::statistics::moment;
use crate::options::read_write::ReadOptions;

/// A value that the caller holds until it destroys it.
#[derive(Default)]
pub(crate) struct Pinned {
    /// The value, if it is of this handle alone. What is kept of a handle that waits to be given out again is
    /// this memory.
    bytes: Vec<u8>,
    /// One of several that were read together.
    among: Option<(Arc<MultiGetValues>, usize)>,
    /// The next one of those that wait to be given out again.
    next: Option<Box<Pinned>>,
}

/// Handles that were destroyed on a thread: a multi-get gives out as many as it has keys.
struct SpareHandles {
    first: Cell<Option<Box<Pinned>>>,
    count: Cell<usize>,
}

impl SpareHandles {
    const fn new() -> SpareHandles {
        SpareHandles { first: Cell::new(None), count: Cell::new(0) }
    }

    #[inline]
    fn pop(&self) -> Option<Box<Pinned>> {
        let mut handle = self.first.take()?;
        self.first.set(handle.next.take());
        self.count.set(self.count.get() - 1);
        Some(handle)
    }

    /// Keeps a handle, which is the next one to none.
    #[inline]
    fn push(&self, mut handle: Box<Pinned>) {
        let count = self.count.get();
        if count >= SPARE_HANDLES_MAX {
            return Pinned::free(handle);
        }
        let none = std::mem::replace(&mut handle.next, self.first.take());
        debug_assert!(none.is_none(), "a handle that was given out has left the list");
        // Known to be nothing: forgotten, so that no code frees it here, on the way of each read.
        std::mem::forget(none);
        self.first.set(Some(handle));
        self.count.set(count + 1);
    }
}

impl Pinned {
    pub(crate) fn alone(value: Vec<u8>) -> Box<Pinned> {
        let mut handle = Pinned::spare();
        handle.bytes = value;
        handle
    }

    /// The value of this index, which is there.
    pub(crate) fn one_of(values: Arc<MultiGetValues>, index: usize) -> Box<Pinned> {
        let mut handle = Pinned::spare();
        handle.among = Some((values, index));
        handle
    }

    /// Gives each place whose key has a value a handle with a copy of it.
    pub(crate) fn copies_of<'p, 'v>(
        mut values: impl Iterator<Item = (&'p mut MaybeUninit<Option<Box<Pinned>>>, Option<&'v [u8]>)>,
    ) {
        // A thread that is about to end keeps none.
        let none = SpareHandles::new();
        let mut copy = |spare: &SpareHandles| {
            for (place, value) in &mut values {
                place.write(value.map(|value| {
                    let mut handle = spare.pop().unwrap_or_default();
                    handle.bytes.extend_from_slice(value);
                    handle
                }));
            }
        };
        if SPARE_HANDLES.try_with(&mut copy).is_err() {
            copy(&none);
        }
    }

    /// A handle without a value: one that was given back, or a new one.
    #[inline]
    fn spare() -> Box<Pinned> {
        SPARE_HANDLES.try_with(SpareHandles::pop).ok().flatten().unwrap_or_else(Pinned::fresh)
    }

    #[cold]
    fn fresh() -> Box<Pinned> {
        Box::default()
    }

    #[cold]
    fn free(self: Box<Self>) {
        drop(self);
    }

    /// Takes a handle back, with what memory it may keep for the next value.
    #[inline]
    fn give_back(mut self: Box<Self>) {
        if self.among.is_some() || self.bytes.capacity() > KEPT_BYTES_MAX {
            self.give_back_memory();
        }
        self.bytes.clear();
        // A thread that is about to end keeps none.
        let _ = SPARE_HANDLES.try_with(|spare| spare.push(self));
    }

    /// Frees what a spare handle does not keep.
    #[cold]
    fn give_back_memory(&mut self) {
        self.among = None;
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        match &self.among {
            None => &self.bytes,
            Some((values, index)) => Pinned::value_among(values, *index),
        }
    }

    #[cold]
    fn value_among(values: &MultiGetValues, index: usize) -> &[u8] {
        values.get(index).unwrap_or_default()
    }
}

thread_local! {
    /// Where values are read to before they are copied for the caller.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static SPARE_HANDLES: SpareHandles = const { SpareHandles::new() };
}

/// Most handles that a thread keeps, and most memory for a value that each of them does.
const SPARE_HANDLES_MAX: usize = 128;
const KEPT_BYTES_MAX: usize = 4096;

/// Buffers that grew beyond this are given back.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// The value of `key` as the options see it.
pub(crate) fn read(family: &Family, options: Option<&ReadOptions>, key: &[u8]) -> Result<Option<Vec<u8>>> {
    if let Some(mut reader) = Reader::of(family, &family.seen(), options)? {
        return Ok(reader.get(key)?.map(|(value, _)| value));
    }
    if let Some(snapshot) = options.and_then(|options| options.snapshot.as_ref()) {
        return Ok(snapshot.get(&family.seen(), key)?.map(Vec::from));
    }
    Ok(family.seen().get(key)?.map(Vec::from))
}

/// Reads the value of `key` to `value`, which is empty; whether there is one. Without an allocation where
/// there is no snapshot.
#[inline]
fn read_to(family: &Family, options: Option<&ReadOptions>, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
    let is_special = family.statistics.is_some() || family.history.is_some() || family.is_followed();
    if is_special || options.is_some_and(ReadOptions::is_special) {
        return read_specially(family, options, key, value);
    }
    family.table.get_into(key, value).map_err(Failure::from)
}

/// [`read_to`] where the read is counted, or not of the table as it is, or has options without an effect.
#[inline(never)]
fn read_specially(
    family: &Family,
    options: Option<&ReadOptions>,
    key: &[u8],
    value: &mut Vec<u8>,
) -> Result<bool> {
    family.note_read(options)?;
    let began = family.statistics.as_ref().map(|_| (moment(), read_counters()));
    let found = if family.history.is_some() || options.is_some_and(ReadOptions::is_of_the_past) {
        read(family, options, key).map(|found| found.map(|found| *value = found).is_some())
    } else {
        family.seen().get_into(key, value).map_err(Failure::from)
    };
    if let (Some(statistics), Some((began, counters))) = (&family.statistics, began) {
        statistics.found_blocks(counters);
        let len = matches!(found, Ok(true)).then_some(value.len());
        statistics.read(moment().saturating_sub(began), len);
    }
    found
}

/// Calls `take` with the value of `key`.
#[inline]
fn read_with<R>(
    family: &Family,
    options: Option<&ReadOptions>,
    key: &[u8],
    take: impl FnOnce(Option<&[u8]>) -> R,
) -> Result<R> {
    // Taken out while it is in use: a merge operator of the user may read another database on this thread.
    let mut value = BUFFER.try_with(Cell::take).unwrap_or_default();
    let result = read_to(family, options, key, &mut value).map(|found| take(found.then_some(&value)));
    if value.capacity() <= BUFFER_BYTES_MAX {
        value.clear();
        let _ = BUFFER.try_with(|buffer| buffer.set(value));
    }
    result
}

fn get(
    family: &Family,
    options: Option<&ReadOptions>,
    key: &[u8],
    len: Out<'_, usize>,
) -> Result<*mut c_char> {
    let value = read_with(family, options, key, |value| value.map(|value| (lasting(value), value.len())));
    let found = value.as_ref().ok().copied().flatten();
    put(len, found.map_or(0, |(_, len)| len));
    value.map(|value| value.map_or(std::ptr::null_mut(), |(value, _)| value))
}

/// Into the function that is exported, of which it is all: a call less for each read.
#[inline(always)]
fn pinned(family: &Family, options: Option<&ReadOptions>, key: &[u8]) -> Result<Option<Box<Pinned>>> {
    let mut handle = Pinned::spare();
    match read_to(family, options, key, &mut handle.bytes) {
        Ok(true) => Ok(Some(handle)),
        other => without_value(handle, other),
    }
}

/// The result where the handle got no value.
#[inline(never)]
fn without_value(handle: Box<Pinned>, found: Result<bool>) -> Result<Option<Box<Pinned>>> {
    handle.give_back();
    found.map(|_| None)
}

/// Reads into a buffer of the caller; whether the value fits. It has the length of the value in either case.
fn into_buffer(
    family: &Family,
    options: Option<&ReadOptions>,
    key: &[u8],
    buffer: &mut [MaybeUninit<u8>],
    (len, found): (Out<'_, usize>, Out<'_, u8>),
) -> Result<u8> {
    read_with(family, options, key, |value| {
        put(found, u8::from(value.is_some()));
        put(len, value.map_or(0, <[u8]>::len));
        let Some(value) = value else { return 0 };
        let Some(places) = buffer.get_mut(..value.len()) else { return 0 };
        for (place, byte) in places.iter_mut().zip(value) {
            place.write(*byte);
        }
        1
    })
}

fn lent(value: Option<&Pinned>, len: Out<'_, usize>) -> *const c_char {
    let value = value.map(Pinned::value);
    put(len, value.map_or(0, <[u8]>::len));
    value.map_or(std::ptr::null(), |value| value.as_ptr().cast())
}

/// Whether a key may be there: it is looked up, so the answer is certain, unless the look fails. What is
/// certain counts as a value that was found, as in RocksDB: of a key that is not there an empty one, which
/// callers free.
fn may_exist(
    family: Option<&Family>,
    options: Option<&ReadOptions>,
    key: &[u8],
    (value, len, found): (Out<'_, *mut c_char>, Out<'_, usize>, Out<'_, u8>),
) -> u8 {
    let Some(family) = family else { return 0 };
    let bytes = match read(family, options, key) {
        Ok(bytes) => bytes,
        Err(_) => {
            put(found, 0);
            return 1;
        }
    };
    // As in RocksDB the value is returned only if the caller asks whether it was found.
    if let (Some(value), Some(_)) = (value, &found) {
        let bytes = bytes.as_deref().unwrap_or_default();
        put(len, bytes.len());
        value.write(lasting(bytes));
    }
    put(found, 1);
    u8::from(bytes.is_some())
}

cf_variants! {
    fn rocksdb_get | rocksdb_get_cf(
        database: Option<&Database>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        len: Out<'_, usize>,
        error: ErrPtr<'_>,
    ) -> *mut c_char as target {
        get(target.family(database)?, options, key, len)
    }

    fn rocksdb_get_pinned | rocksdb_get_pinned_cf(
        database: Option<&Database>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) -> Option<Box<Pinned>> as target {
        pinned(target.family(database)?, options, key)
    }

    fn rocksdb_get_into_buffer | rocksdb_get_into_buffer_cf(
        database: Option<&Database>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        buffer: OutList<'_, u8>[buffer_len],
        buffer_len: usize,
        len: Out<'_, usize>,
        found: Out<'_, u8>,
        error: ErrPtr<'_>,
    ) -> u8 as target {
        into_buffer(target.family(database)?, options, key, buffer, (len, found))
    }

    fn rocksdb_key_may_exist | rocksdb_key_may_exist_cf(
        database: Option<&Database>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        value: Out<'_, *mut c_char>,
        len: Out<'_, usize>,
        _timestamp: Bytes<'_>,
        _timestamp_len: usize,
        found: Out<'_, u8>,
    ) -> u8 as target {
        let family = target.family(database).ok().map(|family| &**family);
        may_exist(family, options, key, (value, len, found))
    }
}

export! {
    fn rocksdb_pinnableslice_value(value: Option<&Pinned>, len: Out<'_, usize>) -> *const c_char {
        lent(value, len)
    }

    fn rocksdb_pinnableslice_destroy(value: Option<Box<Pinned>>) {
        value.into_iter().for_each(Pinned::give_back);
    }
}
