//! The cache. A program of its own beside the `suite`, and one test after the other: the allocator counts the
//! heap of the whole process, and a pinned epoch keeps memory of every cache from being freed.
#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

mod arena;
mod limits;
mod stress;
#[path = "../suite/support/mod.rs"]
mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The test that runs holds it.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
