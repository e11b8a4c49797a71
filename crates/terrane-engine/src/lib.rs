//! The engine: opens a database, writes, reads, scans, and runs the background work that keeps it in shape.
//!
//! Layer 8. Each folder is a part, and has a layer of its own (`xtask/engine.txt`): it imports from lower
//! ones only.
//! * `table/`: a table while the database is open, its options, what a read of it looks at, what its records
//!   mean
//! * `observe/`: metrics, listeners, the slow log, the shape of the trees
//! * `shared.rs`: what all parts above it stand on: doors, files, tables, counters; `readers/`: live readers
//! * `memory/`: the memory ceiling and how it is divided
//! * `read/`: point reads, many keys at once, scans, snapshots
//! * `throttle/`: how fast writers may go, and until when one is held back
//! * `background/`: the scheduler and its jobs: flush, compaction, journal, idle work, scrubbing; what users
//!   ask of it
//! * `locks/`: locks of transactions, conflict window, gate of a commit
//! * `write/`: admit, commit, index; `ddl.rs`: create and drop tables
//! * `bulk/`: extents that come in and go whole; `change_feed/`: readers of changes; `inspect/`: checks and
//!   the shape; `copies/`: checkpoint, backup
//! * `engine.rs`: the engine, which holds the parts
//! * `txn/`: transactions, two-phase commit; `lifecycle/`: open, recover, follow; `repair/`: a new database
//!   from a damaged one
//!
//! Knows no transport and makes no system call. It uses types of `terrane_format` (edits, extents, backups).

mod background;
mod bulk;
mod change_feed;
mod copies;
mod ddl;
mod engine;
mod ingest_mark;
mod inspect;
mod lifecycle;
mod locks;
mod memory;
mod observe;
mod pace;
mod read;
mod readers;
mod reentrancy;
mod repair;
mod segment_files;
mod shared;
mod table;
mod throttle;
mod txn;
mod write;

pub use background::maintenance::Maintenance;
pub use background::requests::Progress;
pub use bulk::drop_extents::DroppedExtents;
pub use bulk::estimate::{Estimate, RangeEstimate};
pub use bulk::ingest::{IngestFile, IngestOptions, Ingested, Loader};
pub use change_feed::{Change, ChangeBatch, ChangeKind, Feed, FeedOptions};
pub use copies::backup;
pub use engine::Engine;
pub use ingest_mark::is_mark as is_ingest_mark;
pub use inspect::extents::{ExtentInfo, SegmentEntry};
pub use inspect::shape::{LevelShape, Shape, TableShape};
pub use inspect::shared_page::{PageWriterState, SharedMetrics, read_metrics_page};
pub use lifecycle::close_apart::close_apart;
pub use lifecycle::followed::{Followed, FollowedParts, Lag, Moment};
pub use lifecycle::follower::{Viewed, last_commit, last_commit_in};
pub use lifecycle::open::OpenRequest;
pub use lifecycle::open::parts::{
    CountRequests, MakeCompactor, OpenedParts, Parts, PartsRequest, ReadParts, Upkeep,
};
pub use lifecycle::replay_filter::{
    ReplayDecision, ReplayFilter, ReplayedBatch, ReplayedChanges, ReplayedTable,
};
pub use locks::LockMode;
pub use observe::events::{
    Checkpoint, Flushed, JobBegan, JobEnded, Listener, MemtableFrozen, StallBegan, StallCause, StallEnded,
    WorkFailed,
};
pub use observe::extent_summary::ExtentSummary;
pub use observe::findings::{CheckProgress, CheckReport, Finding};
pub use observe::job_kind::JobKind;
pub use observe::stats::{MetricValue, Sample, Statistics, Stats, TableStatistics, TableStats, metrics};
pub use read::get::ReadMode;
pub use read::multi_get::values::Values;
pub use read::scan::iterator::{ExtentFilter, RangeIter, RenewableScan, Row, TableScan};
pub use read::scan::{Bounds, Scan};
pub use read::snapshots::snapshot::Snapshot;
pub use read::snapshots::{Hold, LiveReader, PinnedRange};
pub use readers::{Origin, ReaderKind};
pub use repair::{Loss, RepairReport, repair, repair_on, repair_until_on, repair_with, repair_with_on};
pub use shared::{Holds, Shared, SharedRef};
pub use table::Table;
pub use table::catalog::{Catalog, DEFAULT_NAME, NAME_BYTES_MAX, TABLES_MAX};
pub use table::semantics::TableSemantics;
pub use table::settings::{TABLE_OPTIONS, check_table_option};
pub use table::values_shape::ValuesShape;
pub use terrane_compaction::CancelCause;
pub use terrane_format::metrics_page::{
    MetricsPage, PageHistogram, PageJob, PageLevel, PageMetric, PageReader, PageTable,
};
pub use terrane_journal::Ticket;
pub use terrane_table::{ExternalFile, ExternalSummary, ExternalWriter, WriterSettings};
pub use txn::{Concurrency, Isolation, LockMark, ScanId, Transaction, TransactionOptions};
pub use write::WritePath;
