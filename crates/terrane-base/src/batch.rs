//! The atomic unit of a commit: records over any number of tables, already encoded as the journal stores
//! them.

use crate::record::Record;
use crate::stored::{self, Moment};
use crate::{Collation, Error, RecordKind, Result, TableId, key};

/// Changes that become visible and durable together, in the order in which they were added.
///
/// ```
/// use terrane_base::{Batch, TableId};
/// let mut batch = Batch::new();
/// batch.put(TableId::DEFAULT, b"k", b"v")?;
/// batch.delete(TableId::DEFAULT, b"old")?;
/// assert_eq!(batch.record_count(), 2);
/// # Ok::<(), terrane_base::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    record_count: u32,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a put of `value` under `key` in `table`.
    ///
    /// # Errors
    /// `Invalid` if key, value or the whole batch would pass its limit; the batch is unchanged then.
    #[inline]
    pub fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<()> {
        self.push(Record { kind: RecordKind::Put, table, key, value })
    }

    /// Adds a delete of `key` in `table`.
    ///
    /// # Errors
    /// As [`Batch::put`].
    #[inline]
    pub fn delete(&mut self, table: TableId, key: &[u8]) -> Result<()> {
        self.push(Record { kind: RecordKind::Delete, table, key, value: &[] })
    }

    /// Adds a delete of every key from `start` to before `end` in `table`, whatever their number.
    ///
    /// # Errors
    /// As [`Batch::put`], and `Invalid` if `start` is not less than `end`.
    #[inline]
    pub fn delete_range(&mut self, table: TableId, start: &[u8], end: &[u8]) -> Result<()> {
        self.delete_range_ordered(table, start, end, Collation::bytes())
    }

    /// [`Batch::delete_range`] in a table whose keys are ordered so.
    ///
    /// # Errors
    /// As [`Batch::delete_range`].
    pub fn delete_range_ordered(
        &mut self,
        table: TableId,
        start: &[u8],
        end: &[u8],
        collation: &Collation,
    ) -> Result<()> {
        key::check_range_ordered(start, end, collation)?;
        self.push(Record { kind: RecordKind::RangeDelete, table, key: start, value: end })
    }

    /// Adds a put of `value` under `key` in `table` that is a delete from `expires_at` on.
    ///
    /// # Errors
    /// As [`Batch::put`].
    #[inline]
    pub fn put_until(&mut self, table: TableId, key: &[u8], value: &[u8], expires_at: Moment) -> Result<()> {
        self.push_wrapped((table, key), expires_at, None, value)
    }

    /// Adds a delete of `key` in `table`, which was put once, and only put, since it was last deleted or
    /// never was.
    ///
    /// # Errors
    /// As [`Batch::put`].
    #[inline]
    pub fn single_delete(&mut self, table: TableId, key: &[u8]) -> Result<()> {
        self.push(Record { kind: RecordKind::SingleDelete, table, key, value: &[] })
    }

    /// Adds an operand that the merge operator of `table` folds with what `key` has; with [`Moment::NEVER`]
    /// for good.
    ///
    /// # Errors
    /// As [`Batch::put`].
    #[inline]
    pub fn merge(&mut self, table: TableId, key: &[u8], operand: &[u8], expires_at: Moment) -> Result<()> {
        self.push_wrapped((table, key), expires_at, Some(0), operand)
    }

    /// Adds data for readers of the journal; it takes a number and changes nothing.
    ///
    /// # Errors
    /// As [`Batch::put`]; the data counts as a value.
    pub fn log_data(&mut self, data: &[u8]) -> Result<()> {
        self.push(Record::of_log_data(data))
    }

    /// Adds a value with its prefix.
    fn push_wrapped(
        &mut self,
        (table, key): (TableId, &[u8]),
        expires_at: Moment,
        span: Option<u64>,
        value: &[u8],
    ) -> Result<()> {
        key::check_value(value)?;
        let mut wrapped = Vec::with_capacity(stored::PREFIX_BYTES_MAX + value.len());
        let kind = stored::put_prefix(&mut wrapped, expires_at, span);
        wrapped.extend_from_slice(value);
        self.push(Record { kind, table, key, value: &wrapped })
    }

    /// Adds a record of any kind; its value is as it is stored.
    ///
    /// # Errors
    /// As [`Batch::put`]. The order of a range delete's ends is not checked, because it depends on the table.
    #[inline]
    pub fn push(&mut self, record: Record<'_>) -> Result<()> {
        key::check_key(record.key)?;
        key::check_value(record.value)?;
        if record.kind == RecordKind::RangeDelete {
            key::check_key(record.value)?;
        }
        let record_len = record.encoded_len();
        if record_len > key::BATCH_BYTES_MAX - self.bytes.len() {
            return Err(batch_too_long(self.bytes.len() + record_len));
        }
        self.bytes.reserve(record_len);
        record.encode(&mut self.bytes);
        self.record_count += 1;
        Ok(())
    }

    /// Appends the records of another batch.
    ///
    /// # Errors
    /// `Invalid` if the whole batch would pass its limit; the batch is unchanged then.
    #[inline]
    pub fn append(&mut self, other: &Batch) -> Result<()> {
        if other.bytes.len() > key::BATCH_BYTES_MAX - self.bytes.len() {
            return Err(batch_too_long(self.bytes.len() + other.bytes.len()));
        }
        self.bytes.extend_from_slice(&other.bytes);
        self.record_count += other.record_count;
        Ok(())
    }

    /// The encoded records, back to back.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many records the batch holds; each takes one sequence number.
    #[inline]
    #[must_use]
    pub fn record_count(&self) -> u32 {
        self.record_count
    }

    /// Returns true if the batch holds no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.record_count == 0
    }

    /// Removes all records after the first `record_count`, which take `bytes` bytes: the values of
    /// [`Batch::bytes`] and [`Batch::record_count`] at an earlier time.
    pub fn truncate(&mut self, bytes: usize, record_count: u32) {
        assert!(
            bytes <= self.bytes.len() && record_count <= self.record_count,
            "a batch was never that short"
        );
        self.bytes.truncate(bytes);
        self.record_count = record_count;
    }

    /// Removes every record; keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.record_count = 0;
    }

    /// The records in order.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.records_from(0)
    }

    /// The records from a place on, which is [`Batch::bytes`]'s length at an earlier time.
    pub fn records_from(&self, at: usize) -> impl Iterator<Item = Record<'_>> {
        let mut rest = &self.bytes[at..];
        std::iter::from_fn(move || {
            // Only `push` writes `bytes`, so decoding ends exactly at the end of the bytes.
            let (record, len) = Record::decode(rest).ok()?;
            rest = &rest[len..];
            Some(record)
        })
    }
}

#[cold]
fn batch_too_long(bytes: usize) -> Error {
    Error::invalid(format!(
        "batch of {bytes} bytes: the limit is {} bytes; split it into several batches",
        key::BATCH_BYTES_MAX
    ))
}
