//! Commits a write batch: translates its records to a batch of the engine.

use std::cmp::Ordering;
use std::sync::Arc;

use terrane::Batch;

use crate::batch::handle::BatchHandle;
use crate::batch::layout::{Change, Layout};
use crate::batch::write_batch::WriteBatch;
use crate::db::plain::write::Mode;
use crate::db::{Database, Family};
use crate::ffi::failure::{Failure, Given, Result};
use crate::options::read_write::WriteOptions;

/// Fills `batch` with the records of `layout`.
fn fill(batch: &mut Batch, layout: &Layout, database: &Database, mode: Mode) -> Result<()> {
    let mut records = layout.records();
    let mut last: Option<Arc<Family>> = None;
    let mut found = 0_u32;
    while let Some((id, change)) = records.next().transpose()? {
        if let Change::LogData(data) = change {
            batch.log_data(data)?;
            continue;
        }
        found += 1;
        if last.as_ref().is_none_or(|last| last.id() != id) {
            last = database.family(id);
        }
        match &last {
            Some(family) => {
                add(batch, family, change)?;
                // As a rule puts lie behind each other.
                if family.history.is_none() {
                    let puts = records.puts(id).inspect(|_| found += 1);
                    batch.put_all(&family.table, puts)?;
                }
            }
            None if mode.skips_missing => {}
            None => return Err(Failure::invalid("Invalid column family specified in write batch")),
        }
    }
    if found != layout.count() {
        return Err(Failure::corrupt("WriteBatch has wrong count"));
    }
    Ok(())
}

fn add(batch: &mut Batch, family: &Family, change: Change<'_>) -> Result<()> {
    let table = &family.table;
    if let Some(history) = &family.history {
        return history.add_to(batch, table, change);
    }
    match change {
        Change::Put(key, value) => batch.put(table, key, value)?,
        Change::Delete(key) => batch.delete(table, key)?,
        Change::SingleDelete(key) => batch.single_delete(table, key)?,
        Change::Merge(key, operand) => {
            if family.slot.operator().is_none() {
                return Err(Failure::invalid(
                    "a merge in a column family that was opened without a merge operator",
                ));
            }
            batch.merge(table, key, operand)?;
        }
        Change::RangeDelete(start, end) => match family.order.cmp(start, end) {
            Ordering::Greater => return Err(Failure::invalid("end key comes before start key")),
            Ordering::Equal => {}
            Ordering::Less => batch.delete_range(table, start, end)?,
        },
        Change::LogData(_) => {}
    }
    Ok(())
}

impl WriteBatch {
    /// Writes its changes.
    pub(crate) fn write(&mut self, database: &Database, options: Option<&WriteOptions>) -> Result<()> {
        let mode = Mode::of(options)?;
        database.refuse_if_read_only()?;
        if let Some(done) = self.write_only_put(database, mode) {
            return done;
        }
        self.as_engine_batch(database, mode, |engine| database.commit(engine, mode))
    }

    /// Writes a batch that is one put, if it is that and nothing else is asked for: it needs no batch of the
    /// engine.
    #[inline]
    fn write_only_put(&self, database: &Database, mode: Mode) -> Option<Result<()>> {
        let is_ready = mode.is_plain() && self.refused.is_none() && !self.awaits_timestamps;
        if !is_ready || self.layout.count() != 1 || database.default_family().history.is_some() {
            return None;
        }
        let (id, key, value) = self.layout.only_put()?;
        database.with_family(id, |family| {
            let family = family.filter(|family| family.history.is_none())?;
            Some(database.put_plainly(mode, &family.table, key, value))
        })
    }

    /// Calls `take` with a batch of the engine that has its changes.
    pub(crate) fn as_engine_batch<R>(
        &mut self,
        database: &Database,
        mode: Mode,
        take: impl FnOnce(&Batch) -> Result<R>,
    ) -> Result<R> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        if self.awaits_timestamps || self.has_plain && database.default_family().history.is_some() {
            return Err(Failure::invalid("write batch must have timestamp(s) set"));
        }
        let mut engine = std::mem::take(&mut self.records);
        engine.clear();
        let done = fill(&mut engine, &self.layout, database, mode).and_then(|()| take(&engine));
        engine.clear();
        self.records = engine;
        done
    }
}

export! {
    fn rocksdb_write(
        database: Option<&Database>,
        options: Option<&WriteOptions>,
        batch: Option<&mut BatchHandle>,
        error: ErrPtr<'_>,
    ) {
        batch.given()?.write(database.given()?, options)
    }
}
