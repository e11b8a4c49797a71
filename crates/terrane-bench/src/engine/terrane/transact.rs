//! One transaction on Terrane.

use terrane::{Db, Durability, Table, Transaction, TransactionOptions};

use super::failed;
use crate::engine::{Change, Visit};
use crate::error::Result;

/// Reads, shows and sets each key. Returns whether it committed.
pub(super) fn transact(
    db: &Db,
    options: &TransactionOptions,
    tables: &[Table],
    changes: &[Change<'_>],
    sync: Durability,
    visit: &mut Visit<'_>,
) -> Result<bool> {
    let mut run = || {
        let mut transaction = db.transaction(options)?;
        for change in changes {
            set(&mut transaction, &tables[change.table as usize], change, visit)?;
        }
        transaction.commit(sync)
    };
    match run() {
        Ok(_) => Ok(true),
        Err(error) if error.kind().is_worth_another_run() => Ok(false),
        Err(error) => Err(failed("run a transaction")(error)),
    }
}

fn set(
    transaction: &mut Transaction,
    table: &Table,
    change: &Change<'_>,
    visit: &mut Visit<'_>,
) -> terrane::Result<()> {
    if let Some(value) = transaction.get_for_update(table, change.key, true)? {
        visit(change.key, &value);
    }
    transaction.put(table, change.key, change.value)
}
