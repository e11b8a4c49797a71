//! Reads through an indexed batch.

use std::ffi::c_char;

use super::Own;
use super::handle::IndexedHandle;
use crate::border::{Bytes, Out, lasting, put};
use crate::database::{Database, Pinned, read};
use crate::failure::{Failure, Given, Result};
use crate::iterator::Iter;
use crate::objects::{Options, ReadOptions};
use crate::order::Order;
use crate::twins::Of;

/// What the batch says of a key of a column family, whose order it is told if that is known.
fn own_of(batch: &IndexedHandle, id: u32, order: Option<&Order>, key: &[u8]) -> Own {
    let shared = batch.shared();
    let mut batch = shared.get();
    if let Some(order) = order {
        batch.order_by(id, order);
    }
    batch.own(id, key)
}

/// What the batch alone says of a key: a value, or none.
fn from_batch(
    batch: Option<&IndexedHandle>,
    options: Option<&Options>,
    of: Of<'_>,
    key: &[u8],
) -> Result<Option<Vec<u8>>> {
    let id = of.id().given()?;
    let own = own_of(batch.given()?, id, of.order(), key);
    let operator = match of {
        Of::Default => options.and_then(|options| options.merge_operator.clone()),
        Of::Handle(handle) => handle.given()?.family.slot.operator(),
    };
    match own {
        Own::Open(_) => Err(Failure::new("Merge in progress", "")),
        own => own.over(key, operator.as_deref(), || Ok(None)),
    }
}

/// What a key has, once the batch were written.
fn from_both(
    batch: Option<&IndexedHandle>,
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    of: Of<'_>,
    key: &[u8],
) -> Result<Option<Vec<u8>>> {
    let family = of.family(database.given()?)?;
    let own = own_of(batch.given()?, family.id(), Some(&family.order), key);
    let operator = family.slot.operator();
    own.over(key, operator.as_deref(), || read(family, options, key))
}

/// A value for the caller, and its length.
pub(crate) fn given_out(value: Result<Option<Vec<u8>>>, len: Out<'_, usize>) -> Result<*mut c_char> {
    let found = value.as_ref().ok().and_then(Option::as_ref);
    put(len, found.map_or(0, Vec::len));
    Ok(value?.map_or(std::ptr::null_mut(), |value| lasting(&value)))
}

/// A value that the caller holds until it destroys it.
pub(crate) fn pinned(value: Result<Option<Vec<u8>>>) -> Result<Option<Box<Pinned>>> {
    Ok(value?.map(Pinned::alone))
}

/// An iterator of the batch over `base`, which stays the caller's where there is no batch or no handle.
fn over(
    base: Option<Box<Iter>>,
    batch: Option<&IndexedHandle>,
    of: Of<'_>,
    options: Option<&ReadOptions>,
) -> Option<Box<Iter>> {
    let (Some(batch), Some(_)) = (batch, of.id()) else {
        base.map(Box::into_raw);
        return None;
    };
    Some(Box::new(Iter::over(base?, batch.shared(), of, options)?))
}

twins! {
    fn rocksdb_writebatch_wi_get_from_batch | rocksdb_writebatch_wi_get_from_batch_cf(
        batch: Option<&IndexedHandle>,
        options: Option<&Options>;
        key: Bytes<'_>,
        key_len: usize,
        len: Out<'_, usize>,
        error: ErrPtr<'_>,
    ) -> *mut c_char as of {
        given_out(from_batch(batch, options, of, key.of(key_len)), len)
    }

    fn rocksdb_writebatch_wi_get_from_batch_and_db | rocksdb_writebatch_wi_get_from_batch_and_db_cf(
        batch: Option<&IndexedHandle>,
        database: Option<&Database>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        len: Out<'_, usize>,
        error: ErrPtr<'_>,
    ) -> *mut c_char as of {
        given_out(from_both(batch, database, options, of, key.of(key_len)), len)
    }

    fn rocksdb_writebatch_wi_get_pinned_from_batch_and_db | rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(
        batch: Option<&IndexedHandle>,
        database: Option<&Database>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) -> Option<Box<Pinned>> as of {
        pinned(from_both(batch, database, options, of, key.of(key_len)))
    }

    fn rocksdb_writebatch_wi_create_iterator_with_base | rocksdb_writebatch_wi_create_iterator_with_base_cf(
        batch: Option<&IndexedHandle>,
        base: Option<Box<Iter>>;
    ) -> Option<Box<Iter>> as of {
        over(base, batch, of, None)
    }
}

export! {
    fn rocksdb_writebatch_wi_create_iterator_with_base_readopts(
        batch: Option<&IndexedHandle>,
        base: Option<Box<Iter>>,
        options: Option<&ReadOptions>,
    ) -> Option<Box<Iter>> {
        over(base, batch, Of::Default, options)
    }

    fn rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
        batch: Option<&IndexedHandle>,
        base: Option<Box<Iter>>,
        handle: Option<&crate::database::FamilyHandle>,
        options: Option<&ReadOptions>,
    ) -> Option<Box<Iter>> {
        over(base, batch, Of::Handle(handle), options)
    }
}
