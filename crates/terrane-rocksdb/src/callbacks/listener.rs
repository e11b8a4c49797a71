//! Event listeners: user functions that are called after events of a database. `db::listener` calls them.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::callbacks::{Destructor, State};
use crate::ffi::failure::Failure;
use crate::generated::values::{
    CompactionJobInfo, FlushJobInfo, IngestionInfo, MemtableInfo, SubcompactionJobInfo, TableProperties,
    WriteStallInfo,
};

/// Called for a job of a database, which is the second argument.
type OnJob<T> = Option<unsafe extern "C" fn(*mut c_void, *const c_void, *const T)>;
/// Called for another event.
type On<T> = Option<unsafe extern "C" fn(*mut c_void, *const T)>;
/// Called for an error of a background job.
type OnError = Option<unsafe extern "C" fn(*mut c_void, u32, *mut Status)>;

/// An error that a listener is shown.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub(crate) failure: Option<Failure>,
}

/// How writes are slowed, if they are, as RocksDB numbers it. Getters return a pointer to the number.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(crate) struct StallCondition(c_int);

impl StallCondition {
    pub(crate) const DELAYED: StallCondition = StallCondition(0);
    pub(crate) const NORMAL: StallCondition = StallCondition(2);
}

/// The functions of a listener.
#[derive(Debug, Default)]
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

/// How listeners name an open database: the address of its handle, which user functions get as `rocksdb_t*`.
#[derive(Debug)]
pub(crate) struct DatabaseAddress(AtomicPtr<c_void>);

impl DatabaseAddress {
    /// The address of the handle `database`. The handle must outlive the listeners that are given this
    /// address.
    pub(crate) fn of<T>(database: &T) -> DatabaseAddress {
        DatabaseAddress(AtomicPtr::new(std::ptr::from_ref(database).cast_mut().cast()))
    }
}

impl EventListener {
    /// One that calls nothing.
    #[cfg(test)]
    pub(crate) fn silent() -> EventListener {
        EventListener { state: State::new(std::ptr::null_mut(), None), functions: Functions::default() }
    }

    fn job<T>(&self, callback: OnJob<T>, database: &DatabaseAddress, info: &T) {
        if let Some(callback) = callback {
            // SAFETY: the user's function, with the user's pointer, the handle of a database that is not
            // closed before its listeners were called, and an object that lives during the call.
            unsafe { callback(self.state.pointer(), database.0.load(Ordering::Relaxed), info) };
        }
    }

    fn call<T>(&self, callback: On<T>, info: &T) {
        if let Some(callback) = callback {
            // SAFETY: the user's function, with the user's pointer and an object that lives during the call.
            unsafe { callback(self.state.pointer(), info) };
        }
    }

    pub(crate) fn flush_began(&self, database: &DatabaseAddress, info: &FlushJobInfo) {
        self.job(self.functions.flush_began, database, info);
    }

    pub(crate) fn flush_ended(&self, database: &DatabaseAddress, info: &FlushJobInfo) {
        self.job(self.functions.flush_ended, database, info);
    }

    pub(crate) fn compaction_began(&self, database: &DatabaseAddress, info: &CompactionJobInfo) {
        self.job(self.functions.compaction_began, database, info);
    }

    pub(crate) fn compaction_ended(&self, database: &DatabaseAddress, info: &CompactionJobInfo) {
        self.job(self.functions.compaction_ended, database, info);
    }

    pub(crate) fn ingested(&self, database: &DatabaseAddress, info: &IngestionInfo) {
        self.job(self.functions.ingested, database, info);
    }

    pub(crate) fn stalled(&self, info: &WriteStallInfo) {
        self.call(self.functions.stalled, info);
    }

    pub(crate) fn sealed(&self, info: &MemtableInfo) {
        self.call(self.functions.sealed, info);
    }

    /// A background job failed; the function may reset `status`, which has no effect here.
    pub(crate) fn failed(&self, reason: u32, status: &mut Status) {
        if let Some(callback) = self.functions.failed {
            // SAFETY: the user's function, with the user's pointer and an object that lives during the call.
            unsafe { callback(self.state.pointer(), reason, status) };
        }
    }
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
        let found = files.find(|(key, _)| key.bytes() == name);
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
