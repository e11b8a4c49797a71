//! Which core owns a key. Fixed when the cores are built, so it is read without any coordination.

use std::sync::Arc;

use terrane_base::key_order::{Order, encoded};
use terrane_base::record::Record;
use terrane_base::{Batch, Error, RecordKind, Result, TableId};

use crate::{Db, Table};

/// The owner of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home {
    /// Index of the table among those that were named.
    pub(super) place: u32,
    /// Number of the partition, over all tables.
    pub(super) partition: usize,
    /// The core.
    pub(super) core: usize,
}

struct PartitionedTable {
    /// Without its order: cores get encoded keys.
    table: Table,
    order: Option<Arc<Order>>,
    /// Ascending, encoded; a range begins with its split.
    splits: Vec<Vec<u8>>,
    first_partition: usize,
}

/// See the head of the file.
pub(super) struct Ownership {
    places: Vec<PartitionedTable>,
    /// 1 + place, by number of the table; 0 for a table that was not named.
    by_id: Vec<u32>,
    partitions: usize,
    cores: usize,
}

impl Ownership {
    pub(super) fn new(db: &Db, tables: Vec<(Table, Vec<Vec<u8>>)>, cores: usize) -> Result<Self> {
        let mut ownership = Ownership { places: Vec::new(), by_id: Vec::new(), partitions: 0, cores };
        for (table, splits) in tables {
            ownership.add(db, table, splits)?;
        }
        Ok(ownership)
    }

    fn add(&mut self, db: &Db, mut table: Table, splits: Vec<Vec<u8>>) -> Result<()> {
        let order = table.order.take();
        let splits = splits.iter().map(|split| Ok(encoded(order.as_deref(), split)?.into_owned()));
        let splits = splits.collect::<Result<Vec<_>>>()?;
        let name = table.name();
        if !Arc::ptr_eq(&table.engine, db.engine()) {
            return Err(Error::invalid(format!("table {name:?} is of another database")));
        }
        let collation = table.inner.semantics.collation();
        if !splits.is_sorted_by(|left, right| collation.lt(left, right)) {
            return Err(Error::invalid(format!("the splits of table {name:?} do not ascend")));
        }
        let id = table.id().0 as usize;
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, 0);
        }
        if self.by_id[id] != 0 {
            return Err(Error::invalid(format!("table {name:?} is named twice")));
        }
        let first_partition = self.partitions;
        self.partitions += splits.len() + 1;
        self.places.push(PartitionedTable { table, order, splits, first_partition });
        self.by_id[id] = self.places.len() as u32;
        Ok(())
    }

    pub(super) fn partitions(&self) -> usize {
        self.partitions
    }

    pub(super) fn table(&self, place: u32) -> &Table {
        &self.places[place as usize].table
    }

    /// The order with which the keys of a table's rows are decoded.
    pub(super) fn order(&self, place: u32) -> Option<&Order> {
        self.places[place as usize].order.as_deref()
    }

    /// The owner of the encoded `key` of `table`.
    #[inline]
    pub(super) fn home(&self, table: &Table, key: &[u8]) -> Result<Home> {
        // Numbers of tables mean something within their database only.
        let is_ours = |home: &Home| Arc::ptr_eq(&table.engine, &self.table(home.place).engine);
        self.home_of(table.id(), key).filter(is_ours).ok_or_else(|| not_named(table))
    }

    #[inline]
    fn home_of(&self, table: TableId, key: &[u8]) -> Option<Home> {
        let place = self.by_id.get(table.0 as usize)?.checked_sub(1)?;
        let PartitionedTable { splits, first_partition, table, .. } = &self.places[place as usize];
        let is_up_to = |split: &Vec<u8>| table.inner.semantics.collation().le(split, key);
        let above = if splits.is_empty() { 0 } else { splits.partition_point(is_up_to) };
        let partition = first_partition + above;
        Some(Home { place, partition, core: partition % self.cores })
    }

    /// The core that owns every key of a batch, and the places of its tables, each run of them once. A batch
    /// without keys belongs to core 0.
    ///
    /// # Errors
    /// `Invalid` if there is no such core.
    pub(super) fn home_of_batch(&self, batch: &Batch) -> Result<(usize, Vec<u32>)> {
        let (mut core, mut places) = (None, Vec::new());
        for record in batch.records().filter(|record| record.log_data().is_none()) {
            let home = self.home_of(record.table, record.key).ok_or_else(|| {
                Error::invalid(
                    "the batch has a table that no core owns: name it to the builder, or use Db::write",
                )
            })?;
            let last = self.last_partition(&record, home);
            let mut cores = (home.partition..=last).map(|partition| partition % self.cores);
            if cores.any(|of| *core.get_or_insert(of) != of) {
                return Err(Error::invalid("the batch has keys of several cores: use write_across"));
            }
            if places.last() != Some(&home.place) {
                places.push(home.place);
            }
        }
        Ok((core.unwrap_or(0), places))
    }

    /// The last partition that a record of `home` may change.
    fn last_partition(&self, record: &Record<'_>, home: Home) -> usize {
        if record.kind != RecordKind::RangeDelete {
            return home.partition;
        }
        let PartitionedTable { splits, first_partition, table, .. } = &self.places[home.place as usize];
        let is_before = |split: &Vec<u8>| table.inner.semantics.collation().lt(split, record.value);
        first_partition + splits.partition_point(is_before)
    }
}

#[cold]
fn not_named(table: &Table) -> Error {
    let name = table.name();
    Error::invalid(format!("no core owns table {name:?}: name it to the builder, or use the table itself"))
}
