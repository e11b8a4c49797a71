//! Many tables: the memory of an empty one, the memory of making one, and how writes over all of them go on
//! with little memory. A batch of range deletes: at most its counted bytes, but for a part.

use std::cell::Cell;

use terrane::{Batch, Db, Durability, Kind, MemoryDevice, Options, Table, TableOptions};

use crate::{ASKED, HELD, HELD_MOST, turn};

/// A database under this ceiling, on a device in memory.
fn opened(memory_mib: u64) -> Db {
    let options = Options { memory_bytes: memory_mib << 20, background_threads: 2, ..Options::default() };
    MemoryDevice::new(1 << 30).open("/db", &options).unwrap()
}

fn make(db: &Db, numbers: std::ops::Range<u32>) -> Vec<Table> {
    let make = |number| db.create_table(&format!("table-{number:05}"), &TableOptions::new()).unwrap();
    numbers.map(make).collect()
}

fn asked_by(work: impl FnOnce()) -> u64 {
    let asked = || ASKED.with(Cell::get);
    let before = asked();
    work();
    asked() - before
}

/// Neither the catalog nor the state of the manifest is copied for a table.
#[test]
fn a_table_beside_many_is_made_with_as_little_as_one_beside_few() {
    let _turn = turn();
    let db = opened(64);
    drop(make(&db, 0..100));
    // Some edit of the manifest checks its whole state, in builds with assertions: not in each window.
    let least = |first: u32| {
        let windows = [first, first + 30, first + 60];
        windows.map(|first| asked_by(|| drop(make(&db, first..first + 30)))).into_iter().min().unwrap()
    };
    let beside_few = least(100);
    drop(make(&db, 190..2000));
    let beside_many = least(2000);
    assert!(beside_many < 2 * beside_few, "{beside_many} bytes beside 2,000 tables, {beside_few} beside 100");
}

#[test]
fn an_empty_table_takes_hardly_any_of_the_ceiling_and_too_many_are_refused() {
    let _turn = turn();
    let db = opened(16);
    let before = db.stats().memory_index_bytes;
    drop(make(&db, 0..1000));
    let each = (db.stats().memory_index_bytes - before) / 1000;
    assert!(each < 1024, "{each} bytes for each empty table");
    let refused =
        (1000..20_000).find_map(|number| db.table_or_create(&format!("more-{number}")).err()).unwrap();
    assert_eq!(refused.kind(), Kind::Invalid, "{refused}");
    assert!(refused.to_string().contains("raise memory_bytes"), "{refused}");
    // Those that are there work.
    let table = db.table("table-00007").unwrap();
    table.put("key", "value").unwrap();
    assert_eq!(table.get("key").unwrap().unwrap(), b"value");
}

/// Small puts over all tables in turn: a flush comes for many of them, not for a few.
#[test]
fn puts_over_many_tables_with_little_memory_go_on_at_many_for_each_flush() {
    const TABLES: u32 = 420;
    const PUTS: u32 = 40_000;
    let _turn = turn();
    let db = opened(16);
    let tables = make(&db, 0..TABLES);
    for number in 0..PUTS {
        let table = &tables[(number % TABLES) as usize];
        table.put(format!("key-{number:08}"), [7; 100]).unwrap();
    }
    let stats = db.stats();
    let written = stats.flushes + stats.overflow_runs_written;
    assert!(written * 30 <= u64::from(PUTS), "{written} memtables written for {PUTS} puts");
    // Writers have 8 MiB, and look at what they use after each quantum of the journal: until then there may
    // be a segment more, and first records or a longer chunk in each table.
    let bytes_max = (8 << 20) + (512 << 10) + u64::from(TABLES) * (8 << 10);
    let bytes = stats.memory_index_bytes + stats.memory_journal_bytes;
    assert!(bytes <= bytes_max, "{bytes} bytes of writers");
    for number in (0..PUTS).step_by(97) {
        let table = &tables[(number % TABLES) as usize];
        assert_eq!(table.get(format!("key-{number:08}")).unwrap().unwrap(), [7; 100]);
    }
}

/// Each change of the range deletes of a memtable leaves the state before it in memory as long as the
/// writer's guard lasts, and no account counts it: a batch changes them once.
#[test]
fn a_batch_of_range_deletes_leaves_no_states_of_its_own_behind() {
    const DELETES: u32 = 1500;
    let _turn = turn();
    let db = opened(64);
    let mut batch = Batch::new();
    for number in 0..DELETES {
        let (start, end) = (format!("key-{number:06}"), format!("key-{number:06}-end"));
        batch.delete_range(db.default_table(), start, end).unwrap();
    }
    let counted_before = db.stats().memory_index_bytes;
    let before = HELD.with(Cell::get);
    HELD_MOST.with(|most| most.set(before));
    db.write(&batch, Durability::Buffered).unwrap();
    let most = HELD_MOST.with(Cell::get) - before;
    let counted = (db.stats().memory_index_bytes - counted_before) as i64;
    assert!(counted > i64::from(DELETES) * 320, "{counted} bytes are counted");
    assert!(most < 2 * counted, "{most} bytes were held at once, {counted} are counted");
    assert_eq!(db.get("key-000007-a").unwrap(), None);
}
