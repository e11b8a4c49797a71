//! Reads of a transaction: its own changes over the latest state, or over the snapshot of the read options.

use std::ffi::c_char;

use crate::batch_api::indexed_read::{given_out, pinned};
use crate::db::cf_variants::Target;
use crate::db::plain::get::Pinned;
use crate::db::plain::get::read;
use crate::db::plain::multi_get::{Places, read_families};
use crate::db::{Family, FamilyHandle, family};
use crate::ffi::failure::{Given, Result};
use crate::ffi::types::{Bytes, List, Out, OutList, caught};
use crate::iterator::Iter;
use crate::options::read_write::ReadOptions;
use crate::transactions::handle::Transaction;
use crate::transactions::state::State;

/// How a key is kept from others by a read.
#[derive(Clone, Copy)]
enum Hold {
    None,
    Shared,
    Exclusive,
}

impl Hold {
    /// That of a read for update.
    fn of(exclusive: u8) -> Hold {
        if exclusive != 0 { Hold::Exclusive } else { Hold::Shared }
    }
}

impl State {
    fn hold(&mut self, family: &Family, key: &[u8], hold: Hold) -> Result<()> {
        match hold {
            Hold::None => Ok(()),
            Hold::Shared | Hold::Exclusive => self.lock(family, key, matches!(hold, Hold::Exclusive)),
        }
    }

    fn get(
        &mut self,
        target: Target<'_>,
        options: Option<&ReadOptions>,
        key: &[u8],
        hold: Hold,
    ) -> Result<Option<Vec<u8>>> {
        let database = self.database.clone();
        let family = target.family(Some(&database))?;
        self.hold(family, key, hold)?;
        let own = self.own(family, key);
        own.over(key, family.slot.operator().as_deref(), || read(family, options, key))
    }

    /// The values of keys, what others wrote as of one moment. The failure of one is that of all.
    fn get_many(
        &mut self,
        families: &[&Family],
        options: Option<&ReadOptions>,
        keys: &[&[u8]],
        hold: Hold,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        for (family, key) in families.iter().zip(keys) {
            self.hold(family, key, hold)?;
        }
        let mut values = read_families(&self.database, options, families, keys)?;
        for ((family, key), value) in families.iter().zip(keys).zip(&mut values) {
            let own = self.own(family, key);
            let below = value.take();
            *value = own.over(key, family.slot.operator().as_deref(), || Ok(below))?;
        }
        Ok(values)
    }
}

fn get(
    transaction: Option<&Transaction>,
    options: Option<&ReadOptions>,
    target: Target<'_>,
    key: &[u8],
    hold: Hold,
) -> Result<Option<Vec<u8>>> {
    transaction.given()?.state().get(target, options, key, hold)
}

/// The column families of several reads.
#[derive(Clone, Copy)]
enum Families<'a> {
    Default,
    Handles(List<'a, Option<&'a FamilyHandle>>),
}

fn get_many(
    transaction: Option<&Transaction>,
    options: Option<&ReadOptions>,
    families: Families<'_>,
    keys: &[&[u8]],
    hold: Hold,
) -> Result<Vec<Option<Vec<u8>>>> {
    let mut state = transaction.given()?.state();
    let database = state.database.clone();
    let families: Vec<&Family> = match families {
        Families::Default => vec![database.default_family(); keys.len()],
        Families::Handles(handles) => {
            handles.of(keys.len()).iter().map(|handle| family(*handle)).collect::<Result<_>>()?
        }
    };
    state.get_many(&families, options, keys, hold)
}

cf_variants! {
    fn rocksdb_transaction_get | rocksdb_transaction_get_cf(
        transaction: Option<&Transaction>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        len: Out<'_, usize>,
        error: ErrPtr<'_>,
    ) -> *mut c_char as target {
        given_out(get(transaction, options, target, key.of(key_len), Hold::None), len)
    }

    fn rocksdb_transaction_get_pinned | rocksdb_transaction_get_pinned_cf(
        transaction: Option<&Transaction>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) -> Option<Box<Pinned>> as target {
        pinned(get(transaction, options, target, key.of(key_len), Hold::None))
    }

    fn rocksdb_transaction_get_for_update | rocksdb_transaction_get_for_update_cf(
        transaction: Option<&Transaction>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        len: Out<'_, usize>,
        exclusive: u8,
        error: ErrPtr<'_>,
    ) -> *mut c_char as target {
        given_out(get(transaction, options, target, key.of(key_len), Hold::of(exclusive)), len)
    }

    fn rocksdb_transaction_get_pinned_for_update | rocksdb_transaction_get_pinned_for_update_cf(
        transaction: Option<&Transaction>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        exclusive: u8,
        error: ErrPtr<'_>,
    ) -> Option<Box<Pinned>> as target {
        pinned(get(transaction, options, target, key.of(key_len), Hold::of(exclusive)))
    }

    fn rocksdb_transaction_create_iterator | rocksdb_transaction_create_iterator_cf(
        transaction: Option<&Transaction>,
        options: Option<&ReadOptions>;
    ) -> Option<Box<Iter>> as target {
        let state = transaction?.state();
        let base = Iter::new(target.family(Some(&state.database)).ok()?, options);
        Some(Box::new(Iter::over(Box::new(base), state.batch.clone(), target, options)?))
    }
}

export! {
    fn rocksdb_transaction_multi_get(
        transaction: Option<&Transaction>,
        options: Option<&ReadOptions>,
        count: usize,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
        values: OutList<'_, *mut c_char>,
        value_lens: OutList<'_, usize>,
        errors: OutList<'_, *mut c_char>,
    ) {
        let keys = keys.with(key_lens, count);
        let read = caught(|| get_many(transaction, options, Families::Default, &keys, Hold::None));
        Places::of(count, values, value_lens, errors).fill_with(&read);
    }

    fn rocksdb_transaction_multi_get_for_update(
        transaction: Option<&Transaction>,
        options: Option<&ReadOptions>,
        count: usize,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
        values: OutList<'_, *mut c_char>,
        value_lens: OutList<'_, usize>,
        errors: OutList<'_, *mut c_char>,
    ) {
        let keys = keys.with(key_lens, count);
        let read = caught(|| get_many(transaction, options, Families::Default, &keys, Hold::Exclusive));
        Places::of(count, values, value_lens, errors).fill_with(&read);
    }

    fn rocksdb_transaction_multi_get_cf(
        transaction: Option<&Transaction>,
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
        let families = Families::Handles(handles);
        let read = caught(|| get_many(transaction, options, families, &keys, Hold::None));
        Places::of(count, values, value_lens, errors).fill_with(&read);
    }

    fn rocksdb_transaction_multi_get_for_update_cf(
        transaction: Option<&Transaction>,
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
        let families = Families::Handles(handles);
        let read = caught(|| get_many(transaction, options, families, &keys, Hold::Exclusive));
        Places::of(count, values, value_lens, errors).fill_with(&read);
    }
}
