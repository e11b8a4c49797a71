//! Reads of a transaction: its own changes over the latest state, or over the snapshot of the read options.

use std::ffi::c_char;

use crate::batch_api::indexed_read::{given_out, pinned};
use crate::db::Family;
use crate::db::cf_variants::{Target, Targets};
use crate::db::plain::get::read;
use crate::db::plain::multi_get::{Places, read_families};
use crate::db::plain::pinned::Pinned;
use crate::ffi::failure::{Given, Result};
use crate::ffi::types::{Out, caught};
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

fn get_many(
    transaction: Option<&Transaction>,
    options: Option<&ReadOptions>,
    targets: Targets<'_>,
    keys: &[&[u8]],
    hold: Hold,
) -> Result<Vec<Option<Vec<u8>>>> {
    let mut state = transaction.given()?.state();
    let database = state.database.clone();
    let families = targets.families(&database, keys.len())?;
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
        given_out(get(transaction, options, target, key, Hold::None), len)
    }

    fn rocksdb_transaction_get_pinned | rocksdb_transaction_get_pinned_cf(
        transaction: Option<&Transaction>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) -> Option<Box<Pinned>> as target {
        pinned(get(transaction, options, target, key, Hold::None))
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
        given_out(get(transaction, options, target, key, Hold::of(exclusive)), len)
    }

    fn rocksdb_transaction_get_pinned_for_update | rocksdb_transaction_get_pinned_for_update_cf(
        transaction: Option<&Transaction>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        exclusive: u8,
        error: ErrPtr<'_>,
    ) -> Option<Box<Pinned>> as target {
        pinned(get(transaction, options, target, key, Hold::of(exclusive)))
    }

    fn rocksdb_transaction_create_iterator | rocksdb_transaction_create_iterator_cf(
        transaction: Option<&Transaction>,
        options: Option<&ReadOptions>;
    ) -> Option<Box<Iter>> as target {
        let state = transaction?.state();
        let base = Iter::new(target.family(Some(&state.database)).ok()?, options);
        Some(Box::new(Iter::over(base, state.batch.clone(), target, options)?))
    }
}

cf_list_variants! {
    fn rocksdb_transaction_multi_get | rocksdb_transaction_multi_get_cf(
        transaction: Option<&Transaction>,
        options: Option<&ReadOptions>;
        count: usize,
        keys: List<'_, Bytes<'_>>[count],
        key_lens: List<'_, usize>,
        values: OutList<'_, *mut c_char>[count],
        value_lens: OutList<'_, usize>[count],
        errors: OutList<'_, *mut c_char>[count],
    ) as targets {
        let read = caught(|| get_many(transaction, options, targets, &keys, Hold::None));
        Places::new(values, value_lens, errors).fill_with(&read);
    }

    fn rocksdb_transaction_multi_get_for_update | rocksdb_transaction_multi_get_for_update_cf(
        transaction: Option<&Transaction>,
        options: Option<&ReadOptions>;
        count: usize,
        keys: List<'_, Bytes<'_>>[count],
        key_lens: List<'_, usize>,
        values: OutList<'_, *mut c_char>[count],
        value_lens: OutList<'_, usize>[count],
        errors: OutList<'_, *mut c_char>[count],
    ) as targets {
        let read = caught(|| get_many(transaction, options, targets, &keys, Hold::Exclusive));
        Places::new(values, value_lens, errors).fill_with(&read);
    }
}
