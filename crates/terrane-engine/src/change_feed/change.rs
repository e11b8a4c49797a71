//! The changes of a committed batch, decoded in place.

use std::sync::Arc;

use terrane_base::key_order::Order;
use terrane_base::record::Record;
use terrane_base::{Moment, RecordKind, Result, SeqNo, Stored, TableId};
use terrane_journal::ReadBatch;

use crate::ingest_mark;

/// A committed batch: complete, with all its changes of the user's tables.
///
/// ```
/// # use std::collections::BTreeMap;
/// # use terrane_base::SeqNo;
/// # use terrane_engine::{ChangeBatch, ChangeKind};
/// /// Follows the table `users`, and returns where to go on after a restart.
/// fn apply(batch: &ChangeBatch, users: &mut BTreeMap<Vec<u8>, Vec<u8>>) -> SeqNo {
///     for change in batch.changes().filter(|change| change.table == Some("users")) {
///         match change.kind {
///             ChangeKind::Put { key, value } => drop(users.insert(key.into(), value.into())),
///             ChangeKind::Delete { key } => drop(users.remove(key)),
///             other => eprintln!("{} of {}: not expected here", other.as_str(), change.seq),
///         }
///     }
///     println!("applied the commits {} to {}", batch.first_seq(), batch.last_seq());
///     SeqNo(batch.last_seq().0 + 1)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ChangeBatch {
    batch: ReadBatch,
    /// For each record the keys of the user, if the journal has encoded ones; empty if no table of the batch
    /// encodes keys.
    decoded: Arc<[Option<Decoded>]>,
    /// The tables of the batch; a table that was dropped since has no name.
    tables: Arc<[(TableId, TableName)]>,
}

/// The key of a record, and the end of the range that it deletes.
#[derive(Debug)]
struct Decoded {
    key: Vec<u8>,
    end: Vec<u8>,
}

/// The name of a table, as far as it is known.
#[derive(Clone, Debug)]
pub(super) enum TableName {
    /// Its name, and the order that its keys are encoded by.
    Known(Arc<str>, Option<Arc<Order>>),
    /// It was dropped.
    Dropped,
    /// A table of the engine itself.
    Hidden,
}

/// One change of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change<'b> {
    /// Its number in the order of commits.
    pub seq: SeqNo,
    /// Number of the table; never given to another one. 4,294,967,295 for log data, which is of no table.
    pub table_id: u32,
    /// Name of the table; `None` if it was dropped since, and for log data.
    pub table: Option<&'b str>,
    /// The kind of the change.
    pub kind: ChangeKind<'b>,
    /// From when on it is as if deleted, in milliseconds since 1970; `None` for what lives for ever, and for
    /// deletes.
    pub expires_at: Option<u64>,
}

/// The kind of a change.
///
/// ```
/// # use terrane_engine::ChangeKind;
/// let kind = ChangeKind::Put { key: b"ada", value: b"1815" };
/// if let ChangeKind::Put { key, value } = kind {
///     println!("{} = {}", key.escape_ascii(), value.escape_ascii());
/// }
/// assert_eq!(kind.as_str(), "put");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind<'b> {
    /// Set a key to a value.
    Put {
        /// The key.
        key: &'b [u8],
        /// The value.
        value: &'b [u8],
    },
    /// Removed a key.
    Delete {
        /// The key.
        key: &'b [u8],
    },
    /// Removed a key that was put once.
    SingleDelete {
        /// The key.
        key: &'b [u8],
    },
    /// Gave the merge operator of the table an operand.
    Merge {
        /// The key.
        key: &'b [u8],
        /// The operand.
        operand: &'b [u8],
    },
    /// Removed every key of a range.
    DeleteRange {
        /// Its first key.
        start: &'b [u8],
        /// The first key behind it.
        end: &'b [u8],
    },
    /// Extents came into the table, by [`ingest`](crate::IngestFile) or a bulk load: no record lists their
    /// rows. A program that follows the table ingests the same files, or begins again with a copy.
    Ingest,
    /// Changed nothing: data that a batch carries for readers of changes.
    LogData {
        /// The data, as it was given.
        data: &'b [u8],
    },
}

impl ChangeKind<'_> {
    /// One word: put, delete, single-delete, merge, delete-range, ingest, log-data.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            ChangeKind::Put { .. } => "put",
            ChangeKind::Delete { .. } => "delete",
            ChangeKind::SingleDelete { .. } => "single-delete",
            ChangeKind::Merge { .. } => "merge",
            ChangeKind::DeleteRange { .. } => "delete-range",
            ChangeKind::Ingest => "ingest",
            ChangeKind::LogData { .. } => "log-data",
        }
    }
}

impl ChangeBatch {
    /// `None` if the batch changed only tables of the engine itself.
    ///
    /// # Errors
    /// `Corrupt` for a key that its table's order does not know.
    pub(super) fn new(
        batch: ReadBatch,
        name_of: &mut dyn FnMut(TableId) -> Result<TableName>,
    ) -> Result<Option<ChangeBatch>> {
        let mut tables: Vec<(TableId, TableName)> = Vec::new();
        for id in records(batch.records()).flat_map(|record| tables_of(&record)) {
            if tables.iter().all(|(known, _)| *known != id) {
                tables.push((id, name_of(id)?));
            }
        }
        let has_log_data = || records(batch.records()).any(|record| record.log_data().is_some());
        let shows = tables.iter().any(|(_, name)| name.shows()) || has_log_data();
        let decoded = decode(&batch, &tables)?;
        debug_assert!(
            decoded.is_empty() || decoded.len() == records(batch.records()).count(),
            "a record would be shown with the key of another one"
        );
        Ok(shows.then(|| ChangeBatch { batch, decoded, tables: tables.into() }))
    }

    /// Number of its first record.
    #[must_use]
    pub fn first_seq(&self) -> SeqNo {
        self.batch.first_seq()
    }

    /// Number of its last record: a reader that has applied the batch goes on behind it.
    #[must_use]
    pub fn last_seq(&self) -> SeqNo {
        self.batch.last_seq()
    }

    /// The changes, in the order in which they were added to the batch.
    pub fn changes(&self) -> impl Iterator<Item = Change<'_>> {
        let numbered = (self.first_seq().0..).map(SeqNo).zip(records(self.batch.records()));
        numbered.enumerate().flat_map(move |(at, (seq, mut record))| {
            if let Some(Some(Decoded { key, end })) = self.decoded.get(at) {
                let is_range = record.kind == RecordKind::RangeDelete;
                record = Record { key, value: if is_range { end } else { record.value }, ..record };
            }
            let log_data = record.log_data().and_then(|_| change_of(seq, None, TableId::NONE, &record));
            let of_tables = tables_of(&record).filter_map(move |table| self.change(seq, table, &record));
            log_data.into_iter().chain(of_tables)
        })
    }

    fn change<'b>(&'b self, seq: SeqNo, id: TableId, record: &Record<'b>) -> Option<Change<'b>> {
        debug_assert!(
            self.tables.iter().any(|(known, _)| *known == id),
            "a change would be left out silently"
        );
        let (_, name) = self.tables.iter().find(|(known, _)| *known == id)?;
        let table = match name {
            TableName::Known(name, _) => Some(&**name),
            TableName::Dropped => None,
            TableName::Hidden if terrane_base::planted!(TellPrepared) => None,
            TableName::Hidden => return None,
        };
        change_of(seq, table, id, record)
    }
}

/// Returns the change that a record made to its table, with the table's name, or its log data; `None` for a
/// kind of record that users do not know.
pub(crate) fn change_of<'b>(
    seq: SeqNo,
    table: Option<&'b str>,
    id: TableId,
    record: &Record<'b>,
) -> Option<Change<'b>> {
    let key = record.key;
    let stored = Stored::decode(record.kind, record.value).ok()?;
    let kind = match record.kind {
        _ if record.log_data().is_some() => ChangeKind::LogData { data: record.value },
        _ if record.table == TableId::NONE => ChangeKind::Ingest,
        RecordKind::Put | RecordKind::PutUntil => ChangeKind::Put { key, value: stored.value },
        RecordKind::Delete => ChangeKind::Delete { key },
        RecordKind::SingleDelete => ChangeKind::SingleDelete { key },
        RecordKind::Merge | RecordKind::MergeUntil => ChangeKind::Merge { key, operand: stored.value },
        RecordKind::RangeDelete => ChangeKind::DeleteRange { start: key, end: record.value },
        // No record of another kind is decoded.
        _ => return None,
    };
    let expires_at = Some(stored.expires_at).filter(|at| *at != Moment::NEVER).map(|at| at.0);
    Some(Change { seq, table_id: id.0, table, kind, expires_at })
}

impl TableName {
    /// Returns true if readers of changes see the table.
    fn shows(&self) -> bool {
        !matches!(self, TableName::Hidden) || terrane_base::planted!(TellPrepared)
    }

    fn order(&self) -> Option<&Order> {
        match self {
            TableName::Known(_, order) => order.as_deref(),
            TableName::Dropped | TableName::Hidden => None,
        }
    }
}

/// The tables that a record changed.
fn tables_of<'r>(record: &Record<'r>) -> impl Iterator<Item = TableId> + use<'r> {
    let own = Some(record.table).filter(|table| *table != TableId::NONE);
    own.into_iter().chain(ingest_mark::tables_of(record))
}

/// The decoded keys of the records, if one of the tables has an order of its own.
fn decode(batch: &ReadBatch, tables: &[(TableId, TableName)]) -> Result<Arc<[Option<Decoded>]>> {
    if tables.iter().all(|(_, name)| name.order().is_none()) {
        return Ok(Arc::default());
    }
    let decoded = records(batch.records()).map(|record| {
        let table = tables.iter().find(|(id, _)| *id == record.table);
        let Some(order) = table.and_then(|(_, name)| name.order()) else { return Ok(None) };
        let is_range = record.kind == RecordKind::RangeDelete;
        let end = if is_range { order.decode(record.value)? } else { Vec::new() };
        Ok(Some(Decoded { key: order.decode(record.key)?, end }))
    });
    decoded.collect()
}

/// The records of a batch with a right checksum.
fn records(mut rest: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let (record, len) = Record::decode(rest).ok()?;
        rest = &rest[len..];
        Some(record)
    })
}
