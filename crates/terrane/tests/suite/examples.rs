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

example!("../../examples/backup.rs", backup, backup_runs);
example!("../../examples/bulk.rs", bulk, bulk_runs);
example!("../../examples/changes.rs", changes, changes_runs);
example!("../../examples/compaction_filters.rs", compaction_filters, compaction_filters_runs);
example!("../../examples/deadlock.rs", deadlock, deadlock_runs);
example!("../../examples/checkpoint.rs", checkpoint, checkpoint_runs);
example!("../../examples/follower.rs", follower, follower_runs);
example!("../../examples/in_memory.rs", in_memory, in_memory_runs);
example!("../../examples/key_orders.rs", key_orders, key_orders_runs);
example!("../../examples/listeners.rs", listeners, listeners_runs);
example!("../../examples/live_readers.rs", live_readers, live_readers_runs);
example!("../../examples/many_tables.rs", many_tables, many_tables_runs);
example!("../../examples/merge_operators.rs", merge_operators, merge_operators_runs);
example!("../../examples/prefixes.rs", prefixes, prefixes_runs);
example!("../../examples/pressure.rs", pressure, pressure_runs);
example!("../../examples/statistics.rs", statistics, statistics_runs);
example!("../../examples/repair.rs", repair, repair_runs);
example!("../../examples/snapshots.rs", snapshots, snapshots_runs);
example!("../../examples/start.rs", start, start_runs);
example!("../../examples/tables.rs", tables, tables_runs);
example!("../../examples/time_to_live.rs", time_to_live, time_to_live_runs);
example!("../../examples/typed.rs", typed_tables, typed_runs);
example!("../../examples/value_reads.rs", value_reads, value_reads_runs);
example!("../../examples/writer_thread.rs", writer_thread, writer_thread_runs);

#[path = "../../examples/range_deletes.rs"]
#[allow(dead_code, reason = "its `main` takes its arguments from the command line")]
mod range_deletes;

#[test]
fn range_deletes_runs() {
    let dir = tempfile::tempdir().unwrap();
    range_deletes::run(&dir.path().join("data"), 1_000).unwrap();
}

/// The guide shows the program of the example, but for where its database lies.
#[test]
fn the_guide_shows_the_example() {
    let page = include_str!("../../../../docs/start.md");
    let example = include_str!("../../examples/start.rs");
    let shown = page.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let body = |text: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| !line.contains("A table is a key space"));
        lines.map(|line| line.trim().to_owned()).collect()
    };
    assert!(body(example).len() > 30, "the program was found");
    assert_eq!(body(shown), body(example));
}
