//! The values of several keys at once.

use std::cell::Cell;
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

use terrane::{Table, Values, read_counters};

use crate::db::cf_variants::Targets;
use crate::db::plain::pinned::Pinned;
use crate::db::timestamps::read::Reader;
use crate::db::{Database, Family, FamilyHandle, family};
use crate::ffi::arguments::LentSlice;
use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::{caught, lasting, lasting_text};
use crate::options::objects::statistics::moment;
use crate::options::read_write::ReadOptions;

/// The values of several keys.
pub(crate) enum MultiGetValues {
    /// Where they were read to.
    Together(Values),
    /// Of versions: each by itself.
    Apart(Vec<Option<Vec<u8>>>),
}

impl MultiGetValues {
    /// How many keys were read.
    pub(crate) fn len(&self) -> usize {
        match self {
            MultiGetValues::Together(values) => values.len(),
            MultiGetValues::Apart(values) => values.len(),
        }
    }

    /// The value of the key with this index.
    pub(crate) fn get(&self, index: usize) -> Option<&[u8]> {
        match self {
            MultiGetValues::Together(values) => values.get(index),
            MultiGetValues::Apart(values) => values.get(index)?.as_deref(),
        }
    }
}

thread_local! {
    /// Where the values of a multi-get are read to before they are copied for the caller.
    static SPARE_VALUES: Cell<Values> = Cell::default();
}

/// Larger memory is given back: so many bytes of values, or so many values, whose places take bytes even if
/// the values are empty.
const SPARE_BYTES_MAX: usize = 1 << 20;
const SPARE_VALUES_MAX: usize = 4096;

/// Memory for values: what the thread keeps.
fn spare_values() -> Values {
    // A thread that is about to end keeps none.
    SPARE_VALUES.try_with(Cell::take).unwrap_or_default()
}

/// Keeps memory of values that are not needed any more, unless it is too much.
pub(crate) fn keep_values(values: Values) {
    if values.len() <= SPARE_VALUES_MAX && values.value_bytes() <= SPARE_BYTES_MAX {
        let _ = SPARE_VALUES.try_with(|spare| spare.set(values));
    }
}

/// Reads keys of one family, as of one moment, into memory that the thread keeps where it has some.
pub(crate) fn multi_get(
    family: &Family,
    options: Option<&ReadOptions>,
    keys: &[&[u8]],
) -> Result<MultiGetValues> {
    read_table((family, &family.seen()), options, keys, spare_values())
}

/// Reads keys of a table of a family, where there are no versions into `values`.
fn read_table(
    (family, table): (&Family, &Table),
    options: Option<&ReadOptions>,
    keys: &[&[u8]],
    mut values: Values,
) -> Result<MultiGetValues> {
    if let Some(mut reader) = Reader::of(family, table, options)? {
        let values = keys.iter().map(|key| Ok(reader.get(key)?.map(|(value, _)| value)));
        return values.collect::<Result<_>>().map(MultiGetValues::Apart);
    }
    let began = family.statistics.as_ref().map(|_| (moment(), read_counters()));
    match options.and_then(|options| options.snapshot.as_ref()) {
        Some(snapshot) => snapshot.multi_get_into(table, keys, &mut values)?,
        None => table.multi_get_into(keys, &mut values)?,
    }
    if let (Some(statistics), Some((began, counters))) = (&family.statistics, began) {
        statistics.searched(counters);
        let found = values.iter().filter(Option::is_some).count();
        statistics.multi_get(moment().saturating_sub(began), keys.len(), found);
    }
    Ok(MultiGetValues::Together(values))
}

/// Reads keys of several families, as of one moment.
pub(crate) fn read_families(
    database: &Database,
    options: Option<&ReadOptions>,
    families: &[&Family],
    keys: &[&[u8]],
) -> Result<Vec<Option<Vec<u8>>>> {
    let mut options = options.cloned().unwrap_or_default();
    let sight = database.sight();
    options.snapshot.get_or_insert_with(|| sight.snapshot());
    let mut ids: Vec<u32> = families.iter().map(|family| family.id()).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut values = vec![None; keys.len()];
    for id in ids {
        let places: Vec<usize> = (0..keys.len()).filter(|at| families[*at].id() == id).collect();
        let of_family: Vec<&[u8]> = places.iter().map(|at| keys[*at]).collect();
        let Some(first) = places.first() else { continue };
        let family = families[*first];
        let read = read_table((family, &sight.table(family)), Some(&options), &of_family, Values::new())?;
        for (index, at) in places.iter().enumerate() {
            values[*at] = read.get(index).map(<[u8]>::to_vec);
        }
    }
    Ok(values)
}

/// Where the values, their lengths and the errors of a multi-get go.
pub(crate) struct Places<'a> {
    values: &'a mut [MaybeUninit<*mut c_char>],
    lengths: &'a mut [MaybeUninit<usize>],
    errors: &'a mut [MaybeUninit<*mut c_char>],
}

impl<'a> Places<'a> {
    pub(crate) fn new(
        values: &'a mut [MaybeUninit<*mut c_char>],
        lengths: &'a mut [MaybeUninit<usize>],
        errors: &'a mut [MaybeUninit<*mut c_char>],
    ) -> Places<'a> {
        Places { values, lengths, errors }
    }

    /// Fills all places with values, or with a failure.
    pub(crate) fn fill_with(self, read: &Result<Vec<Option<Vec<u8>>>>) {
        self.fill(read.as_ref().err(), |at| read.as_ref().ok()?.get(at)?.as_deref());
    }

    /// Fills all places; a failure is that of each key.
    pub(crate) fn fill<'v>(self, failure: Option<&Failure>, value: impl Fn(usize) -> Option<&'v [u8]>) {
        for (at, place) in self.values.iter_mut().enumerate() {
            place.write(value(at).map_or(std::ptr::null_mut(), lasting));
        }
        for (at, place) in self.lengths.iter_mut().enumerate() {
            place.write(value(at).map_or(0, <[u8]>::len));
        }
        fill_errors(self.errors, failure);
    }
}

fn fill_errors(errors: &mut [MaybeUninit<*mut c_char>], failure: Option<&Failure>) {
    for place in errors {
        place.write(failure.map_or(std::ptr::null_mut(), |failure| lasting_text(failure.text())));
    }
}

/// Most bytes of a value that is copied for its handle, so that no handle keeps values of others.
const COPIED_BYTES_MAX: usize = 1024;

/// Fills the places of a batched multi-get. Where a value is large, all stay together, where they were read
/// to.
fn fill_pinned(
    places: &mut [MaybeUninit<Option<Box<Pinned>>>],
    errors: &mut [MaybeUninit<*mut c_char>],
    read: Result<MultiGetValues>,
) {
    fill_errors(errors, read.as_ref().err());
    match read {
        Err(_) => places.iter_mut().for_each(|place| _ = place.write(None)),
        Ok(MultiGetValues::Together(values))
            if values.iter().flatten().all(|value| value.len() <= COPIED_BYTES_MAX) =>
        {
            Pinned::copies_of(places.iter_mut().zip(values.iter()));
            keep_values(values);
        }
        Ok(many) => {
            let many = Arc::new(many);
            for (at, place) in places.iter_mut().enumerate() {
                place.write(many.get(at).is_some().then(|| Pinned::one_of(many.clone(), at)));
            }
        }
    }
}

/// Reads keys of the default column family for the places of a multi-get.
fn fill_from_one(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    keys: &[&[u8]],
    places: Places<'_>,
) {
    let spare = spare_values();
    let read = caught(|| {
        let family = database.given()?.default_family();
        read_table((family, &family.seen()), options, keys, spare)
    });
    places.fill(read.as_ref().err(), |at| read.as_ref().ok()?.get(at));
    if let Ok(MultiGetValues::Together(values)) = read {
        keep_values(values);
    }
}

/// Reads keys of one family for the places of a batched multi-get.
fn read_pinned(
    handle: Option<&FamilyHandle>,
    options: Option<&ReadOptions>,
    keys: &[&[u8]],
) -> Result<MultiGetValues> {
    caught(|| multi_get(family(handle)?, options, keys))
}

cf_list_variants! {
    fn rocksdb_multi_get | rocksdb_multi_get_cf(
        database: Option<&Database>,
        options: Option<&ReadOptions>;
        count: usize,
        keys: List<'_, Bytes<'_>>[count],
        key_lens: List<'_, usize>,
        values: OutList<'_, *mut c_char>[count],
        value_lens: OutList<'_, usize>[count],
        errors: OutList<'_, *mut c_char>[count],
    ) as targets {
        let places = Places::new(values, value_lens, errors);
        match targets {
            Targets::Default => fill_from_one(database, options, &keys, places),
            Targets::Handles(_) => {
                let read = caught(|| {
                    let database = database.given()?;
                    read_families(database, options, &targets.families(database, keys.len())?, &keys)
                });
                places.fill_with(&read);
            }
        }
    }
}

export! {
    fn rocksdb_batched_multi_get_cf(
        _database: Option<&Database>,
        options: Option<&ReadOptions>,
        handle: Option<&FamilyHandle>,
        count: usize,
        keys: List<'_, Bytes<'_>>[count],
        key_lens: List<'_, usize>,
        values: OutList<'_, Option<Box<Pinned>>>[count],
        errors: OutList<'_, *mut c_char>[count],
        _is_sorted: u8,
    ) {
        let read = read_pinned(handle, options, &keys);
        fill_pinned(values, errors, read);
    }

    fn rocksdb_batched_multi_get_cf_slice(
        _database: Option<&Database>,
        options: Option<&ReadOptions>,
        handle: Option<&FamilyHandle>,
        count: usize,
        keys: List<'_, LentSlice<'_>>[count],
        values: OutList<'_, Option<Box<Pinned>>>[count],
        errors: OutList<'_, *mut c_char>[count],
        _is_sorted: u8,
    ) {
        let keys: Vec<&[u8]> = keys.iter().map(LentSlice::bytes).collect();
        let read = read_pinned(handle, options, &keys);
        fill_pinned(values, errors, read);
    }
}
