//! From the bytes of a batch to a batch of the engine, and its commit.

use std::cmp::Ordering;
use std::sync::Arc;

use terrane::Batch;

use super::handle::WriteBatch;
use super::layout::{Change, Layout};
use crate::database::{Database, Family, Mode};
use crate::failure::{Failure, Given, Result};
use crate::objects::WriteOptions;

/// Fills `batch` with the records of `layout`.
fn fill(batch: &mut Batch, layout: &Layout, database: &Database, mode: Mode) -> Result<()> {
    let mut last: Option<Arc<Family>> = None;
    let mut found = 0_u32;
    for record in layout.records() {
        let (id, change) = record?;
        if matches!(change, Change::LogData(_)) {
            continue;
        }
        found += 1;
        if last.as_ref().is_none_or(|last| last.id() != id) {
            last = database.family(id);
        }
        match &last {
            Some(family) => add(batch, family, change)?,
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
        self.as_engine_batch(database, mode, |engine| database.commit(engine, mode))
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
        let mut engine = std::mem::take(&mut self.engine);
        engine.clear();
        let done = fill(&mut engine, &self.layout, database, mode).and_then(|()| take(&engine));
        engine.clear();
        self.engine = engine;
        done
    }
}

export! {
    fn rocksdb_write(
        database: Option<&Database>,
        options: Option<&WriteOptions>,
        batch: Option<&mut WriteBatch>,
        error: ErrPtr<'_>,
    ) {
        batch.given()?.write(database.given()?, options)
    }
}
