//! The values of several keys at once.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use super::read::Pinned;
use super::{Database, Family, FamilyHandle, family};
use crate::border::{Bytes, List, OutList, Slice, caught, lasting, lasting_text};
use crate::failure::{Given, Result};
use crate::objects::ReadOptions;

/// Reads keys of one family, as of one moment.
fn read_many(family: &Family, options: Option<&ReadOptions>, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
    let snapshot = options.and_then(|options| options.snapshot.as_ref());
    let values = match snapshot {
        Some(snapshot) => snapshot.multi_get(&family.table, keys)?,
        None => family.table.multi_get(keys)?,
    };
    Ok(values.into_iter().map(|value| value.map(Vec::from)).collect())
}

/// Reads keys of several families, as of one moment.
fn read_families(
    database: &Database,
    options: Option<&ReadOptions>,
    families: &[&Family],
    keys: &[&[u8]],
) -> Result<Vec<Option<Vec<u8>>>> {
    let mut options = options.cloned().unwrap_or_default();
    options.snapshot.get_or_insert_with(|| database.db.snapshot());
    let mut ids: Vec<u32> = families.iter().map(|family| family.id()).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut values = vec![None; keys.len()];
    for id in ids {
        let places: Vec<usize> = (0..keys.len()).filter(|at| families[*at].id() == id).collect();
        let of_family: Vec<&[u8]> = places.iter().map(|at| keys[*at]).collect();
        let Some(first) = places.first() else { continue };
        for (at, value) in places.iter().zip(read_many(families[*first], Some(&options), &of_family)?) {
            values[*at] = value;
        }
    }
    Ok(values)
}

/// Where the values, their lengths and the errors of a multi-get go.
struct Places<'a> {
    values: &'a mut [MaybeUninit<*mut c_char>],
    lengths: &'a mut [MaybeUninit<usize>],
    errors: &'a mut [MaybeUninit<*mut c_char>],
}

impl Places<'_> {
    /// Fills all places; a failure is that of each key.
    fn fill(self, count: usize, values: Result<Vec<Option<Vec<u8>>>>) {
        let text = values.as_ref().err().map(|failure| failure.text().to_owned());
        let values = values.unwrap_or_else(|_| vec![None; count]);
        for (at, value) in values.iter().enumerate() {
            if let Some(place) = self.values.get_mut(at) {
                place.write(value.as_ref().map_or(std::ptr::null_mut(), |value| lasting(value)));
            }
            if let Some(place) = self.lengths.get_mut(at) {
                place.write(value.as_ref().map_or(0, Vec::len));
            }
            if let Some(place) = self.errors.get_mut(at) {
                place.write(text.as_ref().map_or(std::ptr::null_mut(), |text| lasting_text(text)));
            }
        }
    }
}

/// Fills the places of a batched multi-get.
fn fill_pinned(
    values: &mut [MaybeUninit<Option<Box<Pinned>>>],
    errors: &mut [MaybeUninit<*mut c_char>],
    read: Result<Vec<Option<Vec<u8>>>>,
) {
    let text = read.as_ref().err().map(|failure| failure.text().to_owned());
    let read = read.unwrap_or_else(|_| vec![None; values.len()]);
    for (place, value) in values.iter_mut().zip(read) {
        place.write(value.map(|value| Box::new(Pinned { value })));
    }
    for place in errors {
        place.write(text.as_ref().map_or(std::ptr::null_mut(), |text| lasting_text(text)));
    }
}

export! {
    fn rocksdb_multi_get(
        database: Option<&Database>,
        options: Option<&ReadOptions>,
        count: usize,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
        values: OutList<'_, *mut c_char>,
        value_lens: OutList<'_, usize>,
        errors: OutList<'_, *mut c_char>,
    ) {
        let keys = keys.with(key_lens, count);
        let places =
            Places { values: values.of(count), lengths: value_lens.of(count), errors: errors.of(count) };
        places.fill(count, caught(|| read_many(database.given()?.default_family(), options, &keys)));
    }

    fn rocksdb_multi_get_cf(
        database: Option<&Database>,
        options: Option<&ReadOptions>,
        handles: List<'_, Option<&FamilyHandle>>,
        count: usize,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
        values: OutList<'_, *mut c_char>,
        value_lens: OutList<'_, usize>,
        errors: OutList<'_, *mut c_char>,
    ) {
        let keys = keys.with(key_lens, count);
        let places =
            Places { values: values.of(count), lengths: value_lens.of(count), errors: errors.of(count) };
        let read = caught(|| {
            let families = handles.of(count).iter().map(|handle| family(*handle));
            read_families(database.given()?, options, &families.collect::<Result<Vec<_>>>()?, &keys)
        });
        places.fill(count, read);
    }

    fn rocksdb_batched_multi_get_cf(
        _database: Option<&Database>,
        options: Option<&ReadOptions>,
        handle: Option<&FamilyHandle>,
        count: usize,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
        values: OutList<'_, Option<Box<Pinned>>>,
        errors: OutList<'_, *mut c_char>,
        _is_sorted: u8,
    ) {
        let keys = keys.with(key_lens, count);
        let read = caught(|| read_many(family(handle)?, options, &keys));
        fill_pinned(values.of(count), errors.of(count), read);
    }

    fn rocksdb_batched_multi_get_cf_slice(
        _database: Option<&Database>,
        options: Option<&ReadOptions>,
        handle: Option<&FamilyHandle>,
        count: usize,
        keys: List<'_, Slice>,
        values: OutList<'_, Option<Box<Pinned>>>,
        errors: OutList<'_, *mut c_char>,
        _is_sorted: u8,
    ) {
        let keys: Vec<&[u8]> = keys.of(count).iter().map(Slice::bytes).collect();
        let read = caught(|| read_many(family(handle)?, options, &keys));
        fill_pinned(values.of(count), errors.of(count), read);
    }
}
