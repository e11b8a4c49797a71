//! The adapter trait: the operations that the bench needs of every engine, and none that only one of them
//! has.
//!
//! * [`Engine`]: an open database. [`Session`]: what one thread does with it. [`open`]: chooses by name.
//! * A value is lent to a [`Visit`] instead of being copied out, so that an engine that can lend (LMDB,
//!   pinned reads) shows it, and one that cannot pays for its copy. The bench reads what it is lent.
//! * An operation that an engine lacks answers `Unsupported`; it is never emulated by an operation that costs
//!   much more or less without saying so in [`Opened::settings`].
//!
//! To add a peer: one file here that implements the two traits, one arm in [`open`], one name in [`NAMES`],
//! one feature in `Cargo.toml`; the suite `tests/suite/conformance` runs it. See `docs/benchmarks/peers.md`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

#[cfg(feature = "bftree")]
pub mod bftree;
pub mod counters;
#[cfg(feature = "fjall")]
pub mod fjall;
#[cfg(feature = "lmdb")]
pub mod lmdb;
pub mod null;
pub mod options;
#[cfg(feature = "redb")]
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
pub mod terrane;

pub use counters::EngineCounters;

/// The name of every engine that [`open`] knows, whether or not this build has it.
pub const NAMES: [&str; 7] = ["terrane", "rocksdb", "lmdb", "fjall", "redb", "bftree", "null"];

/// Called with each value (or key and value) that an engine lends.
pub type Visit<'v> = dyn FnMut(&[u8], &[u8]) + 'v;

/// Called with each row of a walk; `false` ends it.
pub type ShowRow<'r> = dyn FnMut(&[u8], &[u8]) -> bool + 'r;

/// How an engine is opened. The same for every engine of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineOptions {
    /// Where the database lies; exists and is empty for a new one.
    pub directory: PathBuf,
    /// All memory that the engine may use for writes, indexes, filters and caches together, in bytes.
    pub memory_bytes: u64,
    /// Number of tables (column families, trees), at least 1; they are created if missing.
    pub tables: u32,
    /// Bypass the page cache for table files where the engine can.
    pub direct_io: bool,
    /// Threads for background work; 0 lets the engine choose.
    pub background_threads: u32,
    /// How many records the scenario will hold at most: for engines that size a map or a page by it.
    pub records: u64,
    /// Bytes of all keys and values of those records.
    pub data_bytes: u64,
    /// The longest value, in bytes.
    pub value_bytes_max: u64,
    /// Size ratio of neighbouring levels, for LSM-trees; 0 keeps the engine's default.
    pub level_fanout: u32,
    /// Bits of filter per key, for LSM-trees; 0 is not a filter.
    pub filter_bits_per_key: u32,
    /// Engine options by name, as the plan gives them; an unknown one is refused.
    pub options: BTreeMap<String, String>,
    /// The shared library of an engine that is loaded at run time.
    pub library: Option<PathBuf>,
}

/// Facts that an engine reports once it is open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Its version.
    pub version: String,
    /// Every setting that differs from its defaults, and what the reader must know (name, value).
    pub settings: Vec<(String, String)>,
}

/// One write of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write<'w> {
    /// Sets a key.
    Put(&'w [u8], &'w [u8]),
    /// Removes a key.
    Delete(&'w [u8]),
}

/// One key of a transaction: it is read for update, and set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'c> {
    /// The table.
    pub table: u32,
    /// The key.
    pub key: &'c [u8],
    /// Its new value.
    pub value: &'c [u8],
}

/// One of several requests that are done together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'r> {
    /// The table.
    pub table: u32,
    /// The key.
    pub key: &'r [u8],
    /// The question.
    pub ask: Ask<'r>,
}

/// The question of a [`Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask<'r> {
    /// The value.
    Get,
    /// To set it.
    Put(&'r [u8]),
    /// To remove it.
    Delete,
}

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Ascending from the first key at or after the start.
    Forward,
    /// Descending from the last key at or before the start.
    Backward,
}

/// A step that shapes the tree instead of loading it (Callaghan, 2021: "LSM shape").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Memtables to disk.
    Flush,
    /// Overflow runs (level 0) into level 1.
    Compact0,
    /// Level 1 into the next.
    Compact1,
    /// Everything into the last level.
    CompactAll,
    /// Waits until no background work is due.
    WaitUntilQuiescent,
    /// Stops starting background work, so that a shape stays as it is.
    PauseBackground,
    /// Starts it again.
    ResumeBackground,
    /// Memtables to a run of level 0 that stays there while the background is paused.
    FlushToRun,
    /// Reads answer without asking filters from here on.
    FiltersOff,
    /// Reads ask filters again.
    FiltersOn,
}

/// The state of the tree, level by level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Rows from the newest data to the oldest.
    pub rows: Vec<ShapeRow>,
}

/// One part of the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShapeRow {
    /// `memtable`, `frozen`, `global index`, `L0`, `L1`, ...
    pub part: String,
    /// Sorted runs in it.
    pub runs: u64,
    /// Entries, where the engine tells.
    pub entries: Option<u64>,
    /// Bytes.
    pub bytes: u64,
}

/// An open database.
pub trait Engine: Send + Sync {
    /// Version and settings.
    fn opened(&self) -> Opened;

    /// The session of one thread. Called on that thread.
    ///
    /// # Errors
    /// The engine's.
    fn session(&self) -> Result<Box<dyn Session + '_>>;

    /// Does a shape step.
    ///
    /// # Errors
    /// `Unsupported` if the engine has no such step; the engine's own.
    fn control(&self, control: Control) -> Result<()>;

    /// The state of the tree; empty for an engine that is not a tree of runs or does not tell.
    fn shape(&self) -> Shape {
        Shape::default()
    }

    /// Stored bytes of separated values per thousand live ones; `None` without such values.
    fn values_permille(&self) -> Option<u64> {
        None
    }

    /// The engine's counters, whole database.
    fn counters(&self) -> EngineCounters {
        EngineCounters::default()
    }

    /// Makes everything durable and closes.
    ///
    /// # Errors
    /// The engine's.
    fn close(self: Box<Self>) -> Result<()>;
}

/// One thread's way into an [`Engine`]. Tables are numbers below [`EngineOptions::tables`].
pub trait Session {
    /// Reads a key; lends its value. Returns whether it was found.
    ///
    /// # Errors
    /// The engine's.
    fn get(&mut self, table: u32, key: &[u8], visit: &mut Visit<'_>) -> Result<bool>;

    /// Reads many keys at once; returns how many were found. The default reads them one by one.
    ///
    /// # Errors
    /// The engine's.
    fn multi_get(&mut self, table: u32, keys: &[&[u8]], visit: &mut Visit<'_>) -> Result<u64> {
        let mut found = 0;
        for key in keys {
            found += u64::from(self.get(table, key, visit)?);
        }
        Ok(found)
    }

    /// Commits a batch atomically; with `sync` it is on disk before this returns.
    ///
    /// # Errors
    /// The engine's; `Unsupported` for `sync` if the engine cannot promise it.
    fn write(&mut self, table: u32, writes: &[Write<'_>], sync: bool) -> Result<()>;

    /// Begins a commit as [`Session::write`] with `sync`, which may not be on disk when this returns.
    ///
    /// # Errors
    /// `Unsupported` if the engine has no such commits: they are not emulated; its own.
    fn begin_write(&mut self, _table: u32, _writes: &[Write<'_>]) -> Result<()> {
        Err(Error::unsupported(
            "this engine, as it was opened,",
            "synced writes in flight that the bench knows",
        ))
    }

    /// Forgets the commits from the front of those begun that are on disk, and returns how many; with
    /// `waits`, waits until the oldest is.
    ///
    /// # Errors
    /// The engine's: none of the commits that are left can be relied on.
    fn finish_writes(&mut self, _waits: bool) -> Result<usize> {
        Ok(0)
    }

    /// Removes every key from `start` to before `end`, as one record; with `sync` it is on disk before this
    /// returns.
    ///
    /// # Errors
    /// `Unsupported` if the engine has no range deletes: they are not emulated; its own.
    fn delete_range(&mut self, _table: u32, _start: &[u8], _end: &[u8], _sync: bool) -> Result<()> {
        Err(Error::unsupported("this engine", "range deletes that the bench knows"))
    }

    /// Runs one transaction: reads each key for update, in the order given, lends its value, and sets it.
    /// Returns whether it committed; `false`: it was refused because of others and changed nothing. The same
    /// key comes once.
    ///
    /// # Errors
    /// `Unsupported` if the engine, as it was opened, has no transactions; its own errors that another run
    /// would not help.
    fn transact(&mut self, _changes: &[Change<'_>], _sync: bool, _visit: &mut Visit<'_>) -> Result<bool> {
        Err(Error::unsupported("this engine, as it was opened,", "transactions that the bench knows"))
    }

    /// Does several requests together, as a server has them from its connections; lends the values that are
    /// found. Requests about one key take effect in their order, others in any. The default does one after
    /// the other.
    ///
    /// # Errors
    /// As [`Session::get`] and [`Session::write`].
    fn requests(&mut self, requests: &[Request<'_>], sync: bool, visit: &mut Visit<'_>) -> Result<()> {
        one_by_one(self, requests, sync, visit)
    }

    /// Shows up to `rows` rows to `row`, from `start` on, or from the end at which the direction begins, or
    /// until `row` returns `false`; returns how many it showed.
    ///
    /// # Errors
    /// The engine's; `Unsupported` for a direction that it lacks.
    fn iterate(
        &mut self,
        table: u32,
        start: Option<&[u8]>,
        rows: u64,
        direction: Direction,
        row: &mut ShowRow<'_>,
    ) -> Result<u64>;

    /// Visits up to `rows` rows from `start`; returns how many there were.
    ///
    /// # Errors
    /// As [`Session::iterate`].
    fn scan(
        &mut self,
        table: u32,
        start: &[u8],
        rows: u64,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        if rows == 0 {
            return Ok(0);
        }
        self.iterate(table, Some(start), rows, direction, &mut |key, value| {
            visit(key, value);
            true
        })
    }

    /// Visits every row of a table, or until `visit` returns `false`; returns how many it visited.
    ///
    /// # Errors
    /// As [`Session::iterate`].
    fn scan_all(&mut self, table: u32, direction: Direction, visit: &mut ShowRow<'_>) -> Result<u64> {
        self.iterate(table, None, u64::MAX, direction, visit)
    }

    /// The calling thread's share of [`EngineCounters`], for engines that count per thread; added to the
    /// engine's by the bench.
    fn counters(&self) -> EngineCounters {
        EngineCounters::default()
    }
}

/// Does requests one after the other.
fn one_by_one<S: Session + ?Sized>(
    session: &mut S,
    requests: &[Request<'_>],
    sync: bool,
    visit: &mut Visit<'_>,
) -> Result<()> {
    for Request { table, key, ask } in requests {
        match ask {
            Ask::Get => drop(session.get(*table, key, visit)?),
            Ask::Put(value) => session.write(*table, &[Write::Put(key, value)], sync)?,
            Ask::Delete => session.write(*table, &[Write::Delete(key)], sync)?,
        }
    }
    Ok(())
}

/// Opens (and creates) a database of the engine called `name`.
///
/// # Errors
/// `Plan` for an unknown engine or one that this build leaves out, naming the feature; the engine's own.
pub fn open(name: &str, options: &EngineOptions) -> Result<Box<dyn Engine>> {
    match name {
        "terrane" => Ok(Box::new(terrane::Terrane::open(options)?)),
        "null" => Ok(Box::new(null::Null::open(options)?)),
        #[cfg(feature = "rocksdb")]
        "rocksdb" => Ok(Box::new(rocksdb::RocksDb::open(options)?)),
        #[cfg(feature = "lmdb")]
        "lmdb" => Ok(Box::new(lmdb::Lmdb::open(options)?)),
        #[cfg(feature = "fjall")]
        "fjall" => Ok(Box::new(fjall::Fjall::open(options)?)),
        #[cfg(feature = "redb")]
        "redb" => Ok(Box::new(redb::Redb::open(options)?)),
        #[cfg(feature = "bftree")]
        "bftree" => Ok(Box::new(bftree::Bftree::open(options)?)),
        other if NAMES.contains(&other) => Err(Error::plan(format!(
            "this build has no adapter for {other}: build with the feature {other}, e.g. cargo run --release --features {other}"
        ))),
        other => Err(Error::plan(format!("unknown engine {other:?}: known are {}", NAMES.join(", ")))),
    }
}

/// Refuses engine options that the adapter did not take; `known` are the names it has.
///
/// # Errors
/// `Plan`, naming the option and the known ones.
pub fn refuse_unknown(engine: &str, options: &BTreeMap<String, String>, known: &[&str]) -> Result<()> {
    match options.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            Err(Error::plan(format!("{engine} has no option {name:?}: known are {}", known.join(", "))))
        }
    }
}
