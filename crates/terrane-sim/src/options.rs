//! Options of a run and of its tables, drawn at random.

use terrane_base::Rng;
use terrane_engine::TABLE_OPTIONS;

use crate::order::{self, Order};

/// Switches that are on or off with the same chance, in the order in which they came.
const LATER_SWITCHES: [&str; 10] = [
    "experiments.operand_folding",
    "experiments.merge_through",
    "experiments.warm_outputs",
    "experiments.incremental_replacement",
    "experiments.adaptive_memory",
    "experiments.return_freed_memory",
    "experiments.write_memory_yields",
    "experiments.scan_flush",
    "experiments.expiry_compaction",
    "experiments.early_range_deletes",
];

/// Options at random, most of them as small as they can be. Together they never contradict each other.
pub(crate) fn random_options(numbers: &mut Rng) -> Vec<(String, String)> {
    const KIB: u64 = 1 << 10;
    let write = *numbers.pick(&[4096, 4096, 4096, 8192]) * KIB;
    let memtable = *numbers.pick(&[64, 64, 64, 96, 256, 1024]) * KIB;
    let index = memtable * numbers.pick(&[1, 1, 1, 2, 4]).to_owned().min(write / 2 / memtable);
    let numbered = [
        ("memory_bytes", *numbers.pick(&[16384, 16384, 24576]) * KIB),
        ("write_memory_bytes", write),
        ("segment_bytes", *numbers.pick(&[64, 64, 64, 128, 256]) * KIB),
        ("memtable_bytes", memtable),
        ("global_index_bytes", index),
        ("block_bytes", *numbers.pick(&[1, 1, 2, 4, 16]) * KIB),
        ("filter_bits_per_key", *numbers.pick(&[0, 1, 10, 20])),
        ("level_fanout", *numbers.pick(&[2, 2, 3, 10])),
        ("level_base_bytes", *numbers.pick(&[64, 64, 128, 1024]) * KIB),
        ("overflow_runs_max", *numbers.pick(&[1, 2, 8])),
        ("background_threads", *numbers.pick(&[1, 1, 2, 3])),
        ("read_ahead_bytes", *numbers.pick(&[0, 16, 64, 512]) * KIB),
        ("io_bytes_per_second", *numbers.pick(&[0, 0, 0, 1 << 20])),
    ];
    let mut options: Vec<_> =
        numbered.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect();
    let scrub = *numbers.pick(&[0, 0, 64 * KIB, 1024 * KIB, 65536 * KIB]);
    options.push(("scrub_bytes_per_second".to_owned(), scrub.to_string()));
    options
        .push(("adaptive_shape".to_owned(), (*numbers.pick(&["off", "auto", "eager", "eager"])).to_owned()));
    options.push(("experiments.hot_cold".to_owned(), numbers.one_in(2).to_string()));
    for name in ["compression", "compression_last"] {
        options.push((name.to_owned(), (*numbers.pick(&["none", "lz4"])).to_owned()));
    }
    options.push((
        "block_encoding".to_owned(),
        (*numbers.pick(&["two-layer", "two-layer", "plain"])).to_owned(),
    ));
    options.push(("io_uring".to_owned(), (*numbers.pick(&["auto", "off"])).to_owned()));
    options.push(("row_cache".to_owned(), numbers.pick(&[0, 10, 50]).to_string()));
    for name in ["direct_io", "experiments.defer_merges"] {
        options.push((name.to_owned(), numbers.one_in(2).to_string()));
    }
    for name in [
        "experiments.memtable_filter",
        "experiments.adaptive_filters",
        "experiments.interleaved_multi_get",
        "experiments.idle_flush",
        "experiments.idle_reclaim",
    ] {
        options.push((name.to_owned(), (!numbers.one_in(4)).to_string()));
    }
    // A random stream of its own: options that were added later do not change the numbers that follow.
    let mut later = numbers.fork();
    for name in LATER_SWITCHES {
        options.push((name.to_owned(), later.one_in(2).to_string()));
    }
    let extractor = *later.pick(&["none", "none", "fixed:1", "fixed:8", "capped:3", "until:/"]);
    options.push(("prefix_extractor".to_owned(), extractor.to_owned()));
    for (name, values) in [
        ("history_bytes", ["stored", "0", "1MiB", "16MiB"]),
        ("history_age", ["stored", "none", "none", "none"]),
    ] {
        options.push((name.to_owned(), (*later.pick(&values)).to_owned()));
    }
    random_limits(&mut later, &mut options);
    // Most histories leave the journal something to replay after a close.
    options.push(("close_flush".to_owned(), later.one_in(3).to_string()));
    // Most histories are to compact.
    options.push(("auto_compaction".to_owned(), (!later.one_in(6)).to_string()));
    random_separation(&mut later.fork(), &mut options);
    options.push(random_block_memory(&mut later.fork()));
    options
}

/// Most histories have their cached blocks in chunks, as a database has by default.
fn random_block_memory(numbers: &mut Rng) -> (String, String) {
    let memory = *numbers.pick(&["arena", "arena", "heap"]);
    ("experiments.block_memory".to_owned(), memory.to_owned())
}

/// Every second history separates values, and moves them often.
fn random_separation(numbers: &mut Rng, options: &mut Vec<(String, String)>) {
    let from = *numbers.pick(&[0, 0, 0, 32, 50, 250]);
    for (name, value) in [
        ("value_separation_bytes", from),
        ("value_space_max_percent", *numbers.pick(&[0, 105, 125])),
        ("experiments.value_groups_max", *numbers.pick(&[1, 2, 10])),
        ("experiments.value_garbage_permille", *numbers.pick(&[1, 300, 1000])),
    ] {
        options.push((name.to_owned(), value.to_string()));
    }
    options.push(("experiments.lazy_value_merge".to_owned(), numbers.one_in(2).to_string()));
    let compression = *numbers.pick(&["table", "table", "none", "lz4"]);
    options.push(("value_compression".to_owned(), compression.to_owned()));
}

/// Limits that no history reaches, and logs that some operations do.
fn random_limits(numbers: &mut Rng, options: &mut Vec<(String, String)>) {
    // Longer than any history holds a write back while memory comes back at all.
    let wait = *numbers.pick(&[0, 0, 86_400_000]);
    options.push(("write_wait_max_ms".to_owned(), wait.to_string()));
    for name in ["slow_read_micros", "slow_write_micros", "slow_scan_micros", "slow_job_micros"] {
        options.push((format!("diagnostics.{name}"), numbers.pick(&[0, 0, 0, 1, 1000]).to_string()));
    }
    options.push(("skipped_versions_max".to_owned(), numbers.pick(&[0, 0, 1u64 << 40]).to_string()));
    options.push(("reader_age_max_ms".to_owned(), numbers.pick(&[0, 0, 31_536_000_000u64]).to_string()));
}

/// The journal off, and with it what only a journal can keep.
pub(crate) fn without_journal(options: &mut Vec<(String, String)>) {
    options.retain(|(name, _)| name != "history_bytes");
    options.push(("journal".to_owned(), "off".to_owned()));
}

/// Options that a table has for itself, at random.
pub(crate) fn random_table_options(numbers: &mut Rng) -> Vec<(String, String)> {
    let all = random_options(numbers).into_iter().filter(|(name, _)| TABLE_OPTIONS.contains(&&**name));
    let (of_values, mut own): (Vec<_>, Vec<_>) = all.partition(|(name, _)| name.starts_with("value_"));
    own.retain(|_| numbers.one_in(2));
    if numbers.one_in(3) {
        own.push(order::draw_encoded(numbers));
    } else if numbers.one_in(2) {
        own.push(order::draw_compared(numbers));
    } else if numbers.one_in(4) {
        // Beside a database whose own tables have another one.
        own.push(order::option(Order::Bytes));
    }
    // Behind all others: options that were added later do not change the numbers before them.
    own.extend(of_values.into_iter().filter(|_| numbers.one_in(2)));
    own
}
