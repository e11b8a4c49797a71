//! Separated values in a world of steps. A program of its own beside the `suite`, and one engine after the
//! other: a thread of the same process that has an epoch pinned keeps memory of every engine of the process
//! from being freed; an engine that is short of memory writes more overflow runs, and runs hide values.
#![allow(clippy::unwrap_used, reason = "a test")]

mod debt;
mod space;

use parking_lot::Mutex;

/// The engine that runs holds it.
static TURN: Mutex<()> = Mutex::new(());
