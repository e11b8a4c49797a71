//! Filters of the log: a user function decides about each batch that an opening replays.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_uchar, c_ulonglong, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use terrane::{ChangeKind, ReplayDecision, ReplayFilter, ReplayedBatch, ReplayedChanges, ReplayedTable};

use crate::batch::handle::BatchHandle;
use crate::batch::layout::Change;
use crate::batch::write_batch::WriteBatch;
use crate::callbacks::{Destructor, Name, State};
use crate::ffi::failure::{Failure, Result};

/// FieldValue of the column families: their numbers and the first log with records of each; their names, the
/// lengths of these, and whose they are.
type OnFamilies = Option<
    unsafe extern "C" fn(
        *mut c_void,
        *const u32,
        *const u64,
        usize,
        *const *const c_char,
        *const usize,
        *const u32,
        usize,
    ),
>;
/// Decides about a batch: gets the number of its log, the name of the log's file with its length, and the
/// batch; returns the batch for its place, and whether there is one.
type OnBatch = Option<
    unsafe extern "C" fn(
        *mut c_void,
        c_ulonglong,
        *const c_char,
        usize,
        *const BatchHandle,
        *mut BatchHandle,
        *mut c_uchar,
    ) -> c_int,
>;

/// RocksDB's numbers of what becomes of a batch.
const CONTINUE: c_int = 0;
const IGNORE: c_int = 1;
const STOP: c_int = 2;
const CORRUPTED: c_int = 3;

/// A filter of the user.
#[derive(Debug)]
pub(crate) struct LogFilter {
    state: State,
    families: OnFamilies,
    found: OnBatch,
    name: String,
}

/// The user's handle of one.
#[derive(Debug)]
pub(crate) struct WalFilter {
    pub(crate) filter: Arc<LogFilter>,
}

/// A column family that the log has changes of.
struct Known {
    id: u32,
    /// The end of the life of rows that are written now, if they do not live for ever.
    until: Option<u64>,
}

/// A filter during one opening.
pub(crate) struct Filtering {
    filter: Arc<LogFilter>,
    /// Seconds that written rows live, by the names of the column families where it does not for ever.
    ttls: BTreeMap<String, u32>,
    /// The column families that there are.
    known: Mutex<Vec<Known>>,
    /// The mistake in the user's answer.
    failure: Mutex<Option<Failure>>,
}

impl Filtering {
    /// A filter, and the times to live, in seconds, that column families are opened with.
    pub(crate) fn new(filter: Arc<LogFilter>, ttls: BTreeMap<String, u32>) -> Filtering {
        Filtering { filter, ttls, known: Mutex::default(), failure: Mutex::default() }
    }

    /// RocksDB's error for an answer with which the opening failed.
    pub(crate) fn failure(&self, failure: Failure) -> Failure {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(failure)
    }

    fn ask(&self, batch: &ReplayedBatch<'_>) -> Result<ReplayDecision> {
        let Some(found) = self.filter.found else { return Ok(ReplayDecision::Keep) };
        let mut shown = BatchHandle::of_bytes(as_rocksdb(batch)?);
        let mut new = BatchHandle::of_empty(WriteBatch::empty());
        let mut is_changed: c_uchar = 0;
        // As RocksDB's: with a zero behind it, so that it can be printed as it is.
        let file = CString::new(batch.file()).unwrap_or_default();
        // SAFETY: the user's function, with the user's pointer, and objects and bytes that are there during
        // the call.
        let answer = unsafe {
            found(
                self.filter.state.pointer(),
                batch.segment().0,
                file.as_ptr(),
                file.count_bytes(),
                // Functions that read a batch may lay it out, so the pointer is one that may write.
                (&raw mut shown).cast_const(),
                &raw mut new,
                &raw mut is_changed,
            )
        };
        match answer {
            CONTINUE if is_changed != 0 => {
                self.replaced(batch, shown.laid(), new.laid()).map(ReplayDecision::Replace)
            }
            CONTINUE => Ok(ReplayDecision::Keep),
            IGNORE => Ok(ReplayDecision::Ignore),
            STOP => Ok(ReplayDecision::Stop),
            CORRUPTED => {
                Err(Failure::corrupt(format_args!("Corruption reported by Wal Filter {}", self.filter.name)))
            }
            _ => Err(Failure::new(
                "Not implemented",
                format_args!(
                    "Unknown WalProcessingOption {answer} returned by Wal Filter {}",
                    self.filter.name
                ),
            )),
        }
    }

    /// The user's batch for the place of another one, without changes of column families that do not exist.
    fn replaced(
        &self,
        batch: &ReplayedBatch<'_>,
        shown: &WriteBatch,
        new: &WriteBatch,
    ) -> Result<ReplayedChanges> {
        if new.count() > shown.count() {
            return Err(Failure::not_implemented(format_args!(
                "More than original # of records returned by Wal Filter {}",
                self.filter.name
            )));
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept(new, &known, batch.changes().len())?;
        let expiries = expiries(batch);
        // A row in the place of a value or operand lives as long, others as rows that are written now.
        let until = |id: u32, key: &[u8]| match expiries.get(&(id, key)) {
            Some(until) => *until,
            None => known.iter().find(|known| known.id == id)?.until,
        };
        let mut changes = ReplayedChanges::new();
        for (id, change) in kept {
            match change {
                Change::LogData(data) => changes.log_data(data)?,
                Change::Put(key, value) => match until(id, key) {
                    Some(until) => changes.put_until(id, key, value, until)?,
                    None => changes.put(id, key, value)?,
                },
                Change::Delete(key) => changes.delete(id, key)?,
                Change::SingleDelete(key) => changes.single_delete(id, key)?,
                Change::Merge(key, operand) => match until(id, key) {
                    Some(until) => changes.merge_until(id, key, operand, until)?,
                    None => changes.merge(id, key, operand)?,
                },
                Change::RangeDelete(start, end) => changes.delete_range(id, start, end)?,
            }
        }
        Ok(changes)
    }
}

/// The changes of a user's batch that replace one of `count` changes: without those of unknown column
/// families, and without empty ranges, which RocksDB accepts and which delete nothing. RocksDB does not count
/// blobs, but here each takes a number: the last ones, for which no number is left, are left out.
fn kept<'b>(new: &'b WriteBatch, known: &[Known], count: usize) -> Result<Vec<(u32, Change<'b>)>> {
    let does_something = |(id, change): &(u32, Change<'_>)| match change {
        // Of no column family.
        Change::LogData(_) => true,
        Change::RangeDelete(start, end) if start == end => false,
        _ => known.iter().any(|known| known.id == *id),
    };
    let mut kept = new.changes().collect::<Result<Vec<_>>>()?;
    kept.retain(does_something);
    let is_blob = |(_, change): &(u32, Change<'_>)| matches!(change, Change::LogData(_));
    let mut left = count.saturating_sub(kept.iter().filter(|change| !is_blob(change)).count());
    kept.retain(|change| {
        if !is_blob(change) {
            return true;
        }
        let has_number = left > 0;
        left = left.saturating_sub(1);
        has_number
    });
    Ok(kept)
}

/// Until when the last value or operand of a batch under each of its keys lives, if not for ever.
fn expiries<'b>(batch: &ReplayedBatch<'b>) -> BTreeMap<(u32, &'b [u8]), Option<u64>> {
    let written = batch.changes().iter().filter_map(|change| match change.kind {
        ChangeKind::Put { key, .. } | ChangeKind::Merge { key, .. } => {
            Some(((change.table_id, key), change.expires_at))
        }
        _ => None,
    });
    written.collect()
}

/// A batch as RocksDB lays it out.
fn as_rocksdb(batch: &ReplayedBatch<'_>) -> Result<WriteBatch> {
    let mut made = WriteBatch::empty();
    for change in batch.changes() {
        let id = change.table_id;
        match change.kind {
            ChangeKind::Put { key, value } => made.add(id, Change::Put(key, value)),
            ChangeKind::Delete { key } => made.add(id, Change::Delete(key)),
            ChangeKind::SingleDelete { key } => made.add(id, Change::SingleDelete(key)),
            ChangeKind::Merge { key, operand } => made.add(id, Change::Merge(key, operand)),
            ChangeKind::DeleteRange { start, end } => made.add(id, Change::RangeDelete(start, end)),
            ChangeKind::LogData { data } => made.add(0, Change::LogData(data)),
            other => {
                let what = format_args!("a change of kind {} is not a record of a batch", other.as_str());
                return Err(Failure::not_implemented(what));
            }
        }
    }
    made.set_seq(batch.first_seq().0);
    Ok(made)
}

impl ReplayFilter for Filtering {
    fn name(&self) -> &str {
        &self.filter.name
    }

    fn begin(&self, tables: &[ReplayedTable]) {
        let ids: Vec<u32> = tables.iter().map(|table| table.id).collect();
        let logs: Vec<u64> = tables.iter().map(|table| table.from.0).collect();
        let names: Vec<CString> =
            tables.iter().map(|table| CString::new(table.name.as_str()).unwrap_or_default()).collect();
        let texts: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let lens: Vec<usize> = names.iter().map(|name| name.count_bytes()).collect();
        if let Some(callback) = self.filter.families {
            // SAFETY: the user's function, with the user's pointer and lists that are there during the call,
            // each as long as said.
            unsafe {
                callback(
                    self.filter.state.pointer(),
                    ids.as_ptr(),
                    logs.as_ptr(),
                    ids.len(),
                    texts.as_ptr(),
                    lens.as_ptr(),
                    ids.as_ptr(),
                    ids.len(),
                );
            }
        }
        // One moment for all: operands that share theirs can be folded.
        let now = terrane::Env::real().clock.wall().as_millis() as u64;
        let until = |name: &str| self.ttls.get(name).map(|seconds| now + u64::from(*seconds) * 1000);
        let known = tables.iter().map(|table| Known { id: table.id, until: until(table.name.as_str()) });
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known.collect();
    }

    fn batch(&self, batch: &ReplayedBatch<'_>) -> ReplayDecision {
        self.ask(batch).unwrap_or_else(|failure| {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
            ReplayDecision::Corrupt
        })
    }
}

export! {
    fn rocksdb_walfilter_create(
        state: *mut c_void,
        destructor: Destructor,
        families: OnFamilies,
        found: OnBatch,
        name: Name,
    ) -> Option<Box<WalFilter>> {
        let state = State::new(state, destructor);
        let name = state.name(name);
        Some(Box::new(WalFilter { filter: Arc::new(LogFilter { state, families, found, name }) }))
    }

    fn rocksdb_walfilter_destroy(filter: Option<Box<WalFilter>>) {
        drop(filter);
    }
}
