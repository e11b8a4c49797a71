//! The names under which transactions are prepared, and what such a transaction holds.

use std::sync::Arc;

use crate::locks::conflict_window::FlightId;
use crate::locks::lock_table::{LockKey, Owner};

/// The state of a name.
#[derive(Debug)]
pub(crate) enum Entry {
    /// A thread is preparing it, committing it or rolling it back.
    Busy,
    /// It waits to be resolved.
    Ready(Waiting),
}

/// A prepared transaction that waits to be resolved.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) owner: Owner,
    pub(crate) locks: Vec<LockKey>,
    /// The keys that it writes, ascending: those of its flight.
    pub(crate) writes: Arc<[LockKey]>,
    pub(crate) flight: FlightId,
}
