//! Histories of random operations with reopenings, held against the model. `TERRANE_STEPS` sets how many
//! operations each does (default 60,000); the release check runs a million and more.

#![allow(clippy::unwrap_used, reason = "a test")]

use terrane::Options;
use terrane_sim::{History, Settings};

fn steps() -> u64 {
    std::env::var("TERRANE_STEPS").ok().and_then(|text| text.parse().ok()).unwrap_or(60_000)
}

/// Limits so small that memtables freeze, generations flush and levels compact all the time.
fn tiny() -> Options {
    let mut options = Options { memory_bytes: 16 << 20, ..Options::default() };
    for (name, value) in [
        ("segment_bytes", "256KiB"),
        ("memtable_bytes", "128KiB"),
        ("level_base_bytes", "256KiB"),
        ("level_fanout", "3"),
        ("block_bytes", "1KiB"),
        ("merge_operator", "append"),
    ] {
        options.set(name, value).unwrap();
    }
    options
}

fn run(seed: u64, keys: u64, options: Options) {
    let dir = tempfile::tempdir().unwrap();
    let settings =
        Settings { steps: steps(), seed, keys, value_bytes_max: 200, steps_per_reopen: 5_000, options };
    History::new(&dir.path().join("db"), settings).unwrap().run().unwrap();
}

#[test]
fn tiny_limits_many_keys() {
    run(1, 20_000, tiny());
}

#[test]
fn tiny_limits_few_keys() {
    run(2, 200, tiny());
}

#[test]
fn generations_of_several_memtables() {
    let mut options = tiny();
    options.set("global_index_bytes", "1MiB").unwrap();
    run(3, 5_000, options);
}

#[test]
fn compressed_and_one_worker() {
    let mut options = tiny();
    options.set("compression", "lz4").unwrap();
    options.set("background_threads", "1").unwrap();
    run(4, 5_000, options);
}

#[test]
fn default_limits() {
    run(5, 5_000, Options::default());
}
