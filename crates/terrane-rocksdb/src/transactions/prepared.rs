//! Two-phase commit: prepare, and the prepared transactions of a database that is opened.

use std::sync::{Arc, Mutex};

use terrane::ChangeKind;

use crate::batch::indexed::SharedBatch;
use crate::batch::layout::Change;
use crate::db::Database;
use crate::db::plain::write::Mode;
use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::{Out, lasting_list, put};
use crate::options::read_write::WriteOptions;
use crate::transactions::handle::Transaction;
use crate::transactions::name::{as_engine_has_it, as_given};
use crate::transactions::settings::Settings;
use crate::transactions::state::{Phase, State};

impl State {
    fn prepare(&mut self) -> Result<()> {
        if !self.settings.is_pessimistic {
            return Err(Failure::invalid("Two phase commit not supported for optimistic transactions."));
        }
        self.require_running()?;
        if self.name.is_empty() {
            return Err(Failure::invalid("Cannot prepare a transaction that has not been named."));
        }
        let (database, mode, name) = (self.database.clone(), self.mode, as_engine_has_it(&self.name));
        let shared = self.batch.clone();
        let claims = self.claims()?;
        shared.get().batch().as_engine_batch(&database, mode, |batch| {
            let prepared = claims.transaction.prepare(&name, batch);
            prepared.map_err(|error| claims.refused(error))
        })?;
        self.prepared_bytes = shared.get().hold();
        self.end(Phase::Prepared);
        Ok(())
    }

    /// The transaction that is prepared under a name, with its changes.
    fn recovered(database: &Database, name: &str) -> Result<State> {
        let batch = SharedBatch::new(0);
        {
            let mut batch = batch.get();
            database.db.prepared_changes(name, &mut |family, change| {
                if let ChangeKind::LogData { data } = change {
                    batch.add(0, Change::LogData(data));
                    return;
                }
                batch.add(
                    family,
                    match change {
                        ChangeKind::Put { key, value } => Change::Put(key, value),
                        ChangeKind::Delete { key } => Change::Delete(key),
                        ChangeKind::SingleDelete { key } => Change::SingleDelete(key),
                        ChangeKind::Merge { key, operand } => Change::Merge(key, operand),
                        ChangeKind::DeleteRange { start, end } => Change::RangeDelete(start, end),
                        _ => return,
                    },
                );
            })?;
        }
        let prepared_bytes = batch.get().hold();
        let mode = Mode::of(Some(&WriteOptions::default()))?;
        let mut state = State::over(database, batch, Settings::prepared(), mode, Phase::Prepared);
        (state.name, state.holds_name) = (as_given(name), true);
        state.found_as = Some(name.to_owned());
        state.prepared_bytes = prepared_bytes;
        Ok(state)
    }
}

impl Database {
    /// Handles of all that is prepared: transactions that there are, and those of before the opening.
    fn prepared(&self) -> Vec<*mut Transaction> {
        let names = self.db.prepared();
        let held = |name: &str| self.transactions.find::<Mutex<State>>(&as_given(name));
        let states = names.iter().filter_map(|name| {
            if let Some(state) = held(name) {
                return Some(state);
            }
            // Another thread may commit or roll it back meanwhile: then there is nothing to return.
            let state = Arc::new(Mutex::new(State::recovered(self, name).ok()?));
            let weak = Arc::downgrade(&state);
            self.transactions.named().insert(as_given(name), weak);
            Some(state)
        });
        states.map(|state| Box::into_raw(Transaction::of(state))).collect()
    }
}

export! {
    fn rocksdb_transaction_prepare(transaction: Option<&Transaction>, error: ErrPtr<'_>) {
        transaction.given()?.state().prepare()
    }

    fn rocksdb_transactiondb_get_prepared_transactions(
        database: Option<&Database>,
        count: Out<'_, usize>,
    ) -> *mut *mut Transaction {
        let prepared = database.map(Database::prepared).unwrap_or_default();
        put(count, prepared.len());
        lasting_list(&prepared)
    }
}
