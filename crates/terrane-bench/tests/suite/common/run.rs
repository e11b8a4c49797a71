//! Runs for the tests of generators and traces.

use terrane_bench::engine::Direction;
use terrane_bench::plan::{Distribution, Run, Until};

/// A run of a workload with its own distribution.
pub(crate) fn run(workload: &str) -> Run {
    Run {
        name: workload.to_owned(),
        workload: workload.to_owned(),
        distribution: Distribution::Default,
        threads: 1,
        until: Until::Seconds(1.0),
        rate: None,
        batch: 1,
        multi_get: 32,
        window: 1,
        in_flight: 1,
        transaction_keys: 4,
        scan_rows: 100,
        direction: Direction::Forward,
        sync: false,
        background_rate: 0.0,
        record: None,
        replay: None,
        as_recorded: false,
        until_quiescent: false,
        verify: false,
        setup: false,
    }
}
