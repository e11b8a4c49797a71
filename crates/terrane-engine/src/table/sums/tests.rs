//! Tests of the sums over tables.

use std::path::Path;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_device::MemDisk;

use super::*;
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

/// A writer may read an old number of bytes from which on growth is noted: the switch of the memtable sets a
/// new one on another processor. The first record is noted all the same, before its writer's next write.
#[test]
fn the_first_record_behind_a_switch_is_noted_at_once() {
    let (engine, table) = open();
    put(&engine, &table);
    assert!(engine.freeze(&table).expect("nothing is lost"));
    engine.settle(&table, &engine.new_control()).expect("settles");
    engine.flush_to_run(&table).expect("is written");
    let sums = engine.catalog().sums();
    assert_eq!((sums.now().filled_tables, sums.due().oldest_segment()), (0, None));
    table.part.record_look.store(u64::MAX, Ordering::Relaxed);
    put(&engine, &table);
    assert_eq!(sums.now().filled_tables, 1);
    assert_eq!(sums.due().oldest_segment(), table.pinned().oldest_segment());
    assert!(sums.due().oldest_segment().is_some());
    engine.close().expect("closes");
}
