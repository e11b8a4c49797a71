//! Content of extents: rows, and the values in the value tables of a world.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::sync::atomic::AtomicU64;
use terrane_base::{Stored, ValuePointer, ValueTableId};
use terrane_compaction::JobResult;
use terrane_format::block::BlockCursor;
use terrane_format::manifest::Place;
use terrane_levels::Change;
use terrane_table::scanner::CHUNK_BYTES;
use terrane_table::{Extent, ExtentScanner, verify_extent};

use super::{Row, World};

thread_local! {
    /// Numbers of value tables, of all worlds of one test. Not of the process: differences of numbers are
    /// ages, by which jobs choose what they collect, so other tests would change what they write.
    pub(super) static NUMBERS: Arc<AtomicU64> = Arc::new(AtomicU64::new(1));
}

impl World {
    /// The value tables of a result as changes; each is sound.
    pub(super) fn new_value_tables(&self, result: &JobResult) -> Vec<Change<Arc<Extent>>> {
        let add = |meta: &Arc<_>| {
            let findings = verify_extent(meta, &*self.store);
            assert!(findings.is_empty(), "{findings:?}");
            let extent = Extent::new((**meta).clone(), Arc::clone(&self.store));
            Change::Add { place: Place::Values, extent }
        };
        result.values.iter().map(add).collect()
    }

    /// Value tables.
    pub(crate) fn value_tables(&self) -> Vec<Arc<Extent>> {
        self.metasnapshot.values.iter().map(|table| table.extent.clone()).collect()
    }

    /// The value of a row, which is elsewhere if the row is a pointer.
    pub(super) fn value_of(&self, row: Row, read: &mut BTreeMap<ValueTableId, Vec<Row>>) -> Vec<u8> {
        if !row.seq_kind.is_pointer() {
            return row.value;
        }
        let pointer =
            ValuePointer::decode(Stored::of_entry(row.seq_kind, &row.value).unwrap().value).unwrap();
        let table = &self.metasnapshot.values.get(pointer.table).expect("a pointer leads somewhere").extent;
        let rows = read.entry(pointer.table).or_insert_with(|| rows_of(table));
        let order = |found: &Row| found.key.cmp(&row.key).then(row.seq_kind.seq().cmp(&found.seq_kind.seq()));
        let found = &rows[rows.binary_search_by(order).expect("a value table has what points into it")];
        assert_eq!(found.value.len(), pointer.len as usize);
        found.value.clone()
    }
}

/// All entries of an extent.
pub(crate) fn rows_of(extent: &Arc<Extent>) -> Vec<Row> {
    let mut scanner = ExtentScanner::new(Arc::clone(extent), CHUNK_BYTES).unwrap();
    let mut rows = Vec::new();
    for at in 0..scanner.rows().len() {
        let block = scanner.block(at).unwrap();
        let mut cursor = BlockCursor::new();
        cursor.seek_first(&block);
        while let Some(entry) = cursor.entry(&block) {
            rows.push(Row { key: entry.key.to_vec(), seq_kind: entry.seq_kind, value: entry.value.to_vec() });
            cursor.next(&block);
        }
    }
    rows
}
