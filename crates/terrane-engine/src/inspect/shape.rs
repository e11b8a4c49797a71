//! The shape of the trees: what a read has to search, and where the bytes are.

use std::fmt;
use terrane_base::sync::atomic::Ordering;

use terrane_base::SeqNo;
use terrane_levels::Level;

use crate::shared::Shared;
use crate::table::Table;
use crate::table::values_shape::{ValuesShape, values_shape};

/// The state of every tree of a database.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Shape {
    /// One row per table, in order of creation.
    pub tables: Vec<TableShape>,
    /// Live journal segments.
    pub segments: u64,
    /// Bytes of the live segments, allocated.
    pub segment_bytes: u64,
    /// Segments that are history: no longer live, kept for readers of changes.
    pub history_segments: u64,
    /// Bytes of their files.
    pub history_bytes: u64,
    /// Bytes of records in live segments that a newer version hides.
    pub segment_dead_bytes: u64,
    /// Bytes of the data files.
    pub store_bytes: u64,
    /// Bytes of extents in use.
    pub store_live_bytes: u64,
    /// How far the background is behind: 0 to 1 and above.
    pub debt: f64,
}

/// The state of one tree.
///
/// ```
/// # use terrane_engine::TableShape;
/// fn show(table: &TableShape) {
///     println!("{}: a read searches up to {} sorted runs", table.name, table.sorted_runs());
///     for (number, level) in (1..).zip(&table.levels) {
///         println!("level {number}: {} versions, {} bytes", level.entries, level.bytes);
///     }
///     println!("{}", table.use_of_late().unwrap_or_else(|| "not read of late".to_owned()));
/// }
/// assert_eq!(TableShape::default().sorted_runs(), 1); // the memtable
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableShape {
    /// Name of the table. One that begins with `terrane:` is the engine's own: it takes memory and space,
    /// too, but users cannot open it.
    pub name: String,
    /// Versions in the active memtable.
    pub memtable_entries: u64,
    /// Record bytes under the active memtable.
    pub memtable_bytes: u64,
    /// Frozen memtables.
    pub frozen: u64,
    /// Versions in frozen memtables.
    pub frozen_entries: u64,
    /// Record bytes under the frozen memtables.
    pub frozen_bytes: u64,
    /// Generations of the global index.
    pub generations: u64,
    /// Versions in the generations.
    pub generation_entries: u64,
    /// Record bytes under the generations.
    pub generation_bytes: u64,
    /// Bytes of all indexes over records.
    pub index_bytes: u64,
    /// Range deletes in memory.
    pub range_deletes: u64,
    /// Overflow runs, newest first.
    pub runs: Vec<LevelShape>,
    /// Levels from 1 down.
    pub levels: Vec<LevelShape>,
    /// Value tables: values that levels and overflow runs point to.
    pub values: ValuesShape,
    /// Number up to which every record is in the levels.
    pub flushed_seq: SeqNo,
    /// True if the tree is kept for reads: see the option `adaptive_shape`.
    pub is_read_heavy: bool,
    /// Sorted runs that a point read looked into of late, in thousandths, by samples; 0 if there were none.
    pub runs_per_read_milli: u64,
}

/// The state of one sorted run of extents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelShape {
    /// Extents.
    pub extents: u64,
    /// Stored bytes.
    pub bytes: u64,
    /// Data blocks.
    pub blocks: u64,
    /// Bytes of the data blocks before compression.
    pub block_bytes: u64,
    /// Versions.
    pub entries: u64,
    /// Deletes among them.
    pub deletes: u64,
    /// Fragments of range deletes.
    pub range_deletes: u64,
}

impl LevelShape {
    /// Bytes of a data block before compression, on average; 0 without blocks. It follows the option
    /// `block_bytes`, and by default whether the data are larger than memory.
    ///
    /// ```
    /// use terrane_engine::LevelShape;
    /// let mut level = LevelShape::default();
    /// assert_eq!(level.mean_block_bytes(), 0);
    /// (level.blocks, level.block_bytes) = (2, 16_000);
    /// assert_eq!(level.mean_block_bytes(), 8_000);
    /// ```
    #[must_use]
    pub fn mean_block_bytes(&self) -> u64 {
        self.block_bytes.checked_div(self.blocks).unwrap_or(0)
    }
}

impl TableShape {
    /// Sorted runs that a point read of an absent key may have to look at.
    #[must_use]
    pub fn sorted_runs(&self) -> u64 {
        let levels = self.levels.iter().filter(|level| level.extents > 0).count() as u64;
        1 + self.frozen + self.generations + self.runs.len() as u64 + levels
    }

    /// The load that the tree is kept for, in words; `None` if the table was not read recently, or if reads
    /// are not sampled.
    #[must_use]
    pub fn use_of_late(&self) -> Option<String> {
        let milli = Some(self.runs_per_read_milli).filter(|milli| *milli > 0)?;
        let mode = if self.is_read_heavy { "reads" } else { "writes" };
        Some(format!("kept for {mode}, {}.{:03} sorted runs per read", milli / 1000, milli % 1000))
    }
}

/// A line for each part of each tree, top down as a read searches them, in exact numbers.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tables.iter().try_for_each(|table| write!(f, "{table}"))?;
        let Shape { segments, segment_bytes, store_live_bytes, store_bytes, debt, .. } = self;
        writeln!(f, "journal: {segments} segments, {segment_bytes} bytes")?;
        if self.history_segments > 0 {
            writeln!(f, "history: {} segments, {} bytes", self.history_segments, self.history_bytes)?;
        }
        writeln!(f, "store: {store_live_bytes} bytes in extents of {store_bytes} in files")?;
        writeln!(f, "debt: {debt:.3}")
    }
}

/// A line for each part of the tree, empty ones included.
impl fmt::Display for TableShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "table {}: {} sorted runs", self.name, self.sorted_runs())?;
        writeln!(f, "  memtable: {} entries, {} bytes", self.memtable_entries, self.memtable_bytes)?;
        let (entries, bytes) = (self.frozen_entries, self.frozen_bytes);
        writeln!(f, "  frozen: {} memtables, {entries} entries, {bytes} bytes", self.frozen)?;
        let (entries, bytes) = (self.generation_entries, self.generation_bytes);
        writeln!(f, "  global index: {} generations, {entries} entries, {bytes} bytes", self.generations)?;
        for (number, run) in self.runs.iter().enumerate() {
            writeln!(f, "  overflow run {number}: {run}")?;
        }
        for (number, level) in (1..).zip(&self.levels) {
            writeln!(f, "  level {number}: {level}")?;
        }
        if self.values.tables > 0 {
            writeln!(f, "  values: {}", self.values)?;
        }
        self.use_of_late().map_or(Ok(()), |text| writeln!(f, "  {text}"))
    }
}

impl fmt::Display for LevelShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LevelShape { extents, bytes, entries, deletes, range_deletes, .. } = self;
        write!(f, "{entries} entries ({deletes} deletes), {bytes} bytes, {extents} extents")?;
        if *range_deletes > 0 { write!(f, ", {range_deletes} fragments of range deletes") } else { Ok(()) }
    }
}

impl Shared {
    /// The state of every tree now, beside the `debt` of the background.
    pub(crate) fn shape_with(&self, debt: f64) -> Shape {
        let manifest = self.manifest.state();
        let usage = self.store.usage();
        let tables = self.catalog.all();
        Shape {
            tables: tables.iter().map(|table| table_shape(table)).collect(),
            segments: manifest.segments.len() as u64,
            segment_bytes: manifest.segments.values().map(|segment| segment.spec.bytes).sum(),
            history_segments: manifest.history.len() as u64,
            history_bytes: manifest.history_bytes(),
            segment_dead_bytes: tables.iter().map(|table| dead_bytes(table)).sum(),
            store_bytes: usage.file_bytes,
            store_live_bytes: usage.live_bytes,
            debt,
        }
    }
}

fn table_shape(table: &Table) -> TableShape {
    let view = table.pinned();
    TableShape {
        name: table.name.clone(),
        memtable_entries: view.active.entry_count(),
        memtable_bytes: view.active.record_bytes(),
        frozen: view.frozen.len() as u64,
        frozen_entries: view.frozen.iter().map(|memtable| memtable.entry_count()).sum(),
        frozen_bytes: view.frozen.iter().map(|memtable| memtable.record_bytes()).sum(),
        generations: view.generations.len() as u64,
        generation_entries: view.generations.iter().map(|generation| generation.entry_count()).sum(),
        generation_bytes: view.generations.iter().map(|generation| generation.record_bytes()).sum(),
        index_bytes: view.index_bytes(),
        range_deletes: view.range_deletes(),
        runs: view.tree.runs.iter().map(|run| level_shape(&run.level)).collect(),
        levels: view.tree.levels.iter().map(|level| level_shape(level)).collect(),
        values: values_shape(table, &view.tree),
        flushed_seq: table.flushed_seq(),
        // Relaxed: each for itself.
        is_read_heavy: table.load.is_read_heavy.load(Ordering::Relaxed),
        runs_per_read_milli: table.load.runs_per_read_milli.load(Ordering::Relaxed),
    }
}

fn dead_bytes(table: &Table) -> u64 {
    let view = table.pinned();
    let memtables = std::iter::once(&view.active).chain(&view.frozen);
    memtables
        .flat_map(|memtable| memtable.segments())
        .chain(view.generations.iter().flat_map(|generation| generation.segments()))
        .map(|segment| segment.dead_bytes)
        .sum()
}

fn level_shape(level: &Level) -> LevelShape {
    let totals = level.totals();
    LevelShape {
        extents: level.len() as u64,
        bytes: totals.bytes,
        blocks: totals.blocks,
        block_bytes: totals.raw_bytes,
        entries: totals.entries,
        deletes: totals.deletes,
        range_deletes: totals.range_deletes,
    }
}
