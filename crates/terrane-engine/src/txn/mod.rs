//! Transactions, on the locks and the conflict window of `locks/`.
//!
//! `transaction.rs`: one transaction, from begin to commit, prepare or rollback; `options.rs`: its settings;
//! `prepared.rs`: two-phase commit.

mod options;
pub(crate) mod prepared;
mod transaction;

pub use options::{Concurrency, Isolation, TransactionOptions};
pub use transaction::{LockMark, ScanId, Transaction};
