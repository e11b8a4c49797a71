//! Databases that have transactions, and one transaction on them.
//!
//! `OptimisticTransactionDB` and `TransactionDB` are opened in the place of the plain database; a view of the
//! database below is what everything else uses. So loads go by the locks, as RocksDB allows.
//!
//! Unsafe code: calls of the C interface. A view is destroyed before what it is a view of (field order of the
//! owner); a transaction lives within one call.
#![expect(unsafe_code, reason = "calls of a C interface")]

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;
use std::sync::Arc;

use crate::engine::Change;
use crate::engine::rocksdb::api::{
    Api, ColumnFamily, Db, ErrPtr, OptimisticDb, OptimisticOptions, Options, Owned, Pinned, Transaction,
    TransactionDb, TransactionOptions, checked,
};
use crate::engine::rocksdb::database::Database;
use crate::engine::rocksdb::tuning::{Transactions, Tuning};
use crate::error::{Error, Result};

/// The options that a database is opened with.
pub(super) struct Opening {
    pub(super) options: *const Options,
    pub(super) path: *const c_char,
    pub(super) count: c_int,
    pub(super) names: *const *const c_char,
    pub(super) each: *const *const Options,
    pub(super) handles: *mut *mut ColumnFamily,
}

/// A database with transactions, if it was opened as one.
pub(super) enum Transacting {
    Off,
    Optimistic(Owned<OptimisticDb>, Owned<OptimisticOptions>),
    Pessimistic(Owned<TransactionDb>, Owned<TransactionOptions>),
}

/// A function of the C interface that a library may lack.
fn present<F>(function: Option<F>) -> Result<F> {
    function.ok_or_else(|| Error::unsupported("rocksdb", "transactions in the C interface of this library"))
}

impl Opening {
    /// Opens the database that `tuning` asks for.
    ///
    /// # Errors
    /// `Unsupported` if the library lacks a function; RocksDB's.
    ///
    /// # Safety
    /// Names, options and handles are arrays of `count`, alive for the call.
    pub(super) unsafe fn open(&self, api: &Arc<Api>, tuning: &Tuning) -> Result<(Owned<Db>, Transacting)> {
        // SAFETY: by the caller's promise.
        unsafe {
            match tuning.transactions {
                Transactions::Off => Ok((self.open_plain(api)?, Transacting::Off)),
                Transactions::Optimistic => self.open_optimistic(api, tuning),
                Transactions::Pessimistic => self.open_pessimistic(api, tuning),
            }
        }
    }

    unsafe fn open_plain(&self, api: &Arc<Api>) -> Result<Owned<Db>> {
        let Opening { options, path, count, names, each, handles } = *self;
        // SAFETY: as for `open`; without an error the database was made, and is ours to close.
        unsafe {
            let open = |error| (api.open_column_families)(options, path, count, names, each, handles, error);
            Ok(Owned::new(api, checked(api, "open", open)?, api.close))
        }
    }

    unsafe fn open_optimistic(&self, api: &Arc<Api>, tuning: &Tuning) -> Result<(Owned<Db>, Transacting)> {
        let Opening { options, path, count, names, each, handles } = *self;
        let open = present(api.optimistictransactiondb_open_column_families)?;
        let (base, close_base) = (
            present(api.optimistictransactiondb_get_base_db)?,
            present(api.optimistictransactiondb_close_base_db)?,
        );
        let close = present(api.optimistictransactiondb_close)?;
        let (create, destroy) = (
            present(api.optimistictransaction_options_create)?,
            present(api.optimistictransaction_options_destroy)?,
        );
        let set_snapshot = present(api.optimistictransaction_options_set_set_snapshot)?;
        // SAFETY: as for `open_plain`; the view is made of a living database, the options by their
        // constructor.
        unsafe {
            let opened =
                checked(api, "open", |error| open(options, path, count, names, each, handles, error))?;
            let opened = Owned::new(api, opened, close);
            let view = Owned::new(api, base(opened.as_ptr()), close_base);
            let chosen = Owned::new(api, create(), destroy);
            set_snapshot(chosen.as_ptr(), u8::from(tuning.has_snapshot));
            Ok((view, Transacting::Optimistic(opened, chosen)))
        }
    }

    unsafe fn open_pessimistic(&self, api: &Arc<Api>, tuning: &Tuning) -> Result<(Owned<Db>, Transacting)> {
        let Opening { options, path, count, names, each, handles } = *self;
        let open = present(api.transactiondb_open_column_families)?;
        let (base, close_base) =
            (present(api.transactiondb_get_base_db)?, present(api.transactiondb_close_base_db)?);
        let close = present(api.transactiondb_close)?;
        let (create_of_db, destroy_of_db) =
            (present(api.transactiondb_options_create)?, present(api.transactiondb_options_destroy)?);
        let (create, destroy) =
            (present(api.transaction_options_create)?, present(api.transaction_options_destroy)?);
        let set_snapshot = present(api.transaction_options_set_set_snapshot)?;
        let set_detect = present(api.transaction_options_set_deadlock_detect)?;
        // SAFETY: as for `open_optimistic`; RocksDB copies the options of the database.
        unsafe {
            let of_db = Owned::new(api, create_of_db(), destroy_of_db);
            let opened = checked(api, "open", |error| {
                open(options, of_db.as_ptr(), path, count, names, each, handles, error)
            })?;
            let opened = Owned::new(api, opened, close);
            let view = Owned::new(api, base(opened.as_ptr()), close_base);
            let chosen = Owned::new(api, create(), destroy);
            set_snapshot(chosen.as_ptr(), u8::from(tuning.has_snapshot));
            set_detect(chosen.as_ptr(), 1);
            Ok((view, Transacting::Pessimistic(opened, chosen)))
        }
    }
}

/// Returns true if another run of the transaction may succeed: by the codes of RocksDB's status that
/// conflicts, deadlocks, timeouts and a history that is too short have.
fn is_refusal(error: &Error) -> bool {
    let texts = ["Resource busy", "Operation timed out", "Try again", "TryAgain"];
    matches!(error, Error::Engine { message, .. } if texts.iter().any(|text| message.contains(text)))
}

/// Reads, shows and sets each key in one transaction. Returns whether it committed.
pub(super) fn transact(
    database: &Database,
    changes: &[Change<'_>],
    sync: bool,
    show: &mut dyn FnMut(&[u8], *mut Pinned),
) -> Result<bool> {
    let api = &database.api;
    let write = if sync { &database.write_sync } else { &database.write };
    let destroy = present(api.transaction_destroy)?;
    // SAFETY: database and options are alive, and outlive the transaction, which ends here. RocksDB rolls
    // back a transaction that is destroyed without a commit.
    let transaction = unsafe {
        let begun = match &database.transacting {
            Transacting::Off => {
                return Err(Error::unsupported(
                    "rocksdb",
                    "transactions: set transactions = optimistic or pessimistic",
                ));
            }
            Transacting::Optimistic(db, options) => {
                let begin = present(api.optimistictransaction_begin)?;
                begin(db.as_ptr(), write.as_ptr(), options.as_ptr(), null_mut())
            }
            Transacting::Pessimistic(db, options) => {
                let begin = present(api.transaction_begin)?;
                begin(db.as_ptr(), write.as_ptr(), options.as_ptr(), null_mut())
            }
        };
        Owned::new(api, begun, destroy)
    };
    match run(database, &transaction, changes, show) {
        Ok(()) => Ok(true),
        Err(error) if is_refusal(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn run(
    database: &Database,
    transaction: &Owned<Transaction>,
    changes: &[Change<'_>],
    show: &mut dyn FnMut(&[u8], *mut Pinned),
) -> Result<()> {
    let api = &database.api;
    let (get, put, commit) = (
        present(api.transaction_get_pinned_for_update_cf)?,
        present(api.transaction_put_cf)?,
        present(api.transaction_commit)?,
    );
    for Change { table, key, value } in changes {
        let family = database.family(*table);
        let (bytes, len) = (key.as_ptr().cast::<c_char>(), key.len());
        let pinned = checked(api, "get for update", |error: ErrPtr| {
            // SAFETY: all handles are alive, and the key for the call.
            unsafe { get(transaction.as_ptr(), database.read.as_ptr(), family, bytes, len, 1, error) }
        })?;
        if !pinned.is_null() {
            show(key, pinned);
        }
        checked(api, "put in a transaction", |error: ErrPtr| {
            // SAFETY: all handles are alive; RocksDB copies key and value.
            unsafe {
                put(transaction.as_ptr(), family, bytes, len, value.as_ptr().cast(), value.len(), error)
            }
        })?;
    }
    // SAFETY: the transaction is alive.
    checked(api, "commit", |error: ErrPtr| unsafe { commit(transaction.as_ptr(), error) })
}
