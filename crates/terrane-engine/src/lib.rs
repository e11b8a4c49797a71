//! The engine: opens a database, writes, reads, scans, and runs the background work that keeps it in shape.
//!
//! Layer 8. The ways of the data, file by file:
//! * open and recover: `open.rs`, `recover.rs`; create, list and drop tables: `catalog.rs`, `tables.rs`
//! * write: `write.rs` (admit, commit, index), `patience.rs` (without waiting), `own_threads.rs` (who must not) → `freeze.rs` (switch memtables)
//! * read: `read.rs` (point reads), `multi_get.rs` (many at once, into `values.rs`), `filter_use.rs` (which filters are
//!   asked), `sense.rs` and `resolve.rs` (what records mean: operands, expiry), `scan.rs` and `iterate.rs` (ranges), `veil.rs`
//!   (what range deletes hide of them), `snapshot.rs`, `readers.rs` (who sees the past)
//! * transactions: `txn/` (locks, conflict window, two-phase commit)
//! * background: `schedule.rs` (workers), `work.rs` → `settle.rs` (memtables into generations), `flush.rs` (memory to level
//!   1), `counted.rs` (all of it), `ledger.rs` (what may leave memory), `compact.rs` (levels),
//!   `install.rs` (commit a result), `inherit.rs` (its place in the cache), `segments.rs` (trim the journal), `debt.rs`, `backlog.rs`, `draining.rs`, `pressure.rs` and `pace.rs` (pacing),
//!   `budget.rs` and `division.rs` (whose memory is whose), `idle.rs` (what idle writers left), `heat.rs` and `adapt.rs` (the shape follows the load)
//! * what changed: `feed/` (readers of changes), `history.rs` (segments that are kept for them)
//! * told to others: `events.rs` (listeners), `stalls.rs`, `watching.rs` (work), `slow.rs` (slow operations)
//! * second databases: `checkpoint/`; kept elsewhere: `backup/`; views of one that another process writes: `follow.rs`
//! * damage: `quarantine.rs` (what is left alone), `scrub.rs` (what is looked for), `repair/` (what is brought over)
//! * bulk: `approximate.rs` (how much is in a range), `drop_extents.rs` (whole extents at once), `ingest/` (extents
//!   that do not pass through memory)
//! * what users ask of it: `maintain.rs`; look: `stats.rs`, `flows.rs`, `shape.rs`, `check.rs`
//!
//! Never names a transport, a file format or a system call.

mod adapt;
mod approximate;
mod backlog;
pub mod backup;
mod budget;
mod catalog;
mod check;
mod checkpoint;
mod compact;
mod counted;
mod debt;
mod division;
mod draining;
mod drop_extents;
mod engine;
mod epoch_cell;
mod events;
mod extents;
mod failures;
mod feed;
mod fetch;
mod filter_use;
mod flows;
mod flush;
mod follow;
mod freed;
mod freeze;
mod heat;
mod history;
mod idle;
mod inflow;
mod ingest;
mod inherit;
mod install;
mod iterate;
mod ledger;
mod lending;
mod maintain;
mod multi_get;
mod note;
mod notes;
mod open;
mod own_threads;
mod pace;
mod passed;
mod patience;
mod picture;
mod place;
mod pressure;
mod quarantine;
mod read;
mod readers;
mod recover;
mod repair;
mod replay_filter;
mod resolve;
mod rows;
mod scan;
mod schedule;
mod scrub;
mod segments;
mod sense;
mod settings;
mod settle;
mod shape;
mod slow;
mod snapshot;
mod stalls;
mod stats;
mod stopped;
mod table;
mod tables;
mod txn;
mod values;
mod veil;
mod watching;
mod wide;
mod work;
mod workers;
mod write;
mod yielding;

pub use approximate::{Estimate, RangeEstimate};
pub use catalog::{Catalog, DEFAULT_NAME, NAME_BYTES_MAX, TABLES_MAX};
pub use check::{CheckReport, Finding};
pub use checkpoint::Checkpoint;
pub use drop_extents::DroppedExtents;
pub use engine::Engine;
pub use events::{
    Flushed, JobBegan, JobEnded, Listener, MemtableFrozen, StallBegan, StallCause, StallEnded, WorkFailed,
};
pub use extents::{ExtentInfo, ExtentSummary, SegmentEntry};
pub use feed::{Change, ChangeBatch, ChangeKind, Feed, FeedOptions};
pub use follow::last_commit;
pub use ingest::{IngestFile, IngestOptions, Ingested, Loader};
pub use iterate::{ExtentFilter, RangeIter, RenewableScan, Row, TableScan};
pub use maintain::Progress;
pub use read::ReadMode;
pub use readers::{Hold, LiveReader, Origin, PinnedRange, ReaderKind};
pub use repair::{Loss, RepairReport, repair, repair_on, repair_with, repair_with_on};
pub use replay_filter::{ReplayDecision, ReplayFilter, ReplayedBatch, ReplayedChanges, ReplayedTable};
pub use scan::{Bounds, Scan};
pub use sense::Sense;
pub use settings::{TABLE_OPTIONS, check_table_option};
pub use shape::{LevelShape, Shape, TableShape};
pub use snapshot::Snapshot;
pub use stats::{MetricValue, Sample, Statistics, Stats, TableStatistics, TableStats, metrics};
pub use table::Table;
pub use terrane_compaction::CancelCause;
pub use terrane_table::{ExternalFile, ExternalSummary, ExternalWriter, WriterSettings};
pub use txn::{Concurrency, Isolation, LockMark, LockMode, ScanId, Transaction, TransactionOptions};
pub use values::Values;
