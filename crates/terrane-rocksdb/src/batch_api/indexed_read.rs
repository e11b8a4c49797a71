//! Reads through an indexed batch.

use std::ffi::c_char;

use crate::batch::indexed::Own;
use crate::batch_api::indexed::IndexedHandle;
use crate::callbacks::order::Order;
use crate::db::Database;
use crate::db::cf_variants::Target;
use crate::db::plain::get::read;
use crate::db::plain::pinned::Pinned;
use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::{Out, lasting, put};
use crate::iterator::Iter;
use crate::options::database::Options;
use crate::options::read_write::ReadOptions;

/// The batch's state of a key of a column family. `order` is the family's key order, if it is known.
fn own_of(batch: &IndexedHandle, id: u32, order: Option<&Order>, key: &[u8]) -> Own {
    let shared = batch.shared();
    let mut batch = shared.get();
    if let Some(order) = order {
        batch.order_by(id, order);
    }
    batch.own(id, key)
}

/// The value of a key in the batch alone, if it has one.
fn from_batch(
    batch: Option<&IndexedHandle<'_>>,
    options: Option<&Options>,
    target: Target<'_>,
    key: &[u8],
) -> Result<Option<Vec<u8>>> {
    let id = target.id().given()?;
    let own = own_of(batch.given()?, id, target.order(), key);
    let operator = match target {
        Target::Default => options.and_then(|options| options.merge_operator.clone()),
        Target::Handle(handle) => handle.given()?.family.slot.operator(),
    };
    match own {
        Own::Open(_) => Err(Failure::new("Merge in progress", "")),
        own => own.over(key, operator.as_deref(), || Ok(None)),
    }
}

/// The value that a key would have once the batch is written.
fn from_both(
    batch: Option<&IndexedHandle<'_>>,
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    target: Target<'_>,
    key: &[u8],
) -> Result<Option<Vec<u8>>> {
    let family = target.family(database)?;
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
    batch: Option<&IndexedHandle<'_>>,
    target: Target<'_>,
    options: Option<&ReadOptions>,
) -> Option<Box<Iter>> {
    let (Some(batch), Some(_)) = (batch, target.id()) else {
        base.map(Box::into_raw);
        return None;
    };
    Some(Box::new(Iter::over(base?, batch.shared(), target, options)?))
}

cf_variants! {
    fn rocksdb_writebatch_wi_create_iterator_with_base_readopts | rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
        batch: Option<&IndexedHandle<'_>>,
        base: Option<Box<Iter>>;
        options: Option<&ReadOptions>,
    ) -> Option<Box<Iter>> as target {
        over(base, batch, target, options)
    }

    fn rocksdb_writebatch_wi_get_from_batch | rocksdb_writebatch_wi_get_from_batch_cf(
        batch: Option<&IndexedHandle<'_>>,
        options: Option<&Options>;
        key: Bytes<'_>,
        key_len: usize,
        len: Out<'_, usize>,
        error: ErrPtr<'_>,
    ) -> *mut c_char as target {
        given_out(from_batch(batch, options, target, key), len)
    }

    fn rocksdb_writebatch_wi_get_from_batch_and_db | rocksdb_writebatch_wi_get_from_batch_and_db_cf(
        batch: Option<&IndexedHandle<'_>>,
        database: Option<&Database>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        len: Out<'_, usize>,
        error: ErrPtr<'_>,
    ) -> *mut c_char as target {
        given_out(from_both(batch, database, options, target, key), len)
    }

    fn rocksdb_writebatch_wi_get_pinned_from_batch_and_db | rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(
        batch: Option<&IndexedHandle<'_>>,
        database: Option<&Database>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) -> Option<Box<Pinned>> as target {
        pinned(from_both(batch, database, options, target, key))
    }

    fn rocksdb_writebatch_wi_create_iterator_with_base | rocksdb_writebatch_wi_create_iterator_with_base_cf(
        batch: Option<&IndexedHandle<'_>>,
        base: Option<Box<Iter>>;
    ) -> Option<Box<Iter>> as target {
        over(base, batch, target, None)
    }
}
