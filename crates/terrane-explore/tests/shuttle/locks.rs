//! The modules of the engine that the explorer runs.

#[path = "../../../terrane-engine/src/locks/conflict_window/mod.rs"]
pub(crate) mod conflict_window;
#[path = "../../../terrane-engine/src/locks/key_range.rs"]
pub(crate) mod key_range;
#[path = "../../../terrane-engine/src/locks/lock_expiry.rs"]
pub(crate) mod lock_expiry;
#[path = "../../../terrane-engine/src/locks/lock_table/mod.rs"]
pub(crate) mod lock_table;
#[path = "../../../terrane-engine/src/locks/range_locks.rs"]
pub(crate) mod range_locks;
#[path = "../../../terrane-engine/src/locks/wait_graph.rs"]
pub(crate) mod wait_graph;
#[path = "../../../terrane-engine/src/locks/window_keys.rs"]
pub(crate) mod window_keys;
