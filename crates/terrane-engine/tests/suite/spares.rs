//! Segment files that a dead process made and did not register: the next opening uses them, and its promises
//! must not depend on names and lengths that the dead process never made durable.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use support::gate::GateDisk;
use support::{DIR, get, open, small_options};
use terrane_base::TableId;
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk};
use terrane_engine::Engine;

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

/// Opens the image as a process that can make no further file, so that no later call makes the directory
/// durable.
fn next_life(image: &MemDisk) -> (MemDisk, Option<Arc<Engine>>) {
    let mem = image.kill();
    let disk = FaultyDisk::new(Arc::new(mem.clone()));
    disk.fail(Fault::new(Call::Create, Failure::Full).on(".seg").lasting());
    (mem, open(disk, &small_options()).ok())
}

#[test]
fn commits_synced_into_a_spare_survive_a_loss_of_power() {
    let mut used = 0;
    for image in left_by_the_dead() {
        let (mem, Some(engine)) = next_life(&image) else { continue };
        let table = engine.catalog().require("default").unwrap();
        let written = engine.put(table.id, b"promised", b"value", true).is_ok();
        let cuts: Vec<MemDisk> = (0..8).map(|seed| mem.crash(seed)).collect();
        let _ = engine.close();
        for cut in cuts.iter().filter(|_| written) {
            let engine = open(cut.clone(), &small_options()).unwrap_or_else(|error| panic!("{error}"));
            let table = engine.catalog().require("default").unwrap();
            assert_eq!(get(&engine, &table, b"promised").unwrap(), Some(b"value".to_vec()));
            engine.close().unwrap();
        }
        used += usize::from(written);
    }
    assert!(used >= 3, "{used} images had a file that could be used");
}

/// The manifest lists a segment before anything of it is synced.
#[test]
fn a_spare_that_is_listed_is_as_long_as_the_manifest_says() {
    let mut used = 0;
    for image in left_by_the_dead() {
        let (mem, Some(engine)) = next_life(&image) else { continue };
        let table = engine.catalog().require("default").unwrap();
        let written = engine.put(table.id, b"not promised", b"value", false).is_ok();
        let cuts: Vec<MemDisk> = (0..8).map(|seed| mem.crash(seed)).collect();
        let _ = engine.close();
        for cut in cuts.iter().filter(|_| written) {
            let engine = open(cut.clone(), &small_options()).unwrap_or_else(|error| panic!("{error}"));
            engine.close().unwrap();
        }
        used += usize::from(written);
    }
    assert!(used >= 3, "{used} images had a file that could be used");
}
