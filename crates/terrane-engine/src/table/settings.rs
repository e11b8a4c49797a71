//! Options made ready for use: those of the database, resolved, and those of one table on top of them.

use std::sync::Arc;
use terrane_base::sync::atomic::AtomicU64;

use terrane_base::env::Clock;
use terrane_base::key_order::{BYTEWISE, OperatorInOrder};
use terrane_base::options::{BlockMemory, ExtractorName, OperatorName, Options, OrderName, TimeToLive};
use terrane_base::prefix_extractor::Extractor;
use terrane_base::{Error, Functions, Result};
use terrane_compaction::Limits;
use terrane_device::HUGE_PAGE_BYTES;
use terrane_format::codec::Encoder;
use terrane_format::external::COMPARATOR;

use crate::table::catalog::HIDDEN_NAME;
use crate::table::semantics::{Meaning, Skips, TableSemantics};

/// Names of the options that a table may set for itself.
pub const TABLE_OPTIONS: [&str; 17] = [
    "auto_compaction",
    "block_encoding",
    "block_bytes",
    "compression",
    "compression_last",
    "filter_bits_per_key",
    "level_base_bytes",
    "level_fanout",
    "overflow_runs_max",
    "space_amplification_max_percent",
    MERGE_OPERATOR,
    KEY_ORDER,
    TIME_TO_LIVE,
    PREFIX_EXTRACTOR,
    "value_separation_bytes",
    "value_space_max_percent",
    "value_compression",
];

/// Names of the options that are stored with every table that has them.
pub(crate) const MERGE_OPERATOR: &str = "merge_operator";
pub(crate) const KEY_ORDER: &str = "key_order";
/// These options, each with the value of a table that has no stored one.
pub(crate) const KEPT: [(&str, &str); 2] = [(MERGE_OPERATOR, "none"), (KEY_ORDER, BYTEWISE)];
/// The name that notes are stored under, among options.
pub(crate) const TABLE_NOTE: &str = "note";
const TIME_TO_LIVE: &str = "time_to_live";
pub(crate) const PREFIX_EXTRACTOR: &str = "prefix_extractor";

/// Of the memory budget, the part that is left to jobs in flight.
const JOB_SHARE: u64 = 8;

/// One part in this many of it is lent to the cache while no job runs: the rest is also for iterators.
const LENT_SHARE: u64 = 2;

/// A cache of fewer chunks than these would lose too much to the last one of them.
const CHUNKS_MIN: u64 = 20;

/// Least bytes of a chunk of the cache. Where the cache has no room for [`CHUNKS_MIN`] of them, or of what
/// its blocks need, its objects lie on the heap.
const CHUNK_BYTES_MIN: u64 = 256 << 10;

/// A chunk has at least so many blocks: an object larger than an eighth of a chunk lies on the heap.
const CHUNK_BLOCKS_MIN: u64 = 16;

/// Least slack for indexes: each writing thread may take a chunk of 2 MiB from one look at memory to the
/// next.
const INDEX_SLACK_BYTES_MIN: u64 = 4 << 20;

/// The options in force for one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSettings {
    /// The limits of the picker and the merge.
    pub limits: Limits,
    /// Size of level 1 above which its extents move down.
    pub level_base_bytes: u64,
    /// Overflow runs beyond which writers are slowed.
    pub overflow_runs_max: u64,
    /// True if memtables have a filter.
    pub memtable_filter: bool,
    /// Folds operands of merges.
    pub merge_operator: OperatorName,
    /// How keys are ordered.
    pub key_order: OrderName,
    /// True if they were stored as ordered by a comparator.
    pub is_by_comparator: bool,
    /// How long written rows live, at first.
    pub time_to_live: TimeToLive,
    /// Whose prefixes filters hold, at first.
    pub prefix_extractor: ExtractorName,
    /// Hidden versions that one step of a scan may pass; 0 is any number.
    pub skipped_versions_max: u64,
}

impl TableSettings {
    /// The database's options (resolved) with the table's own `overrides` on top.
    ///
    /// # Errors
    /// `Invalid` for an option that a table cannot set, or a value out of range.
    pub fn new(database: &Options, overrides: &[(String, String)]) -> Result<TableSettings> {
        let mut options = database.clone();
        // A table has what it was made with, whatever the database is opened with.
        options.merge_operator = OperatorName::none();
        options.key_order = OrderName::bytewise();
        for (name, value) in overrides.iter().filter(|(name, _)| name != TABLE_NOTE) {
            check_table_option(known_as(name), value)?;
            options.set(known_as(name), value)?;
        }
        let (of_values, _) = options.value_compression.over(options.compression);
        for compression in [options.compression, options.compression_last, of_values] {
            // A build without a codec must refuse it here: found out by a flush, it would stop the whole
            // database.
            Encoder::new(compression)?;
        }
        if options.level_base_bytes == 0 {
            options.level_base_bytes = database.level_base_bytes;
        }
        Ok(TableSettings {
            limits: Limits::from_options(&options),
            level_base_bytes: options.level_base_bytes,
            overflow_runs_max: options.overflow_runs_max,
            memtable_filter: options.experiments.memtable_filter,
            merge_operator: options.merge_operator,
            key_order: options.key_order,
            is_by_comparator: overrides.iter().any(|(name, _)| name == COMPARATOR),
            time_to_live: options.time_to_live,
            prefix_extractor: options.prefix_extractor,
            skipped_versions_max: options.skipped_versions_max,
        })
    }

    /// The meaning of the records of the table `name`.
    ///
    /// # Errors
    /// `Invalid` if a function that it names is not registered, naming both and the remedy.
    pub(crate) fn semantics(
        &self,
        name: &str,
        functions: &Functions,
        clock: &Arc<dyn Clock>,
    ) -> Result<Arc<TableSemantics>> {
        let of_table = |error: Error| error.context(format!("table {name:?}"));
        let orders = &functions.orders;
        let find = |name| if self.is_by_comparator { orders.find(name) } else { orders.find_encoding(name) };
        let order = self.key_order.get().map(find).transpose();
        let order = order.map_err(of_table)?;
        let operator = self.merge_operator.get().map(|name| functions.operators.find(name)).transpose();
        let operator = operator.map_err(of_table)?.map(|operator| match &order {
            Some(order) => Arc::new(OperatorInOrder::new(operator, order.clone())) as _,
            None => operator,
        });
        let extractor = find_extractor(&self.prefix_extractor, functions).map_err(of_table)?;
        // What the engine scans for itself must come to its end.
        let is_bounded = self.skipped_versions_max > 0 && name != HIDDEN_NAME;
        let limit = if is_bounded { self.skipped_versions_max } else { u64::MAX };
        let skips = Skips { table: name.to_owned(), limit, most: AtomicU64::new(0) };
        Ok(TableSemantics::new(
            Meaning { operator, order },
            extractor,
            clock.clone(),
            self.time_to_live,
            skips,
        ))
    }
}

/// The options that are stored with a new table: its own, and what of the database's it keeps for ever.
pub(crate) fn stored_options(
    database: &Options,
    overrides: &[(String, String)],
    functions: &Functions,
) -> Vec<(String, String)> {
    let mut stored = overrides.to_vec();
    for ((name, _), value) in kept_options(database) {
        let is_forgotten = name == KEY_ORDER && terrane_base::planted!(ForgetKeyOrder);
        if !is_forgotten && value.is_some() && !stored.iter().any(|(known, _)| known_as(known) == name) {
            stored.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        }
    }
    for (name, value) in &mut stored {
        // The manifest itself must know of a comparator: it sorts extents by it.
        if name == KEY_ORDER && !functions.orders.collation(value).is_missing() {
            COMPARATOR.clone_into(name);
        }
    }
    stored
}

/// The name under which the user knows an option that is stored so.
pub(crate) fn known_as(stored: &str) -> &str {
    if stored == COMPARATOR { KEY_ORDER } else { stored }
}

/// Options that a table keeps as it was made, with the values that the database chooses for it.
fn kept_options(database: &Options) -> [((&'static str, &'static str), Option<&str>); 2] {
    let [operator, order] = KEPT;
    [(operator, database.merge_operator.get()), (order, database.key_order.get())]
}

/// Checks that a function which a table keeps by this option is registered.
///
/// # Errors
/// `Invalid`, naming the function.
pub(crate) fn check_registered(option: &str, value: &str, functions: &Functions) -> Result<()> {
    match option {
        MERGE_OPERATOR if value != "none" => functions.operators.find(value).map(drop),
        KEY_ORDER if value != BYTEWISE => functions.orders.find(value).map(drop),
        PREFIX_EXTRACTOR if value != "none" => functions.extractors.find_stored(value).map(drop),
        _ => Ok(()),
    }
}

/// Checks that the default table, which exists, has the functions that the database is opened with.
///
/// # Errors
/// `Invalid`, naming both.
pub(crate) fn check_default(database: &Options, stored: &[(String, String)]) -> Result<()> {
    for ((name, otherwise), wanted) in kept_options(database) {
        let found =
            stored.iter().find(|(known, _)| known_as(known) == name).map_or(otherwise, |(_, value)| value);
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            return Err(Error::invalid(format!(
                "option {name}={wanted}: the table \"default\" was made with {found}, which cannot be changed; leave \
                 the option out, and create another table with {wanted}"
            )));
        }
    }
    Ok(())
}

fn find_extractor(name: &ExtractorName, functions: &Functions) -> Result<Option<Arc<Extractor>>> {
    let found = name.get().map(|name| functions.extractors.find_stored(name)).transpose();
    found.map(Option::flatten)
}

/// Options of a table with one of them changed while it is open.
pub(crate) struct Changed {
    /// The options that are stored with the table.
    pub(crate) options: Vec<(String, String)>,
    pub(crate) settings: TableSettings,
    pub(crate) extractor: Option<Arc<Extractor>>,
}

/// Changes one of the options that are stored with a table.
///
/// # Errors
/// `Invalid` for an option that cannot be changed, a bad value, or a function that is not registered.
pub(crate) fn changed_options(
    database: &Options,
    stored: &[(String, String)],
    (name, value): (&str, &str),
    functions: &Functions,
) -> Result<Changed> {
    check_table_option(name, value)?;
    if KEPT.iter().any(|(kept, _)| *kept == name) {
        return Err(Error::invalid(format!(
            "option {name}: a table keeps it as it was made; all others of its options can be changed while it is open, such \
             as {TIME_TO_LIVE}"
        )));
    }
    let mut given = Options::default();
    given.set(name, value)?;
    let shown = given.show().into_iter().find(|(known, _)| *known == name).expect("it was set");
    let mut options: Vec<_> = stored.iter().filter(|(known, _)| known != name).cloned().collect();
    options.push((name.to_owned(), shown.1));
    let settings = TableSettings::new(database, &options)?;
    let extractor = find_extractor(&settings.prefix_extractor, functions)?;
    Ok(Changed { options, settings, extractor })
}

/// Checks that a table may set this option to this value.
///
/// # Errors
/// `Invalid`, naming the options that a table has.
pub fn check_table_option(name: &str, value: &str) -> Result<()> {
    if !TABLE_OPTIONS.contains(&name) {
        let names = TABLE_OPTIONS.join(", ");
        return Err(Error::invalid(format!("{name} is not an option of a table; those are {names}")));
    }
    Options::default().set(name, value)
}

/// How the memory budget is divided. The rest is for jobs in flight, iterators and the manifest's state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryPlan {
    /// The ceiling.
    pub(crate) ceiling_bytes: u64,
    /// Jobs in flight: at most so much.
    pub(crate) job_bytes: u64,
    /// Segments and the indexes over them: at most so much.
    pub(crate) write_bytes: u64,
    /// Blocks, index blocks and filters: at least so much.
    pub(crate) cache_bytes: u64,
    /// Bytes that stay free between the two while memory is lent.
    pub(crate) slack_bytes: u64,
    /// Of the memory of jobs, what the cache may have while none runs.
    pub(crate) lent_bytes: u64,
    /// Bytes of an ordinary segment.
    pub(crate) segment_bytes: u64,
    /// True if memory that writers and jobs do not use is lent to the cache.
    pub(crate) adaptive: bool,
    /// Chunks that the cache's objects lie in; `None`: on the heap.
    pub(crate) chunk_bytes: Option<usize>,
}

/// The cache's own memory. `options` are resolved.
fn cache_bytes(options: &Options) -> u64 {
    options.memory_bytes - options.write_memory_bytes - options.memory_bytes / JOB_SHARE
}

/// Returns true if the cache has enough of its own for chunks of so many bytes.
pub(crate) fn has_room_for_chunks(options: &Options, chunk_bytes: u64) -> bool {
    cache_bytes(options) >= CHUNKS_MIN * chunk_bytes
}

/// The bytes of a chunk of the cache: those of a huge page, or the largest power of two below it of which the
/// cache has enough. `None`: its objects lie on the heap.
fn chunk_bytes(options: &Options) -> Option<u64> {
    let huge = HUGE_PAGE_BYTES as u64;
    let least = options.block_bytes_in_memory().saturating_mul(CHUNK_BLOCKS_MIN).next_power_of_two();
    let mut sizes = std::iter::successors(Some(huge), |bytes| Some(bytes / 2));
    sizes
        .find(|bytes| has_room_for_chunks(options, *bytes))
        .filter(|bytes| *bytes >= least.clamp(CHUNK_BYTES_MIN, huge))
        .filter(|_| options.experiments.block_memory == BlockMemory::Arena)
}

/// Most bytes of segments for long batches, in parts of the write memory: the active one, the one before it,
/// which the journal holds until the next rotation, and the prepared one leave room for one more batch.
const LONG_SEGMENT_SHARE: u64 = 8;

/// Most bytes of the segment that is prepared after a batch that fits no ordinary one.
pub(crate) fn long_segment_bytes(options: &Options) -> u64 {
    (options.write_memory_bytes / LONG_SEGMENT_SHARE).max(options.segment_bytes)
}

impl MemoryPlan {
    /// Divides `options.memory_bytes`; `options` are resolved.
    pub(crate) fn new(options: &Options) -> MemoryPlan {
        let job_bytes = options.memory_bytes / JOB_SHARE;
        let write_bytes = options.write_memory_bytes;
        let index_bytes = (write_bytes / 16).max(INDEX_SLACK_BYTES_MIN);
        let cache_bytes = cache_bytes(options);
        let divided = write_bytes + cache_bytes + job_bytes;
        assert!(divided == options.memory_bytes, "{divided} bytes are divided of {}", options.memory_bytes);
        MemoryPlan {
            ceiling_bytes: options.memory_bytes,
            job_bytes,
            chunk_bytes: chunk_bytes(options).map(|bytes| bytes as usize),
            write_bytes,
            cache_bytes,
            lent_bytes: job_bytes / LENT_SHARE,
            slack_bytes: options.segment_bytes + index_bytes,
            segment_bytes: options.segment_bytes,
            adaptive: options.experiments.adaptive_memory,
        }
    }

    /// Bytes that writers and the cache may hold together.
    pub(crate) fn shared_bytes(&self) -> u64 {
        let too_much = if terrane_base::planted!(LendTooMuch) { self.write_bytes / 2 } else { 0 };
        self.write_bytes + self.cache_bytes + too_much
    }

    /// The most bytes of the cache.
    pub(crate) fn cache_bytes_max(&self) -> u64 {
        self.shared_bytes() + self.lent_bytes
    }
}

/// Checks that what orders a table is what it was made with: a comparator, or functions that encode and
/// decode.
pub(crate) fn check_kind_of_order(table: &terrane_levels::Table, semantics: &TableSemantics) -> Result<()> {
    if *semantics.collation() == table.collation {
        return Ok(());
    }
    let [was, is] = [&table.collation, semantics.collation()].map(|collation| match collation.is_bytes() {
        true => "functions that encode and decode keys",
        false => "a comparator",
    });
    let order = semantics.order().map_or("", |order| order.name());
    Err(Error::invalid(format!(
        "table {:?}: its key order {order:?} was {was} when it was made, and {is} is given at opening under that name",
        table.name
    )))
}
