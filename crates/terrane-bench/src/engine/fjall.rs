//! fjall 3: a log-structured engine in Rust. Tables are keyspaces of one database.
//!
//! A batch of one write goes by the keyspace's own `insert` or `remove`, a longer one by a batch; `sync`
//! persists the journal after it. Memory: fjall has no limit for all memtables together, so the budget is
//! kept by their size: the block cache gets what they leave.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use fjall::compaction::Leveled;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{AbstractTree, CompressionType, Database, Guard, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::engine::options::{Named, locked_version, setting};
use crate::engine::{
    Control, Direction, Engine, EngineOptions, Opened, Session, Shape, ShapeRow, ShowRow, Visit, Write,
};
use crate::error::{Error, Result};

const KNOWN: [&str; 5] =
    ["memtable_bytes", "cache_bytes", "block_bytes", "journal_bytes", "compression_last"];
const MIB: u64 = 1 << 20;
const POLL: Duration = Duration::from_millis(5);

/// An open fjall database.
pub struct Fjall {
    keyspaces: Vec<Keyspace>,
    database: Database,
    opened: Opened,
}

/// Sizes in bytes.
struct Sizes {
    memtable: u64,
    cache: u64,
    block: u64,
    journal: u64,
}

impl Sizes {
    fn new(options: &EngineOptions, named: &Named<'_>) -> Result<Self> {
        let tables = u64::from(options.tables.max(1));
        // One active and one that is being flushed, per keyspace, in a quarter of the budget.
        let memtable = named
            .number("memtable_bytes", (options.memory_bytes / 8 / tables).clamp(MIB, 64 * MIB))?
            .max(MIB);
        let cache = options.memory_bytes.saturating_sub(2 * memtable * tables).max(MIB);
        Ok(Sizes {
            memtable,
            cache: named.number("cache_bytes", cache)?,
            block: named.number("block_bytes", 4 << 10)?.clamp(1 << 10, MIB),
            journal: named.number("journal_bytes", 512 * MIB)?.max(64 * MIB),
        })
    }
}

impl Fjall {
    /// Opens or creates it.
    ///
    /// # Errors
    /// `Plan` for a wrong option; fjall's.
    pub fn open(options: &EngineOptions) -> Result<Self> {
        let named = Named::new("fjall", &options.options, &KNOWN)?;
        let sizes = Sizes::new(options, &named)?;
        let lz4 = named.one_of("compression_last", &["lz4", "none"])? == "lz4";
        let mut builder =
            Database::builder(&options.directory).cache_size(sizes.cache).max_journaling_size(sizes.journal);
        if options.background_threads > 0 {
            builder = builder.worker_threads(options.background_threads as usize);
        }
        let database = builder.open().map_err(|error| said("open", error))?;
        let keyspaces = (0..options.tables.max(1))
            .map(|table| {
                database.keyspace(&format!("table{table}"), || keyspace_options(options, &sizes, lz4))
            })
            .collect::<fjall::Result<_>>()
            .map_err(|error| said("open a keyspace", error))?;
        let settings = settings(options, &sizes, lz4);
        Ok(Fjall { keyspaces, database, opened: Opened { version: locked_version("fjall"), settings } })
    }

    /// Returns true if background work is under way or due.
    fn is_busy(&self) -> bool {
        let sealed: usize = self.keyspaces.iter().map(|keyspace| keyspace.sealed_memtable_count()).sum();
        self.database.outstanding_flushes() + self.database.active_compactions() + sealed > 0
    }

    /// Returns at once if nothing is due; else waits until nothing was due twice in a row: a compaction that
    /// ends may call for the next.
    fn wait(&self) {
        let mut calm = if self.is_busy() { 0 } else { 2 };
        while calm < 2 {
            std::thread::park_timeout(POLL);
            calm = if self.is_busy() { 0 } else { calm + 1 };
        }
    }
}

fn keyspace_options(options: &EngineOptions, sizes: &Sizes, lz4: bool) -> KeyspaceCreateOptions {
    let mut leveled = Leveled::default();
    if options.level_fanout > 0 {
        leveled = leveled.with_level_ratio_policy(vec![f32::from(
            u16::try_from(options.level_fanout).unwrap_or(u16::MAX),
        )]);
    }
    let block = u32::try_from(sizes.block).expect("at most 1 MiB");
    let mut keyspace = KeyspaceCreateOptions::default()
        .max_memtable_size(sizes.memtable)
        .data_block_size_policy(BlockSizePolicy::all(block))
        .filter_policy(filter(options.filter_bits_per_key))
        .compaction_strategy(Arc::new(leveled));
    if !lz4 {
        keyspace = keyspace.data_block_compression_policy(CompressionPolicy::all(CompressionType::None));
    }
    keyspace
}

fn filter(bits: u32) -> FilterPolicy {
    if bits == 0 {
        return FilterPolicy::disabled();
    }
    let bits = f32::from(u16::try_from(bits).unwrap_or(u16::MAX));
    FilterPolicy::all(FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(bits)))
}

fn settings(options: &EngineOptions, sizes: &Sizes, lz4: bool) -> Vec<(String, String)> {
    let compression = if lz4 { "none in levels 0 and 1, LZ4 below (its default)" } else { "none" };
    let mut settings = vec![
        setting("cache_size", sizes.cache),
        setting("max_memtable_size", format!("{} bytes for each keyspace", sizes.memtable)),
        setting("max_journaling_size", sizes.journal),
        setting("block size", sizes.block),
        setting("filter bits per key", options.filter_bits_per_key),
        setting("data_block_compression", compression),
        setting(
            "durability",
            "sync off: PersistMode::Buffer, journal in the page cache, survives the process; sync on: PersistMode::SyncData \
             after each batch",
        ),
    ];
    if options.level_fanout > 0 {
        settings.push(setting("level ratio", options.level_fanout));
    }
    if options.direct_io {
        settings.push(setting("direct_io", "none: fjall reads through the page cache"));
    }
    settings
}

fn said(what: &str, error: impl std::fmt::Display) -> Error {
    Error::engine("fjall", what, error)
}

impl Engine for Fjall {
    fn opened(&self) -> Opened {
        self.opened.clone()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(FjallSession { fjall: self }))
    }

    fn control(&self, control: Control) -> Result<()> {
        match control {
            Control::Flush => self
                .keyspaces
                .iter()
                .try_for_each(|keyspace| keyspace.rotate_memtable_and_wait())
                .map_err(|error| said("flush", error)),
            Control::CompactAll => {
                self.control(Control::Flush)?;
                let mut keyspaces = self.keyspaces.iter();
                keyspaces
                    .try_for_each(|keyspace| keyspace.major_compact())
                    .map_err(|error| said("compact", error))
            }
            Control::WaitUntilQuiescent => {
                self.wait();
                Ok(())
            }
            other => Err(Error::unsupported("fjall", format!("{other:?} in its public interface"))),
        }
    }

    fn shape(&self) -> Shape {
        let trees = || self.keyspaces.iter().map(|keyspace| &keyspace.tree);
        let mut rows = vec![
            ShapeRow {
                part: "memtable".to_owned(),
                runs: self.keyspaces.len() as u64,
                entries: None,
                bytes: trees().map(|tree| tree.active_memtable().size()).sum(),
            },
            ShapeRow {
                part: "frozen".to_owned(),
                runs: trees().map(|tree| tree.sealed_memtable_count() as u64).sum(),
                entries: None,
                bytes: self
                    .database
                    .write_buffer_size()
                    .saturating_sub(trees().map(|tree| tree.active_memtable().size()).sum()),
            },
        ];
        for tree in trees() {
            for (number, level) in tree.current_version().iter_levels().enumerate() {
                let tables = level.iter().flat_map(|run| run.iter());
                let entries = tables.map(|table| table.metadata.item_count).sum();
                add_level(&mut rows, number, level.run_count() as u64, entries, level.size());
            }
        }
        Shape { rows }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.database.persist(PersistMode::SyncAll).map_err(|error| said("persist", error))
    }
}

fn add_level(rows: &mut Vec<ShapeRow>, level: usize, runs: u64, entries: u64, bytes: u64) {
    if runs == 0 {
        return;
    }
    let part = format!("L{level}");
    match rows.iter_mut().find(|row| row.part == part) {
        Some(row) => {
            row.runs += runs;
            row.bytes += bytes;
            row.entries = row.entries.map(|before| before + entries);
        }
        None => rows.push(ShapeRow { part, runs, entries: Some(entries), bytes }),
    }
}

struct FjallSession<'f> {
    fjall: &'f Fjall,
}

impl FjallSession<'_> {
    fn keyspace(&self, table: u32) -> &Keyspace {
        &self.fjall.keyspaces[table as usize]
    }

    fn commit(&self, keyspace: &Keyspace, writes: &[Write<'_>], sync: bool) -> fjall::Result<()> {
        let mode = sync.then_some(PersistMode::SyncData);
        if let [write] = writes {
            match *write {
                Write::Put(key, value) => keyspace.insert(key, value)?,
                Write::Delete(key) => keyspace.remove(key)?,
            }
            return mode.map_or(Ok(()), |mode| self.fjall.database.persist(mode));
        }
        let mut batch = self.fjall.database.batch().durability(Some(mode.unwrap_or(PersistMode::Buffer)));
        for write in writes {
            match *write {
                Write::Put(key, value) => batch.insert(keyspace, key, value),
                Write::Delete(key) => batch.remove(keyspace, key),
            }
        }
        batch.commit()
    }
}

fn walk(rows: impl Iterator<Item = Guard>, rows_max: u64, row: &mut ShowRow<'_>) -> Result<u64> {
    let mut seen = 0;
    for guard in rows {
        let (key, value) = guard.into_inner().map_err(|error| said("scan", error))?;
        seen += 1;
        if !row(&key, &value) || seen == rows_max {
            break;
        }
    }
    Ok(seen)
}

impl Session for FjallSession<'_> {
    fn get(&mut self, table: u32, key: &[u8], visit: &mut Visit<'_>) -> Result<bool> {
        let value = self.keyspace(table).get(key).map_err(|error| said("get", error))?;
        Ok(value.inspect(|value| visit(key, value)).is_some())
    }

    fn write(&mut self, table: u32, writes: &[Write<'_>], sync: bool) -> Result<()> {
        self.commit(self.keyspace(table), writes, sync).map_err(|error| said("write", error))
    }

    fn iterate(
        &mut self,
        table: u32,
        start: Option<&[u8]>,
        rows: u64,
        direction: Direction,
        row: &mut ShowRow<'_>,
    ) -> Result<u64> {
        let keyspace = self.keyspace(table);
        let bound = start.map_or(Bound::Unbounded, Bound::Included);
        match direction {
            Direction::Forward => walk(keyspace.range::<&[u8], _>((bound, Bound::Unbounded)), rows, row),
            Direction::Backward => {
                walk(keyspace.range::<&[u8], _>((Bound::Unbounded, bound)).rev(), rows, row)
            }
        }
    }
}
