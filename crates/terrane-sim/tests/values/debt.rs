//! Writers are slowed by dead values above the ceiling until jobs have collected them: an engine in a world
//! of steps, so that how far its background is behind follows from the seed alone.

use std::path::Path;
use std::sync::Arc;

use terrane_base::options::Options;
use terrane_base::{Rng, TableId};
use terrane_device::MemDisk;
use terrane_engine::Engine;
use terrane_sim::SteppedWorld;

use crate::TURN;

const KEYS: u64 = 3000;
const VALUE_BYTES: usize = 4000;
/// Every round overwrites a quarter of the keys.
const ROUNDS: u64 = 20;
/// Puts that show whether writers are held back: less than a memtable.
const PUTS: u64 = 100;
/// Background steps after which there is nothing left to do.
const STEPS_MAX: usize = 10_000;

/// Without a ceiling at first: dead values stay until all of their value table is dead.
fn options() -> Options {
    let mut options = Options { memory_bytes: 32 << 20, ..Options::default() };
    for (name, value) in [
        ("segment_bytes", "1MiB"),
        ("memtable_bytes", "1MiB"),
        ("global_index_bytes", "1MiB"),
        ("compression", "none"),
        ("compression_last", "none"),
        ("value_separation_bytes", "512"),
        ("value_space_max_percent", "0"),
        ("experiments.value_garbage_permille", "1000"),
        ("background_threads", "1"),
    ] {
        options.set(name, value).unwrap();
    }
    options
}

#[test]
fn dead_values_above_the_ceiling_slow_writers_until_they_are_collected() {
    let _turn = TURN.lock();
    let world = SteppedWorld::new(5);
    let engine =
        Engine::open_on(Arc::new(MemDisk::new()), Path::new("/db"), &options(), world.env()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    let mut rng = Rng::new(5);
    let put = |number: u64| {
        world.begin_operation();
        let key = format!("key-{number:06}");
        engine.put(TableId::DEFAULT, key.as_bytes(), &[number as u8; VALUE_BYTES], false).unwrap();
    };
    let flush_and_step = || {
        world.begin_operation();
        engine.flush().unwrap();
        world.step(STEPS_MAX);
    };
    // How long a few puts without any step of the background were held back by the backlog of the table.
    let held_back = || {
        let before = table.stats().table_writes_paused_micros;
        (0..PUTS).for_each(&put);
        table.stats().table_writes_paused_micros - before
    };
    (0..KEYS).for_each(&put);
    for _ in 0..ROUNDS {
        (0..KEYS / 4).for_each(|_| put(rng.below(KEYS)));
        flush_and_step();
    }
    let stats = table.stats();
    assert!(stats.table_value_space_permille > 3400, "dead values stay: {stats:?}");
    assert_eq!((stats.table_backlog_permille, held_back()), (0, 0), "there is no ceiling: {stats:?}");

    flush_and_step();
    world.begin_operation();
    engine.set_table_option(&table, "value_space_max_percent", "125").unwrap();
    let stats = table.stats();
    assert!(stats.table_backlog_permille > 0, "far above the ceiling: {stats:?}");
    assert!(held_back() > 0, "writers do not wait for the space of dead values: {:?}", table.stats());

    flush_and_step();
    let stats = table.stats();
    assert!(stats.table_value_space_permille <= 1250, "collected: {stats:?}");
    assert_eq!((stats.table_backlog_permille, held_back()), (0, 0), "there is no debt: {stats:?}");
    world.begin_operation();
    engine.close().unwrap();
}
