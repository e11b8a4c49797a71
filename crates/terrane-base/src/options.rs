//! Every setting of a database once: name, type, default, range and one sentence.
//!
//! The list below makes the struct, the parser for `name=value`, the range check and the list that
//! `terrane options` and the documentation print (`list.rs` has the macro). [`Diagnostics`] and
//! [`Experiments`] are further lists of the same kind. A path and [`Options::memory_bytes`] are enough to run
//! well; a size of 0 means "derive it from the memory budget", and [`Options::resolve`] does so.

#[macro_use]
mod list;
mod diagnostics;
mod experiments;
mod in_memory;
mod kinds;
mod pool;
mod search;
mod stored;
mod tables;
mod value_compression;

pub use diagnostics::Diagnostics;
pub use experiments::Experiments;
pub use kinds::{AdaptiveShape, Compression, IoUring, JournalMode};
pub use pool::PoolPath;
pub use search::{BlockEncoding, BlockMemory, SearchKernel};
pub use stored::AsStored;
pub use tables::{ExtractorName, OperatorName, OrderName, TimeToLive};
pub use value_compression::ValueCompression;

use crate::{Error, Result};

/// A setting that can be read from and written as text.
pub trait Setting: Sized {
    /// Parses the text of a value.
    ///
    /// # Errors
    /// A sentence fragment that names the accepted values.
    fn parse(text: &str) -> std::result::Result<Self, String>;
    /// The value as text that [`Setting::parse`] accepts.
    fn show(&self) -> String;
}

/// Description of one option for help texts and documentation.
#[derive(Clone, Debug)]
pub struct OptionInfo {
    /// Name, as in `name=value`, with the prefix of its list: `diagnostics.`, `experiments.`, or none.
    pub name: &'static str,
    /// Default, as text.
    pub default: String,
    /// Accepted values, in words.
    pub range: &'static str,
    /// One sentence.
    pub about: &'static str,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;
/// A scan holds two windows for each sorted run, outside of caches: a part of the ceiling that several scans
/// at once do not notice.
const READ_AHEAD_SHARE: u64 = 64;

/// Blocks of data that are cached: a scan enters fewer of them.
const BLOCK_BYTES_IN_MEMORY: u64 = 16 * KIB;
/// Blocks of data that are not: a point read waits for a whole one, and reads, checks and decompresses it
/// (`docs/design/0039-exact-reads.md`).
const BLOCK_BYTES_BEYOND_MEMORY: u64 = 8 * KIB;

options! {
    /// The settings of a database. See the [module](self) for how sizes of 0 are derived.
    ///
    /// ```
    /// use terrane_base::options::Options;
    /// let mut options = Options::default();
    /// options.set("memory_bytes", "256MiB")?;
    /// assert_eq!(options.memory_bytes, 256 << 20);
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    struct Options "",
        /// Which operations the database logs as slow, and how often it shares its metrics.
        diagnostics: Diagnostics,
        /// Settings for comparisons and tests, which are not for ordinary use.
        experiments: Experiments;
    memory_bytes: u64 = 512 * MIB, "16 MiB to 16 TiB", |v| (16 * MIB..=16 * TIB).contains(v),
        "Ceiling for all memory the engine uses: segments, indexes, caches, filters and jobs in flight.";
    write_memory_bytes: u64 = 0, "0 (derived: half of memory_bytes) or at least 4 MiB",
        |v| *v == 0 || *v >= 4 * MIB,
        "Share of the memory ceiling for segments and the indexes over them.";
    close_flush: bool = true, "true, false", |_| true,
        "Flush the memtables when the database is closed, if that writes little: the next opening has nothing to replay.";
    segment_bytes: u64 = 0, "0 (derived) or 64 KiB to 1 GiB", |v| *v == 0 || (64 * KIB..=1024 * MIB).contains(v),
        "Most bytes of a journal segment; the first one has 64 KiB, each further one twice the bytes of the one before.";
    memtable_bytes: u64 = 0, "0 (derived) or at least 64 KiB", |v| *v == 0 || *v >= 64 * KIB,
        "Record and index bytes of a table after which its memtable is frozen.";
    global_index_bytes: u64 = 0, "0 (derived: memtable_bytes, so that nothing is indexed twice) or at least 64 KiB",
        |v| *v == 0 || *v >= 64 * KIB,
        "Bytes of a global index generation after which it is merged into level 1.";
    block_bytes: u64 = 0, "0 (derived: 16 KiB, or 8 KiB while the data are larger than memory_bytes) or 1 KiB to 1 MiB",
        |v| *v == 0 || (KIB..=MIB).contains(v),
        "Entries of a data block before compression.";
    block_encoding: BlockEncoding = BlockEncoding::TwoLayer, "two-layer, plain", |_| true,
        "Layout of data blocks: a search tree of two layers, or restart points; both can always be read.";
    filter_bits_per_key: u64 = 10, "0 (no filter) to 30", |v| *v <= 30,
        "Memory of a filter per key, in bits; 10 gives about one false positive in a hundred.";
    prefix_extractor: ExtractorName = ExtractorName::none(), "none, fixed:BYTES, capped:BYTES, until:DELIMITER, or the name of one that is given at opening", |_| true,
        "Prefix of keys that filters hold beside the keys, so that scans within one prefix skip extents without it.";
    row_cache: u64 = 25, "0 (off) to 50", |v| *v <= 50,
        "Largest share of the block cache, in percent, for the row cache; used while enough point reads repeat.";
    compression: Compression = Compression::Lz4, "none, lz4, zstd", |_| true,
        "Compression of the levels above the last.";
    compression_last: Compression = Compression::Lz4, "none, lz4, zstd", |_| true,
        "Compression of the last level, where most data rest.";
    level_fanout: u64 = 10, "2 to 100", |v| (2..=100).contains(v),
        "How many times larger a level may grow than the one above it.";
    level_base_bytes: u64 = 0, "0 (derived: 8/3 of global_index_bytes) or at least 64 KiB", |v| *v == 0 || *v >= 64 * KIB,
        "Size of level 1 above which its extents move down.";
    adaptive_shape: AdaptiveShape = AdaptiveShape::Auto, "off, auto, eager", |_| true,
        "Merge a tree into fewer sorted runs while it is mostly read: auto if that pays, eager at any cost; writes stop it.";
    overflow_runs_max: u64 = 10, "1 to 64", |v| (1..=64).contains(v),
        "Overflow runs (level 0) at which writers are slowed below the rate at which runs are merged; merging begins at half as many.";
    auto_compaction: bool = true, "true, false", |_| true,
        "Compact tables automatically; if off, memtables become overflow runs that stay until a caller requests a compaction.";
    space_amplification_max_percent: u64 = 0, "0 (no limit) or 110 to 1000", |v| *v == 0 || (110..=1000).contains(v),
        "Merge levels before they are full if a table's stored bytes exceed this percentage of the live bytes of its largest level.";
    value_separation_bytes: u64 = 16 * KIB, "0 (off) or 32 to 67108864", |v| *v == 0 || (32..=64 * MIB).contains(v),
        "Write values of at least this many bytes to value tables when they are flushed; levels have pointers to them.";
    value_space_max_percent: u64 = 125, "0 (no limit) or 105 to 1000", |v| *v == 0 || (105..=1000).contains(v),
        "Collect dead values when the value tables of a table take more than this percentage of their live part.";
    value_compression: ValueCompression = ValueCompression::AsTable, "table (as compression and compression_last say), none, lz4, zstd, or zstd:LEVEL from 1 to 22", |v| v.is_possible(),
        "Compression of value tables, block by block; a large value is a block of its own.";
    background_threads: u64 = 0, "0 (derived: the processors, from 2 to 8) to 64", |v| *v <= 64,
        "Threads for flush and compaction; of two or more, one is reserved for flushes under heavy writes.";
    io_bytes_per_second: u64 = 0, "0 (no limit) or at least 1 MiB", |v| *v == 0 || *v >= MIB,
        "Limit of the bytes per second that flush and compaction write.";
    scrub_bytes_per_second: u64 = 0, "0 (off) or at least 64 KiB", |v| *v == 0 || *v >= 64 * KIB,
        "Rate at which background scrubbing reads extents and verifies their checksums.";
    direct_io: bool = false, "true, false", |_| true,
        "Bypass the operating system's page cache for extents.";
    io_uring: IoUring = IoUring::Auto, "auto, on (refused where the system has none), off", |_| true,
        "Make scattered reads of extents concurrently, by io_uring, instead of one after the other.";
    read_ahead_bytes: u64 = 256 * KIB, "0 (off) or 16 KiB to 4 MiB", |v| *v == 0 || (16 * KIB..=4 * MIB).contains(v),
        "Most bytes that a scan in key order reads at once, ahead of itself, for each sorted run; a 64th of memory_bytes if that is less.";
    journal: JournalMode = JournalMode::File, "file, off", |_| true,
        "Where commits are recorded before they are acknowledged.";
    pmem_path: PoolPath = PoolPath::none(), "none, or the path of a file", |_| true,
        "Pool of persistent memory that holds the journal's segments in place of files; made if it is missing, and named at every opening.";
    pmem_bytes: u64 = 0, "0 (derived: the length of the pool; 3/2 of write_memory_bytes for a new one) or 1 MiB to 16 TiB",
        |v| *v == 0 || (MIB..=16 * TIB).contains(v),
        "Length of the pool of persistent memory; another length than that of a pool that exists is refused.";
    pmem_full_to_file: bool = false, "true, false", |_| true,
        "Continue in segment files while the pool of persistent memory is full, instead of refusing writes.";
    history_bytes: AsStored<u64> = AsStored::STORED, "stored (as last set; 0 in a new database), 0 (none) or 64 KiB to 16 TiB",
        |v| v.get().is_none_or(|v| *v == 0 || (64 * KIB..=16 * TIB).contains(v)),
        "Most bytes of journal segments that are kept for readers of changes after their records are in the levels; stored with the database.";
    history_age: AsStored<TimeToLive> = AsStored::STORED, "stored (as last set; none in a new database), none, or 1ms to 3650000d, such as 90s, 15m, 12h or 30d",
        |v| v.get().is_none_or(|v| v.is_possible()),
        "How long such segments are kept at most, within history_bytes; stored with the database.";
    key_order: OrderName = OrderName::bytewise(), "bytewise, reverse, or the name of one that is given at opening", |_| true,
        "Key order of a table; stored with the table when it is created, and never changed.";
    merge_operator: OperatorName = OperatorName::none(), "none, counter, append, append:SEPARATOR, max, min, json_merge_patch, or the name of one that is given at opening", |_| true,
        "Merge operator of a table: how operands become a value; stored with the table when it is created, and never changed.";
    time_to_live: TimeToLive = TimeToLive::NONE, "none, or 1ms to 3650000d, such as 90s, 15m, 12h or 30d", |v| v.is_possible(),
        "Default lifetime of values written to a table from now on; an expired value counts as deleted.";
    write_wait_max_ms: u64 = 0, "0 (no limit while flushes free memory) to 86400000", |v| *v <= 86_400_000,
        "Most milliseconds that throttling and memory together delay a write; after that it is refused as busy, without effect.";
    reader_age_max_ms: u64 = 0, "0 (any age) to 31536000000", |v| *v <= 31_536_000_000,
        "Greatest age of a snapshot, scan or transaction in milliseconds; older ones lose their pins, and their reads are refused.";
    skipped_versions_max: u64 = 0, "0 (no limit) or at least 100", |v| *v == 0 || *v >= 100,
        "Most deleted, expired or hidden versions that one seek or step of a scan may skip; more are refused.";
    create_if_missing: bool = true, "true, false", |_| true,
        "Create the database if the directory is missing or empty.";
    beside_others: bool = false, "true, false", |_| true,
        "Create the database even in a directory with other files, which stay unchanged, or below another database; otherwise such places are refused.";
    error_if_exists: bool = false, "true, false", |_| true,
        "Refuse to open a database that exists.";
    read_only: bool = false, "true, false", |_| true,
        "Open for reading only, shared with other readers; refused while a process has the database open for writing.";
}

#[cold]
fn unknown_option(name: &str) -> Error {
    let lists = [Options::describe(), Diagnostics::describe(), Experiments::describe()];
    let mut all = lists.into_iter().flatten();
    // A letter or two are part of nearly every name.
    let is_close = |known: &str| name.len() > 2 && (known.contains(name) || name.contains(known));
    let close = all.find(|info| is_close(info.name));
    let hint = close.map_or_else(String::new, |info| format!("; did you mean {}?", info.name));
    Error::invalid(format!("there is no option {name}{hint}"))
}

impl Options {
    /// Sets one option from text: an ordinary one by its name, others by `diagnostics.NAME` and
    /// `experiments.NAME`. Their plain names are accepted too: scripts and the options in a backup have them
    /// from the time when all options were in one list.
    ///
    /// ```
    /// # use terrane_base::options::Options;
    /// let mut options = Options::default();
    /// for setting in ["memory_bytes=256MiB", "compression_last=none", "diagnostics.slow_read_micros=500"] {
    ///     let (name, text) = setting.split_once('=').expect("a name and a value");
    ///     options.set(name, text)?;
    /// }
    /// assert_eq!(options.memory_bytes, 256 << 20);
    /// let error = options.set("memory_byte", "1GiB").unwrap_err();
    /// assert!(error.message().ends_with("did you mean memory_bytes?"));
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if there is no such option or the text is not an accepted value.
    pub fn set(&mut self, name: &str, text: &str) -> Result<()> {
        let diagnostic = name.strip_prefix(Diagnostics::PREFIX).unwrap_or(name);
        let experiment = name.strip_prefix(Experiments::PREFIX).unwrap_or(name);
        let is_set = self.set_listed(name, text)?
            || self.diagnostics.set_listed(diagnostic, text)?
            || self.experiments.set_listed(experiment, text)?;
        if !is_set {
            return Err(unknown_option(name));
        }
        self.check_ranges()
    }

    /// Every ordinary option with its current value as text, in the order of the list, then each diagnostic
    /// option and each experiment whose value is not the default. [`Options::set`] accepts all of them.
    ///
    /// ```
    /// # use terrane_base::options::Options;
    /// let options = Options { filter_bits_per_key: 16, ..Options::default() };
    /// let mut same = Options::default();
    /// for (name, text) in options.show() {
    ///     same.set(name, &text)?; // as from a file that they were written to
    /// }
    /// assert_eq!(same.filter_bits_per_key, 16);
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    #[must_use]
    pub fn show(&self) -> Vec<(&'static str, String)> {
        let diagnostics =
            self.diagnostics.show_listed().into_iter().zip(Diagnostics::default().show_listed());
        let experiments =
            self.experiments.show_listed().into_iter().zip(Experiments::default().show_listed());
        let changed = diagnostics.chain(experiments).filter(|(now, default)| now != default);
        self.show_listed().into_iter().chain(changed.map(|(now, _)| now)).collect()
    }

    /// Descriptions of all ordinary options; [`Diagnostics::describe`] and [`Experiments::describe`] have the
    /// others.
    ///
    /// ```
    /// # use terrane_base::options::Options;
    /// for option in Options::describe() {
    ///     println!("{}={} ({}): {}", option.name, option.default, option.range, option.about);
    /// }
    /// # assert!(Options::describe().iter().any(|option| option.name == "memory_bytes"));
    /// ```
    #[must_use]
    pub fn describe() -> Vec<OptionInfo> {
        Options::describe_listed()
    }

    fn check_ranges(&self) -> Result<()> {
        self.check_listed()?;
        self.diagnostics.check_listed()?;
        self.experiments.check_listed()
    }

    /// Entries of a block in bytes, while the data fit in memory. `block_bytes` of 0 stays 0 when options are
    /// [resolved](Options::resolve), because the size follows the data.
    ///
    /// ```
    /// use terrane_base::options::Options;
    /// let mut options = Options::default();
    /// assert_eq!(options.block_bytes_in_memory(), 16 << 10);
    /// assert_eq!(options.block_bytes_beyond_memory(), 8 << 10);
    /// options.set("block_bytes", "4KiB")?;
    /// assert_eq!(options.block_bytes_in_memory(), 4 << 10);
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    #[must_use]
    pub fn block_bytes_in_memory(&self) -> u64 {
        if self.block_bytes == 0 { BLOCK_BYTES_IN_MEMORY } else { self.block_bytes }
    }

    /// Entries of a block in bytes, while the data are larger than `memory_bytes`.
    ///
    /// ```
    /// # use terrane_base::options::Options;
    /// assert_eq!(Options::default().block_bytes_beyond_memory(), 8 << 10);
    /// ```
    #[must_use]
    pub fn block_bytes_beyond_memory(&self) -> u64 {
        if self.block_bytes == 0 { BLOCK_BYTES_BEYOND_MEMORY } else { self.block_bytes }
    }

    /// Checks ranges and contradictions, and replaces every derived 0 but that of `block_bytes` by its value.
    ///
    /// `processors` is how many threads can run at once.
    ///
    /// ```
    /// # use terrane_base::options::Options;
    /// let resolved = Options { memory_bytes: 256 << 20, ..Options::default() }.resolve(4)?;
    /// assert_eq!((resolved.write_memory_bytes, resolved.background_threads), (128 << 20, 4));
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid`, naming the options that contradict each other.
    pub fn resolve(&self, processors: usize) -> Result<Options> {
        self.check_ranges()?;
        let mut o = self.clone();
        let derive = |value: &mut u64, derived: u64| {
            if *value == 0 {
                *value = derived;
            }
        };
        derive(&mut o.write_memory_bytes, o.memory_bytes / 2);
        // One memtable is flushed and one is filled, and the segments at their borders have room.
        derive(&mut o.memtable_bytes, o.write_memory_bytes / 8 * 3);
        derive(&mut o.global_index_bytes, o.memtable_bytes);
        derive(
            &mut o.segment_bytes,
            nearest_power_of_two(o.write_memory_bytes / 16).clamp(64 * KIB, 64 * MIB),
        );
        derive(&mut o.level_base_bytes, o.global_index_bytes.saturating_mul(8) / 3);
        derive(&mut o.background_threads, processors.clamp(2, 8) as u64);
        derive(&mut o.experiments.replay_threads, processors.clamp(1, 64) as u64);
        o.read_ahead_bytes = o.read_ahead_bytes.min(o.memory_bytes / READ_AHEAD_SHARE);
        o.check_contradictions()?;
        Ok(o)
    }

    fn check_contradictions(&self) -> Result<()> {
        let refuse =
            |condition: bool, message: &str| if condition { Err(Error::invalid(message)) } else { Ok(()) };
        refuse(
            self.write_memory_bytes > self.memory_bytes / 4 * 3,
            "write_memory_bytes is more than 3/4 of memory_bytes: raise memory_bytes or lower write_memory_bytes",
        )?;
        refuse(
            self.memtable_bytes > self.write_memory_bytes / 2,
            "memtable_bytes is more than half of write_memory_bytes: lower it",
        )?;
        // The active segment, the one kept ready and the borders of memtables take whole segments.
        refuse(
            self.segment_bytes > self.write_memory_bytes / 8,
            "segment_bytes is more than an eighth of write_memory_bytes: lower it",
        )?;
        refuse(
            self.global_index_bytes > self.write_memory_bytes / 2,
            "global_index_bytes is more than half of write_memory_bytes: lower it",
        )?;
        refuse(
            self.global_index_bytes < self.memtable_bytes,
            "global_index_bytes is less than memtable_bytes: raise it or lower memtable_bytes",
        )?;
        refuse(
            self.pmem_path.get().is_some() && self.journal == JournalMode::Off,
            "pmem_path with journal=off holds nothing: there are no segments",
        )?;
        refuse(
            self.pmem_path.get().is_none() && self.pmem_bytes != 0,
            "pmem_bytes without pmem_path: name the pool of persistent memory",
        )?;
        let keeps = self.history_bytes.get().is_some_and(|bytes| *bytes > 0);
        refuse(
            keeps && self.journal == JournalMode::Off,
            "history_bytes with journal=off keeps nothing: there are no segments",
        )?;
        refuse(
            self.history_bytes.get().is_some_and(|bytes| *bytes > 0 && *bytes < self.segment_bytes),
            "history_bytes is less than segment_bytes, so it keeps nothing: raise it or lower segment_bytes",
        )?;
        refuse(
            self.read_only && self.error_if_exists,
            "read_only and error_if_exists contradict each other: a database opened for reading must exist",
        )
    }
}

/// The nearest power of two: more than two thirds of `value`, which is not 0, and at most four thirds.
fn nearest_power_of_two(value: u64) -> u64 {
    let below = 1_u64 << value.max(1).ilog2();
    if value >= below + below.div_ceil(2) { 2 * below } else { below }
}
