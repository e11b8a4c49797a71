//! Calls event listeners for one open database: makes RocksDB's objects of the engine's events. The objects
//! live during the call.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::{
    CancelCause, Error, ExtentFileInfo, ExtentSummary, JobBegan, JobEnded, JobKind, Kind, MemtableFrozen,
    StallBegan, StallCause, StallEnded, WeakDb, WorkFailed,
};

use crate::callbacks::listener::{DatabaseAddress, EventListener, StallCondition, Status};
use crate::callbacks::order::Order;
use crate::db::open::attachments::paused;
use crate::db::{Database, Families};
use crate::extents::levels::{Levels, deepest_in};
use crate::extents::merged::Merged;
use crate::extents::{Owner, extent_name, extent_number};
use crate::ffi::failure::Failure;
use crate::ffi::value_objects::LentText;
use crate::generated::values::{
    CompactionJobInfo, FlushJobInfo, IngestionInfo, MemtableInfo, TableProperties, WriteStallInfo,
};

/// Reasons of background errors, as RocksDB numbers them.
const FLUSH: u32 = 0;
const COMPACTION: u32 = 1;
const MEMTABLE: u32 = 3;

/// One listener of one open database.
#[derive(Debug)]
pub(crate) struct DatabaseListener {
    listener: Arc<EventListener>,
    /// The handle lives until the database is closed; after that no listener is called.
    database: DatabaseAddress,
    /// Weak: the database keeps the listener, and would keep itself open.
    db: WeakDb,
    /// For how levels are numbered. Weak: a listener does not keep a dropped column family alive.
    families: Families,
    /// Set when the database begins to be closed.
    is_closing: AtomicBool,
}

impl DatabaseListener {
    /// `listener` at the database of this handle.
    pub(crate) fn new(listener: Arc<EventListener>, database: &Database) -> DatabaseListener {
        DatabaseListener {
            listener,
            database: DatabaseAddress::of(database),
            db: database.db.downgrade(),
            families: database.weak_families(),
            is_closing: AtomicBool::new(false),
        }
    }

    /// Jobs that are cancelled from now on are cancelled by the close.
    pub(crate) fn begin_close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// How the levels of a column family are numbered in the events of a compaction into level `to`.
    fn levels(&self, family: &str, to: u8) -> Levels {
        let shape = self.db.upgrade().map(|db| db.shape());
        let shape = shape.and_then(|shape| shape.tables.into_iter().find(|table| table.name == family));
        let deepest = shape.map_or(0, |shape| deepest_in(&shape)).max(to.into());
        self.families.named(family).map_or_else(Levels::default, |family| family.levels(deepest))
    }

    /// Why a compaction from this level runs; unknown where the column family is gone.
    fn compaction_reason(&self, family: &str, from: u8) -> u32 {
        self.families.named(family).map_or(0, |family| family.asked.compaction_reason(from))
    }

    /// The number of a column family; 0 if it is gone.
    fn family_id(&self, name: &str) -> u32 {
        self.db.upgrade().and_then(|db| db.table(name).ok()).map_or(0, |table| table.number())
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
            internal_file_path: LentText::default(),
            global_seqno: seq,
            table_properties: TableProperties {
                num_entries: entries + range_deletes,
                num_deletions: deletes + range_deletes,
                num_range_deletions: range_deletes,
                ..TableProperties::none(self.owner(family, &order))
            },
        };
        self.listener.ingested(&self.database, &info);
    }

    fn stalled(&self, cause: Option<&StallCause>, (before, now): (StallCondition, StallCondition)) {
        let cf_name = match cause {
            Some(StallCause::Backlog(table)) => table.as_str().into(),
            _ => LentText::default(),
        };
        let info = WriteStallInfo { cf_name, prev: before, cur: now };
        self.listener.stalled(&info);
    }
}

impl terrane::Listener for DatabaseListener {
    fn flush_began(&self, job: &JobBegan) {
        if is_own(&job.table) {
            return;
        }
        let info = FlushJobInfo {
            cf_id: self.family_id(&job.table),
            cf_name: job.table.as_str().into(),
            job_id: job_number(job.id),
            flush_reason: self.families.named(&job.table).map_or(0, |family| family.asked.flush_reason()),
            ..FlushJobInfo::default()
        };
        self.listener.flush_began(&self.database, &info);
    }

    fn flush_ended(&self, job: &JobEnded) {
        // What had nothing to do, or was given up, is not a flush of RocksDB.
        if let (Some(_), None, false) = (&job.flushed, &job.error, is_own(&job.table)) {
            let order = self.order(&job.table);
            let family = self.families.named(&job.table);
            let flush_reason = family.map_or(0, |family| family.asked.take_flush_reason());
            let info = FlushJobInfo { flush_reason, ..flush_info(job, self.owner(&job.table, &order)) };
            self.listener.flush_ended(&self.database, &info);
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
        self.listener.sealed(&info);
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
            base_input_level: levels.number_of(from.into()) as c_int,
            output_level: levels.number_of(to.into()) as c_int,
            input_files: job.inputs.iter().map(name).collect(),
            num_input_files: job.inputs.len(),
            compaction_reason: self.compaction_reason(&job.table, from),
            ..CompactionJobInfo::default()
        };
        self.listener.compaction_began(&self.database, &info);
    }

    fn compaction_ended(&self, job: &JobEnded) {
        // RocksDB reports no compaction that a close has cancelled either.
        let is_ended = job.error.as_ref().is_some_and(|error| error.kind() == Kind::Cancelled)
            && self.is_closing.load(Ordering::Relaxed);
        if is_own(&job.table) || is_ended {
            return;
        }
        let (from, to) = job.levels.unwrap_or_default();
        let order = self.order(&job.table);
        let info = CompactionJobInfo {
            compaction_reason: self.compaction_reason(&job.table, from),
            ..compaction_info(job, self.owner(&job.table, &order), self.levels(&job.table, to))
        };
        self.listener.compaction_ended(&self.database, &info);
    }

    fn stall_began(&self, stall: &StallBegan) {
        self.stalled(Some(&stall.cause), (StallCondition::NORMAL, StallCondition::DELAYED));
    }

    fn stall_ended(&self, _stall: &StallEnded) {
        self.stalled(None, (StallCondition::DELAYED, StallCondition::NORMAL));
    }

    fn work_failed(&self, failure: &WorkFailed) {
        let reason = match failure.work {
            JobKind::Flush => FLUSH,
            JobKind::Freeze | JobKind::Settle | JobKind::Trim => MEMTABLE,
            _ => COMPACTION,
        };
        let mut status = Status { failure: Some(failure.error.clone().into()) };
        self.listener.failed(reason, &mut status);
    }
}

/// Returns true if a table is the engine's own, of which users know nothing.
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
        // Numbers of records begin with 1.
        smallest_seqno: flushed.map_or(0, |flushed| flushed.seq_min.0.max(1)),
        largest_seqno: flushed.map_or(0, |flushed| flushed.seq_max.0),
        table_properties: properties,
        ..FlushJobInfo::default()
    }
}

fn name(extent: &ExtentSummary) -> LentText {
    extent_name(extent.id).into()
}

/// How a compaction ended, in RocksDB's words, and whether a caller asked to cancel it.
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

/// Description of a finished compaction, in RocksDB's terms.
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
    CompactionJobInfo {
        status,
        aborted: u8::from(is_aborted),
        job_id: job_number(job.id),
        ..merged.job_info()
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
        let ended_with = |text: &str, is_aborted| (text.to_owned(), is_aborted);
        let paused = "Result incomplete: Manual compaction paused";
        assert_eq!(ended(Some(CancelCause::Held)), ended_with(paused, true));
        let all = "Result incomplete: All compactions aborted";
        assert_eq!(ended(Some(CancelCause::Asked)), ended_with(all, true));
        let dropped = "Column family dropped: Column family dropped during compaction";
        assert_eq!(ended(Some(CancelCause::Dropped)), ended_with(dropped, false));
        let closing = "Shutdown in progress: compaction job was cancelled";
        assert!(ended(Some(CancelCause::Closing)).0.starts_with(closing) && !ended(None).1);
        assert!(matches!(end_of(None, None), (None, false)));
    }
}
