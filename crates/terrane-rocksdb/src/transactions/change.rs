//! Writes of a transaction: the key is locked, or noted for the check at commit; then the change goes into
//! the batch.

use crate::batch::handle::BatchHandle;
use crate::batch::layout::Change;
use crate::batch::write_batch::WriteBatch;
use crate::batch_api::indexed::IndexedHandle;
use crate::db::Family;
use crate::db::cf_variants::Target;
use crate::ffi::failure::{Failure, Given, Result};
use crate::transactions::handle::Transaction;
use crate::transactions::state::State;

/// Refuses a merge where nothing would fold it.
fn require_operator(family: &Family) -> Result<()> {
    match family.slot.operator() {
        Some(_) => Ok(()),
        None => Err(Failure::invalid("merge_operator is not properly initialized.")),
    }
}

impl State {
    /// Makes the changes of a batch, in their order.
    fn rebuild(&mut self, batch: &WriteBatch) -> Result<()> {
        let database = self.database.clone();
        for record in batch.changes() {
            let (id, change) = record?;
            let gone = || Failure::invalid("Invalid column family specified in write batch");
            match change {
                Change::LogData(_) => {}
                Change::RangeDelete(..) => {
                    return Err(Failure::not_implemented("a range delete in a transaction"));
                }
                Change::Put(key, _)
                | Change::Merge(key, _)
                | Change::Delete(key)
                | Change::SingleDelete(key) => {
                    let family = database.family(id).ok_or_else(gone)?;
                    self.change(&family, key, change)?;
                }
            }
        }
        Ok(())
    }
}

fn change(
    transaction: Option<&Transaction>,
    target: Target<'_>,
    key: &[u8],
    change: Change<'_>,
) -> Result<()> {
    let mut state = transaction.given()?.state();
    let database = state.database.clone();
    let family = target.family(Some(&database))?;
    if matches!(change, Change::Merge(..)) {
        require_operator(family)?;
    }
    state.change(family, key, change)
}

cf_variants! {
    fn rocksdb_transaction_put | rocksdb_transaction_put_cf(
        transaction: Option<&Transaction>;
        key: Bytes<'_>,
        key_len: usize,
        value: Bytes<'_>,
        value_len: usize,
        error: ErrPtr<'_>,
    ) as target {
        let key = key;
        change(transaction, target, key, Change::Put(key, value))
    }

    fn rocksdb_transaction_merge | rocksdb_transaction_merge_cf(
        transaction: Option<&Transaction>;
        key: Bytes<'_>,
        key_len: usize,
        operand: Bytes<'_>,
        operand_len: usize,
        error: ErrPtr<'_>,
    ) as target {
        let key = key;
        change(transaction, target, key, Change::Merge(key, operand))
    }

    fn rocksdb_transaction_delete | rocksdb_transaction_delete_cf(
        transaction: Option<&Transaction>;
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) as target {
        let key = key;
        change(transaction, target, key, Change::Delete(key))
    }
}

export! {
    fn rocksdb_transaction_put_log_data(transaction: Option<&Transaction>, data: Bytes<'_>, len: usize) {
        if let Some(transaction) = transaction {
            // There is no way to report that it is too much.
            let _ = transaction.state().add(0, Change::LogData(data));
        }
    }

    fn rocksdb_transaction_rebuild_from_writebatch(
        transaction: Option<&Transaction>,
        batch: Option<&mut BatchHandle>,
        error: ErrPtr<'_>,
    ) {
        let batch = batch.given()?.laid();
        transaction.given()?.state().rebuild(batch)
    }

    fn rocksdb_transaction_rebuild_from_writebatch_wi(
        transaction: Option<&Transaction>,
        batch: Option<&IndexedHandle<'_>>,
        error: ErrPtr<'_>,
    ) {
        // A copy: it may be the batch of the transaction itself.
        let copy = batch.given()?.shared().get().batch().copied();
        transaction.given()?.state().rebuild(&copy)
    }
}
