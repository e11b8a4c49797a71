//! Filters of replay: the user decides for each batch that an opening finds in the journal, and that is not
//! in the levels yet, whether it is replayed, or by which records it is replaced.
//!
//! 1. asked in the order of commits, batch by batch, before anything is indexed (`ask.rs`)
//! 2. what was changed is written into new segments, which take the place of the old ones by one edit
//!    (`swap.rs`)
//! 3. then the journal is replayed like any other.
//!
//! So the decision of a filter holds for every later opening, and a death on the way leaves everything as it
//! was. The numbers of ignored batches stay used: *fillers*, records of no table, have them. A filter that
//! changes nothing writes nothing. `docs/design/0028-replay-filter.md` argues it.

mod ask;
mod swap;

use std::fmt;

use terrane_base::{Batch, Error, Kind, Moment, Result, SegmentId, SeqNo, TableId};

use crate::change_feed::Change;

pub(crate) use swap::finish_swap;

/// Says what of the journal is replayed when a database is opened for writing.
///
/// Called on the thread that opens, when nothing else of the database runs; it cannot change the database,
/// nor wait for one. A panic ends the opening, and nothing has changed.
///
/// ```
/// # use terrane_engine::{ReplayDecision, ReplayFilter, ReplayedBatch};
/// /// Takes out every batch that touches a key which crashes the program.
/// struct Without(&'static [u8]);
///
/// impl ReplayFilter for Without {
///     fn name(&self) -> &str {
///         "without-one-key"
///     }
///
///     fn batch(&self, batch: &ReplayedBatch<'_>) -> ReplayDecision {
///         use terrane_engine::ChangeKind::{Merge, Put};
///         let touches = |kind| matches!(kind, Put { key, .. } | Merge { key, .. } if key == self.0);
///         match batch.changes().iter().any(|change| touches(change.kind)) {
///             true => ReplayDecision::Ignore,
///             false => ReplayDecision::Keep,
///         }
///     }
/// }
/// # let _: Box<dyn ReplayFilter> = Box::new(Without(b"bad"));
/// ```
pub trait ReplayFilter: Send + Sync {
    /// Its name, for errors.
    fn name(&self) -> &str;

    /// Called once, before the first batch, with the tables, and from which segment on each has records that
    /// are not in its levels.
    fn begin(&self, _tables: &[ReplayedTable]) {}

    /// Says what becomes of a batch. Not asked for batches of which every record is in the levels already,
    /// nor for those of the engine's own: prepared transactions, whose changes it is asked for when they are
    /// committed, and extents that came in. Log data is shown as a part of its batch; a batch of nothing else
    /// changes no table: it is not asked for, and stays.
    fn batch(&self, batch: &ReplayedBatch<'_>) -> ReplayDecision;
}

/// A table, as a replay filter sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplayedTable {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The first segment with a record of any table that is too new to be in the levels of this one; if no
    /// segment has such a record, the number behind the last segment.
    pub from: SegmentId,
}

/// A batch that is about to be replayed.
///
/// ```
/// # use terrane_engine::{ReplayDecision, ReplayedBatch};
/// /// Ends the replay at a commit, and lists the lost changes.
/// fn up_to(last: u64, batch: &ReplayedBatch<'_>) -> ReplayDecision {
///     if batch.first_seq().0 <= last {
///         return ReplayDecision::Keep;
///     }
///     let (first, count) = (batch.first_seq(), batch.record_count());
///     eprintln!("dropped: {count} records from {first} on, in {} ({})", batch.file(), batch.segment());
///     for change in batch.changes() {
///         eprintln!("  {:?} {:?}", change.table, change.kind);
///     }
///     ReplayDecision::Stop
/// }
/// ```
#[derive(Clone, Copy)]
pub struct ReplayedBatch<'b> {
    segment: SegmentId,
    file: &'b str,
    first_seq: SeqNo,
    record_count: u32,
    changes: &'b [Change<'b>],
}

impl<'b> ReplayedBatch<'b> {
    /// The segment that it lies in.
    #[must_use]
    pub fn segment(&self) -> SegmentId {
        self.segment
    }

    /// The path of that segment's file.
    #[must_use]
    pub fn file(&self) -> &'b str {
        self.file
    }

    /// Number of its first record.
    #[must_use]
    pub fn first_seq(&self) -> SeqNo {
        self.first_seq
    }

    /// Numbers that it takes, those of the engine's own records in it included.
    #[must_use]
    pub fn record_count(&self) -> u32 {
        self.record_count
    }

    /// Its changes, in their order, with keys as users know them. A part of them may be in the levels of
    /// their tables already, and is not replayed there. A batch in its place has at most as many.
    #[must_use]
    pub fn changes(&self) -> &'b [Change<'b>] {
        self.changes
    }
}

impl fmt::Debug for ReplayedBatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch of {} records from {} in {}", self.record_count, self.first_seq, self.file)
    }
}

/// The decision about a batch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReplayDecision {
    /// It is replayed as it is.
    Keep,
    /// It is gone for good.
    Ignore,
    /// It is gone for good, and so is every later one; the filter is not asked any more.
    Stop,
    /// The opening fails with an error of the kind `Corrupt` that names the filter and the batch. Nothing has
    /// changed.
    Corrupt,
    /// This is replayed in its place, for good.
    Replace(ReplayedChanges),
}

/// Changes that take the place of a batch. Keys are as users know them; tables go by their numbers.
///
/// ```
/// # use terrane_base::Result;
/// # use terrane_engine::{ChangeKind, ReplayedBatch, ReplayedChanges};
/// /// The same changes, without those of one table.
/// fn without(table: u32, batch: &ReplayedBatch<'_>) -> Result<ReplayedChanges> {
///     let mut kept = ReplayedChanges::new();
///     for change in batch.changes().iter().filter(|change| change.table_id != table) {
///         let table = change.table_id;
///         match (change.kind, change.expires_at) {
///             (ChangeKind::Put { key, value }, None) => kept.put(table, key, value)?,
///             (ChangeKind::Put { key, value }, Some(at)) => kept.put_until(table, key, value, at)?,
///             (ChangeKind::Delete { key }, _) => kept.delete(table, key)?,
///             (ChangeKind::SingleDelete { key }, _) => kept.single_delete(table, key)?,
///             (ChangeKind::Merge { key, operand }, None) => kept.merge(table, key, operand)?,
///             (ChangeKind::Merge { key, operand }, Some(at)) => kept.merge_until(table, key, operand, at)?,
///             (ChangeKind::DeleteRange { start, end }, _) => kept.delete_range(table, start, end)?,
///             (ChangeKind::LogData { data }, _) => kept.log_data(data)?,
///             _ => {}
///         }
///     }
///     println!("{} of {} changes stay", kept.len(), batch.changes().len());
///     Ok(kept)
/// }
/// assert!(ReplayedChanges::new().is_empty()); // as good as `ReplayDecision::Ignore`
/// ```
#[derive(Clone, Debug, Default)]
pub struct ReplayedChanges(Batch);

impl ReplayedChanges {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key to a value.
    ///
    /// # Errors
    /// `Invalid` beyond the limits of keys, values and batches, as for those below.
    pub fn put(&mut self, table: u32, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(TableId(table), key, value)
    }

    /// Sets a key to a value that is as if deleted from `expires_at` on, in milliseconds since 1970.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn put_until(&mut self, table: u32, key: &[u8], value: &[u8], expires_at: u64) -> Result<()> {
        self.0.put_until(TableId(table), key, value, Moment(expires_at))
    }

    /// Removes a key.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn delete(&mut self, table: u32, key: &[u8]) -> Result<()> {
        self.0.delete(TableId(table), key)
    }

    /// Removes a key that was put once.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn single_delete(&mut self, table: u32, key: &[u8]) -> Result<()> {
        self.0.single_delete(TableId(table), key)
    }

    /// Gives the merge operator of the table an operand.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn merge(&mut self, table: u32, key: &[u8], operand: &[u8]) -> Result<()> {
        self.0.merge(TableId(table), key, operand, Moment::NEVER)
    }

    /// Gives the merge operator of the table an operand that is as if it had never been from `expires_at` on,
    /// in milliseconds since 1970.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn merge_until(&mut self, table: u32, key: &[u8], operand: &[u8], expires_at: u64) -> Result<()> {
        self.0.merge(TableId(table), key, operand, Moment(expires_at))
    }

    /// Removes every key from `start` to before `end`. Which of them comes first is looked at when the batch
    /// is replayed: its table says so.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn delete_range(&mut self, table: u32, start: &[u8], end: &[u8]) -> Result<()> {
        let kind = terrane_base::RecordKind::RangeDelete;
        self.0.push(terrane_base::record::Record { kind, table: TableId(table), key: start, value: end })
    }

    /// Adds data for readers of changes; it changes no row.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn log_data(&mut self, data: &[u8]) -> Result<()> {
        self.0.log_data(data)
    }

    /// How many changes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.record_count() as usize
    }

    /// Returns true if the batch has no change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Refuses a filter where nothing can be written.
pub(crate) fn refuse_to_read_only(filter: &dyn ReplayFilter) -> Error {
    Error::new(
        Kind::Invalid,
        format!(
            "replay filter {:?}: it changes the journal, and the database is opened read-only; open it for writing",
            filter.name()
        ),
    )
}
