//! The checks that a manifest passes on every medium.
//!
//! ```no_run
//! # use std::{path::Path, sync::Arc};
//! # use terrane_base::{Kind, env::Env};
//! # use terrane_device::{Disk, MemDisk};
//! # use terrane_levels::{Manifest, manifest::conformance};
//! conformance::run(|| {
//!     let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
//!     move |settings| match Manifest::open_with(disk.clone(), Path::new("/db"), settings) {
//!         Err(error) if error.kind() == Kind::NotFound => {
//!             Manifest::create_with(disk.clone(), Path::new("/db"), &Env::real(), Vec::new(), settings)
//!         }
//!         opened => opened,
//!     }
//! });
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::{ExtentId, Kind, Result, SeqNo, TableId};
use terrane_format::extent::{ExtentMeta, Handle, extent_bytes};
use terrane_format::manifest::file::FORMAT_VERSION;
use terrane_format::manifest::{Edit, EditOp, Place};

use super::{Manifest, ManifestSettings};
use crate::state::State;

/// A manifest and its state, or the error of its opening.
pub type Opened = Result<(Manifest, State)>;

/// Runs every check. `make` creates an empty place and returns a function that opens the manifest there with
/// settings, and makes one in an empty place: once, and again after the manifest was dropped.
///
/// # Panics
/// If the manifest breaks a promise.
pub fn run<O: Fn(ManifestSettings) -> Opened>(make: impl Fn() -> O) {
    edits_survive_without_a_close(&make());
    a_roll_keeps_state_and_number(&make());
    rolls_come_by_count_and_by_bytes(&make());
    a_contradiction_leaves_nothing(&make());
    threads_share_one_order(&make());
    a_long_snapshot_comes_back(&make());
    a_later_version_is_reached(&make());
}

const LARGE: u64 = u64::MAX;

/// Settings that never roll by themselves.
fn still() -> ManifestSettings {
    ManifestSettings {
        roll_bytes_min: LARGE,
        roll_factor: 0,
        roll_bytes_max: LARGE,
        ..ManifestSettings::default()
    }
}

/// An extent of the keys 10 `slot` to 10 `slot` + 9.
fn extent(slot: u32) -> ExtentMeta {
    const INDEX: u32 = 1 << 20;
    let key = |number: u32| format!("key{number:09}").into_bytes();
    ExtentMeta {
        id: ExtentId { file: 1, slot },
        bytes: extent_bytes((INDEX + 8192) as usize) as u32,
        raw_bytes: 3 << 20,
        smallest: key(slot * 10),
        largest: key(slot * 10 + 9),
        seq_min: SeqNo(1),
        seq_max: SeqNo(u64::from(slot) + 1),
        entries: 1000,
        blocks: 64,
        index: Handle { offset: INDEX, len: 4096, checksum: slot },
        filter: Handle { offset: INDEX + 4096, len: 4096, checksum: slot },
        format_version: 1,
        ..ExtentMeta::default()
    }
}

fn add(slot: u32) -> Edit {
    Edit { ops: vec![EditOp::add(TableId::DEFAULT, Place::Level(2), extent(slot))] }
}

#[track_caller]
fn ok<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn append(manifest: &Manifest, edit: &Edit) {
    let before = manifest.edit_number();
    ok(manifest.append(edit));
    assert!(manifest.edit_number() > before, "an edit takes a number of its own");
    ok(manifest.check_reached(manifest.edit_number()));
}

fn edits_survive_without_a_close(open: &impl Fn(ManifestSettings) -> Opened) {
    let mut expected = None;
    for turn in 0..3u32 {
        let (manifest, found) = ok(open(still()));
        assert!(expected.is_none_or(|expected| expected == found), "what was appended before turn {turn}");
        assert_eq!(*manifest.state(), found, "the state that is published");
        for slot in turn * 5..turn * 5 + 5 {
            append(&manifest, &add(slot));
        }
        append(&manifest, &Edit { ops: vec![EditOp::Epoch { epoch: u64::from(turn) + 1 }] });
        if turn == 1 {
            ok(manifest.close());
        }
        expected = Some(State::clone(&manifest.state()));
    }
    let (manifest, found) = ok(open(still()));
    assert_eq!(Some(found), expected, "what was appended last");
    ok(manifest.check_writer());
    ok(manifest.state().check());
}

fn a_roll_keeps_state_and_number(open: &impl Fn(ManifestSettings) -> Opened) {
    let (manifest, _) = ok(open(still()));
    let (mut number, mut file) = (manifest.edit_number(), manifest.size().file);
    for slot in 0..4 {
        append(&manifest, &add(slot));
        ok(manifest.roll());
        assert!(manifest.edit_number() > number && manifest.size().file > file, "{:?}", manifest.size());
        assert_eq!((manifest.size().edits, manifest.size().edit_bytes), (0, 0), "nothing behind a snapshot");
        (number, file) = (manifest.edit_number(), manifest.size().file);
    }
    append(&manifest, &add(4));
    let (state, number) = (manifest.state(), manifest.edit_number());
    drop(manifest);
    let (manifest, found) = ok(open(still()));
    assert_eq!(found, *state, "snapshot and the edit behind it");
    ok(manifest.check_reached(number));
    append(&manifest, &add(5));
}

fn rolls_come_by_count_and_by_bytes(open: &impl Fn(ManifestSettings) -> Opened) {
    let by_count = ManifestSettings { roll_edits_max: 3, ..still() };
    let by_bytes = ManifestSettings { roll_bytes_min: 300, ..still() };
    let mut slot = 0;
    for settings in [by_count, by_bytes] {
        let (manifest, _) = ok(open(settings));
        let before = manifest.size().file;
        for _ in 0..12 {
            append(&manifest, &add(slot));
            slot += 1;
            assert!(manifest.size().edits <= 4, "{:?} with {settings:?}", manifest.size());
        }
        assert!(manifest.size().file >= before + 3, "{:?} with {settings:?}", manifest.size());
    }
    let (_, found) = ok(open(still()));
    assert_eq!(found.extents().count(), slot as usize, "no edit is lost by a roll");
}

fn a_contradiction_leaves_nothing(open: &impl Fn(ManifestSettings) -> Opened) {
    let (manifest, _) = ok(open(still()));
    append(&manifest, &add(7));
    let (state, number) = (manifest.state(), manifest.edit_number());
    let twice = manifest.append(&add(7)).expect_err("an extent is owned once");
    assert_eq!(twice.kind(), Kind::Invalid, "{twice}");
    assert_eq!((&*manifest.state(), manifest.edit_number()), (&*state, number), "nothing happened");
    drop(manifest);
    assert_eq!(ok(open(still())).1, *state, "and nothing is found");
}

fn threads_share_one_order(open: &impl Fn(ManifestSettings) -> Opened) {
    const THREADS: u32 = 4;
    const EACH: u32 = 12;
    let (manifest, _) = ok(open(ManifestSettings { roll_edits_max: 5, ..still() }));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let manifest = &manifest;
            scope.spawn(move || {
                for slot in thread * EACH..(thread + 1) * EACH {
                    ok(manifest.append(&add(slot)));
                    let is_there = manifest.state().extents().any(|(id, _)| id.slot == slot);
                    assert!(is_there, "an edit is published when its append returns");
                }
            });
        }
    });
    let state = manifest.state();
    drop(manifest);
    let (_, found) = ok(open(still()));
    assert_eq!(found, *state, "what the threads appended");
    assert_eq!(found.extents().count(), (THREADS * EACH) as usize, "none is lost");
}

fn a_later_version_is_reached(open: &impl Fn(ManifestSettings) -> Opened) {
    let (manifest, _) = ok(open(still()));
    append(&manifest, &add(0));
    let floor = |seq| Edit { ops: vec![EditOp::FlushedAll { seq: SeqNo(seq) }] };
    let early = manifest.append(&floor(5)).expect_err("a file of the first version");
    assert_eq!(early.kind(), Kind::Invalid, "{early}");
    ok(manifest.reach_version(FORMAT_VERSION));
    append(&manifest, &floor(5));
    append(&manifest, &add(1));
    let state = manifest.state();
    assert_eq!((state.flushed_all, state.format_version), (SeqNo(5), FORMAT_VERSION));
    drop(manifest);
    let (manifest, found) = ok(open(still()));
    assert_eq!(found, *state, "an edit of the later version");
    ok(manifest.roll());
    append(&manifest, &floor(6));
    let state = manifest.state();
    drop(manifest);
    let (_, found) = ok(open(still()));
    assert_eq!((found.flushed_all, found.format_version), (SeqNo(6), FORMAT_VERSION), "behind a snapshot");
    assert_eq!(found, *state, "with all else");
}

fn a_long_snapshot_comes_back(open: &impl Fn(ManifestSettings) -> Opened) {
    let (manifest, _) = ok(open(still()));
    // Longer than one piece of a snapshot.
    let ops = (0..4000).map(|slot| EditOp::add(TableId::DEFAULT, Place::Level(2), extent(slot)));
    append(&manifest, &Edit { ops: ops.collect() });
    ok(manifest.roll());
    let state = manifest.state();
    drop(manifest);
    let (_, found) = ok(open(still()));
    assert_eq!(found, *state, "the snapshot");
    let by_id: BTreeMap<_, _> = found.metas().map(|meta| (meta.id, Arc::clone(meta))).collect();
    assert_eq!(
        *by_id[&ExtentId { file: 1, slot: 3999 }],
        extent(3999),
        "with all that is known of an extent"
    );
}
