//! From RocksDB's options to the engine's: sizes, codecs and the names of functions. What has no meaning here
//! is left as it is.

use std::time::Duration;

use terrane::{AsStored, TableOptions as EngineTableOptions, TimeToLive};

use crate::callbacks::operator_registry::Slot;
use crate::ffi::failure::{Failure, Result};
use crate::options::blobs::value_options;
use crate::options::codec::codecs;
use crate::options::database::Options;
use crate::options::objects::inert::FileManager;

const MIB: u64 = 1 << 20;
/// Least memory of writers: with it a batch may have some 65 MiB.
const WRITE_BYTES_MIN: u64 = 64 * MIB;
/// The block cache that RocksDB makes where none is given.
const CACHE_BYTES: u64 = 32 * MIB;
const MEMORY_BYTES_MAX: u64 = 1 << 44;
/// Least history: that of one segment of any size.
const HISTORY_BYTES_MIN: u64 = 64 * MIB;
const RATE_BYTES_MIN: u64 = MIB;
const THREADS_MAX: i32 = 64;
const LEVEL_BYTES_MIN: u64 = 64 << 10;
/// The option that says whether a table is compacted by itself.
pub(crate) const AUTO_COMPACTION: &str = "auto_compaction";
/// RocksDB's defaults of these options: then the engine's own defaults hold.
const JOBS: i32 = 2;
const BLOCK_BYTES: usize = 4096;
const LEVEL_BYTES: u64 = 256 * MIB;
const FANOUT: f64 = 10.0;

/// Options of the engine for a database whose default column family has `family` and the operator of `slot`.
pub(crate) fn database_options(
    database: &Options,
    family: &Options,
    slot: &Slot,
) -> Result<terrane::Options> {
    refuse(database)?;
    refuse(family)?;
    let (write_bytes, memory_bytes) = memory(database, family);
    let mut options =
        terrane::Options { memory_bytes, write_memory_bytes: write_bytes, ..Default::default() };
    if database.fields.max_background_jobs != JOBS {
        options.background_threads = database.fields.max_background_jobs.clamp(2, THREADS_MAX) as u64;
    }
    if let Some(rate) = database.rate.as_ref().filter(|rate| rate.bytes_per_second > 0) {
        options.io_bytes_per_second = rate.bytes_per_second.unsigned_abs().max(RATE_BYTES_MIN);
    }
    // A close of RocksDB flushes what its log does not have, and nothing else: filters of the log see all
    // batches at the next opening.
    options.close_flush = false;
    keep_history(database, &mut options);
    options.direct_io = database.fields.use_direct_reads != 0;
    for (name, value) in overrides(family, slot)? {
        options.set(name, &value)?;
    }
    Ok(options)
}

/// Options of the engine for a column family with the operator of `slot`.
pub(crate) fn table_options(family: &Options, slot: &Slot) -> Result<EngineTableOptions> {
    refuse(family)?;
    let mut options = EngineTableOptions::new();
    for (name, value) in overrides(family, slot)? {
        options = options.set(name, &value)?;
    }
    Ok(options)
}

/// Has the journal kept for readers of changes, as RocksDB keeps its log: by size, by age, or both.
fn keep_history(database: &Options, options: &mut terrane::Options) {
    let (seconds, mib) = (database.fields.wal_ttl_seconds, database.fields.wal_size_limit_mb);
    let (bytes, age) = match (mib, seconds) {
        (0, 0) => (0, TimeToLive::NONE),
        (0, seconds) => (MEMORY_BYTES_MAX, TimeToLive::of(Duration::from_secs(seconds))),
        (mib, 0) => (mib.saturating_mul(MIB), TimeToLive::NONE),
        (mib, seconds) => (mib.saturating_mul(MIB), TimeToLive::of(Duration::from_secs(seconds))),
    };
    let bytes = if bytes == 0 { 0 } else { bytes.clamp(HISTORY_BYTES_MIN, MEMORY_BYTES_MAX) };
    options.history_bytes = AsStored::of(bytes);
    options.history_age = AsStored::of(if age.is_possible() { age } else { TimeToLive::NONE });
}

/// Memory of writers, and all memory: theirs and the cache's, of which they may take three quarters.
fn memory(database: &Options, family: &Options) -> (u64, u64) {
    let fields = &database.fields;
    let buffers = family.fields.max_write_buffer_number.max(1) as u64;
    let managed = database.write_buffers.as_ref().filter(|managed| managed.bytes() > 0);
    let wanted = match (managed, fields.db_write_buffer_size) {
        (Some(managed), _) => managed.bytes() as u64,
        (None, 0) => (family.fields.write_buffer_size as u64).saturating_mul(buffers),
        (None, bytes) => bytes as u64,
    };
    let write_bytes = wanted.clamp(WRITE_BYTES_MIN, MEMORY_BYTES_MAX / 2);
    let cache_bytes = family.table.cache.as_ref().map_or(CACHE_BYTES, |cache| cache.capacity_bytes() as u64);
    let is_part_of_cache = managed.is_some_and(|managed| managed.is_part_of_cache);
    let beside = if is_part_of_cache { cache_bytes.saturating_sub(write_bytes) } else { cache_bytes };
    (write_bytes, write_bytes + beside.clamp(write_bytes / 3 + MIB, MEMORY_BYTES_MAX / 2))
}

/// Refuses what was set and cannot be done.
fn refuse(options: &Options) -> Result<()> {
    if options.objects.file_manager.as_ref().is_some_and(FileManager::is_limited) {
        return Err(Failure::not_implemented(
            "max_allowed_space_usage of an SST file manager: not supported",
        ));
    }
    Ok(())
}

/// The options of a table that differ between two sets of options: names and new values.
pub(crate) fn table_changes(
    before: &Options,
    after: &Options,
    slot: &Slot,
) -> Result<Vec<(&'static str, String)>> {
    refuse(after)?;
    let before = overrides(before, slot)?;
    let mut changes = overrides(after, slot)?;
    changes.retain(|change| !before.contains(change));
    Ok(changes)
}

/// The engine's name of the order of keys of a column family.
pub(crate) fn order_of(family: &Options) -> &str {
    family.comparator.as_ref().map_or("bytewise", |comparator| terrane::Comparator::name(&**comparator))
}

fn overrides(family: &Options, slot: &Slot) -> Result<Vec<(&'static str, String)>> {
    let fields = &family.fields;
    let (codec, last) = codecs(family)?;
    let mut overrides = vec![
        ("merge_operator", slot.name().to_owned()),
        ("key_order", order_of(family).to_owned()),
        ("prefix_extractor", extractor(family)),
        ("compression", codec.to_owned()),
        ("compression_last", last.to_owned()),
        (AUTO_COMPACTION, (fields.disable_auto_compactions == 0).to_string()),
    ];
    overrides.extend(value_options(family)?);
    let block_bytes = family.table.fields.block_size;
    if block_bytes != BLOCK_BYTES {
        overrides.push(("block_bytes", block_bytes.clamp(1 << 10, 1 << 20).to_string()));
    }
    if let Some(bits) = family.table.filter_bits {
        overrides.push(("filter_bits_per_key", (bits.round().clamp(0.0, 30.0) as u64).to_string()));
    }
    if fields.max_bytes_for_level_base != LEVEL_BYTES {
        let bytes = fields.max_bytes_for_level_base.clamp(LEVEL_BYTES_MIN, MEMORY_BYTES_MAX);
        overrides.push(("level_base_bytes", bytes.to_string()));
    }
    if fields.max_bytes_for_level_multiplier != FANOUT {
        let fanout = fields.max_bytes_for_level_multiplier.round().clamp(2.0, 100.0);
        overrides.push(("level_fanout", (fanout as u64).to_string()));
    }
    Ok(overrides)
}

/// The prefix extractor that filters have.
pub(crate) fn extractor(family: &Options) -> String {
    family.transform.as_ref().map_or_else(|| "none".to_owned(), |transform| transform.extractor())
}
