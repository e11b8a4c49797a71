//! The kinds of operation that histories consist of.

use std::ops::Bound;

use crate::op::{EXPIRING, Edit, MERGED, ONCE, Op, Span, Value};
use crate::tickets::Use;

/// A name, and operations that differ by a number.
type Kind = (&'static str, fn(u64) -> Vec<Op>);

/// The operations of a history.
pub(super) const KINDS: [Kind; 30] = [
    ("put", |stamp| vec![put(1, 40, stamp, false)]),
    ("put sync", |stamp| vec![put(2, 40, stamp, true)]),
    ("put of pages", |stamp| vec![put(3, 9_000, stamp, true)]),
    ("put beyond a segment", |stamp| vec![put(4, 70_000, stamp, false)]),
    ("delete", |_| vec![Op::Delete { table: "default".to_owned(), key: 1 }]),
    ("batch", |stamp| vec![batch(stamp, false)]),
    ("batch sync", |stamp| vec![batch(stamp, true)]),
    ("create", |stamp| vec![Op::Create { table: format!("t{stamp}"), options: stamp % 2 }]),
    ("drop", |_| vec![Op::Drop { table: "other".to_owned() }]),
    ("flush", |_| vec![Op::Flush]),
    ("compact", |_| vec![Op::Compact { table: "default".to_owned(), span: ALL }]),
    ("level", |_| vec![Op::Level { table: "default".to_owned(), level: 1 }]),
    ("run", |_| vec![Op::Run { table: "default".to_owned() }]),
    ("sync", |_| vec![Op::Sync]),
    ("reopen", |_| vec![Op::Reopen { options: 0 }]),
    ("fill", |stamp| (0..4).map(|number| put(number, 20_000, stamp * 10 + number, false)).collect()),
    ("background", |_| vec![Op::Steps { count: 4 }]),
    ("quiesce", |_| vec![Op::Quiesce]),
    ("rest", |_| vec![Op::Rest]),
    ("checkpoint", |_| vec![Op::Checkpoint { name: 0 }]),
    ("ingest", |stamp| {
        vec![Op::Ingest { tables: vec!["default".to_owned(), "other".to_owned()], seed: stamp }]
    }),
    ("drop extents", |_| vec![Op::DropExtents { table: "default".to_owned(), from: 1, to: 7 }]),
    ("backup", |_| vec![Op::Backup { keep: 1, seed: 0 }]),
    ("delete range", |_| vec![Op::DeleteRange { table: "default".to_owned(), from: 1, to: 6 }]),
    ("delete range of kinds", |_| {
        vec![Op::DeleteRange { table: "default".to_owned(), from: MERGED, to: EXPIRING + 1 }]
    }),
    ("merge", |stamp| vec![merge(stamp, false), merge(stamp + 1, true)]),
    ("put once, delete", |stamp| vec![once(stamp), once(stamp + 1)]),
    ("put for", |stamp| vec![put_for(stamp), Op::Wait { millis: 1_000 }]),
    ("writes in flight", |stamp| vec![write_async(stamp, Use::Drop), write_async(stamp + 2, Use::Keep)]),
    ("wait for a ticket", |stamp| vec![write_async(stamp, Use::Call), Op::Await { which: stamp }]),
];

/// How many kinds of operation there are.
pub const KIND_COUNT: u64 = KINDS.len() as u64;

const ALL: Span = Span { lower: Bound::Unbounded, upper: Bound::Unbounded };

pub(super) fn put(key: u64, len: u64, stamp: u64, sync: bool) -> Op {
    Op::Put { table: "default".to_owned(), key, value: Value { len, stamp }, sync }
}

fn merge(stamp: u64, sync: bool) -> Op {
    Op::Merge { table: "default".to_owned(), key: MERGED, value: Value { len: 20, stamp }, sync }
}

fn once(stamp: u64) -> Op {
    Op::Once { table: "default".to_owned(), key: ONCE, value: Value { len: 20, stamp } }
}

fn put_for(stamp: u64) -> Op {
    Op::PutFor { table: "default".to_owned(), key: EXPIRING, value: Value { len: 20, stamp }, millis: 1_500 }
}

pub(super) fn batch(stamp: u64, sync: bool) -> Op {
    Op::Batch { edits: edits(stamp), sync }
}

fn write_async(stamp: u64, ticket: Use) -> Op {
    Op::WriteAsync { edits: edits(stamp), ticket }
}

fn edits(stamp: u64) -> Vec<Edit> {
    let edit = |table: &str, key, value| Edit { table: table.to_owned(), key, value };
    let value = |stamp| Some(Value { len: 30, stamp });
    vec![edit("default", 5, value(stamp)), edit("other", 5, value(stamp + 1)), edit("default", 1, None)]
}
