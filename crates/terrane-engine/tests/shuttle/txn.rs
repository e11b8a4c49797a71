//! The modules that are explored.

#[path = "../../src/txn/compared.rs"]
pub(crate) mod compared;
#[path = "../../src/txn/expiry.rs"]
pub(crate) mod expiry;
#[path = "../../src/txn/fences.rs"]
pub(crate) mod fences;
#[path = "../../src/txn/locks.rs"]
pub(crate) mod locks;
#[path = "../../src/txn/range.rs"]
pub(crate) mod range;
#[path = "../../src/txn/waits.rs"]
pub(crate) mod waits;
#[path = "../../src/txn/window.rs"]
pub(crate) mod window;
