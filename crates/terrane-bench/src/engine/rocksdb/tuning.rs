//! How RocksDB is set up: its tuning guide's advice, under the bench's memory budget.
//!
//! Values are RocksDB's own option strings where it has one, so that the report prints the options that
//! RocksDB got. Memory: the block cache is `memory_bytes`, holds index and filter blocks, and memtables are
//! charged to it, where the library exports a write buffer manager; else the cache gets the memory that
//! memtables leave. See `docs/benchmarks/peers.md`.

use crate::engine::EngineOptions;
use crate::engine::options::{Named, setting};
use crate::error::{Error, Result};

const KNOWN: [&str; 16] = [
    "memtable_bytes",
    "write_memory_bytes",
    "block_bytes",
    "block_index",
    "pin",
    "memtable_filter_percent",
    "filter",
    "cache",
    "compression",
    "compression_last",
    "readahead_bytes",
    "counters",
    "options",
    "transactions",
    "isolation",
    "calls",
];

const MIB: u64 = 1 << 20;
/// RocksDB cuts a larger share of a memtable's bytes for its filter down to this.
const MEMTABLE_FILTER_PERCENT_MAX: u64 = 25;

/// The counters that RocksDB keeps inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// Nothing: no cost.
    Off,
    /// `PerfContext` at the level of counts, per thread.
    Perf,
    /// `Statistics`, tickers only where the library lets one choose.
    Statistics,
}

/// Which of RocksDB's databases is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transactions {
    /// The plain one, which has none.
    Off,
    /// `OptimisticTransactionDB`.
    Optimistic,
    /// `TransactionDB`, of policy `WriteCommitted`.
    Pessimistic,
}

/// By which functions sessions read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    /// Those that cost RocksDB least: pinned values, and a batch for each write.
    Usual,
    /// Those that do what the adapter of Terrane's library does.
    LikeLibrary,
}

/// All that is needed to open.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    /// The whole budget, in bytes.
    pub(super) memory_bytes: u64,
    /// Of it for memtables.
    pub(super) write_memory_bytes: u64,
    /// Bytes of a data block before compression.
    pub(super) block_bytes: u64,
    /// A hash index in data blocks, beside binary search.
    pub(super) block_hash_index: bool,
    /// True if the index and filter blocks of all levels stay in the cache, not only those of level 0.
    pub(super) pins_all: bool,
    /// Bits of filter per key; 0 means no filter.
    pub(super) filter_bits: u32,
    /// Ribbon below level 0 instead of Bloom.
    pub(super) ribbon: bool,
    /// `auto`, `hyper_clock` or `lru`.
    pub(super) cache: &'static str,
    /// Readahead of a whole scan in bytes; 0 is RocksDB's own, which grows.
    pub(super) readahead_bytes: u64,
    /// The counters that it keeps.
    pub(super) counting: Counting,
    /// By which functions.
    pub(super) calls: Calls,
    /// Which database.
    pub(super) transactions: Transactions,
    /// True if a transaction fails if what it reads for update was changed after it began (`set_snapshot`);
    /// otherwise after its read.
    pub(super) has_snapshot: bool,
    /// Size of the files that compaction writes, in bytes.
    pub(super) file_bytes: u64,
    /// Codec of the last level.
    compression_last: &'static str,
    strings: Vec<(&'static str, String)>,
    given: Option<String>,
}

impl Tuning {
    /// From the options of the scenario and those of the engine.
    ///
    /// # Errors
    /// `Plan` for an option that is unknown or wrong.
    pub(super) fn new(open: &EngineOptions) -> Result<Self> {
        let named = Named::new("rocksdb", &open.options, &KNOWN)?;
        let write_memory_bytes = named.number("write_memory_bytes", open.memory_bytes / 4)?.max(2 * MIB);
        let memtable_bytes =
            named.number("memtable_bytes", (write_memory_bytes / 2).clamp(MIB, 64 * MIB))?.max(64 << 10);
        let compression_last = codec(named.one_of("compression_last", &["lz4", "none", "zstd", "snappy"])?);
        let compression = codec(named.one_of("compression", &["none", "lz4", "zstd", "snappy"])?);
        let counting = match named.one_of("counters", &["off", "perf", "statistics"])? {
            "perf" => Counting::Perf,
            "statistics" => Counting::Statistics,
            _ => Counting::Off,
        };
        let transactions = match named.one_of("transactions", &["off", "optimistic", "pessimistic"])? {
            "optimistic" => Transactions::Optimistic,
            "pessimistic" => Transactions::Pessimistic,
            _ => Transactions::Off,
        };
        let file_bytes = memtable_bytes.clamp(2 * MIB, 64 * MIB);
        let mut strings = strings(open, write_memory_bytes, memtable_bytes, file_bytes, compression);
        let memtable_filter_percent = named.number("memtable_filter_percent", 0)?;
        if memtable_filter_percent > MEMTABLE_FILTER_PERCENT_MAX {
            return Err(Error::plan(format!(
                "option memtable_filter_percent of rocksdb is {memtable_filter_percent}: RocksDB takes at most \
                 {MEMTABLE_FILTER_PERCENT_MAX}"
            )));
        }
        if memtable_filter_percent > 0 {
            let share = memtable_filter_percent as f64 / 100.0;
            strings.push(("memtable_prefix_bloom_size_ratio", share.to_string()));
            strings.push(("memtable_whole_key_filtering", "true".to_owned()));
        }
        Ok(Tuning {
            memory_bytes: open.memory_bytes,
            write_memory_bytes,
            block_bytes: named.number("block_bytes", 16 << 10)?,
            block_hash_index: named.one_of("block_index", &["binary", "hash"])? == "hash",
            pins_all: named.one_of("pin", &["level0", "all"])? == "all",
            filter_bits: open.filter_bits_per_key,
            ribbon: named.one_of("filter", &["bloom", "ribbon"])? == "ribbon",
            cache: named.one_of("cache", &["auto", "hyper_clock", "lru"])?,
            readahead_bytes: named.number("readahead_bytes", 0)?,
            counting,
            calls: match named.one_of("calls", &["usual", "like_library"])? {
                "like_library" => Calls::LikeLibrary,
                _ => Calls::Usual,
            },
            transactions,
            has_snapshot: named.one_of("isolation", &["read_committed", "snapshot"])? == "snapshot",
            file_bytes,
            compression_last,
            strings,
            given: named.text("options").map(str::to_owned),
        })
    }

    /// The same with nothing compressed in the last level.
    pub(super) fn without_compression(mut self) -> Self {
        self.compression_last = codec("none");
        self
    }

    /// Returns true if the last level is compressed.
    pub(super) fn compresses(&self) -> bool {
        self.compression_last != codec("none")
    }

    /// All options that RocksDB reads from a string, in its syntax. `managed`: memtables are charged to the
    /// cache.
    pub(super) fn option_string(&self, managed: bool) -> String {
        let mut text = String::from("create_if_missing=true;create_missing_column_families=true;");
        for (name, value) in self.all_strings(managed) {
            text.push_str(&format!("{name}={value};"));
        }
        text.push_str(self.given.as_deref().unwrap_or_default());
        text
    }

    fn all_strings(&self, managed: bool) -> Vec<(&'static str, String)> {
        let mut all = self.strings.clone();
        all.push(("bottommost_compression", self.compression_last.to_owned()));
        if !managed {
            all.push(("db_write_buffer_size", self.write_memory_bytes.to_string()));
        }
        all
    }

    /// Bytes of the block cache.
    pub(super) fn cache_bytes(&self, managed: bool) -> u64 {
        if managed {
            self.memory_bytes
        } else {
            self.memory_bytes.saturating_sub(self.write_memory_bytes).max(MIB)
        }
    }

    /// The settings as the report prints them.
    pub(super) fn settings(&self, managed: bool, cache: &str) -> Vec<(String, String)> {
        let filter = match (self.filter_bits, self.ribbon) {
            (0, _) => "none".to_owned(),
            (bits, true) => format!("ribbon, Bloom in level 0, {bits} bits per key, whole keys"),
            (bits, false) => format!("Bloom, {bits} bits per key, whole keys"),
        };
        let write_memory = if managed { "charged to the block cache" } else { "beside the block cache" };
        let counters = match self.counting {
            Counting::Off => "off",
            Counting::Perf => "PerfContext, counts only: costs time in each operation",
            Counting::Statistics => "Statistics: costs time in each operation",
        };
        let mut settings = vec![
            setting("block_cache", format!("{cache}, {} bytes, not strict", self.cache_bytes(managed))),
            setting("write_memory", format!("{} bytes, {write_memory}", self.write_memory_bytes)),
            setting("block_size", self.block_bytes),
            setting("filter", filter),
            setting("cache_index_and_filter_blocks", true),
            setting("pin_l0_filter_and_index_blocks_in_cache", true),
            setting("unpartitioned_pinning", if self.pins_all { "all" } else { "level 0" }),
            setting("counters", counters),
        ];
        if self.block_hash_index {
            settings.push(setting("data_block_index_type", "binary search and hash"));
        }
        if self.calls == Calls::LikeLibrary {
            settings.push(setting("calls", "values into a buffer, or of a multi-get together; single puts"));
        }
        if self.readahead_bytes > 0 {
            settings.push(setting("readahead of whole scans", self.readahead_bytes));
        }
        if self.transactions != Transactions::Off {
            settings.push(setting("transactions", format!("{:?}, deadlocks detected", self.transactions)));
            settings.push(setting("set_snapshot", self.has_snapshot));
        }
        settings.extend(self.all_strings(managed).into_iter().map(|(name, value)| setting(name, value)));
        settings.extend(self.given.iter().map(|given| setting("options", given)));
        settings
    }
}

fn codec(name: &str) -> &'static str {
    match name {
        "lz4" => "kLZ4Compression",
        "zstd" => "kZSTD",
        "snappy" => "kSnappyCompression",
        _ => "kNoCompression",
    }
}

fn strings(
    open: &EngineOptions,
    write_memory_bytes: u64,
    memtable_bytes: u64,
    file_bytes: u64,
    compression: &str,
) -> Vec<(&'static str, String)> {
    let jobs = match open.background_threads {
        0 => std::thread::available_parallelism().map_or(2, usize::from).max(2).to_string(),
        threads => threads.to_string(),
    };
    let mut strings = vec![
        ("write_buffer_size", memtable_bytes.to_string()),
        ("max_write_buffer_number", (write_memory_bytes / memtable_bytes).clamp(2, 6).to_string()),
        ("level_compaction_dynamic_level_bytes", "true".to_owned()),
        ("max_bytes_for_level_base", (4 * memtable_bytes).to_string()),
        ("target_file_size_base", file_bytes.to_string()),
        ("compaction_pri", "kMinOverlappingRatio".to_owned()),
        ("compression", compression.to_owned()),
        ("max_background_jobs", jobs),
        ("bytes_per_sync", MIB.to_string()),
        ("compaction_readahead_size", (2 * MIB).to_string()),
    ];
    if open.level_fanout > 0 {
        strings.push(("max_bytes_for_level_multiplier", open.level_fanout.to_string()));
    }
    if open.direct_io {
        strings.push(("use_direct_reads", "true".to_owned()));
        strings.push(("use_direct_io_for_flush_and_compaction", "true".to_owned()));
    }
    strings
}
