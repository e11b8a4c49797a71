//! Values at the positions that pointers say: batches of a scan, and lookups side by side.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

use crate::support::store::TestStore;
use crate::support::until_free;

use std::sync::Arc;

use terrane_base::{Entry, RecordKind, SeqKind, SeqNo, ValuePointer, ValuePosition, ValueTableId};
use terrane_format::extent::ValueSection;
use terrane_table::{
    Answer, Cache, CursorOptions, Extent, ExtentWriter, Lookup, ObjectKind, Placed, ValueCursors, ValuePlace,
    WriterSettings, enter, probe_many,
};

/// Rows whose values lie in value tables in turns.
struct Rows {
    tables: Vec<Arc<Extent>>,
    pointers: Vec<ValuePointer>,
    value_bytes: usize,
}

fn key(row: usize) -> Vec<u8> {
    format!("key{row:06}").into_bytes()
}

impl Rows {
    /// The values of neighbours are in other value tables, the first one in the last.
    fn write(store: &Arc<TestStore>, rows: usize, tables: usize, value_bytes: usize) -> Rows {
        let none = ValuePointer { table: ValueTableId(0), len: value_bytes as u32, position: None };
        let mut written = Rows { tables: Vec::new(), pointers: vec![none; rows], value_bytes };
        for table in 0..tables {
            let number = ValueTableId(table as u64);
            let section = Some(ValueSection { number, level: 1 });
            let settings = WriterSettings { value_table: section, ..WriterSettings::default() };
            let mut writer = ExtentWriter::new(settings).unwrap();
            for row in (0..rows).filter(|row| tables - 1 - row % tables == table) {
                let value = written.value(row);
                writer.add(Entry { key: &key(row), seq_kind: seq_kind(row), value: &value }).unwrap();
                let pointer = &mut written.pointers[row];
                (pointer.table, pointer.position) = (number, Some(writer.position()));
            }
            let meta = writer.finish(&**store).unwrap();
            written.tables.push(Extent::new(meta, store.clone()));
        }
        written
    }

    fn value(&self, row: usize) -> Vec<u8> {
        (0..self.value_bytes).map(|at| (row + at) as u8).collect()
    }

    fn table(&self, row: usize) -> &Arc<Extent> {
        &self.tables[self.pointers[row].table.0 as usize]
    }

    fn place(&self, cursors: &mut ValueCursors, row: usize) -> Placed {
        let (pointer, key) = (self.pointers[row], key(row));
        let place =
            ValuePlace { key: &key, seq: seq_kind(row).seq(), pointer, backward: false, may_wait: false };
        cursors.place(place, |table| self.tables.get(table.0 as usize)).unwrap()
    }
}

fn seq_kind(row: usize) -> SeqKind {
    SeqKind::new(SeqNo(row as u64 + 1), RecordKind::Put)
}

#[test]
fn a_batch_has_the_values_that_come_first_and_reads_neighbours_at_once() {
    let store = TestStore::new();
    let rows = Rows::write(&store, 40, 4, 64 << 10);
    // Room for index blocks alone.
    let cache = Cache::new(48 << 10);
    let mut cursors = ValueCursors::new(cache, CursorOptions { fill_cache: true, read_ahead_bytes: 0 });
    cursors.want_none();
    let announced = (0..40).map(|row| cursors.want(rows.table(row), &key(row), rows.pointers[row], false));
    let announced: Vec<bool> = announced.collect();
    assert_eq!(announced.iter().position(|has_room| !has_room), Some(7), "512 KiB of values: {announced:?}");
    let (reads, before) = (store.reads(), terrane_base::counters::read_counters());
    cursors.gather();
    let read = terrane_base::counters::read_counters() - before;
    // Seven blocks, which are a little longer than their values, two beside each other in three value tables.
    assert_eq!(read.value_batch_reads, 4 + 7);
    assert_eq!((store.reads() - reads, read.device_reads), (4 + 4, 4 + 4), "neighbours are one read");
    for row in 0..7 {
        assert_eq!(rows.place(&mut cursors, row), Placed::Exact, "row {row}");
        assert_eq!(cursors.value(), Some(&*rows.value(row)), "row {row}");
    }
    assert_eq!(rows.place(&mut cursors, 7), Placed::Waits);
    assert_eq!(store.reads() - reads, 8, "what was gathered is not read again");
}

/// Otherwise sixty-four scans had the index blocks of all value tables of their next rows at once.
#[test]
fn index_blocks_of_a_batch_count_for_the_windows_of_all_scans() {
    let store = TestStore::new();
    let rows = Rows::write(&store, 40, 4, 64 << 10);
    let cache = Cache::new(48 << 10);
    let gathered = || {
        let mut cursors =
            ValueCursors::new(cache.clone(), CursorOptions { fill_cache: true, read_ahead_bytes: 0 });
        cursors.want_none();
        for row in 0..8 {
            cursors.want(rows.table(row), &key(row), rows.pointers[row], false);
        }
        cache.clear();
        let before = terrane_base::counters::read_counters();
        cursors.gather();
        let read = terrane_base::counters::read_counters() - before;
        assert_eq!(rows.place(&mut cursors, 0), Placed::Exact, "the first value is there in any case");
        // Instead of the last one, which a look ahead without room has left out.
        cursors.want(rows.table(8), &key(8), rows.pointers[8], true);
        (cursors, read.value_batch_reads)
    };
    let mut scans: Vec<(ValueCursors, u64)> = (0..32).map(|_| gathered()).collect();
    assert_eq!(scans[0].1, 4 + 7, "four index blocks, and the values for which there is room");
    assert_eq!(scans[31].1, 1 + 1, "the windows are in use: what the first value needs");
    scans.clear();
    assert_eq!(gathered().1, 4 + 7, "the scans have given their shares back");
}

#[test]
fn values_of_one_block_and_announced_values_are_wanted_once() {
    let store = TestStore::new();
    let rows = Rows::write(&store, 40, 2, 1000);
    let cache = Cache::new(1 << 20);
    let mut cursors = ValueCursors::new(cache, CursorOptions { fill_cache: true, read_ahead_bytes: 0 });
    let last = rows.pointers[39].position.unwrap().block;
    assert!(last > 0, "the first and the last value are in other blocks");
    cursors.want_none();
    assert!(cursors.want(rows.table(0), &key(0), rows.pointers[0], false));
    assert!(cursors.want(rows.table(2), &key(2), rows.pointers[2], false));
    assert_eq!(cursors.last_wanted(), Some(&*key(2)));
    assert!(cursors.want(rows.table(39), &key(39), rows.pointers[39], false));
    assert!(cursors.want(rows.table(1), &key(1), rows.pointers[1], true));
    // A value without a position is searched for.
    let pointer = ValuePointer { position: None, ..rows.pointers[3] };
    assert!(cursors.want(rows.table(3), &key(3), pointer, false));
    let before = terrane_base::counters::read_counters();
    cursors.gather();
    let read = terrane_base::counters::read_counters() - before;
    assert_eq!(read.value_batch_reads, 2 + 2, "two index blocks, and the first block of each");
    assert_eq!([0, 1, 2, 3].map(|row| rows.place(&mut cursors, row)), [Placed::Exact; 4]);
    cursors.want_none();
    assert_eq!(cursors.last_wanted(), None);
    assert!((0..4).all(|row| cursors.want(rows.table(row), &key(row), rows.pointers[row], false)));
    let before = terrane_base::counters::read_counters();
    cursors.gather();
    assert_eq!((terrane_base::counters::read_counters() - before).value_batches, 0, "all is cached");
}

/// Otherwise each scan would hold as many long values as there are sorted groups, whatever the cache's limit.
#[test]
fn a_scan_over_many_groups_holds_one_long_value() {
    let store = TestStore::new();
    let rows = Rows::write(&store, 64, 16, 16 << 10);
    let cache = Cache::new(1 << 20);
    let options = CursorOptions { fill_cache: true, read_ahead_bytes: 512 << 10 };
    let mut cursors = ValueCursors::new(cache.clone(), options);
    for row in 0..64 {
        if rows.place(&mut cursors, row) == Placed::Waits {
            cursors.want_none();
            for next in row..64 {
                if !cursors.want(rows.table(next), &key(next), rows.pointers[next], false) {
                    break;
                }
            }
            cursors.gather();
            assert_eq!(rows.place(&mut cursors, row), Placed::Exact, "row {row}");
        }
        assert_eq!(cursors.value(), Some(&*rows.value(row)), "row {row}");
    }
    // The scan holds the remaining blocks. Other tests of the process may hold epochs back for a moment.
    let held = || {
        cache.clear();
        cache.holds(ObjectKind::Data)
    };
    assert!(until_free(|| held() < 2 * (17 << 10)), "{} bytes are held", held());
    assert_eq!(cursors.value(), Some(&*rows.value(63)), "the scan is where it was");
}

/// Lookups that know a position look there and nowhere else.
#[test]
fn lookups_at_positions_find_what_lies_there() {
    let store = TestStore::new();
    let rows = Rows::write(&store, 60, 3, 3000);
    let cache = Cache::new(8 << 20);
    for row in 0..60 {
        assert!(rows.table(row).get(&cache, &key(row), SeqNo::MAX, &mut Vec::new()).unwrap().is_some());
    }
    let keys: Vec<_> = (0..60).map(key).collect();
    let epoch = enter();
    let answers = |position: &dyn Fn(usize) -> Option<ValuePosition>| {
        let lookup = |row: usize| {
            let lookup = Lookup::new(rows.table(row), &keys[row], None).up_to(seq_kind(row).seq());
            lookup.written_at(position(row))
        };
        let mut lookups: Vec<_> = (0..60).map(lookup).collect();
        probe_many(&epoch, &mut lookups, SeqNo::MAX);
        let is_found = |(row, lookup): (usize, &Lookup<'_>)| match lookup.answer() {
            Answer::Found(entry) => {
                assert_eq!((entry.key, entry.value), (&*keys[row], &*rows.value(row)), "row {row}");
                true
            }
            Answer::Absent => false,
            other => panic!("row {row}: {other:?}"),
        };
        lookups.iter().enumerate().filter(|found| is_found(*found)).count()
    };
    let written = |row: usize| rows.pointers[row].position.unwrap();
    assert_eq!(answers(&|row| Some(written(row))), 60);
    assert_eq!(answers(&|_| None), 60, "without a position the index is searched");
    let other_entry = |row: usize| Some(ValuePosition { entry: written(row).entry + 1, ..written(row) });
    assert_eq!(answers(&other_entry), 60, "the block is searched");
    let other_block = |row: usize| Some(ValuePosition { block: written(row).block ^ 1, ..written(row) });
    assert_eq!(answers(&other_block), 0, "nothing is searched but the block there");
    assert_eq!(answers(&|row| Some(ValuePosition { block: u32::MAX, ..written(row) })), 0);
    assert!(rows.tables.iter().all(|table| table.value_need(written(0)).is_some()));
    assert_eq!(rows.tables[0].value_need(ValuePosition { block: u32::MAX, entry: 0 }), None);
}
