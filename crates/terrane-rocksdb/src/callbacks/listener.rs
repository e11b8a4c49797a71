//! Event listeners: functions of the user that are told what happens to a database.
//!
//! A listener belongs to options, and databases that were opened with them hold it by count. [`Telling`] is one listener at one
//! database: it hears events of the engine, makes RocksDB's objects of them, which live during the call, and calls.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use terrane::{
    CancelCause, Error, ExtentFileInfo, ExtentSummary, JobBegan, JobEnded, JobKind, Kind, MemtableFrozen,
    StallBegan, StallCause, StallEnded, WorkFailed,
};

use super::{Destructor, State};
use crate::border::Bytes;
use crate::database::{Database, Families, paused};
use crate::failure::Failure;
use crate::generated::values::{
    CompactionJobInfo, FlushJobInfo, IngestionInfo, MemtableInfo, SubcompactionJobInfo, TableProperties,
    WriteStallInfo,
};
use crate::metadata::{Levels, Merged, Owner, deepest_in, extent_name, extent_number};
use crate::order::Order;
use crate::values::Words;

/// Told of a job of a database.
type OnJob<T> = Option<unsafe extern "C" fn(*mut c_void, *const Database, *const T)>;
/// Told of something else.
type On<T> = Option<unsafe extern "C" fn(*mut c_void, *const T)>;
/// Told of an error of the background, which it may reset.
type OnError = Option<unsafe extern "C" fn(*mut c_void, u32, *mut Status)>;

/// An error that a listener is shown.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub(crate) failure: Option<Failure>,
}

/// Whether and how writers are held back, as RocksDB numbers it.
const DELAYED: StallCondition = StallCondition(0);
const NORMAL: StallCondition = StallCondition(2);
/// Reasons of errors of the background, as RocksDB numbers them.
const FLUSH: u32 = 0;
const COMPACTION: u32 = 1;
const MEMTABLE: u32 = 3;

/// How writers are held back: what points at it reads a number.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(crate) struct StallCondition(c_int);

/// The functions of a listener.
#[derive(Debug)]
struct Functions {
    flush_began: OnJob<FlushJobInfo>,
    flush_ended: OnJob<FlushJobInfo>,
    compaction_began: OnJob<CompactionJobInfo>,
    compaction_ended: OnJob<CompactionJobInfo>,
    ingested: OnJob<IngestionInfo>,
    failed: OnError,
    stalled: On<WriteStallInfo>,
    sealed: On<MemtableInfo>,
}

/// A listener of the user.
#[derive(Debug)]
pub(crate) struct EventListener {
    state: State,
    functions: Functions,
}

/// A listener at a database.
#[derive(Debug)]
pub(crate) struct Telling {
    listener: Arc<EventListener>,
    /// What the user knows the database by; it is there until the database is closed, which ends the telling.
    database: AtomicPtr<Database>,
    db: terrane::Db,
    /// For how levels are numbered. A listener keeps no column family from going.
    families: Families,
    /// Set when the database begins to be closed.
    is_closing: AtomicBool,
}

impl Telling {
    /// `listener` at the database of this handle.
    pub(crate) fn new(listener: Arc<EventListener>, database: &Database) -> Telling {
        let pointer = std::ptr::from_ref(database).cast_mut();
        Telling {
            listener,
            database: AtomicPtr::new(pointer),
            db: database.db.clone(),
            families: database.weak_families(),
            is_closing: AtomicBool::new(false),
        }
    }

    /// What is given up from now on is given up by the close.
    pub(crate) fn begin_close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// How the levels of a column family are numbered while a compaction to the level `to` is told of.
    fn levels(&self, family: &str, to: u8) -> Levels {
        let shape = self.db.shape().tables.into_iter().find(|table| table.name == family);
        let deepest = shape.map_or(0, |shape| deepest_in(&shape)).max(to.into());
        self.families.named(family).map_or_else(Levels::default, |family| family.levels(deepest))
    }

    fn job<T>(&self, told: OnJob<T>, info: &T) {
        if let Some(told) = told {
            // SAFETY: the user's function, with the user's pointer, the handle of a database that is not closed before its
            // listeners were told, and an object that is there during the call.
            unsafe { told(self.listener.state.pointer(), self.database.load(Ordering::Relaxed), info) };
        }
    }

    fn tell<T>(&self, told: On<T>, info: &T) {
        if let Some(told) = told {
            // SAFETY: the user's function, with the user's pointer and an object that is there during the call.
            unsafe { told(self.listener.state.pointer(), info) };
        }
    }

    /// The number of a column family; 0 if it is gone.
    fn family_id(&self, name: &str) -> u32 {
        self.db.table(name).map_or(0, |table| table.number())
    }

    /// How the keys of a column family are ordered; as bytes if it is gone.
    fn order(&self, name: &str) -> Order {
        self.families.named(name).map(|family| family.order.clone()).unwrap_or_default()
    }

    fn owner<'a>(&self, name: &'a str, order: &'a Order) -> Owner<'a> {
        Owner { id: self.family_id(name), name, comparator: order.name() }
    }

    /// A file of the user came in. Called on the thread that brought it in.
    pub(crate) fn ingested(&self, family: &str, path: &str, seq: u64, file: Option<&ExtentFileInfo>) {
        let counts = file.map(|file| (file.entries, file.deletes, file.range_deletes));
        let (entries, deletes, range_deletes) = counts.unwrap_or_default();
        let order = self.order(family);
        let info = IngestionInfo {
            cf_name: family.into(),
            external_file_path: path.into(),
            internal_file_path: Words::default(),
            global_seqno: seq,
            table_properties: TableProperties {
                num_entries: entries + range_deletes,
                num_deletions: deletes + range_deletes,
                num_range_deletions: range_deletes,
                ..TableProperties::none(self.owner(family, &order))
            },
        };
        self.job(self.listener.functions.ingested, &info);
    }

    fn stalled(&self, cause: Option<&StallCause>, (before, now): (StallCondition, StallCondition)) {
        let cf_name = match cause {
            Some(StallCause::Backlog(table)) => table.as_str().into(),
            _ => Words::default(),
        };
        let info = WriteStallInfo { cf_name, prev: before, cur: now };
        self.tell(self.listener.functions.stalled, &info);
    }
}

impl terrane::Listener for Telling {
    fn flush_began(&self, job: &JobBegan) {
        if is_own(&job.table) {
            return;
        }
        let info = FlushJobInfo {
            cf_id: self.family_id(&job.table),
            cf_name: job.table.as_str().into(),
            job_id: job_number(job.id),
            ..FlushJobInfo::default()
        };
        self.job(self.listener.functions.flush_began, &info);
    }

    fn flush_ended(&self, job: &JobEnded) {
        // What had nothing to do, or was given up, is no flush of RocksDB.
        if let (Some(_), None, false) = (&job.flushed, &job.error, is_own(&job.table)) {
            let order = self.order(&job.table);
            let info = flush_info(job, self.owner(&job.table, &order));
            self.job(self.listener.functions.flush_ended, &info);
        }
    }

    fn memtable_frozen(&self, memtable: &MemtableFrozen) {
        if is_own(&memtable.table) {
            return;
        }
        let info = MemtableInfo {
            cf_name: memtable.table.as_str().into(),
            // Numbers of records begin with 1.
            first_seqno: memtable.first_seq.0.max(1),
            earliest_seqno: memtable.first_seq.0.max(1),
            num_entries: memtable.entries,
            ..MemtableInfo::default()
        };
        self.tell(self.listener.functions.sealed, &info);
    }

    fn compaction_began(&self, job: &JobBegan) {
        if is_own(&job.table) {
            return;
        }
        let (from, to) = job.levels.unwrap_or_default();
        let levels = self.levels(&job.table, to);
        let info = CompactionJobInfo {
            cf_id: self.family_id(&job.table),
            cf_name: job.table.as_str().into(),
            job_id: job_number(job.id),
            base_input_level: levels.told(from.into()) as c_int,
            output_level: levels.told(to.into()) as c_int,
            input_files: job.inputs.iter().map(name).collect(),
            num_input_files: job.inputs.len(),
            ..CompactionJobInfo::default()
        };
        self.job(self.listener.functions.compaction_began, &info);
    }

    fn compaction_ended(&self, job: &JobEnded) {
        // What a close has ended is told of by RocksDB neither.
        let is_ended = job.error.as_ref().is_some_and(|error| error.kind() == Kind::Cancelled)
            && self.is_closing.load(Ordering::Relaxed);
        if is_own(&job.table) || is_ended {
            return;
        }
        let (_, to) = job.levels.unwrap_or_default();
        let order = self.order(&job.table);
        let info = compaction_info(job, self.owner(&job.table, &order), self.levels(&job.table, to));
        self.job(self.listener.functions.compaction_ended, &info);
    }

    fn stall_began(&self, stall: &StallBegan) {
        self.stalled(Some(&stall.cause), (NORMAL, DELAYED));
    }

    fn stall_ended(&self, _stall: &StallEnded) {
        self.stalled(None, (DELAYED, NORMAL));
    }

    fn work_failed(&self, failure: &WorkFailed) {
        let reason = match failure.work {
            JobKind::Flush => FLUSH,
            JobKind::Freeze | JobKind::Settle | JobKind::Trim => MEMTABLE,
            _ => COMPACTION,
        };
        let mut status = Status { failure: Some(failure.error.clone().into()) };
        if let Some(told) = self.listener.functions.failed {
            // SAFETY: the user's function, with the user's pointer and an object that is there during the call.
            unsafe { told(self.listener.state.pointer(), reason, &raw mut status) };
        }
    }
}

/// Whether a table is the engine's own, of which users know nothing.
fn is_own(table: &str) -> bool {
    table.starts_with("terrane:")
}

/// Job numbers of RocksDB are an `int`.
fn job_number(id: u64) -> c_int {
    c_int::try_from(id).unwrap_or(c_int::MAX)
}

fn flush_info(job: &JobEnded, owner: Owner<'_>) -> FlushJobInfo {
    let flushed = job.flushed;
    let first = job.written.first();
    let of_first = |extent| TableProperties::of(extent, owner);
    let mut properties = first.map_or_else(|| TableProperties::none(owner), of_first);
    properties.num_entries = flushed.map_or(0, |flushed| flushed.entries);
    FlushJobInfo {
        cf_id: owner.id,
        cf_name: owner.name.into(),
        file_path: first.map(|extent| extent_name(extent.id).into()).unwrap_or_default(),
        file_number: first.map_or(0, |extent| extent_number(extent.id)),
        job_id: job_number(job.id),
        smallest_seqno: flushed.map_or(0, |flushed| flushed.seq_min.0),
        largest_seqno: flushed.map_or(0, |flushed| flushed.seq_max.0),
        table_properties: properties,
        ..FlushJobInfo::default()
    }
}

fn name(extent: &ExtentSummary) -> Words {
    extent_name(extent.id).into()
}

/// How a compaction ended, in RocksDB's words, and whether it was given up because somebody asked for that.
fn end_of(cancelled: Option<CancelCause>, error: Option<&Error>) -> (Option<Failure>, bool) {
    match cancelled {
        Some(CancelCause::Held) => (Some(paused()), true),
        Some(CancelCause::Asked) => {
            (Some(Failure::new("Result incomplete", "All compactions aborted")), true)
        }
        Some(CancelCause::Dropped) => {
            let what = "Column family dropped during compaction";
            (Some(Failure::new("Column family dropped", what)), false)
        }
        _ => (error.cloned().map(Failure::from), false),
    }
}

/// What a compaction did, as RocksDB tells it.
fn compaction_info(job: &JobEnded, owner: Owner<'_>, levels: Levels) -> CompactionJobInfo {
    let (from, to) = job.levels.unwrap_or_default();
    let merged = Merged {
        owner,
        levels,
        between: (from.into(), to.into()),
        inputs: job.inputs.iter().collect(),
        written: job.written.iter().collect(),
        moved: job.moved.iter().collect(),
        took: job.took,
        entries: (job.entries_in, job.entries_out),
        bytes: (job.bytes_read, job.bytes_written),
    };
    let (status, is_aborted) = end_of(job.cancelled, job.error.as_ref());
    CompactionJobInfo { status, aborted: u8::from(is_aborted), job_id: job_number(job.id), ..merged.told() }
}

export! {
    fn rocksdb_eventlistener_create(
        state: *mut c_void,
        destructor: Destructor,
        flush_began: OnJob<FlushJobInfo>,
        flush_ended: OnJob<FlushJobInfo>,
        compaction_began: OnJob<CompactionJobInfo>,
        compaction_ended: OnJob<CompactionJobInfo>,
        _subcompaction_began: On<SubcompactionJobInfo>,
        _subcompaction_ended: On<SubcompactionJobInfo>,
        ingested: OnJob<IngestionInfo>,
        failed: OnError,
        stalled: On<WriteStallInfo>,
        sealed: On<MemtableInfo>,
    ) -> Option<Box<EventListener>> {
        let functions =
            Functions { flush_began, flush_ended, compaction_began, compaction_ended, ingested, failed, stalled, sealed };
        Some(Box::new(EventListener { state: State::new(state, destructor), functions }))
    }

    fn rocksdb_eventlistener_destroy(listener: Option<Box<EventListener>>) {
        drop(listener);
    }

    fn rocksdb_compactionjobinfo_table_properties_for_file(
        info: Option<&CompactionJobInfo>,
        name: Bytes<'_>,
        len: usize,
    ) -> *const TableProperties {
        let Some(info) = info else { return std::ptr::null() };
        let mut files = info.table_properties_keys.iter().zip(&info.table_properties_values);
        let found = files.find(|(key, _)| key.bytes() == name.of(len));
        found.map_or(std::ptr::null(), |(_, properties)| properties)
    }

    fn rocksdb_status_ptr_get_error(status: Option<&Status>, error: ErrPtr<'_>) {
        status.and_then(|status| status.failure.clone()).map_or(Ok(()), Err)
    }

    fn rocksdb_reset_status(status: Option<&mut Status>) {
        if let Some(status) = status {
            status.failure = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compaction_that_was_cancelled_says_why() {
        let error = Error::new(Kind::Cancelled, "compaction job was cancelled");
        let ended = |cause| {
            let (status, is_aborted) = end_of(cause, Some(&error));
            (status.map_or(String::new(), |status| status.text().to_owned()), is_aborted)
        };
        let told = |text: &str, is_aborted| (text.to_owned(), is_aborted);
        let paused = "Result incomplete: Manual compaction paused";
        assert_eq!(ended(Some(CancelCause::Held)), told(paused, true));
        let all = "Result incomplete: All compactions aborted";
        assert_eq!(ended(Some(CancelCause::Asked)), told(all, true));
        let dropped = "Column family dropped: Column family dropped during compaction";
        assert_eq!(ended(Some(CancelCause::Dropped)), told(dropped, false));
        let closing = "Shutdown in progress: compaction job was cancelled";
        assert!(ended(Some(CancelCause::Closing)).0.starts_with(closing) && !ended(None).1);
        assert!(matches!(end_of(None, None), (None, false)));
    }
}
