//! The modules of the crate that the explorer runs.

#[path = "../../src/locks/conflict_window/mod.rs"]
pub(crate) mod conflict_window;
#[path = "../../src/locks/key_range.rs"]
pub(crate) mod key_range;
#[path = "../../src/locks/lock_expiry.rs"]
pub(crate) mod lock_expiry;
#[path = "../../src/locks/lock_table/mod.rs"]
pub(crate) mod lock_table;
#[path = "../../src/locks/range_locks.rs"]
pub(crate) mod range_locks;
#[path = "../../src/locks/wait_graph.rs"]
pub(crate) mod wait_graph;
#[path = "../../src/locks/window_keys.rs"]
pub(crate) mod window_keys;
