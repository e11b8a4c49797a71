//! Transactions. A transaction keeps its changes in an indexed batch of RocksDB's layout, as RocksDB does; locks, conflicts and
//! two-phase commit are those of the library (`terrane::BareTransaction`).
//!
//! * [`state`]: one transaction, from begin to commit. [`handle`]: what begins and ends it. [`change`], [`read`]: what it does.
//!   [`name`], [`prepared`]: two-phase commit.
//! * [`databases`]: databases with transactions, and what is done with them beside transactions ([`beside`]).
//!   [`settings`]: options of both. [`count`]: how many keys may be locked.

mod beside;
mod change;
mod count;
mod databases;
mod handle;
mod name;
mod prepared;
mod read;
mod settings;
mod state;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use count::Counts;
use settings::Kind;
use state::State;

/// What the transactions of an opened database share.
#[derive(Default)]
pub(crate) struct Transactions {
    kind: Kind,
    counts: Counts,
    /// Transactions that have a name.
    named: Mutex<BTreeMap<Vec<u8>, Weak<Mutex<State>>>>,
}

impl Transactions {
    fn named(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Weak<Mutex<State>>>> {
        // Each change of the map is one step.
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
