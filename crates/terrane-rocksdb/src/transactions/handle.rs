//! Handles of transactions: begin, commit, roll back, save points.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::batch::indexed::SharedBatch;
use crate::batch_api::indexed::IndexedHandle;
use crate::db::Database;
use crate::db::plain::write::Mode;
use crate::db::transaction_registry::Kind;
use crate::ffi::failure::Given;
use crate::ffi::types::{Lent, Pointer, lasting_handle};
use crate::generated::objects::{OptimisticTransactionOptions, TransactionOptions};
use crate::options::read_write::WriteOptions;
use crate::options::snapshot::SnapshotHandle;
use crate::transactions::settings::Settings;
use crate::transactions::state::State;

/// A handle of a transaction. One that is prepared may have several.
pub(crate) struct Transaction(Arc<Mutex<State>>);

impl Transaction {
    pub(crate) fn of(state: Arc<Mutex<State>>) -> Box<Transaction> {
        Box::new(Transaction(state))
    }

    pub(crate) fn shared(&self) -> &Arc<Mutex<State>> {
        &self.0
    }

    /// The transaction, for this thread alone.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves at most a change that is locked and not made.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins a transaction, under the handle and with the batch of an old one if there is one.
fn begin(
    database: &Database,
    options: Option<&WriteOptions>,
    settings: Settings,
    old: Option<Box<Transaction>>,
) -> Option<Box<Transaction>> {
    let Ok(mode) = Mode::of(Some(options.unwrap_or(&WriteOptions::default()))) else {
        return none_began(old);
    };
    let Some(mut handle) = old else {
        let state = State::new(database, SharedBatch::new(0), settings, mode);
        return Some(Transaction::of(Arc::new(Mutex::new(state))));
    };
    // One that has other handles goes on there, with its batch.
    let batch = match Arc::strong_count(&handle.0) {
        1 => handle.state().batch.clone(),
        _ => SharedBatch::new(0),
    };
    batch.get().clear();
    let state = State::new(database, batch, settings, mode);
    handle.0 = Arc::new(Mutex::new(state));
    Some(handle)
}

/// None began: the old handle stays the caller's.
fn none_began(old: Option<Box<Transaction>>) -> Option<Box<Transaction>> {
    old.map(Box::into_raw);
    None
}

export! {
    fn rocksdb_transaction_begin(
        database: Option<&Database>,
        options: Option<&WriteOptions>,
        transaction_options: Option<&TransactionOptions>,
        old: Option<Box<Transaction>>,
    ) -> Option<Box<Transaction>> {
        let Some(database) = database else { return none_began(old) };
        let Kind::Pessimistic(limits) = &database.transactions.kind else { return none_began(old) };
        begin(database, options, Settings::pessimistic(limits, transaction_options), old)
    }

    fn rocksdb_optimistictransaction_begin(
        database: Option<&Database>,
        options: Option<&WriteOptions>,
        transaction_options: Option<&OptimisticTransactionOptions>,
        old: Option<Box<Transaction>>,
    ) -> Option<Box<Transaction>> {
        let Some(database) = database else { return none_began(old) };
        begin(database, options, Settings::optimistic(transaction_options), old)
    }

    fn rocksdb_transaction_destroy(transaction: Option<Box<Transaction>>) {
        drop(transaction);
    }

    fn rocksdb_transaction_commit(transaction: Option<&Transaction>, error: ErrPtr<'_>) {
        transaction.given()?.state().commit()
    }

    fn rocksdb_transaction_rollback(transaction: Option<&Transaction>, error: ErrPtr<'_>) {
        transaction.given()?.state().roll_back()
    }

    fn rocksdb_transaction_set_savepoint(transaction: Option<&Transaction>) {
        if let Some(transaction) = transaction {
            // There is no way to report a failure: the way back reports that there is no save point.
            let _ = transaction.state().set_save_point();
        }
    }

    fn rocksdb_transaction_rollback_to_savepoint(transaction: Option<&Transaction>, error: ErrPtr<'_>) {
        transaction.given()?.state().roll_back_to_save_point()
    }

    fn rocksdb_transaction_get_writebatch_wi(transaction: Option<&Transaction>) -> Pointer {
        let Some(transaction) = transaction else { return std::ptr::null_mut() };
        let state = transaction.state();
        lasting_handle(IndexedHandle::lent(&state.batch))
    }

    fn rocksdb_transaction_get_snapshot(transaction: Option<&Transaction>) -> Pointer {
        let Some(transaction) = transaction else { return std::ptr::null_mut() };
        let state = transaction.state();
        let lent = state.snapshot.as_ref().map(Lent::of);
        lasting_handle(SnapshotHandle::Lent(lent))
    }
}
