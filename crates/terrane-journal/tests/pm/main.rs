//! The journal in persistent memory.
#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, reason = "a failed test may say so by a panic")]

#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod crash;
mod pool;
mod room;
mod support;
