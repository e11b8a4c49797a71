//! Plans for the tests of generators and traces.

use terrane_bench::engine::Direction;
use terrane_bench::plan::{Data, Distribution, Run, Until, ValueSize};

/// Data of `keys` keys of 16 bytes and values of 100.
pub fn data(keys: u64) -> Data {
    Data { keys, key_bytes: 16, value: ValueSize::Fixed(100), entropy: 0.5, tables: 1, hashed_keys: false }
}

/// A run of a workload with its own distribution.
#[allow(dead_code, reason = "not every test binary makes runs")]
pub fn run(workload: &str) -> Run {
    Run {
        name: workload.to_owned(),
        workload: workload.to_owned(),
        distribution: Distribution::Default,
        threads: 1,
        until: Until::Seconds(1.0),
        rate: None,
        batch: 1,
        multi_get: 32,
        scan_rows: 100,
        direction: Direction::Forward,
        sync: false,
        background_rate: 0.0,
        record: None,
        replay: None,
        until_quiescent: false,
        verify: false,
    }
}
