//! Operations outside transactions, on a database that has transactions. Writes wait for the locks of
//! transactions.

use std::ffi::c_char;

use terrane::{Concurrency, Isolation, TransactionOptions};

use crate::batch::handle::BatchHandle;
use crate::batch::layout::Change;
use crate::batch::write_batch::WriteBatch;
use crate::batch_api::indexed_read::{given_out, pinned};
use crate::db::cf_variants::Target;
use crate::db::plain::get::read;
use crate::db::plain::pinned::Pinned;
use crate::db::plain::write::{Mode, write_failure};
use crate::db::transaction_registry::Kind;
use crate::db::{Database, FamilyHandle};
use crate::ffi::failure::{Given, Result};
use crate::ffi::types::Out;
use crate::options::database::Options;
use crate::options::read_write::{ReadOptions, WriteOptions};
use crate::options::snapshot::SnapshotHandle;
use crate::transactions::settings::timeout;

/// Milliseconds that any write waits for a lock.
const ENGINE_TIMEOUT: i64 = 1000;

impl Database {
    /// Milliseconds that a write beside transactions waits for their locks, where they are others than any
    /// write waits.
    fn beside_timeout(&self) -> Option<i64> {
        match &self.transactions.kind {
            Kind::Pessimistic(limits) => {
                Some(limits.beside_timeout).filter(|timeout| *timeout != ENGINE_TIMEOUT)
            }
            Kind::None | Kind::Optimistic => None,
        }
    }

    /// Writes a batch beside transactions.
    fn write_beside(&self, batch: &mut WriteBatch, options: Option<&WriteOptions>) -> Result<()> {
        let Some(milliseconds) = self.beside_timeout() else { return batch.write(self, options) };
        let mode = Mode::of(options)?;
        let options = TransactionOptions {
            concurrency: Concurrency::Pessimistic,
            isolation: Isolation::ReadCommitted,
            lock_timeout: timeout(milliseconds),
            keys_max: u64::MAX,
            bytes_max: u64::MAX,
            ..Default::default()
        };
        let mut transaction = self.db.bare_transaction(&options)?;
        batch.as_engine_batch(self, mode, |batch| {
            transaction.commit(batch, mode.sync()).map_err(write_failure)
        })?;
        Ok(())
    }

    /// Makes one change.
    fn change_beside(
        &self,
        options: Option<&WriteOptions>,
        target: Target<'_>,
        change: Change<'_>,
    ) -> Result<()> {
        let family = target.family(Some(self))?;
        family.refuse_without_timestamp()?;
        if self.beside_timeout().is_none() {
            match change {
                Change::Put(key, value) => return self.put(options, family, key, value),
                Change::Delete(key) => return self.delete(options, family, key),
                Change::Merge(key, operand) => return self.merge(options, family, key, operand),
                _ => {}
            }
        }
        let mut batch = WriteBatch::empty();
        batch.add(family.id(), change);
        self.write_beside(&mut batch, options)
    }
}

/// The value of a key.
fn get(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    target: Target<'_>,
    key: &[u8],
) -> Result<Option<Vec<u8>>> {
    read(target.family(database)?, options, key)
}

cf_variants! {
    fn rocksdb_transactiondb_put | rocksdb_transactiondb_put_cf(
        database: Option<&Database>,
        options: Option<&WriteOptions>;
        key: Bytes<'_>,
        key_len: usize,
        value: Bytes<'_>,
        value_len: usize,
        error: ErrPtr<'_>,
    ) as target {
        let change = Change::Put(key, value);
        database.given()?.change_beside(options, target, change)
    }

    fn rocksdb_transactiondb_merge | rocksdb_transactiondb_merge_cf(
        database: Option<&Database>,
        options: Option<&WriteOptions>;
        key: Bytes<'_>,
        key_len: usize,
        operand: Bytes<'_>,
        operand_len: usize,
        error: ErrPtr<'_>,
    ) as target {
        let change = Change::Merge(key, operand);
        database.given()?.change_beside(options, target, change)
    }

    fn rocksdb_transactiondb_delete | rocksdb_transactiondb_delete_cf(
        database: Option<&Database>,
        options: Option<&WriteOptions>;
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) as target {
        database.given()?.change_beside(options, target, Change::Delete(key))
    }

    fn rocksdb_transactiondb_get | rocksdb_transactiondb_get_cf(
        database: Option<&Database>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        len: Out<'_, usize>,
        error: ErrPtr<'_>,
    ) -> *mut c_char as target {
        given_out(get(database, options, target, key), len)
    }

    fn rocksdb_transactiondb_get_pinned | rocksdb_transactiondb_get_pinned_cf(
        database: Option<&Database>,
        options: Option<&ReadOptions>;
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) -> Option<Box<Pinned>> as target {
        pinned(get(database, options, target, key))
    }
}

export! {
    fn rocksdb_transactiondb_write(
        database: Option<&Database>,
        options: Option<&WriteOptions>,
        batch: Option<&mut BatchHandle>,
        error: ErrPtr<'_>,
    ) {
        let (database, batch) = (database.given()?, batch.given()?);
        match database.beside_timeout() {
            None => batch.write(database, options),
            Some(_) => database.write_beside(batch.laid(), options),
        }
    }

    fn rocksdb_transactiondb_create_column_family(
        database: Option<&Database>,
        options: Option<&Options>,
        name: Text<'_>,
        error: ErrPtr<'_>,
    ) -> Option<Box<FamilyHandle>> {
        let family = database.given()?.create(name.utf8()?, options.given()?, 0)?;
        Ok(Some(Box::new(FamilyHandle { family })))
    }

    fn rocksdb_transactiondb_create_snapshot(database: Option<&Database>) -> Option<Box<SnapshotHandle<'static>>> {
        Some(Box::new(SnapshotHandle::Own(database?.db.snapshot())))
    }
}
