//! Bounds for a hostile manifest: numbers that would bound an array or overflow are refused, and the time to
//! read one grows with its length only.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{add, dir, still};
use std::sync::Arc;
use terrane_base::{Kind, SegmentId, TableId};
use terrane_device::MemDisk;
use terrane_format::manifest::{DatabaseId, Edit, EditOp, NextIds, Place, SegmentSpec};
use terrane_levels::{Manifest, State};

fn create(id: u32) -> EditOp {
    EditOp::CreateTable { id: TableId(id), name: format!("t{id}"), options: Vec::new() }
}

fn segment(id: u64, file: u32) -> EditOp {
    EditOp::AddSegment(SegmentSpec { id: SegmentId(id), file, bytes: 4096 })
}

#[test]
fn numbers_at_the_end_of_their_range_are_refused() {
    let state = State::new(DatabaseId(1), Vec::new()).unwrap();
    let next = |table, segment, segment_file, run| {
        EditOp::NextIds(NextIds { table: TableId(table), segment: SegmentId(segment), segment_file, run })
    };
    let mut run = add(0, 1);
    if let EditOp::AddExtent { place, .. } = &mut run.ops[0] {
        *place = Place::Run(u64::MAX);
    }
    let refused = [
        create(u32::MAX),
        create(1 << 22),
        segment(u64::MAX, 1),
        segment(1 << 62, 1),
        segment(1, u32::MAX),
        segment(1, 1 << 31),
        next(u32::MAX, 1, 1, 0),
        next(1, u64::MAX, 1, 0),
        next(1, 1, u32::MAX, 0),
        next(1, 1, 1, u64::MAX),
        EditOp::Epoch { epoch: u64::MAX },
        run.ops.remove(0),
    ];
    for op in refused {
        let error = state.apply(&Edit { ops: vec![op.clone()] }).expect_err(op.as_str());
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        assert!(error.to_string().contains("used up"), "{error}");
    }
    let accepted = [
        create((1 << 22) - 1),
        segment((1 << 62) - 1, (1 << 31) - 1),
        next(1 << 22, 1 << 62, 1 << 31, 1 << 62),
    ];
    for op in accepted {
        state.apply(&Edit { ops: vec![op] }).unwrap().check().unwrap();
    }
}

/// A name and a file are free again once their owner is gone, and only then.
#[test]
fn names_and_files_are_used_once_at_a_time() {
    let mut state = State::new(DatabaseId(1), Vec::new()).unwrap();
    let apply = |state: &State, op: EditOp| state.apply(&Edit { ops: vec![op] });
    let named = |id| EditOp::CreateTable { id: TableId(id), name: "same".into(), options: Vec::new() };
    state = apply(&state, named(1)).unwrap();
    assert!(apply(&state, named(2)).is_err());
    assert_eq!(state.table_named("same").unwrap().id, TableId(1));
    state = apply(&state, EditOp::DropTable { id: TableId(1) }).unwrap();
    assert!(state.table_named("same").is_none());
    state = apply(&state, named(2)).unwrap();
    assert_eq!(state.table_named("same").unwrap().id, TableId(2));
    state = apply(&state, segment(1, 7)).unwrap();
    assert!(apply(&state, segment(2, 7)).is_err());
    state = apply(&state, EditOp::RemoveSegment { id: SegmentId(1) }).unwrap();
    state = apply(&state, segment(2, 7)).unwrap();
    state.check().unwrap();
}

/// Counts the steps by the number of operations, not by a clock: with a scan per operation the test would
/// take hours.
#[test]
fn many_tables_segments_and_drops_are_read_in_linear_time() {
    const COUNT: u32 = 200_000;
    let disk = MemDisk::new();
    let (manifest, _) =
        Manifest::create_with(Arc::new(disk.clone()), dir(), &common::env(), Vec::new(), still()).unwrap();
    let append = |ops: Vec<EditOp>| manifest.append(&Edit { ops }).unwrap();
    append((1..=COUNT).map(create).collect());
    append((1..=COUNT).map(|id| segment(id.into(), id)).collect());
    append((1..COUNT).map(|id| EditOp::DropTable { id: TableId(id) }).collect());
    let (_, state) = common::open(&disk).unwrap();
    assert_eq!((state.tables.len(), state.segments.len()), (2, COUNT as usize));
}
