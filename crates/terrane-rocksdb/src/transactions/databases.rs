//! Databases with transactions: opened, closed, and used as plain ones.

use crate::db::copies::checkpoint::Checkpoint;
use crate::db::open::Access;
use crate::db::open::handles::{Listed, open_default, open_listed};
use crate::db::transaction_registry::Transactions;
use crate::db::{Database, FamilyHandle};
use crate::ffi::arguments::Text;
use crate::ffi::failure::{Given, Result};
use crate::generated::objects::{OptimisticTransactionDbOptions, TransactionDbOptions};
use crate::options::database::Options;
use crate::options::ignored::{IgnoredInCalls, refuse_options_if_strict};

use crate::db::transaction_registry::{Kind, Limits};

/// Buckets of locks that databases would share. The engine has no such buckets: it keeps locks by key.
pub(crate) struct LockBuckets;

/// Transactions that are checked at their commit; each of their options has an effect or is a hint.
const OPTIMISTIC: (Kind, u64) = (Kind::Optimistic, 0);

/// The least allocation for a handle that holds nothing.
const HANDLE_BYTES: usize = 16;

impl Kind {
    /// Transactions that lock.
    fn pessimistic(options: Option<&TransactionDbOptions>) -> Result<(Kind, u64)> {
        let options = options.given()?;
        refuse_options_if_strict(options)?;
        Ok((Kind::Pessimistic(Limits::of(options)), options.ignored()))
    }
}

/// Gives a database transactions of a kind, with options of which some have no effect.
fn with((kind, ignored): (Kind, u64)) -> impl FnOnce(&mut Database) {
    move |database| {
        database.transactions = Transactions::of(kind).into();
        // In strict mode they were refused before it was opened.
        let _ = database.note_ignored(ignored);
    }
}

fn open(options: Option<&Options>, path: Text<'_>, kind: (Kind, u64)) -> Result<Option<Box<Database>>> {
    open_default(options, path, 0, Access::Write, with(kind))
}

fn open_families(
    options: Option<&Options>,
    path: Text<'_>,
    listed: Listed<'_>,
    kind: (Kind, u64),
) -> Result<Option<Box<Database>>> {
    open_listed(options, path, listed, Access::Write, with(kind))
}

export! {
    fn rocksdb_transactiondb_open(
        options: Option<&Options>,
        transaction_options: Option<&TransactionDbOptions>,
        path: Text<'_>,
        error: ErrPtr<'_>,
    ) -> Option<Box<Database>> {
        open(options, path, Kind::pessimistic(transaction_options)?)
    }

    fn rocksdb_transactiondb_open_column_families(
        options: Option<&Options>,
        transaction_options: Option<&TransactionDbOptions>,
        path: Text<'_>,
        count: i32,
        names: List<'_, Text<'_>>[count],
        family_options: List<'_, Option<&Options>>[count],
        handles: OutList<'_, Option<Box<FamilyHandle>>>[count],
        error: ErrPtr<'_>,
    ) -> Option<Box<Database>> {
        let listed = Listed { names, options: family_options, ttls: &[], handles };
        open_families(options, path, listed, Kind::pessimistic(transaction_options)?)
    }

    fn rocksdb_optimistictransactiondb_open(
        options: Option<&Options>,
        path: Text<'_>,
        error: ErrPtr<'_>,
    ) -> Option<Box<Database>> {
        open(options, path, OPTIMISTIC)
    }

    fn rocksdb_optimistictransactiondb_open_with_otxn_db_options(
        options: Option<&Options>,
        _transaction_options: Option<&OptimisticTransactionDbOptions>,
        path: Text<'_>,
        error: ErrPtr<'_>,
    ) -> Option<Box<Database>> {
        open(options, path, OPTIMISTIC)
    }

    fn rocksdb_optimistictransactiondb_open_column_families(
        options: Option<&Options>,
        path: Text<'_>,
        count: i32,
        names: List<'_, Text<'_>>[count],
        family_options: List<'_, Option<&Options>>[count],
        handles: OutList<'_, Option<Box<FamilyHandle>>>[count],
        error: ErrPtr<'_>,
    ) -> Option<Box<Database>> {
        let listed = Listed { names, options: family_options, ttls: &[], handles };
        open_families(options, path, listed, OPTIMISTIC)
    }

    fn rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
        options: Option<&Options>,
        _transaction_options: Option<&OptimisticTransactionDbOptions>,
        path: Text<'_>,
        count: i32,
        names: List<'_, Text<'_>>[count],
        family_options: List<'_, Option<&Options>>[count],
        handles: OutList<'_, Option<Box<FamilyHandle>>>[count],
        error: ErrPtr<'_>,
    ) -> Option<Box<Database>> {
        let listed = Listed { names, options: family_options, ttls: &[], handles };
        open_families(options, path, listed, OPTIMISTIC)
    }

    fn rocksdb_transactiondb_get_base_db(database: Option<&Database>) -> Option<Box<Database>> {
        Some(Box::new(database?.clone()))
    }

    fn rocksdb_transactiondb_close_base_db(base: Option<Box<Database>>) {
        drop(base);
    }

    fn rocksdb_transactiondb_checkpoint_object_create(
        database: Option<&Database>,
        error: ErrPtr<'_>,
    ) -> Option<Box<Checkpoint>> {
        Ok(Some(Box::new(Checkpoint::of(database.given()?)?)))
    }

    fn rocksdb_optimistictransactiondb_lock_buckets_create(
        _count: usize,
        _cache_aligned: u8,
    ) -> Option<Box<LockBuckets>> {
        Some(Box::new(LockBuckets))
    }

    fn rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(
        _buckets: Option<&LockBuckets>,
    ) -> usize {
        HANDLE_BYTES
    }

    fn rocksdb_optimistictransactiondb_lock_buckets_destroy(buckets: Option<Box<LockBuckets>>) {
        drop(buckets);
    }
}
