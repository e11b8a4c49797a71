//! A multi-get whose values and errors stay together in one object, each key with its own.

use std::ffi::{c_char, c_int};

use crate::db::plain::get::read;
use crate::db::plain::multi_get::{MultiGetValues, keep_values, multi_get};
use crate::db::{Database, Family, FamilyHandle, family};
use crate::ffi::arguments::LentSlice;
use crate::ffi::failure::{Failure, Result};
use crate::ffi::types::{Out, caught, put};
use crate::options::read_write::ReadOptions;

const NOT_FOUND: c_int = 0;
const FOUND: c_int = 1;
const ERROR: c_int = 2;
const OUT_OF_BOUNDS: c_int = 3;

/// The result of each key.
pub(crate) enum PinnedMultiGet {
    /// All were read.
    Together(MultiGetValues),
    /// One failed at least, so each was read by itself.
    Apart(Vec<Result<Option<Vec<u8>>>>),
}

impl PinnedMultiGet {
    fn read(family: &Family, options: Option<&ReadOptions>, keys: &[&[u8]]) -> PinnedMultiGet {
        match multi_get(family, options, keys) {
            Ok(values) => PinnedMultiGet::Together(values),
            Err(_) => PinnedMultiGet::Apart(keys.iter().map(|key| read(family, options, key)).collect()),
        }
    }

    fn failed(failure: &Failure, count: usize) -> PinnedMultiGet {
        PinnedMultiGet::Apart(vec![Err(failure.clone()); count])
    }

    fn count(&self) -> usize {
        match self {
            PinnedMultiGet::Together(values) => values.len(),
            PinnedMultiGet::Apart(results) => results.len(),
        }
    }

    /// The value of a key, or nothing, or its failure.
    fn result(&self, at: usize) -> std::result::Result<Option<&[u8]>, &Failure> {
        match self {
            PinnedMultiGet::Together(values) => Ok(values.get(at)),
            PinnedMultiGet::Apart(results) => match &results[at] {
                Ok(value) => Ok(value.as_deref()),
                Err(failure) => Err(failure),
            },
        }
    }
}

/// Where a text and its length go.
type OutText<'a> = (Out<'a, *const c_char>, Out<'a, usize>);

#[inline]
fn lend((place, len): OutText<'_>, bytes: Option<&[u8]>) {
    put(place, bytes.map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast()));
    put(len, bytes.map_or(0, <[u8]>::len));
}

#[inline]
fn result_of(many: Option<&PinnedMultiGet>, at: usize, value: OutText<'_>, error: OutText<'_>) -> c_int {
    // As a rule.
    if let Some(PinnedMultiGet::Together(MultiGetValues::Together(values))) = many
        && at < values.len()
        && let Some(found) = values.get(at)
    {
        lend(value, Some(found));
        lend(error, None);
        return FOUND;
    }
    result_of_any(many, at, value, error)
}

#[inline(never)]
fn result_of_any(many: Option<&PinnedMultiGet>, at: usize, value: OutText<'_>, error: OutText<'_>) -> c_int {
    let Some(many) = many.filter(|many| at < many.count()) else {
        lend(value, None);
        lend(error, None);
        return OUT_OF_BOUNDS;
    };
    let result = many.result(at);
    lend(value, result.ok().flatten());
    lend(error, result.err().map(|failure| failure.text().as_bytes()));
    match result {
        Ok(Some(_)) => FOUND,
        Ok(None) => NOT_FOUND,
        Err(_) => ERROR,
    }
}

export! {
    fn rocksdb_batched_multi_get_pinned_cf(
        _database: Option<&Database>,
        options: Option<&ReadOptions>,
        handle: Option<&FamilyHandle>,
        count: usize,
        keys: List<'_, LentSlice<'_>>[count],
        _is_sorted: u8,
    ) -> Option<Box<PinnedMultiGet>> {
        let keys: Vec<&[u8]> = keys.iter().map(LentSlice::bytes).collect();
        let read = caught(|| Ok(PinnedMultiGet::read(family(handle)?, options, &keys)));
        Some(Box::new(read.unwrap_or_else(|failure| PinnedMultiGet::failed(&failure, keys.len()))))
    }

    fn rocksdb_pinnable_multi_get_count(many: Option<&PinnedMultiGet>) -> usize {
        many.map_or(0, PinnedMultiGet::count)
    }

    fn rocksdb_pinnable_multi_get_result(
        many: Option<&PinnedMultiGet>,
        at: usize,
        value: Out<'_, *const c_char>,
        value_len: Out<'_, usize>,
        failure: Out<'_, *const c_char>,
        failure_len: Out<'_, usize>,
    ) -> c_int {
        result_of(many, at, (value, value_len), (failure, failure_len))
    }

    fn rocksdb_pinnable_multi_get_destroy(many: Option<Box<PinnedMultiGet>>) {
        if let Some(PinnedMultiGet::Together(MultiGetValues::Together(values))) = many.map(|many| *many) {
            keep_values(values);
        }
    }
}
