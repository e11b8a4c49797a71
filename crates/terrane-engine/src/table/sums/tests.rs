//! Tests of the sums over tables.

use std::path::Path;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_device::MemDisk;

use super::*;
use crate::background::flush::merge_frozen::tests::settle;
use crate::engine::Engine;

fn open() -> (Arc<Engine>, Arc<Table>) {
    let options = Options { memory_bytes: 16 << 20, ..Options::default() };
    let engine = Engine::open_on(Arc::new(MemDisk::new()), Path::new("/db"), &options, Env::real());
    let engine = engine.expect("opens");
    engine.set_background_paused(true);
    let table = engine.catalog().require("default").expect("is always there");
    (engine, table)
}

fn put(engine: &Engine, table: &Table) {
    engine.put(table.id, b"key", b"value", false).expect("commits");
}

/// Writes what the table has in memory. The caller of a flush goes on once the new read view is there; the
/// sums follow it before the job ends.
fn flush(engine: &Engine, table: &Arc<Table>) {
    assert!(engine.freeze(table).expect("nothing is lost"));
    settle(engine, table).expect("settles");
    engine.flush_to_run(table).expect("is written");
    while !engine.progress().is_empty() {
        std::thread::yield_now();
    }
}

/// A writer may read an old number of bytes from which on growth is noted: the switch of the memtable sets a
/// new one on another processor. The first record is noted all the same, before its writer's next write.
#[test]
fn the_first_record_behind_a_switch_is_noted_at_once() {
    let (engine, table) = open();
    put(&engine, &table);
    flush(&engine, &table);
    let sums = engine.catalog().sums();
    assert_eq!((sums.now().filled_tables, sums.due().oldest_segment()), (0, None));
    table.part.record_look.store(u64::MAX, Ordering::Relaxed);
    put(&engine, &table);
    assert_eq!(sums.now().filled_tables, 1);
    assert_eq!(sums.due().oldest_segment(), table.pinned().oldest_segment());
    assert!(sums.due().oldest_segment().is_some());
    engine.close().expect("closes");
}

/// Of many small tables, too, the one that is flushed first is the one with most bytes in memory; a page of
/// metrics counts the levels as well.
#[test]
fn the_fullest_table_is_found_and_its_flushed_bytes_count_as_large_only() {
    let (engine, default) = open();
    let rows = [("one", 1_u32), ("hundred", 100), ("ten", 10)];
    let tables = rows.map(|(name, count)| {
        let table = engine.create_table(name, &[]).expect("is new");
        for number in 0..count {
            engine.put(table.id, &number.to_be_bytes(), &[7; 100], false).expect("commits");
        }
        table
    });
    let [one, hundred, ten] = tables;
    let catalog = engine.catalog();
    let fullest = |except: &Table| catalog.fullest(|table| table.id != except.id).map(|table| table.id);
    assert_eq!(fullest(&default), Some(hundred.id));
    assert_eq!(fullest(&hundred), Some(ten.id));
    let largest = |count| catalog.largest(count).iter().map(|table| table.id).collect::<Vec<_>>();
    assert_eq!(largest(2), [hundred.id, ten.id]);
    flush(&engine, &hundred);
    assert_eq!(fullest(&default), Some(ten.id));
    assert_eq!(fullest(&ten), Some(one.id), "a table without records in memory is not meant");
    // Its levels are more than the nothing of the default table.
    assert!(largest(3).contains(&hundred.id), "{:?}", largest(3));
    engine.close().expect("closes");
}
