//! The log of commits, batch by batch.

use terrane::{ChangeKind, Changes, Kind, SeqNo};

use crate::batch::handle::BatchHandle;
use crate::batch::layout::Change;
use crate::batch::write_batch::WriteBatch;
use crate::db::Database;
use crate::db::timestamps::is_stamped;
use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::{Out, put};
use crate::generated::objects::WalReadOptions;

/// A position in the log.
pub(crate) struct LogIter {
    changes: Changes,
    database: Database,
    /// The number of the first record of the batch at the position, and the batch.
    current: Option<(u64, WriteBatch)>,
    failure: Option<Failure>,
}

impl LogIter {
    /// Goes to the next batch that changes something, if it is there by now.
    fn advance(&mut self) {
        self.current = None;
        self.failure = None;
        for batch in self.changes.by_ref() {
            match batch.map_err(Failure::from).and_then(|batch| as_rocksdb(&self.database, &batch)) {
                Ok(None) => {}
                Ok(current) => {
                    self.current = current;
                    return;
                }
                Err(failure) => {
                    self.failure = Some(failure);
                    return;
                }
            }
        }
    }
}

/// A batch in RocksDB's layout, with its number; none if it has no change that callers see.
fn as_rocksdb(database: &Database, batch: &terrane::ChangeBatch) -> Result<Option<(u64, WriteBatch)>> {
    let mut first = None;
    let mut made = WriteBatch::empty();
    for change in batch.changes() {
        let (id, kind) = (change.table_id, change.kind);
        if let ChangeKind::LogData { data } = kind {
            first.get_or_insert(change.seq.0);
            made.add(0, Change::LogData(data));
            continue;
        }
        let family = database.family(id);
        match &family {
            None if is_hidden(database, id)? => continue,
            // The user's deletes are versions; the engine's are of what goes from the history.
            Some(family) if family.history.is_some() && matches!(kind, ChangeKind::Delete { .. }) => continue,
            _ => {}
        }
        first.get_or_insert(change.seq.0);
        let history = family.as_ref().and_then(|family| family.history.as_ref());
        match kind {
            ChangeKind::Put { key, value } if let Some(history) = history => {
                history.with_change(key, value, |change| made.add(id, change))?;
            }
            ChangeKind::Put { key, value } => made.add(id, Change::Put(key, value)),
            ChangeKind::Delete { key } => made.add(id, Change::Delete(key)),
            ChangeKind::SingleDelete { key } => made.add(id, Change::SingleDelete(key)),
            ChangeKind::Merge { key, operand } => made.add(id, Change::Merge(key, operand)),
            ChangeKind::DeleteRange { start, end } => made.add(id, Change::RangeDelete(start, end)),
            other => {
                let what = format_args!("a change of kind {} is not a record of a batch", other.as_str());
                return Err(Failure::not_implemented(what));
            }
        }
    }
    Ok(first.map(|first| {
        made.set_seq(first);
        (first, made)
    }))
}

/// Returns true if changes of a table that is not open as a column family are left out: it was dropped, so
/// that it is not known any more whether its rows are versions.
///
/// # Errors
/// `Not implemented` if its rows are versions: without its comparator they cannot be read.
fn is_hidden(database: &Database, id: u32) -> Result<bool> {
    let db = database.view();
    let mut tables = db.tables().into_iter().filter_map(|name| db.table(&name).ok());
    match tables.find(|table| table.number() == id) {
        None => Ok(true),
        Some(table) if is_stamped(&table) => Err(Failure::not_implemented(format_args!(
            "changes of column family {}, which has timestamps and is not open: open it too",
            table.name()
        ))),
        Some(_) => Ok(false),
    }
}

fn updates(database: Option<&Database>, seq: u64) -> Result<Option<Box<LogIter>>> {
    let database = database.given()?;
    let changes = database.view().changes(SeqNo(seq.max(1)));
    let changes = changes.map_err(|error| match error.kind() {
        Kind::Invalid => {
            Failure::new("NotFound", format_args!("Requested sequence not yet written in the db ({error})"))
        }
        // A later attempt finds as little.
        Kind::Gone => Failure::new("NotFound", error),
        _ => error.into(),
    })?;
    let mut iter = LogIter { changes, database: database.clone(), current: None, failure: None };
    iter.advance();
    // Records that are not counted take numbers, too. A caller that has all counted records asks for the
    // number behind them.
    if iter
        .current
        .as_ref()
        .is_some_and(|(first, batch)| *first < seq && first + u64::from(batch.count()) <= seq)
    {
        iter.advance();
    }
    Ok(Some(Box::new(iter)))
}

export! {
    fn rocksdb_get_updates_since(
        database: Option<&Database>,
        seq: u64,
        _options: Option<&WalReadOptions>,
        error: ErrPtr<'_>,
    ) -> Option<Box<LogIter>> {
        updates(database, seq)
    }

    fn rocksdb_wal_iter_next(iter: Option<&mut LogIter>) {
        if let Some(iter) = iter {
            iter.advance();
        }
    }

    fn rocksdb_wal_iter_valid(iter: Option<&LogIter>) -> u8 {
        u8::from(iter.is_some_and(|iter| iter.current.is_some()))
    }

    fn rocksdb_wal_iter_status(iter: Option<&LogIter>, error: ErrPtr<'_>) {
        match iter.and_then(|iter| iter.failure.clone()) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    fn rocksdb_wal_iter_get_batch(iter: Option<&LogIter>, seq: Out<'_, u64>) -> Option<Box<BatchHandle>> {
        let (first, batch) = iter?.current.as_ref()?;
        put(seq, *first);
        Some(Box::new(BatchHandle::of_bytes(batch.copied())))
    }

    fn rocksdb_wal_iter_destroy(iter: Option<Box<LogIter>>) {
        drop(iter);
    }
}
