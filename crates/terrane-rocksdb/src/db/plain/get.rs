//! Values by key.

use std::cell::Cell;
use std::ffi::c_char;
use std::mem::MaybeUninit;

use terrane::read_counters;

use crate::db::plain::pinned::Pinned;
use crate::db::timestamps::read::Reader;
use crate::db::{Database, Family};
use crate::ffi::failure::{Failure, Result};
use crate::ffi::types::{Out, lasting, put};
use crate::options::objects::statistics::moment;
use crate::options::read_write::ReadOptions;

thread_local! {
    /// Where values are read to before they are copied for the caller.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Buffers that grew beyond this are given back.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// Returns true if a read is counted, or not of the table as it is, or has options without an effect.
#[inline]
fn is_special(family: &Family, options: Option<&ReadOptions>) -> bool {
    family.reads_specially() || options.is_some_and(ReadOptions::is_special)
}

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
    if is_special(family, options) {
        return read_specially(family, options, key, value);
    }
    family.table.get_into(key, value).map_err(Failure::from)
}

/// [`read_to`] where [`is_special`] says so.
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
        statistics.searched(counters);
        let len = matches!(found, Ok(true)).then_some(value.len());
        statistics.read(moment().saturating_sub(began), len);
    }
    found
}

/// Calls `take` with the value of `key`, once at most.
#[inline]
fn read_with<R>(
    family: &Family,
    options: Option<&ReadOptions>,
    key: &[u8],
    mut take: impl FnMut(Option<&[u8]>) -> R,
) -> Result<R> {
    // One access for the whole read: each is a call in a shared library.
    match BUFFER.try_with(|buffer| read_through(buffer, family, options, key, &mut take)) {
        Ok(result) => result,
        Err(_) => read_at_the_end(family, options, key, &mut take),
    }
}

/// [`read_with`] by memory of the caller, which gets it back.
#[inline(always)]
fn read_through<R>(
    buffer: &Cell<Vec<u8>>,
    family: &Family,
    options: Option<&ReadOptions>,
    key: &[u8],
    take: &mut impl FnMut(Option<&[u8]>) -> R,
) -> Result<R> {
    // Taken out while it is in use: a merge operator of the user may read another database on this thread.
    let mut value = buffer.take();
    let result = read_to(family, options, key, &mut value).map(|found| take(found.then_some(&value)));
    if value.capacity() <= BUFFER_BYTES_MAX {
        value.clear();
        buffer.set(value);
    }
    result
}

/// [`read_with`] on a thread that is about to end, which keeps no memory.
#[cold]
#[inline(never)]
fn read_at_the_end<R>(
    family: &Family,
    options: Option<&ReadOptions>,
    key: &[u8],
    take: &mut impl FnMut(Option<&[u8]>) -> R,
) -> Result<R> {
    read_through(&Cell::default(), family, options, key, take)
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
/// Into the functions that are exported, as [`pinned`].
#[inline(always)]
fn into_buffer(
    family: &Family,
    options: Option<&ReadOptions>,
    key: &[u8],
    buffer: &mut [MaybeUninit<u8>],
    (len, found): (Out<'_, usize>, Out<'_, u8>),
) -> Result<u8> {
    if is_special(family, options) {
        return into_buffer_specially(family, options, key, buffer, (len, found));
    }
    let (is_found, value_len, fits) = match family.table.get_to_here(key, buffer)? {
        Some(value_len) => (1, value_len, u8::from(value_len <= buffer.len())),
        None => (0, 0, 0),
    };
    put(found, is_found);
    put(len, value_len);
    Ok(fits)
}

/// [`into_buffer`] where [`is_special`] says so.
#[inline(never)]
fn into_buffer_specially(
    family: &Family,
    options: Option<&ReadOptions>,
    key: &[u8],
    buffer: &mut [MaybeUninit<u8>],
    (len, found): (Out<'_, usize>, Out<'_, u8>),
) -> Result<u8> {
    let copied = read_with(family, options, key, |value| {
        let value = value?;
        let Some(places) = buffer.get_mut(..value.len()) else { return Some((value.len(), 0)) };
        for (place, byte) in places.iter_mut().zip(value) {
            place.write(*byte);
        }
        Some((value.len(), 1))
    })?;
    put(found, u8::from(copied.is_some()));
    let (value_len, fits) = copied.unwrap_or_default();
    put(len, value_len);
    Ok(fits)
}

/// Returns 1 if a key may be there. It is looked up, so the answer is certain, unless the look fails. As in
/// RocksDB a certain answer counts as a value that was found: an empty one, which callers free, for an absent
/// key.
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
