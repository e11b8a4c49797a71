//! Changes by key.

use std::cmp::Ordering;

use terrane::{Batch, Durability, Kind, Table};

use crate::db::{Database, Family, FamilyHandle, family};
use crate::ffi::failure::{Failure, Given, Result, is_of_device};
use crate::options::objects::statistics::moment;
use crate::options::read_write::WriteOptions;

/// How a write is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    sync: Durability,
    /// Refused where it would be held back.
    refuses_delay: bool,
    /// Changes of column families that are gone are left out.
    pub(crate) skips_missing: bool,
}

impl Mode {
    /// The mode that the options ask for; they must be given.
    #[inline]
    pub(crate) fn of(options: Option<&WriteOptions>) -> Result<Mode> {
        let fields = &options.given()?.fields;
        if fields.sync != 0 && fields.disable_wal != 0 {
            return Err(Failure::invalid("Sync writes has to enable WAL."));
        }
        Ok(Mode {
            sync: if fields.sync != 0 { Durability::Synced } else { Durability::Buffered },
            refuses_delay: fields.no_slowdown != 0,
            skips_missing: fields.ignore_missing_column_families != 0,
        })
    }

    /// The durability of the write when it returns.
    pub(crate) fn sync(self) -> Durability {
        self.sync
    }

    /// Returns true if nothing is asked for but the write.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        self.sync == Durability::Buffered && !self.refuses_delay
    }
}

/// Returns true if a write failed because its column family was dropped.
fn is_dropped(error: &terrane::Error) -> bool {
    error.kind() == Kind::NotFound && !is_of_device(error)
}

/// The failure of a write. That of a write to a dropped column family has RocksDB's text, that of a batch
/// that is too large names RocksDB's options: the engine's are not those of this interface.
#[cold]
pub(crate) fn write_failure(error: terrane::Error) -> Failure {
    if error.memory_enough().is_some() {
        return Failure::invalid(format_args!(
            "{error}; by RocksDB's options: write_buffer_size times max_write_buffer_number, or db_write_buffer_size, \
             of at least twice the batch with its index"
        ));
    }
    match is_dropped(&error) {
        true => Failure::invalid("Invalid column family specified in write batch"),
        false => error.into(),
    }
}

impl Database {
    /// Writes a batch of the engine.
    pub(crate) fn commit(&self, batch: &Batch, mode: Mode) -> Result<()> {
        let done = self.counted(|| match mode.refuses_delay {
            true => self.db.try_write(batch, mode.sync),
            false => self.db.write(batch, mode.sync),
        });
        match done {
            Err(error) if mode.refuses_delay && error.kind() == Kind::Busy => {
                Err(Failure::new("Result incomplete", "Write stall"))
            }
            Err(error) => Err(write_failure(error)),
            Ok(_) => Ok(()),
        }
    }

    /// Makes a write, and counts it where that is asked for.
    #[inline]
    fn counted<R>(&self, write: impl FnOnce() -> R) -> R {
        let Some(statistics) = self.statistics() else { return write() };
        let began = moment();
        let done = write();
        statistics.wrote(moment().saturating_sub(began));
        done
    }

    /// Makes one change: `plain` where nothing else is asked for, else `add` to a batch.
    #[inline]
    fn change(
        &self,
        options: Option<&WriteOptions>,
        plain: impl FnOnce() -> terrane::Result<()>,
        add: impl FnOnce(&mut Batch) -> terrane::Result<()>,
    ) -> Result<()> {
        let mode = Mode::of(options)?;
        self.refuse_if_read_only()?;
        if mode.is_plain() {
            return self.change_plainly(mode, plain);
        }
        let mut batch = Batch::new();
        add(&mut batch)?;
        self.commit(&batch, mode)
    }

    /// Makes one change where nothing else is asked for.
    #[inline]
    fn change_plainly(&self, mode: Mode, change: impl FnOnce() -> terrane::Result<()>) -> Result<()> {
        match self.counted(change) {
            Err(error) if mode.skips_missing && is_dropped(&error) => Ok(()),
            done => done.map_err(write_failure),
        }
    }

    /// Sets a key where nothing else is asked for, in a table whose keys have no timestamps.
    #[inline]
    pub(crate) fn put_plainly(&self, mode: Mode, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.change_plainly(mode, || table.put(key, value))
    }

    /// Writes what `add` adds to a batch.
    pub(crate) fn write_with(
        &self,
        options: Option<&WriteOptions>,
        add: impl FnOnce(&mut Batch) -> Result<()>,
    ) -> Result<()> {
        let mode = Mode::of(options)?;
        self.refuse_if_read_only()?;
        let mut batch = Batch::new();
        add(&mut batch)?;
        self.commit(&batch, mode)
    }

    #[inline]
    pub(crate) fn put(
        &self,
        options: Option<&WriteOptions>,
        family: &Family,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        family.refuse_without_timestamp()?;
        let table = &family.table;
        self.change(options, || table.put(key, value), |batch| batch.put(table, key, value))
    }

    pub(crate) fn delete(&self, options: Option<&WriteOptions>, family: &Family, key: &[u8]) -> Result<()> {
        family.refuse_without_timestamp()?;
        let table = &family.table;
        self.change(options, || table.delete(key), |batch| batch.delete(table, key))
    }

    pub(crate) fn single_delete(
        &self,
        options: Option<&WriteOptions>,
        family: &Family,
        key: &[u8],
    ) -> Result<()> {
        family.refuse_without_timestamp()?;
        let table = &family.table;
        self.change(options, || table.single_delete(key), |batch| batch.single_delete(table, key))
    }

    pub(crate) fn merge(
        &self,
        options: Option<&WriteOptions>,
        family: &Family,
        key: &[u8],
        operand: &[u8],
    ) -> Result<()> {
        family.refuse_without_timestamp()?;
        if family.slot.operator().is_none() {
            return Err(Failure::not_implemented("Provide a merge_operator when opening DB"));
        }
        let table = &family.table;
        self.change(options, || table.merge(key, operand), |batch| batch.merge(table, key, operand))
    }

    fn delete_range(
        &self,
        options: Option<&WriteOptions>,
        family: &Family,
        start: &[u8],
        end: &[u8],
    ) -> Result<()> {
        family.refuse_without_timestamp()?;
        match family.order.cmp(start, end) {
            Ordering::Equal => return self.refuse_if_read_only(),
            Ordering::Greater => return Err(Failure::invalid("end key comes before start key")),
            Ordering::Less => {}
        }
        let table = &family.table;
        self.change(options, || table.delete_range(start, end), |batch| batch.delete_range(table, start, end))
    }
}

cf_variants! {
    fn rocksdb_put | rocksdb_put_cf(
        database: Option<&Database>,
        options: Option<&WriteOptions>;
        key: Bytes<'_>,
        key_len: usize,
        value: Bytes<'_>,
        value_len: usize,
        error: ErrPtr<'_>,
    ) as target {
        database.given()?.put(options, target.family(database)?, key, value)
    }

    fn rocksdb_delete | rocksdb_delete_cf(
        database: Option<&Database>,
        options: Option<&WriteOptions>;
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) as target {
        database.given()?.delete(options, target.family(database)?, key)
    }

    fn rocksdb_singledelete | rocksdb_singledelete_cf(
        database: Option<&Database>,
        options: Option<&WriteOptions>;
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) as target {
        database.given()?.single_delete(options, target.family(database)?, key)
    }

    fn rocksdb_merge | rocksdb_merge_cf(
        database: Option<&Database>,
        options: Option<&WriteOptions>;
        key: Bytes<'_>,
        key_len: usize,
        operand: Bytes<'_>,
        operand_len: usize,
        error: ErrPtr<'_>,
    ) as target {
        database.given()?.merge(options, target.family(database)?, key, operand)
    }
}

export! {
    fn rocksdb_delete_range_cf(
        database: Option<&Database>,
        options: Option<&WriteOptions>,
        handle: Option<&FamilyHandle>,
        start: Bytes<'_>,
        start_len: usize,
        end: Bytes<'_>,
        end_len: usize,
        error: ErrPtr<'_>,
    ) {
        database.given()?.delete_range(options, family(handle)?, start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_the_device_refuses_is_not_a_write_to_a_dropped_family() {
        let of_device = || terrane::Error::io("making a segment", std::io::ErrorKind::NotFound.into());
        assert!(!is_dropped(&of_device()));
        assert!(write_failure(of_device()).text().starts_with("IO error: "));
        let dropped = || terrane::Error::new(Kind::NotFound, "table 3 was dropped");
        assert!(is_dropped(&dropped()));
        let failure = write_failure(dropped());
        assert_eq!(failure.text(), "Invalid argument: Invalid column family specified in write batch");
    }
}
