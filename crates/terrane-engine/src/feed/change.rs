//! What a committed batch changed, decoded where it lies.

use std::sync::Arc;

use terrane_base::record::Record;
use terrane_base::{Moment, RecordKind, SeqNo, Stored, TableId};
use terrane_journal::ReadBatch;

/// A committed batch: whole, with all that it changed in tables that users have.
#[derive(Clone, Debug)]
pub struct ChangeBatch {
    batch: ReadBatch,
    /// The tables that it names; no name for one that was dropped since.
    tables: Arc<[(TableId, TableName)]>,
}

/// What is known of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TableName {
    /// Its name.
    Known(Arc<str>),
    /// It was dropped.
    Dropped,
    /// It is one of the engine's own.
    Hidden,
}

/// One change of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change<'b> {
    /// Its number in the order of commits.
    pub seq: SeqNo,
    /// Number of the table; never given to another one.
    pub table_id: u32,
    /// Name of the table; `None` if it was dropped since.
    pub table: Option<&'b str>,
    /// What was done.
    pub kind: ChangeKind<'b>,
    /// From when on it is as if deleted, in milliseconds since 1970; `None` for what lives for ever, and for deletes.
    pub expires_at: Option<u64>,
}

/// What a change did. More may come: what changes a table by whole files and not by records will be a kind of its own.
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
}

impl ChangeKind<'_> {
    /// One word: put, delete, single-delete, merge, delete-range.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            ChangeKind::Put { .. } => "put",
            ChangeKind::Delete { .. } => "delete",
            ChangeKind::SingleDelete { .. } => "single-delete",
            ChangeKind::Merge { .. } => "merge",
            ChangeKind::DeleteRange { .. } => "delete-range",
        }
    }
}

impl ChangeBatch {
    /// `None` if all that it changed is the engine's own.
    pub(super) fn new(
        batch: ReadBatch,
        name_of: &mut dyn FnMut(TableId) -> TableName,
    ) -> Option<ChangeBatch> {
        let mut tables: Vec<(TableId, TableName)> = Vec::new();
        for record in records(&batch) {
            if tables.iter().all(|(id, _)| *id != record.table) {
                tables.push((record.table, name_of(record.table)));
            }
        }
        let shows =
            tables.iter().any(|(_, name)| *name != TableName::Hidden || terrane_base::planted!(TellPrepared));
        shows.then(|| ChangeBatch { batch, tables: tables.into() })
    }

    /// Number of its first record.
    #[must_use]
    pub fn first_seq(&self) -> SeqNo {
        self.batch.first_seq()
    }

    /// Number of its last record: whoever has applied the batch goes on behind it.
    #[must_use]
    pub fn last_seq(&self) -> SeqNo {
        self.batch.last_seq()
    }

    /// The changes, in the order in which they were added to the batch.
    pub fn changes(&self) -> impl Iterator<Item = Change<'_>> {
        let numbered = (self.first_seq().0..).map(SeqNo).zip(records(&self.batch));
        numbered.filter_map(|(seq, record)| self.change(seq, &record))
    }

    fn change<'b>(&'b self, seq: SeqNo, record: &Record<'b>) -> Option<Change<'b>> {
        let (_, name) = self.tables.iter().find(|(id, _)| *id == record.table)?;
        let table = match name {
            TableName::Known(name) => Some(&**name),
            TableName::Dropped => None,
            TableName::Hidden if terrane_base::planted!(TellPrepared) => None,
            TableName::Hidden => return None,
        };
        let key = record.key;
        let stored = Stored::decode(record.kind, record.value).ok()?;
        let kind = match record.kind {
            RecordKind::Put | RecordKind::PutUntil => ChangeKind::Put { key, value: stored.value },
            RecordKind::Delete => ChangeKind::Delete { key },
            RecordKind::SingleDelete => ChangeKind::SingleDelete { key },
            RecordKind::Merge | RecordKind::MergeUntil => ChangeKind::Merge { key, operand: stored.value },
            RecordKind::RangeDelete => ChangeKind::DeleteRange { start: key, end: record.value },
            // No record of another kind is decoded.
            _ => return None,
        };
        let expires_at = Some(stored.expires_at).filter(|at| *at != Moment::NEVER).map(|at| at.0);
        Some(Change { seq, table_id: record.table.0, table, kind, expires_at })
    }
}

/// The records of a batch whose checksum holds.
fn records(batch: &ReadBatch) -> impl Iterator<Item = Record<'_>> {
    let mut rest = batch.records();
    std::iter::from_fn(move || {
        let (record, len) = Record::decode(rest).ok()?;
        rest = &rest[len..];
        Some(record)
    })
}
