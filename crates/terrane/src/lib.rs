//! Terrane: an embedded, ordered, transactional-batch key-value store on a log-structured merge tree.
//!
//! ```
//! # fn main() -> terrane::Result<()> {
//! # let dir = tempfile::tempdir().expect("temporary directory");
//! # let path = dir.path().join("data");
//! use terrane::{Batch, Db, Durability, TableOptions};
//!
//! let db = Db::open(&path)?; // creates, with sensible defaults
//! db.put("k", "v")?; // the default table
//! assert_eq!(db.get("k")?.expect("it was put"), "v");
//!
//! let users = db.create_table("users", &TableOptions::new())?;
//! let mut batch = Batch::new();
//! batch.put(&users, "1", "ada")?;
//! batch.delete(db.default_table(), "k")?;
//! db.write(&batch, Durability::Synced)?; // all or nothing, on disk when it returns
//!
//! for row in users.range("1".."2") {
//!     let (key, value) = row?;
//!     println!("{key:?} = {value:?}");
//! }
//! let snapshot = db.snapshot();
//! assert!(snapshot.get(&users, "1")?.is_some());
//! db.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Keys and values are whatever borrows as bytes (`impl AsRef<[u8]>`): strings, arrays, vectors, slices;
//! ranges are those of Rust over any of these ([`KeyBounds`]). Reads return a [`Value`] or a [`Row`], which
//! owns its bytes.
//!
//! Handles have no lifetimes, and each keeps the database open: a program may keep a [`Table`] alone. The
//! drop of the last one closes it, and so does [`Db::close`], for all of them ([more](Db#handles)).
//!
//! # What survives what
//!
//! | write | death of the process | loss of power |
//! |---|---|---|
//! | [`Durability::Synced`] | kept | kept |
//! | [`Durability::Buffered`] ([`Db::put`]) | kept | a prefix of the order of commits is kept |
//! | any, with option `journal=off` | what was flushed is kept | what was flushed is kept |
//!
//! A batch is never half present, over any number of tables; only with `journal=off` a process that dies can
//! leave a part of one flushed. After a failed sync every later write is refused with [`Kind::Poisoned`], and
//! reads continue; close and open the database again.
//!
//! # Measuring
//!
//! [`read_counters`] returns the counters of the calling thread's reads since it began; take differences.
//! [`Db::stats`] counts the bytes to and from the device, by stream; [`Db::shape`] describes what a read has
//! to search.
//!
//! ```
//! # fn main() -> terrane::Result<()> {
//! # let dir = tempfile::tempdir().expect("temporary directory");
//! # let db = terrane::Db::open(dir.path().join("data"))?;
//! db.put("k", "v")?;
//! db.flush()?;
//! let before = terrane::read_counters();
//! db.get("k")?;
//! let read = terrane::read_counters() - before;
//! assert_eq!((read.reads, read.runs_searched), (1, 2)); // the memtable and level 1
//! assert_eq!(read.data_blocks_searched, 1);
//! println!("{} bytes from the device\n{}", read.device_bytes_read, db.shape());
//! # Ok(())
//! # }
//! ```
//!
//! # Transactions
//!
//! [`Db::transaction`] reads and writes as if no other writer existed, optimistically or with locks, with the
//! isolation level [`Isolation`]; [`Transaction::prepare`] is the first of two phases. [`IndexedBatch`] is a
//! batch that can be read.
//!
//! # Backups
//!
//! [`Db::checkpoint`] creates a second database with the present state, on the same disk; [`Backups`] keeps
//! incremental, verified backups elsewhere.
//!
//! # Changes
//!
//! [`Db::changes`] returns every committed batch from a number on, and waits for later ones: for replicas,
//! indexes and caches. The option `history_bytes` keeps the journal for it.
//!
//! # Tests and readers
//!
//! [`Db::open_in_memory`] and [`MemoryDevice`] create databases that use no file; [`Db::open_follower`] reads
//! a database that another process writes.
//!
//! # Types
//!
//! [`typed::TypedTable`] is a thin layer for keys and values of Rust types, which keeps the order of keys.
//!
//! # Servers
//!
//! Every handle can be used from any thread. A server with many concurrent requests can assign tables and
//! ranges to cores instead, experimentally: [`cores`]. The page `docs/async.md` says how long each call may
//! wait, and how to call them from tasks of a runtime.
//!
//! # Limits
//!
//! Keys up to 64 KiB, values up to 64 MiB, batches up to 256 MiB and, with the index over their rows, more
//! than half of [`Options::memory_bytes`], 65,536 tables.

// In the order of the documentation pages: what a type is used for most comes first.
mod db;

mod table;

mod batch;
mod snapshot;

mod cursor;
mod iter;

mod async_write;
mod backup;
mod bulk;
mod changes;
pub mod cores;
mod durability;
mod extent_file;
mod extent_file_info;
mod follower;
mod functions;
mod ingest;
#[cfg(feature = "json")]
mod json;
mod key_bounds;
mod keys;
mod maintain;
mod memory;
mod note;
mod observe;
mod operate;
mod repair;
mod shared_metrics;
mod table_options;
mod transaction;
pub mod typed;
mod value;

pub use backup::Backups;
pub use batch::Batch;
pub use changes::Changes;
pub use cursor::Cursor;
pub use cursor::keys::KeyCursor;
pub use db::Db;
pub use db::handle::WeakDb;
pub use durability::Durability;
#[expect(deprecated, reason = "the former name")]
pub use durability::Sync;
pub use extent_file::ExtentFileWriter;
pub use extent_file_info::{
    ExtentFileInfo, ExtentFileProgress, inspect_extent_file, inspect_extent_file_until,
};
pub use follower::{Follower, FollowerStats};
pub use iter::{Iter, Row};
pub use key_bounds::KeyBounds;
pub use memory::MemoryDevice;
pub use repair::{repair, repair_until, repair_with_functions};
pub use shared_metrics::metrics_page;
pub use snapshot::Snapshot;
pub use table::Table;
pub use table_options::TableOptions;
pub use terrane_base::collation::Comparator;
pub use terrane_base::counters::{ReadCounters, read_counters};
pub use terrane_base::env::Env;
pub use terrane_base::error::{Place, WaitsFor};
pub use terrane_base::key_order::{ComparatorSource, KeyOrder, KeyOrders};
pub use terrane_base::merge_operator::{MergeOperator, MergeOperators, OperatorSource, counter};
pub use terrane_base::metrics::{Histogram, HistogramSnapshot, Metric, MetricKind, MetricScope};
pub use terrane_base::options::{
    AsStored, Compression, Diagnostics, Experiments, ExtractorName, IoUring, JournalMode, OperatorName,
    OptionInfo, Options, OrderName, PoolPath, TimeToLive, ValueCompression,
};
pub use terrane_base::prefix_extractor::{PrefixExtractor, PrefixExtractors};
pub use terrane_base::{
    CompactionContext, CompactionFilter, Error, ExtentId, FilterDecision, Functions, Kind, Result, SegmentId,
    SeqNo,
};
pub use terrane_engine::backup::{
    BackupFinding, BackupInfo, BackupList, BackupOptions, BackupPlace, BackupProgress, DirectoryPlace,
    Removed, RestoreOptions, Restored, VerifyReport,
};
pub use terrane_engine::{
    CancelCause, Change, ChangeBatch, ChangeKind, CheckProgress, CheckReport, Checkpoint, Concurrency,
    DroppedExtents, Estimate, ExtentFilter, ExtentInfo, ExtentSummary, ExternalSummary, FeedOptions, Finding,
    Flushed, IngestOptions, Ingested, Isolation, JobBegan, JobEnded, JobKind, Lag, LevelShape, Listener,
    LiveReader, Loss, MemtableFrozen, MetricValue, MetricsPage, Origin, PageHistogram, PageJob, PageLevel,
    PageMetric, PageReader, PageTable, PageWriterState, Progress, RangeEstimate, ReaderKind, RepairReport,
    ReplayDecision, ReplayFilter, ReplayedBatch, ReplayedChanges, ReplayedTable, Sample, SegmentEntry, Shape,
    SharedMetrics, StallBegan, StallCause, StallEnded, Statistics, Stats, TableShape, TableStatistics,
    TableStats, Ticket, TransactionOptions, Values, ValuesShape, WorkFailed, metrics,
};
pub use transaction::{BareTransaction, BatchIter, IndexedBatch, LockMark, Transaction, TransactionIter};
pub use value::Value;
