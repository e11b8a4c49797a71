//! State of transactions that commits check: locks, the conflict window, and the gate of a commit.
//!
//! * `lock_table/`: locks on keys, for transactions and for every commit while one is open; `wait_graph.rs`:
//!   which transaction waits for which; `key_range.rs`: ranges of keys; `range_locks.rs`: locks of ranges,
//!   which exclude locks of keys in them; `lock_expiry.rs`: transactions with a timeout.
//! * `conflict_window/`: which commit changed a key last, commits in flight; `window_keys.rs`: the same in
//!   the order of a comparator.
//! * `gate.rs`: a commit through locks and window. `ingest_guard.rs`: ranges into which extents come.
//!   `prepared_names.rs`: names of prepared transactions.
//!
//! While no transaction lives, a write passes [`terrane_base::watch::Watch`] and nothing here. While one
//! lives, every commit holds the locks of the keys that it writes until it is visible, and passes the window.
//!
//! Invariant: commits that conflict are validated in the order of their numbers, so the order of commits is
//! an order in which serializable transactions could have run alone; a snapshot is a moment of it.

pub(crate) mod conflict_window;
pub(crate) mod gate;
pub(crate) mod ingest_guard;
pub(crate) mod key_range;
pub(crate) mod lock_expiry;
pub(crate) mod lock_table;
pub(crate) mod prepared_names;
pub(crate) mod range_locks;
mod wait_graph;
mod window_keys;

use std::collections::BTreeMap;
use std::sync::Arc;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_base::sync::Mutex;
use terrane_base::watch::Watch;

pub use lock_table::LockMode;

use crate::observe::stats::Stats;
use conflict_window::ConflictWindow;
use lock_table::{LockTable, Owner};
use prepared_names::Entry;

/// Of the write memory, the share that the window takes at most.
const WINDOW_SHARE: u64 = 16;

/// The shared state of the transactions of a database.
pub(crate) struct Transactions {
    /// The watch, which is on while a transaction lives.
    pub(crate) watch: Watch,
    /// Locks of keys.
    pub(crate) locks: LockTable,
    /// The keys and ranges that commits changed since the oldest of them began.
    pub(crate) window: ConflictWindow,
    /// The last number given to a transaction or a plain write.
    owners: AtomicU64,
    /// Prepared transactions by name.
    pub(crate) prepared: Mutex<BTreeMap<String, Entry>>,
}

impl Transactions {
    /// No transactions, in a database with so much write memory.
    pub(crate) fn new(write_bytes: u64) -> Transactions {
        Transactions {
            watch: Watch::new(),
            locks: LockTable::new(),
            window: ConflictWindow::new(write_bytes / WINDOW_SHARE),
            owners: AtomicU64::new(0),
            prepared: Mutex::default(),
        }
    }

    /// A number for a transaction or a plain write.
    pub(crate) fn new_owner(&self) -> Owner {
        // Relaxed: only that they differ.
        self.owners.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Adds the present numbers to `stats`.
    pub(crate) fn show(&self, stats: &mut Stats) {
        stats.transactions_live = self.watch.live();
        stats.transactions_prepared = self.prepared.lock().len() as u64;
        stats.transaction_window_bytes = self.window_bytes();
    }

    /// Changes the write memory, of which the window has a share.
    pub(crate) fn set_write_bytes(&self, write_bytes: u64) {
        self.window.set_bytes_max(write_bytes / WINDOW_SHARE);
    }

    /// Where the bytes that the window holds are counted.
    pub(crate) fn window_bytes_shared(&self) -> Arc<AtomicU64> {
        self.window.bytes_shared()
    }

    /// Bytes that the window holds.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.window.bytes()
    }
}
