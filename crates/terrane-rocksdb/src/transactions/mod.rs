//! Transactions. A transaction keeps its changes in an indexed batch of RocksDB's layout, as RocksDB does;
//! locks, conflicts and two-phase commit are those of the library (`terrane::BareTransaction`).
//!
//! * [`state`]: one transaction, from begin to commit. [`handle`]: what begins and ends it. [`change`],
//!   [`read`]: what it does. [`name`], [`prepared`]: two-phase commit.
//! * [`databases`]: databases with transactions, and operations on them beside transactions ([`beside`]).
//!   [`settings`]: options of both. [`count`]: how many keys may be locked.

pub(crate) mod change;
pub(crate) mod databases;
pub(crate) mod handle;
pub(crate) mod name;
pub(crate) mod plain_ops;
pub(crate) mod prepared;
pub(crate) mod read;
pub(crate) mod settings;
pub(crate) mod state;
