//! The write path: a batch is admitted, committed, indexed, and accounted for.
//!
//! `commit.rs` has the steps, `full.rs` those on a full device, `point.rs` makes a batch of one record,
//! `index.rs` hands committed records to memtables, `tickets.rs` has the writes that do not wait for their
//! sync. How fast writers may go is in `throttle/`, the gate of transactions in `locks/`.

pub(crate) mod commit;
mod full;
pub(crate) mod index;
mod point;
pub(crate) mod tickets;

use std::ops::Deref;
use std::sync::Arc;

use crate::background::maintenance::Maintenance;
use crate::locks::Transactions;
use crate::shared::Holds;

/// The write path with all that a write takes: the database with its maintenance, and the locks of
/// transactions. It lies inline in the engine, so that a write reaches every part without one more pointer.
pub struct WritePath {
    /// Memory, throttle, background, and the shared parts.
    pub(crate) maintenance: Maintenance,
    /// Transactions that live.
    pub(crate) txn: Transactions,
    /// Tickets in flight.
    pub(crate) async_writes: tickets::AsyncWrites,
}

/// Keeps an open database in memory and gives its write path: for a load, which cannot name the engine.
pub(crate) type WritePathRef = Arc<dyn Holds<WritePath>>;

/// The methods without a transaction are found here, as in the engine.
impl Deref for WritePath {
    type Target = Maintenance;

    #[inline]
    fn deref(&self) -> &Maintenance {
        &self.maintenance
    }
}
