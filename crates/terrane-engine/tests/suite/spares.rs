//! Segment files that a dead process made and did not register: the next opening removes them, as a handle of
//! an earlier opening may read such a file, and its promises do not depend on them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use support::gate::GateDisk;
use support::{DIR, get, open, small_options};
use terrane_base::TableId;
use terrane_device::{Disk, MemDisk, OpenMode};

/// The device as the process left it that died at one of the calls that make the first segment file: there is
/// one file, of which not all is durable.
fn left_by_the_dead() -> Vec<MemDisk> {
    let images: Arc<Mutex<Vec<MemDisk>>> = Arc::default();
    let gate = GateDisk::new(MemDisk::new());
    let taken = images.clone();
    let look = move |disk: &MemDisk| {
        taken.lock().push(disk.kill());
        1
    };
    gate.look_after(1, Box::new(look));
    let engine = open(gate.clone(), &small_options()).unwrap();
    engine.put(TableId::DEFAULT, b"first", b"row", false).unwrap();
    engine.close().unwrap();
    gate.look_away();
    let mut images = std::mem::take(&mut *images.lock());
    let journal = Path::new(DIR).join("journal");
    images.retain(|disk| disk.list(&journal).is_ok_and(|names| names.len() == 1));
    images
}

#[test]
fn an_opening_removes_the_file_and_commits_survive_a_loss_of_power() {
    let (mut removed, mut written) = (0, 0);
    let journal = Path::new(DIR).join("journal");
    for image in left_by_the_dead() {
        let mem = image.kill();
        let left = mem.list(&journal).unwrap().pop().unwrap();
        let Ok(engine) = open(mem.clone(), &small_options()) else { continue };
        let table = engine.catalog().require("default").unwrap();
        engine.put(table.id, b"promised", b"value", true).unwrap();
        removed += usize::from(!mem.list(&journal).unwrap().contains(&left));
        let cuts: Vec<MemDisk> = (0..8).map(|seed| mem.crash(seed)).collect();
        engine.close().unwrap();
        for cut in cuts {
            let engine = open(cut, &small_options()).unwrap_or_else(|error| panic!("{error}"));
            let table = engine.catalog().require("default").unwrap();
            assert_eq!(get(&engine, &table, b"promised").unwrap(), Some(b"value".to_vec()));
            engine.close().unwrap();
        }
        written += 1;
    }
    assert!(removed >= 3 && written > removed, "{removed} files of {written} were not registered");
}

/// Whatever is in it: a name alone makes a file one of the journal.
#[test]
fn an_opening_removes_every_file_that_it_does_not_list() {
    let mem = MemDisk::new();
    let engine = open(mem.clone(), &small_options()).unwrap();
    engine.put(TableId::DEFAULT, b"first", b"row", true).unwrap();
    engine.close().unwrap();
    let strange = Path::new(DIR).join("journal").join("000777.seg");
    let file = mem.open(&strange, OpenMode::Create, false).unwrap();
    file.allocate(0, 1 << 16).unwrap();
    drop(file);
    let engine = open(mem.clone(), &small_options()).unwrap();
    assert!(!mem.exists(&strange).unwrap());
    let table = engine.catalog().require("default").unwrap();
    assert_eq!(get(&engine, &table, b"first").unwrap(), Some(b"row".to_vec()));
    engine.close().unwrap();
}
