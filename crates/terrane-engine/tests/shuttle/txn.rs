//! The modules of the crate that the explorer runs.

#[path = "../../src/txn/conflict_window/mod.rs"]
pub(crate) mod conflict_window;
#[path = "../../src/txn/key_range.rs"]
pub(crate) mod key_range;
#[path = "../../src/txn/lock_expiry.rs"]
pub(crate) mod lock_expiry;
#[path = "../../src/txn/lock_table/mod.rs"]
pub(crate) mod lock_table;
#[path = "../../src/txn/range_locks.rs"]
pub(crate) mod range_locks;
#[path = "../../src/txn/wait_graph.rs"]
pub(crate) mod wait_graph;
#[path = "../../src/txn/window_keys.rs"]
pub(crate) mod window_keys;
