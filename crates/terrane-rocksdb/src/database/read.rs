//! Values by key.

use std::cell::RefCell;
use std::ffi::c_char;
use std::sync::Arc;

use super::many::Many;
use super::{Database, Family, FamilyHandle, family};
use crate::border::{Bytes, Out, OutList, lasting, put};
use crate::failure::{Given, Result};
use crate::objects::{ReadOptions, moment};
use crate::timestamps::Reader;

/// A value that the caller holds until it destroys it.
pub(crate) struct Pinned {
    held: Held,
}

enum Held {
    /// Nothing: the handle waits to be given out again.
    Nothing,
    /// A value by itself.
    Alone(Vec<u8>),
    /// One of several that were read together.
    Among(Arc<Many>, usize),
}

impl Pinned {
    pub(crate) fn alone(value: Vec<u8>) -> Box<Pinned> {
        Pinned::holding(Held::Alone(value))
    }

    /// The value of this index, which is there.
    pub(super) fn one_of(values: Arc<Many>, index: usize) -> Box<Pinned> {
        Pinned::holding(Held::Among(values, index))
    }

    /// A handle that was given back, or a new one.
    fn holding(held: Held) -> Box<Pinned> {
        let spare = SPARE_HANDLES.try_with(|spare| spare.try_borrow_mut().ok()?.pop()).ok().flatten();
        let Some(mut handle) = spare else { return Box::new(Pinned { held }) };
        handle.held = held;
        handle
    }

    /// Takes a handle back, without what it holds.
    fn give_back(mut self: Box<Self>) {
        self.held = Held::Nothing;
        // A thread that is about to end keeps none.
        let _ = SPARE_HANDLES.try_with(|spare| {
            if let Ok(mut spare) = spare.try_borrow_mut()
                && spare.len() < SPARE_HANDLES_MAX
            {
                spare.push(self);
            }
        });
    }

    fn value(&self) -> &[u8] {
        match &self.held {
            Held::Nothing => &[],
            Held::Alone(value) => value,
            Held::Among(values, index) => values.get(*index).unwrap_or_default(),
        }
    }
}

thread_local! {
    /// Where values are read to before they are copied for the caller.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Handles that were destroyed on this thread: a multi-get gives out as many as it has keys.
    #[expect(clippy::vec_box, reason = "handles go out as boxes, and come back as such")]
    static SPARE_HANDLES: RefCell<Vec<Box<Pinned>>> = const { RefCell::new(Vec::new()) };
}

/// Most handles that a thread keeps.
const SPARE_HANDLES_MAX: usize = 128;

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

/// Calls `take` with the value of `key`, without an allocation where there is no snapshot.
fn read_with<R>(
    family: &Family,
    options: Option<&ReadOptions>,
    key: &[u8],
    take: impl FnOnce(Option<&[u8]>) -> R,
) -> Result<R> {
    let Some(statistics) = &family.statistics else { return read_uncounted(family, options, key, take) };
    let (began, mut len) = (moment(), None);
    let result = read_uncounted(family, options, key, |value| {
        len = value.map(<[u8]>::len);
        take(value)
    });
    statistics.read(moment().saturating_sub(began), len);
    result
}

#[inline]
fn read_uncounted<R>(
    family: &Family,
    options: Option<&ReadOptions>,
    key: &[u8],
    take: impl FnOnce(Option<&[u8]>) -> R,
) -> Result<R> {
    if family.history.is_some() || options.is_some_and(ReadOptions::is_of_the_past) {
        return Ok(take(read(family, options, key)?.as_deref()));
    }
    // Taken out while it is in use: a merge operator of the user may read another database on this thread.
    let mut value = BUFFER.take();
    value.clear();
    let found = family.seen().get_into(key, &mut value);
    let result = found.map(|found| take(found.then_some(value.as_slice())));
    if value.capacity() <= BUFFER_BYTES_MAX {
        BUFFER.set(value);
    }
    Ok(result?)
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

fn pinned(family: &Family, options: Option<&ReadOptions>, key: &[u8]) -> Result<Option<Box<Pinned>>> {
    read_with(family, options, key, |value| value.map(|value| Pinned::alone(value.to_vec())))
}

/// Reads into a buffer of the caller; whether the value fits. It has the length of the value in either case.
fn into_buffer(
    family: &Family,
    options: Option<&ReadOptions>,
    key: &[u8],
    buffer: &mut [std::mem::MaybeUninit<u8>],
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

/// Whether a key may be there: it is looked up, so the answer is certain, unless the look fails. What is certain counts as a value
/// that was found, as in RocksDB: of a key that is not there an empty one, which callers free.
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
    // The value is given out only to who asks whether it was found.
    if let (Some(value), Some(_)) = (value, &found) {
        let bytes = bytes.as_deref().unwrap_or_default();
        put(len, bytes.len());
        value.write(lasting(bytes));
    }
    put(found, 1);
    u8::from(bytes.is_some())
}

export! {
    fn rocksdb_get(
        database: Option<&Database>,
        options: Option<&ReadOptions>,
        key: Bytes<'_>,
        key_len: usize,
        len: Out<'_, usize>,
        error: ErrPtr<'_>,
    ) -> *mut c_char {
        get(database.given()?.default_family(), options, key.of(key_len), len)
    }

    fn rocksdb_get_cf(
        _database: Option<&Database>,
        options: Option<&ReadOptions>,
        handle: Option<&FamilyHandle>,
        key: Bytes<'_>,
        key_len: usize,
        len: Out<'_, usize>,
        error: ErrPtr<'_>,
    ) -> *mut c_char {
        get(family(handle)?, options, key.of(key_len), len)
    }

    fn rocksdb_get_pinned(
        database: Option<&Database>,
        options: Option<&ReadOptions>,
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) -> Option<Box<Pinned>> {
        pinned(database.given()?.default_family(), options, key.of(key_len))
    }

    fn rocksdb_get_pinned_cf(
        _database: Option<&Database>,
        options: Option<&ReadOptions>,
        handle: Option<&FamilyHandle>,
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) -> Option<Box<Pinned>> {
        pinned(family(handle)?, options, key.of(key_len))
    }

    fn rocksdb_get_pinned_v2(
        database: Option<&Database>,
        options: Option<&ReadOptions>,
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) -> Option<Box<Pinned>> {
        pinned(database.given()?.default_family(), options, key.of(key_len))
    }

    fn rocksdb_get_pinned_cf_v2(
        _database: Option<&Database>,
        options: Option<&ReadOptions>,
        handle: Option<&FamilyHandle>,
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) -> Option<Box<Pinned>> {
        pinned(family(handle)?, options, key.of(key_len))
    }

    fn rocksdb_get_into_buffer(
        database: Option<&Database>,
        options: Option<&ReadOptions>,
        key: Bytes<'_>,
        key_len: usize,
        buffer: OutList<'_, u8>,
        buffer_len: usize,
        len: Out<'_, usize>,
        found: Out<'_, u8>,
        error: ErrPtr<'_>,
    ) -> u8 {
        let family = database.given()?.default_family();
        into_buffer(family, options, key.of(key_len), buffer.of(buffer_len), (len, found))
    }

    fn rocksdb_get_into_buffer_cf(
        _database: Option<&Database>,
        options: Option<&ReadOptions>,
        handle: Option<&FamilyHandle>,
        key: Bytes<'_>,
        key_len: usize,
        buffer: OutList<'_, u8>,
        buffer_len: usize,
        len: Out<'_, usize>,
        found: Out<'_, u8>,
        error: ErrPtr<'_>,
    ) -> u8 {
        into_buffer(family(handle)?, options, key.of(key_len), buffer.of(buffer_len), (len, found))
    }

    fn rocksdb_pinnableslice_value(value: Option<&Pinned>, len: Out<'_, usize>) -> *const c_char {
        lent(value, len)
    }

    fn rocksdb_pinnableslice_destroy(value: Option<Box<Pinned>>) {
        value.into_iter().for_each(Pinned::give_back);
    }

    fn rocksdb_pinnable_handle_get_value(value: Option<&Pinned>, len: Out<'_, usize>) -> *const c_char {
        lent(value, len)
    }

    fn rocksdb_pinnable_handle_destroy(value: Option<Box<Pinned>>) {
        value.into_iter().for_each(Pinned::give_back);
    }

    fn rocksdb_key_may_exist(
        database: Option<&Database>,
        options: Option<&ReadOptions>,
        key: Bytes<'_>,
        key_len: usize,
        value: Out<'_, *mut c_char>,
        len: Out<'_, usize>,
        _timestamp: Bytes<'_>,
        _timestamp_len: usize,
        found: Out<'_, u8>,
    ) -> u8 {
        let family = database.map(|database| &**database.default_family());
        may_exist(family, options, key.of(key_len), (value, len, found))
    }

    fn rocksdb_key_may_exist_cf(
        _database: Option<&Database>,
        options: Option<&ReadOptions>,
        handle: Option<&FamilyHandle>,
        key: Bytes<'_>,
        key_len: usize,
        value: Out<'_, *mut c_char>,
        len: Out<'_, usize>,
        _timestamp: Bytes<'_>,
        _timestamp_len: usize,
        found: Out<'_, u8>,
    ) -> u8 {
        let family = handle.map(|handle| &*handle.family);
        may_exist(family, options, key.of(key_len), (value, len, found))
    }
}
