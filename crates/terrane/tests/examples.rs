//! Every example of the tour runs to its end.
#![allow(clippy::unwrap_used, reason = "an example that fails ends the test")]

macro_rules! example {
    ($path:literal, $example:ident, $test:ident) => {
        #[path = $path]
        mod $example;

        #[test]
        fn $test() {
            $example::main().unwrap();
        }
    };
}

example!("../examples/backup.rs", backup, backup_runs);
example!("../examples/bulk.rs", bulk, bulk_runs);
example!("../examples/changes.rs", changes, changes_runs);
example!("../examples/checkpoint.rs", checkpoint, checkpoint_runs);
example!("../examples/follower.rs", follower, follower_runs);
example!("../examples/in_memory.rs", in_memory, in_memory_runs);
example!("../examples/key_orders.rs", key_orders, key_orders_runs);
example!("../examples/prefixes.rs", prefixes, prefixes_runs);
example!("../examples/pressure.rs", pressure, pressure_runs);
example!("../examples/statistics.rs", statistics, statistics_runs);
