//! Terrane behind the bench's adapter, through its public library only.
//!
//! Threads use the database, or, with the option `cores`, give their requests to the cores that own the
//! tables. `mode.rs` describes the adapter's own options.

mod cores;
mod in_flight;
mod mode;
mod preset;
mod together;
mod transact;

use std::sync::atomic::{AtomicBool, Ordering};

use terrane::cores::Cores;
use terrane::{
    Batch, Cursor, Db, Durability, Options, ReadCounters, Stats, Table, TableShape, Transaction, Values,
    read_counters,
};

use crate::engine::{
    Change, Control, Direction, Engine, EngineCounters, EngineOptions, Opened, Request, Session, Shape,
    ShapeRow, ShowRow, Visit, Write,
};
use crate::error::{Error, Result};
use crate::plan::text::control_name;
use cores::ThroughCores;
use in_flight::InFlight;
use mode::Mode;
pub use mode::check_options;
use together::Together;

/// An open Terrane database.
#[derive(Debug)]
pub struct Terrane {
    db: Db,
    tables: Vec<Table>,
    mode: Mode,
    /// Lives as long as writes are to be watched.
    watcher: Option<Transaction>,
    cores: Option<Cores>,
    /// True if reads ask filters.
    filters: AtomicBool,
    settings: Vec<(String, String)>,
}

fn failed(what: &str) -> impl Fn(terrane::Error) -> Error {
    move |error| Error::engine("terrane", what, error)
}

impl Terrane {
    /// Opens or creates a database.
    ///
    /// # Errors
    /// `Plan` for an option that does not exist or has a bad value; `Engine` if it does not open.
    pub fn open(options: &EngineOptions) -> Result<Self> {
        let mut settings = vec![
            ("memory_bytes", options.memory_bytes.to_string()),
            ("direct_io", options.direct_io.to_string()),
            ("background_threads", options.background_threads.to_string()),
            ("filter_bits_per_key", options.filter_bits_per_key.to_string()),
        ];
        if options.level_fanout > 0 {
            settings.push(("level_fanout", options.level_fanout.to_string()));
        }
        let mut given = options.options.clone();
        let mode = Mode::take(&mut given)?;
        let preset = mode.preset.options(options);
        settings.extend(preset.iter().map(|(name, value)| (*name, value.clone())));
        settings.extend(given.iter().map(own));
        let mut chosen = Options::default();
        for (name, value) in &settings {
            chosen.set(name, value).map_err(|error| Error::plan(format!("terrane: {error}")))?;
        }
        let db = mode.open(&options.directory, &chosen)?;
        let mut tables = vec![db.default_table().clone()];
        for number in 1..options.tables {
            tables.push(db.table_or_create(&format!("t{number}")).map_err(failed("create a table"))?);
        }
        settings.extend(options.options.iter().filter(|(name, _)| !given.contains_key(*name)).map(own));
        let mut settings: Vec<_> =
            settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        settings.push(("durability".to_owned(), mode.preset.durability().to_owned()));
        let (cores, watcher) = (mode.cores(&db, &tables)?, mode.watcher(&db)?);
        Ok(Terrane { db, tables, mode, watcher, cores, filters: AtomicBool::new(true), settings })
    }
}

impl Engine for Terrane {
    fn opened(&self) -> Opened {
        Opened { version: env!("CARGO_PKG_VERSION").to_owned(), settings: self.settings.clone() }
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let with_filters = self.filters.load(Ordering::Relaxed);
        if let Some(cores) = &self.cores {
            let session = cores.session().map_err(failed("open a session"))?;
            return Ok(Box::new(ThroughCores { tables: &self.tables, session, batch: Batch::new() }));
        }
        let reader = |table: &Table| if with_filters { table.clone() } else { table.without_filters() };
        Ok(Box::new(TerraneSession {
            engine: self,
            readers: self.tables.iter().map(reader).collect(),
            cursors: self.tables.iter().map(|_| None).collect(),
            value: Vec::new(),
            values: Values::new(),
            batch: Batch::new(),
            together: Together::default(),
            in_flight: InFlight::default(),
            counted: read_counters(),
        }))
    }

    fn control(&self, control: Control) -> Result<()> {
        let each = |work: &dyn Fn(&Table) -> terrane::Result<()>| self.tables.iter().try_for_each(work);
        let done = match control {
            Control::Flush => self.db.flush(),
            Control::FlushToRun => each(&|table| self.db.flush_to_run(table)),
            Control::Compact0 => each(&|table| self.db.compact_level(table, 0)),
            Control::Compact1 => each(&|table| self.db.compact_level(table, 1)),
            Control::CompactAll => each(&|table| self.db.compact_range(table, ..)),
            Control::WaitUntilQuiescent => self.db.wait_until_quiescent(),
            Control::PauseBackground => {
                self.db.pause_background();
                Ok(())
            }
            Control::ResumeBackground => {
                self.db.resume_background();
                Ok(())
            }
            Control::FiltersOff | Control::FiltersOn if self.cores.is_some() => {
                return Err(Error::unsupported("terrane", "cores that read without filters"));
            }
            Control::FiltersOff | Control::FiltersOn => {
                self.filters.store(control == Control::FiltersOn, Ordering::Relaxed);
                Ok(())
            }
        };
        done.map_err(failed(control_name(control)))
    }

    fn shape(&self) -> Shape {
        Shape { rows: self.db.shape().tables.iter().flat_map(rows_of).collect() }
    }

    fn values_permille(&self) -> Option<u64> {
        let shape = self.db.shape();
        let tables = shape.tables.iter().map(|table| table.values.space_permille());
        tables.filter(|permille| *permille > 0).max()
    }

    fn counters(&self) -> EngineCounters {
        let stats = self.db.stats();
        EngineCounters {
            log_bytes_written: Some(stats.device_journal_bytes_written + stats.device_manifest_bytes_written),
            log_syncs: Some(stats.device_journal_syncs),
            flush_bytes_written: Some(stats.device_flush_bytes_written),
            compaction_bytes_written: Some(stats.device_compaction_bytes_written),
            compaction_bytes_read: Some(stats.device_compaction_bytes_read),
            stall_micros: Some(stats.writes_paused_micros),
            read_bytes: Some(stats.device_user_bytes_read),
            ..bucket_counters(&stats)
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Terrane { db, tables, cores, watcher, .. } = *self;
        drop((tables, cores, watcher));
        db.close().map_err(failed("close"))
    }
}

/// The requests to buckets, of all parts; no counter if there were none.
fn bucket_counters(stats: &Stats) -> EngineCounters {
    let rows = stats.rows();
    let sum = |ends: &[&str]| -> u64 {
        let is_counted =
            |name: &str| name.starts_with("bucket_") && ends.iter().any(|end| name.ends_with(end));
        rows.iter().filter(|(name, ..)| is_counted(name)).map(|(_, _, value, _)| value).sum()
    };
    let counter = |ends: &[&str]| Some(sum(ends));
    if sum(&["_creates", "_reads"]) == 0 {
        return EngineCounters::default();
    }
    EngineCounters {
        bucket_creates: counter(&["_creates"]),
        bucket_reads: counter(&["_reads", "_lists", "_deletes"]),
        bucket_bytes_sent: counter(&["_bytes_sent"]),
        bucket_bytes_received: counter(&["_bytes_received"]),
        ..EngineCounters::default()
    }
}

/// The parts of one tree that hold anything, newest first.
fn rows_of(table: &TableShape) -> Vec<ShapeRow> {
    let row = |part: &str, runs: u64, entries: u64, bytes: u64| ShapeRow {
        part: part.to_owned(),
        runs,
        entries: Some(entries),
        bytes,
    };
    let mut rows = vec![
        row("memtable", u64::from(table.memtable_entries > 0), table.memtable_entries, table.memtable_bytes),
        row("frozen", table.frozen, table.frozen_entries, table.frozen_bytes),
        row("global index", table.generations, table.generation_entries, table.generation_bytes),
        row(
            "L0",
            table.runs.len() as u64,
            table.runs.iter().map(|run| run.entries).sum(),
            table.runs.iter().map(|run| run.bytes).sum(),
        ),
    ];
    let levels = table.levels.iter().enumerate().map(|(above, level)| {
        row(&format!("L{}", above + 1), u64::from(level.extents > 0), level.entries, level.bytes)
    });
    rows.extend(levels);
    rows.retain(|row| row.runs > 0);
    rows
}

struct TerraneSession<'e> {
    engine: &'e Terrane,
    /// Handles of the tables as reads use them: with or without filters.
    readers: Vec<Table>,
    /// Cursors of earlier short scans, refreshed for each, by table.
    cursors: Vec<Option<Cursor>>,
    value: Vec<u8>,
    /// Answers of multi-gets, used again.
    values: Values,
    batch: Batch,
    together: Together,
    in_flight: InFlight,
    /// The counts of this thread before the session began.
    counted: ReadCounters,
}

impl TerraneSession<'_> {
    fn table(&self, table: u32) -> &Table {
        &self.readers[table as usize]
    }
}

fn own<'s>((name, value): (&'s String, &'s String)) -> (&'s str, String) {
    (name, value.clone())
}

/// Makes `batch` one of `writes`.
fn fill(batch: &mut Batch, table: &Table, writes: &[Write<'_>]) -> Result<()> {
    batch.clear();
    for write in writes {
        match write {
            Write::Put(key, value) => batch.put(table, key, value),
            Write::Delete(key) => batch.delete(table, key),
        }
        .map_err(failed("batch"))?;
    }
    Ok(())
}

fn sync_of(sync: bool) -> Durability {
    if sync { Durability::Synced } else { Durability::Buffered }
}

impl Session for TerraneSession<'_> {
    fn get(&mut self, table: u32, key: &[u8], visit: &mut Visit<'_>) -> Result<bool> {
        self.value.clear();
        let found = self.readers[table as usize].get_into(key, &mut self.value).map_err(failed("get"))?;
        if found {
            visit(key, &self.value);
        }
        Ok(found)
    }

    fn multi_get(&mut self, table: u32, keys: &[&[u8]], visit: &mut Visit<'_>) -> Result<u64> {
        self.readers[table as usize].multi_get_into(keys, &mut self.values).map_err(failed("multi-get"))?;
        let mut found = 0;
        for (key, value) in keys.iter().zip(self.values.iter()) {
            if let Some(value) = value {
                visit(key, value);
                found += 1;
            }
        }
        Ok(found)
    }

    fn write(&mut self, table: u32, writes: &[Write<'_>], sync: bool) -> Result<()> {
        let table = &self.engine.tables[table as usize];
        if let [Write::Put(key, value)] = writes {
            return table.put_with(key, value, sync_of(sync)).map_err(failed("put"));
        }
        fill(&mut self.batch, table, writes)?;
        self.engine.db.write(&self.batch, sync_of(sync)).map(drop).map_err(failed("write"))
    }

    fn begin_write(&mut self, table: u32, writes: &[Write<'_>]) -> Result<()> {
        fill(&mut self.batch, &self.engine.tables[table as usize], writes)?;
        self.in_flight.begin(&self.engine.db, &self.batch)
    }

    fn finish_writes(&mut self, waits: bool) -> Result<usize> {
        self.in_flight.finish(waits)
    }

    fn delete_range(&mut self, table: u32, start: &[u8], end: &[u8], sync: bool) -> Result<()> {
        let table = &self.engine.tables[table as usize];
        table.delete_range_with(start, end, sync_of(sync)).map_err(failed("delete a range"))
    }

    fn transact(&mut self, changes: &[Change<'_>], sync: bool, visit: &mut Visit<'_>) -> Result<bool> {
        let Terrane { db, mode, tables, .. } = self.engine;
        transact::transact(db, &mode.transactions, tables, changes, sync_of(sync), visit)
    }

    fn requests(&mut self, requests: &[Request<'_>], sync: bool, visit: &mut Visit<'_>) -> Result<()> {
        if self.engine.mode.together {
            let place = (&self.engine.db, &*self.readers);
            return self.together.perform(place, requests, sync, visit);
        }
        crate::engine::one_by_one(self, requests, sync, visit)
    }

    fn iterate(
        &mut self,
        table: u32,
        start: Option<&[u8]>,
        rows: u64,
        direction: Direction,
        row: &mut ShowRow<'_>,
    ) -> Result<u64> {
        // A short scan moves the cursor of the last one to the present; a whole one begins again.
        let mut whole;
        let cursor = if start.is_none() {
            whole = self.table(table).cursor();
            &mut whole
        } else {
            let reader = &self.readers[table as usize];
            let kept = &mut self.cursors[table as usize];
            if let Some(cursor) = kept {
                cursor.refresh();
            }
            kept.get_or_insert_with(|| reader.cursor())
        };
        place(cursor, start, direction)?;
        walk(cursor, rows, direction, row)
    }

    fn counters(&self) -> EngineCounters {
        let counted = read_counters() - self.counted;
        let searched = counted.index_blocks_searched + counted.data_blocks_searched;
        EngineCounters {
            cache_hits: Some(searched.saturating_sub(counted.blocks_missed)),
            cache_misses: Some(counted.blocks_missed),
            filter_probes: Some(counted.filter_probes),
            filter_false_positives: Some(counted.filter_positives_false),
            runs_searched: Some(counted.runs_searched + counted.runs_sought),
            blocks_decoded: Some(counted.blocks_decoded),
            ..EngineCounters::default()
        }
    }
}

/// Shows up to `rows` rows of a placed cursor, or until `row` says stop; how many it showed.
fn walk(cursor: &mut Cursor, rows: u64, direction: Direction, row: &mut ShowRow<'_>) -> Result<u64> {
    let mut seen = 0;
    while let Some((key, value)) = cursor.row() {
        seen += 1;
        if !row(key, value) || seen == rows {
            break;
        }
        match direction {
            Direction::Forward => cursor.next(),
            Direction::Backward => cursor.prev(),
        }
        .map_err(failed("step"))?;
    }
    Ok(seen)
}

/// Places a cursor at `start`, or at the end at which the direction begins.
fn place(cursor: &mut Cursor, start: Option<&[u8]>, direction: Direction) -> Result<()> {
    match (start, direction) {
        (Some(key), Direction::Forward) => cursor.seek(key),
        (Some(key), Direction::Backward) => cursor.seek_back(key),
        (None, Direction::Forward) => cursor.seek_first(),
        (None, Direction::Backward) => cursor.seek_last(),
    }
    .map_err(failed("seek"))
}
