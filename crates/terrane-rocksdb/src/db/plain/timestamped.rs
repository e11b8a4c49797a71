//! Reads and writes with user timestamps, and the lowest timestamp from which on a column family can be read.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use terrane::Table;

use crate::batch::layout::Change;
use crate::db::cf_variants::{Target, Targets};
use crate::db::plain::multi_get::Places;
use crate::db::timestamps::read::Reader;
use crate::db::{Database, Family, FamilyHandle};
use crate::ffi::failure::{Given, Result};
use crate::ffi::types::{Out, caught, lasting, put};
use crate::options::read_write::{ReadOptions, WriteOptions};

impl Database {
    /// Makes a change of a key, which the change has with its timestamp.
    fn change_at(
        &self,
        options: Option<&WriteOptions>,
        family: &Family,
        timestamp: &[u8],
        change: Change<'_>,
    ) -> Result<()> {
        let history = family.history_for(timestamp)?;
        self.write_with(options, |batch| history.add_to(batch, &family.table, change))
    }
}

/// Makes a change of a key at a timestamp.
fn write(
    database: Option<&Database>,
    options: Option<&WriteOptions>,
    target: Target<'_>,
    (key, timestamp): (&[u8], &[u8]),
    change: Change<'_>,
) -> Result<()> {
    let database = database.given()?;
    let kept = [key, timestamp].concat();
    database.change_at(options, target.family(Some(database))?, timestamp, change.of_key(&kept))
}

/// A value and its timestamp.
type Found = Option<(Vec<u8>, Vec<u8>)>;

fn read(family: &Family, options: Option<&ReadOptions>, keys: &[&[u8]]) -> Result<Vec<Found>> {
    read_seen((family, &family.seen()), options, keys)
}

/// Reads the table of a family, as it is seen at one moment.
fn read_seen(
    (family, table): (&Family, &Table),
    options: Option<&ReadOptions>,
    keys: &[&[u8]],
) -> Result<Vec<Found>> {
    if let Some(mut reader) = Reader::of(family, table, options)? {
        return keys.iter().map(|key| reader.get(key)).collect();
    }
    let snapshot = options.and_then(|options| options.snapshot.as_ref());
    let values = keys.iter().map(|key| match snapshot {
        Some(snapshot) => snapshot.get(table, key),
        None => table.get(key),
    });
    // Without timestamps they are empty.
    values.map(|value| Ok(value?.map(|value| (Vec::from(value), Vec::new())))).collect()
}

/// Reads keys of column families, all of them as of one moment.
fn read_each(
    database: &Database,
    options: Option<&ReadOptions>,
    targets: Targets<'_>,
    keys: &[&[u8]],
) -> Result<Vec<Found>> {
    let Targets::Handles(_) = targets else {
        return read(database.default_family(), options, keys);
    };
    let mut options = options.cloned().unwrap_or_default();
    let sight = database.sight();
    options.snapshot.get_or_insert_with(|| sight.snapshot());
    let families = targets.families(database, keys.len())?;
    let found = families.into_iter().zip(keys).map(|(family, key)| {
        let mut found = read_seen((family, &sight.table(family)), Some(&options), &[key])?;
        Ok(found.pop().flatten())
    });
    found.collect()
}

/// Gives out a value and its timestamp.
fn get(
    family: &Family,
    options: Option<&ReadOptions>,
    key: &[u8],
    len: Out<'_, usize>,
    (timestamp, timestamp_len): (Out<'_, *mut c_char>, Out<'_, usize>),
) -> Result<*mut c_char> {
    let found = read(family, options, &[key]).map(|mut found| found.pop().flatten());
    let there = found.as_ref().ok().and_then(Option::as_ref);
    put(len, there.map_or(0, |(value, _)| value.len()));
    put(timestamp_len, there.map_or(0, |(_, timestamp)| timestamp.len()));
    put(timestamp, there.map_or(std::ptr::null_mut(), |(_, timestamp)| lasting(timestamp)));
    Ok(found?.map_or(std::ptr::null_mut(), |(value, _)| lasting(&value)))
}

/// Gives out values and their timestamps.
fn give_out(
    read: &Result<Vec<Found>>,
    values: Places<'_>,
    timestamps: &mut [MaybeUninit<*mut c_char>],
    timestamp_lens: &mut [MaybeUninit<usize>],
) {
    let at = |at: usize| read.as_ref().ok()?.get(at)?.as_ref();
    let places = timestamps.iter_mut().zip(timestamp_lens).enumerate();
    for (index, (timestamp, len)) in places {
        let found = at(index).map(|(_, timestamp)| timestamp);
        timestamp.write(found.map_or(std::ptr::null_mut(), |found| lasting(found)));
        len.write(found.map_or(0, Vec::len));
    }
    values.fill(read.as_ref().err(), |index| at(index).map(|(value, _)| value.as_slice()));
}

cf_variants! {
    fn rocksdb_put_with_ts | rocksdb_put_cf_with_ts(
        database: Option<&Database>,
        options: Option<&WriteOptions>;
        key: Bytes<'_>,
        key_len: usize,
        timestamp: Bytes<'_>,
        timestamp_len: usize,
        value: Bytes<'_>,
        value_len: usize,
        error: ErrPtr<'_>,
    ) as target {
        write(database, options, target, (key, timestamp), Change::Put(key, value))
    }

    fn rocksdb_delete_with_ts | rocksdb_delete_cf_with_ts(
        database: Option<&Database>,
        options: Option<&WriteOptions>;
        key: Bytes<'_>,
        key_len: usize,
        timestamp: Bytes<'_>,
        timestamp_len: usize,
        error: ErrPtr<'_>,
    ) as target {
        write(database, options, target, (key, timestamp), Change::Delete(key))
    }

    fn rocksdb_singledelete_with_ts | rocksdb_singledelete_cf_with_ts(
        database: Option<&Database>,
        options: Option<&WriteOptions>;
        key: Bytes<'_>,
        key_len: usize,
        timestamp: Bytes<'_>,
        timestamp_len: usize,
        error: ErrPtr<'_>,
    ) as target {
        write(database, options, target, (key, timestamp), Change::SingleDelete(key))
    }

    fn rocksdb_get_with_ts | rocksdb_get_cf_with_ts(
        database: Option<&Database>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        len: Out<'_, usize>,
        timestamp: Out<'_, *mut c_char>,
        timestamp_len: Out<'_, usize>,
        error: ErrPtr<'_>,
    ) -> *mut c_char as target {
        let family = target.family(database)?;
        get(family, options, key, len, (timestamp, timestamp_len))
    }
}

cf_list_variants! {
    fn rocksdb_multi_get_with_ts | rocksdb_multi_get_cf_with_ts(
        database: Option<&Database>,
        options: Option<&ReadOptions>;
        count: usize,
        keys: List<'_, Bytes<'_>>[count],
        key_lens: List<'_, usize>,
        values: OutList<'_, *mut c_char>[count],
        value_lens: OutList<'_, usize>[count],
        timestamps: OutList<'_, *mut c_char>[count],
        timestamp_lens: OutList<'_, usize>[count],
        errors: OutList<'_, *mut c_char>[count],
    ) as targets {
        let found = caught(|| read_each(database.given()?, options, targets, &keys));
        give_out(&found, Places::new(values, value_lens, errors), timestamps, timestamp_lens);
    }
}

export! {
    fn rocksdb_increase_full_history_ts_low(
        database: Option<&Database>,
        handle: Option<&FamilyHandle>,
        low: Bytes<'_>,
        low_len: usize,
        error: ErrPtr<'_>,
    ) {
        let database = database.given()?;
        database.refuse_if_read_only()?;
        handle.map_or(&**database.default_family(), |handle| &handle.family).raise_low(low)
    }

    fn rocksdb_get_full_history_ts_low(
        database: Option<&Database>,
        handle: Option<&FamilyHandle>,
        len: Out<'_, usize>,
        error: ErrPtr<'_>,
    ) -> *mut c_char {
        let database = database.given()?;
        let family = handle.map_or(&**database.default_family(), |handle| &handle.family);
        let low = family.collapsing_history().map(|history| history.low());
        put(len, low.as_ref().map_or(0, Vec::len));
        Ok(lasting(&low?))
    }
}
