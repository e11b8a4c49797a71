//! Asking a filter of replay, batch by batch.

use std::sync::Arc;

use terrane_base::key_order::encoded;
use terrane_base::record::Record;
use terrane_base::{Batch, Error, Kind, RecordKind, Result, SegmentId, SeqNo, TableId, callback, key};
use terrane_journal::{BatchFilter, FoundBatch};

use crate::change_feed::change_of;
use crate::ingest_mark;
use crate::lifecycle::replay_filter::{
    ReplayDecision, ReplayFilter, ReplayedBatch, ReplayedChanges, ReplayedTable,
};
use crate::table::Table;
use crate::table::catalog::HIDDEN_PREFIX;

/// A filter, and the tables of the database that it is asked for.
pub(super) struct Asking<'a> {
    filter: &'a dyn ReplayFilter,
    /// By number.
    tables: &'a [Arc<Table>],
    has_stopped: bool,
}

/// A record that takes a number and changes nothing; its key is the shortest that there is.
const FILLER: Record<'_> = Record { kind: RecordKind::Delete, table: TableId::NONE, key: b"", value: &[] };

impl<'a> Asking<'a> {
    pub(super) fn new(filter: &'a dyn ReplayFilter, tables: &'a [Arc<Table>]) -> Self {
        Asking { filter, tables, has_stopped: false }
    }

    /// Returns true if the filter wants no batch from some point on.
    pub(super) fn has_stopped(&self) -> bool {
        self.has_stopped
    }

    fn table(&self, id: TableId) -> Option<&'a Arc<Table>> {
        self.tables.binary_search_by_key(&id, |table| table.id).ok().map(|at| &self.tables[at])
    }

    fn users_table(&self, id: TableId) -> Option<&'a Arc<Table>> {
        self.table(id).filter(|table| !is_own(table))
    }

    /// Returns true if the batch has a record that is not in the levels of its table. A commit of a prepared
    /// transaction is judged by what it changed, not by the record that ends its being prepared: that must
    /// hold as long as the changes do.
    fn is_replayed(&self, batch: &FoundBatch<'_>, records: &[Record<'_>]) -> bool {
        debug_assert!(
            records.len() == batch.record_count as usize,
            "every number of a batch is one record's"
        );
        let is_users = |record: &Record<'_>| {
            record.table != TableId::NONE && self.table(record.table).is_none_or(|table| !is_own(table))
        };
        let has_users = records.iter().any(is_users);
        (batch.first_seq.0..).zip(records).filter(|(_, record)| !has_users || is_users(record)).any(
            |(seq, record)| self.table(record.table).is_some_and(|table| table.flushed_seq() < SeqNo(seq)),
        )
    }

    fn ask(&self, batch: &FoundBatch<'_>, records: &[Record<'_>]) -> Result<ReplayDecision> {
        debug_assert!(!self.has_stopped, "a filter that has stopped the replay is asked no further question");
        let mut keys = Vec::with_capacity(records.len());
        for record in records {
            keys.push(match self.users_table(record.table) {
                None => None,
                Some(table) => Some(decoded(table, record).map_err(|error| at(batch, error))?),
            });
        }
        let mut changes = Vec::with_capacity(records.len());
        for (index, (record, decoded)) in records.iter().zip(&keys).enumerate() {
            let seq = SeqNo(batch.first_seq.0 + index as u64);
            if record.log_data().is_some() {
                changes.extend(change_of(seq, None, TableId::NONE, record));
            }
            let (Some((key, end)), Some(table)) = (decoded, self.table(record.table)) else { continue };
            let value = end.as_deref().unwrap_or(record.value);
            let record = Record { key, value, ..*record };
            changes.extend(change_of(seq, Some(&table.name), record.table, &record));
        }
        if changes.is_empty() {
            return Ok(ReplayDecision::Keep);
        }
        let &FoundBatch { segment, file, first_seq, record_count, .. } = batch;
        let shown = ReplayedBatch { segment, file, first_seq, record_count, changes: &changes };
        callback::call(|| self.filter.batch(&shown)).map_err(|_| self.panicked())
    }

    fn panicked(&self) -> Error {
        Error::new(
            Kind::Poisoned,
            format!("replay filter {:?} panicked: nothing was replayed", self.filter.name()),
        )
    }

    /// The records of a batch with `changes` in the place of the user's; fillers take the numbers that are
    /// left.
    fn replaced(
        &self,
        batch: &FoundBatch<'_>,
        records: &[Record<'_>],
        changes: &ReplayedChanges,
    ) -> Result<Vec<u8>> {
        let mut made = Batch::new();
        for record in changes.0.records() {
            self.add(&mut made, &record)?;
        }
        let is_users =
            |record: &Record<'_>| record.log_data().is_some() || self.users_table(record.table).is_some();
        for record in records.iter().filter(|record| !is_users(record)) {
            made.push(*record)?;
        }
        if made.record_count() > batch.record_count {
            return Err(Error::invalid(format!(
                "{} changes in the place of {}: there must not be more",
                made.record_count(),
                batch.record_count
            )));
        }
        Ok(filled(&made, batch.record_count))
    }

    /// Adds a change of the user's, encoded as its table keeps it.
    fn add(&self, made: &mut Batch, record: &Record<'_>) -> Result<()> {
        if record.log_data().is_some() {
            return made.push(*record);
        }
        let table = self.users_table(record.table).ok_or_else(|| {
            Error::invalid(format!(
                "there is no table of the number {}: it was dropped or never was",
                record.table.0
            ))
        })?;
        let order = table.semantics.order().map(|order| &**order);
        let of_table = |error: Error| error.context(format!("table {:?}", table.name));
        let key = encoded(order, record.key).map_err(of_table)?;
        if record.kind == RecordKind::RangeDelete {
            let end = encoded(order, record.value).map_err(of_table)?;
            key::check_range_ordered(&key, &end, table.semantics.collation()).map_err(of_table)?;
            return made.push(Record { key: &key, value: &end, ..*record });
        }
        if matches!(record.kind, RecordKind::Merge | RecordKind::MergeUntil)
            && table.semantics.operator().is_none()
        {
            return Err(of_table(Error::invalid("a merge, and the table has no merge operator")));
        }
        made.push(Record { key: &key, ..*record })
    }
}

impl BatchFilter for Asking<'_> {
    fn begin(&mut self, segments: &[(SegmentId, SeqNo)]) -> Result<()> {
        debug_assert!(segments.is_sorted_by(|a, b| a.0 < b.0), "segments come in their order, each once");
        let behind = segments.last().map_or(SegmentId(1), |(id, _)| SegmentId(id.0 + 1));
        let tables = self.tables.iter().filter(|table| !is_own(table)).map(|table| {
            let first = segments.iter().find(|(_, last_seq)| *last_seq > table.flushed_seq());
            let from = first.map_or(behind, |(id, _)| *id);
            ReplayedTable { id: table.id.0, name: table.name.clone(), from }
        });
        let tables: Vec<_> = tables.collect();
        callback::call(|| self.filter.begin(&tables)).map_err(|_| self.panicked())
    }

    fn batch(&mut self, batch: &FoundBatch<'_>) -> Result<Option<Vec<u8>>> {
        if ingest_mark::is_mark(batch.records) {
            return Ok(None);
        }
        let records = records_of(batch)?;
        if !self.is_replayed(batch, &records) {
            return Ok(None);
        }
        let decision = if self.has_stopped { ReplayDecision::Ignore } else { self.ask(batch, &records)? };
        match decision {
            ReplayDecision::Keep => Ok(None),
            ReplayDecision::Ignore => Ok(Some(filled(&Batch::new(), batch.record_count))),
            ReplayDecision::Stop => {
                self.has_stopped = true;
                Ok(Some(filled(&Batch::new(), batch.record_count)))
            }
            ReplayDecision::Corrupt => {
                let message = format!(
                    "replay filter {:?} says that the batch of commits from {} on is corrupt",
                    self.filter.name(),
                    batch.first_seq
                );
                Err(at(batch, Error::corrupt(message)))
            }
            ReplayDecision::Replace(changes) => {
                let replaced = self.replaced(batch, &records, &changes);
                replaced.map(Some).map_err(|error| {
                    let what =
                        format!("replay filter {:?}, batch from {}", self.filter.name(), batch.first_seq);
                    at(batch, error.context(what))
                })
            }
        }
    }
}

/// Returns true if a table is the engine's own.
fn is_own(table: &Table) -> bool {
    table.name.starts_with(HIDDEN_PREFIX)
}

fn at(batch: &FoundBatch<'_>, error: Error) -> Error {
    error.at(batch.file, batch.offset)
}

/// The records of a batch, whose checksum holds.
fn records_of<'b>(batch: &FoundBatch<'b>) -> Result<Vec<Record<'b>>> {
    let mut records = Vec::with_capacity(batch.record_count as usize);
    let mut rest = batch.records;
    while !rest.is_empty() {
        let (record, len) = Record::decode(rest).map_err(|error| at(batch, error))?;
        records.push(record);
        rest = &rest[len..];
    }
    if records.len() as u64 != u64::from(batch.record_count) {
        let message = format!("expected {} records in a batch, found {}", batch.record_count, records.len());
        return Err(at(batch, Error::corrupt(message)));
    }
    Ok(records)
}

/// The key of a record as users know it, and the end of the range that it deletes.
type UsersKey = (Vec<u8>, Option<Vec<u8>>);

fn decoded(table: &Table, record: &Record<'_>) -> Result<UsersKey> {
    let is_range = record.kind == RecordKind::RangeDelete;
    let Some(order) = table.semantics.order() else {
        return Ok((record.key.to_vec(), is_range.then(|| record.value.to_vec())));
    };
    let end = is_range.then(|| order.decode(record.value)).transpose()?;
    Ok((order.decode(record.key)?, end))
}

/// The records of a batch and fillers behind them, so that they take `record_count` numbers. Fillers have no
/// part in the limit of a batch: there may be so many that they are longer than the records whose numbers
/// they take.
fn filled(made: &Batch, record_count: u32) -> Vec<u8> {
    let mut filler = Vec::new();
    FILLER.encode(&mut filler);
    let missing = record_count.saturating_sub(made.record_count()) as usize;
    let mut bytes = Vec::with_capacity(made.bytes().len() + missing * filler.len());
    bytes.extend_from_slice(made.bytes());
    (0..missing).for_each(|_| bytes.extend_from_slice(&filler));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_records_can_be_ignored() {
        let mut filler = Vec::new();
        FILLER.encode(&mut filler);
        let count = (key::BATCH_BYTES_MAX / filler.len() + 1) as u32;
        // As many deletes fit into a batch: theirs are the bytes of a table's number and a key of one byte at
        // most.
        assert!(count as usize * 5 < key::BATCH_BYTES_MAX);
        let mut made = Batch::new();
        made.put(TableId::DEFAULT, b"key", b"value").unwrap();
        let bytes = filled(&made, count);
        assert!(bytes.len() > key::BATCH_BYTES_MAX && bytes.starts_with(made.bytes()));
        let fillers = &bytes[made.bytes().len()..];
        assert_eq!(fillers.len(), (count as usize - 1) * filler.len());
        assert!(fillers.chunks(8 << 20).all(|chunk| chunk.starts_with(&filler) && chunk.ends_with(&filler)));
        assert_eq!(Record::decode(fillers).unwrap(), (FILLER, filler.len()));
        assert_eq!(filled(&made, 1), made.bytes());
    }
}
