//! The journal in persistent memory.
#![cfg(not(feature = "shuttle"))]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed test may say so by a panic, and changes the file of a pool"
)]

mod conformance;
mod crash;
mod pool;
mod room;
mod support;
