//! Defects that the simulator found, each as the shortest history that shows it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use support::{get, open, small_options};
use terrane_base::options::{JournalMode, Options};
use terrane_device::MemDisk;

#[test]
fn a_paused_database_without_a_journal_is_whole_after_its_close() {
    let disk = MemDisk::new();
    let options = Options { journal: JournalMode::Off, ..small_options() };
    let engine = open(disk.clone(), &options).unwrap();
    let table = engine.catalog().require("default").unwrap();
    engine.put(table.id, b"key", b"value", false).unwrap();
    engine.set_background_paused(true);
    engine.close().unwrap();
    let engine = open(disk, &options).unwrap();
    let table = engine.catalog().require("default").unwrap();
    assert_eq!(get(&engine, &table, b"key").unwrap().as_deref(), Some(&b"value"[..]));
    engine.close().unwrap();
}
