//! The watch and the cell of epochs under the schedule explorer.
//!
//! Run with `cargo test -p terrane-base --features shuttle --test shuttle`.
#![cfg(feature = "shuttle")]
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

#[path = "shuttle/epoch_cell.rs"]
mod epoch_cell;
#[path = "shuttle/watch.rs"]
mod watch;

use std::sync::Arc;

/// Schedules of each kind for each test; `TERRANE_SCHEDULES` sets another number for long runs.
fn schedules() -> usize {
    std::env::var("TERRANE_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(3000)
}

fn explore(test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(test);
    let random = Arc::clone(&test);
    shuttle::check_random(move || random(), schedules());
    shuttle::check_pct(move || test(), schedules(), 4);
}
