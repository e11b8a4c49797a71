//! Operands, single deletes and expiry in merges: every short history of a key under every snapshot, in one
//! flush or in two levels, against a simple fold.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

use crate::support;

use std::sync::Arc;

use support::{Row, RowCursor, TABLE, World, rows_of};
use terrane_base::chain::Chain;
use terrane_base::merge_operator::built_in;
use terrane_base::stored::put_prefix;
use terrane_base::{Moment, RecordKind, Rng, SeqKind, SeqNo};
use terrane_compaction::{
    Compactor, Input, JobControl, JobKind, JobSpec, KeyRange, OutputSettings, plan_dump,
};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;
use terrane_storage::SLOT_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    Put,
    Delete,
    Merge,
    /// Until a moment that is over.
    Expired,
    /// Until one that will come.
    MergeUntil,
}

const ALL: [Did; 5] = [Did::Put, Did::Delete, Did::Merge, Did::Expired, Did::MergeUntil];

fn row(seq: u64, did: Did) -> Row {
    let mut value = Vec::new();
    let kind = match did {
        Did::Delete => RecordKind::Delete,
        Did::Put => put_prefix(&mut value, Moment::NEVER, None),
        Did::Merge => put_prefix(&mut value, Moment::NEVER, Some(0)),
        Did::Expired => put_prefix(&mut value, Moment(1), None),
        Did::MergeUntil => put_prefix(&mut value, Moment(u64::MAX - 100 + seq), Some(0)),
    };
    if did != Did::Delete {
        value.push(b'0' + seq as u8);
    }
    Row { key: b"key".to_vec(), seq_kind: SeqKind::new(SeqNo(seq), kind), value }
}

fn control() -> JobControl {
    let control = World::control();
    control.fold_with(built_in("append").unwrap());
    control
}

/// The value that a reader at `seq` gets from rows, newest first, at a moment.
fn read(rows: &[Row], seq: SeqNo, now: Moment) -> Option<Vec<u8>> {
    let mut chain = Chain::new();
    for row in rows.iter().filter(|row| row.seq_kind.seq() <= seq) {
        if !chain.take(row.seq_kind, &row.value, now).unwrap() {
            break;
        }
    }
    let mut value = Vec::new();
    chain.fold(Some(&*built_in("append").unwrap()), b"key", &mut value).unwrap().then_some(value)
}

/// Merges rows of one or two places, newer first; returns the output. `below_seq_max`: a deeper level may
/// hold the key.
fn merge(places: &[Vec<Row>], snapshots: &[SeqNo], below_seq_max: Option<SeqNo>) -> Vec<Row> {
    merge_under(&control(), places, snapshots, below_seq_max)
}

fn merge_under(
    control: &JobControl,
    places: &[Vec<Row>],
    snapshots: &[SeqNo],
    below_seq_max: Option<SeqNo>,
) -> Vec<Row> {
    let world = World::new();
    let mut inputs = Vec::new();
    for (at, rows) in places.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
        let mut spec = plan_dump(&world.shape(), &world.limits, 1);
        // As it was written: nothing is dropped or folded.
        spec.snapshots = (0..20).map(SeqNo).collect();
        let written = world
            .compactor
            .dump_run(&spec, &mut RowCursor::new(rows.clone()), Vec::new(), &World::control())
            .unwrap();
        let extents: Vec<ExtentMeta> = written.added.iter().map(|meta| (**meta).clone()).collect();
        inputs.push(Input { place: Place::Level(at as u8 + 1), extents });
    }
    let below = if below_seq_max.is_some() { vec![KeyRange::all()] } else { Vec::new() };
    let spec = JobSpec {
        values: Vec::new(),
        mended: None,
        kind: JobKind::Level,
        request: None,
        table: TABLE,
        inputs,
        target: Place::Level(2),
        range: KeyRange::all(),
        below,
        below_seq_max: below_seq_max.unwrap_or_default(),
        grandparents: Vec::new(),
        grandparent_bytes_max: u64::MAX,
        snapshots: snapshots.to_vec(),
        output: OutputSettings::new(&world.limits, true, false),
        drops_deletes: false,
        rewrites: true,
        part_bytes: u64::MAX,
        extent_bytes_max: SLOT_BYTES as u64,
    };
    let result = world.compactor.run(&spec, control).unwrap();
    let extent = |meta: &Arc<ExtentMeta>| terrane_table::Extent::new((**meta).clone(), world.store.clone());
    result.added.iter().flat_map(|meta| rows_of(&extent(meta))).collect()
}

fn each_history(len: usize, mut check: impl FnMut(&[Did])) {
    for number in 0..ALL.len().pow(len as u32) {
        let did: Vec<Did> = (0..len).map(|at| ALL[number / ALL.len().pow(at as u32) % ALL.len()]).collect();
        check(&did);
    }
}

#[test]
fn readers_see_the_same_at_any_moment() {
    for len in 1..=3 {
        each_history(len, check_history);
    }
    let mut numbers = Rng::new(7);
    for _ in 0..150 {
        let len = 4 + numbers.below(3);
        let history: Vec<Did> = (0..len).map(|_| ALL[numbers.below(ALL.len() as u64) as usize]).collect();
        check_history(&history);
    }
}

fn check_history(history: &[Did]) {
    let rows: Vec<Row> = history.iter().enumerate().rev().map(|(at, did)| row(at as u64 + 1, *did)).collect();
    for snapshots in [&[][..], &[SeqNo(1)], &[SeqNo(2)], &[SeqNo(1), SeqNo(3)]] {
        // All in one place, or the newer half above.
        let half = rows.len() / 2;
        for places in [vec![rows.clone()], vec![rows[..half].to_vec(), rows[half..].to_vec()]] {
            for below in [None, Some(SeqNo(0)), Some(SeqNo(2))] {
                let left = merge(&places, snapshots, below);
                assert!(left.len() <= rows.len());
                let base = Row { seq_kind: SeqKind::new(SeqNo(0), RecordKind::Put), ..row(0, Did::Put) };
                let with_base = |rows: &[Row]| {
                    let mut all = rows.to_vec();
                    all.extend(below.map(|_| base.clone()));
                    all
                };
                for reader in snapshots.iter().copied().chain([SeqNo::MAX]) {
                    for now in [2, u64::MAX - 99, u64::MAX - 98, u64::MAX - 97, u64::MAX - 95].map(Moment) {
                        assert_eq!(
                            read(&with_base(&left), reader, now),
                            read(&with_base(&rows), reader, now),
                            "{history:?} under {snapshots:?}, below {below:?}, reader {reader} at {now:?}: {left:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn operands_of_a_stripe_become_one() {
    let rows: Vec<Row> = (1..=9).rev().map(|seq| row(seq, Did::Merge)).collect();
    let left = merge(std::slice::from_ref(&rows), &[], None);
    assert_eq!(left.len(), 1, "a value in the bottom");
    assert_eq!((left[0].seq_kind.kind(), &left[0].value[..]), (Some(RecordKind::Put), &b"123456789"[..]));
    let left = merge(std::slice::from_ref(&rows), &[], Some(SeqNo(0)));
    assert_eq!(left.len(), 1, "an operand above");
    assert_eq!(left[0].seq_kind.kind(), Some(RecordKind::Merge));
    let left = merge(std::slice::from_ref(&rows), &[SeqNo(4)], Some(SeqNo(0)));
    assert_eq!(left.len(), 2, "one for each stripe");
    let left = merge(&[rows], &[], Some(SeqNo(5)));
    assert_eq!(left.len(), 6, "what may lie deeper as well stays as it is");
}

#[test]
fn a_single_delete_stays_where_its_put_may_lie_deeper() {
    let single = Row { seq_kind: SeqKind::new(SeqNo(5), RecordKind::SingleDelete), ..Row::delete(b"key", 5) };
    let put = row(3, Did::Put);
    let places = [vec![single.clone()], vec![put.clone()]];
    assert_eq!(merge(&places, &[], None), [], "in the bottom");
    assert_eq!(merge(&places, &[], Some(SeqNo(2))), [], "both go, whatever lies deeper");
    assert_eq!(
        merge(&places, &[], Some(SeqNo(3))),
        std::slice::from_ref(&single),
        "the put may lie deeper a second time"
    );
    assert_eq!(
        merge(&places, &[SeqNo(3)], Some(SeqNo(0))),
        [single.clone(), put.clone()],
        "a snapshot sees the put"
    );
    assert_eq!(merge(&[vec![single.clone()], vec![]], &[], Some(SeqNo(0))), std::slice::from_ref(&single));
    let operand = row(4, Did::Merge);
    assert_eq!(
        merge(&[vec![single.clone()], vec![operand, put]], &[], Some(SeqNo(0))),
        [single],
        "no put: a delete"
    );
}

/// One that stayed in the bottom would have its extent merged again and again to be rid of it.
#[test]
fn a_delete_under_operands_that_are_not_folded_stays_only_where_something_is_below() {
    let unfolded = World::control();
    let left = |history: &[Did], snapshots: &[SeqNo], below| -> Vec<Did> {
        let rows = history.iter().enumerate().map(|(at, did)| row(at as u64 + 1, *did)).rev().collect();
        let left = merge_under(&unfolded, &[rows], snapshots, below);
        let did = |row: &Row| match row.seq_kind.kind() {
            Some(RecordKind::Delete) => Did::Delete,
            _ => history[row.seq_kind.seq().0 as usize - 1],
        };
        left.iter().map(did).collect()
    };
    for under in [Did::Expired, Did::Delete] {
        assert_eq!(left(&[under, Did::MergeUntil], &[], None), [Did::MergeUntil]);
        let deeper = Some(SeqNo(0));
        assert_eq!(left(&[under, Did::MergeUntil], &[], deeper), [Did::MergeUntil, Did::Delete]);
        let seen = [SeqNo(1)];
        let all = [Did::Merge, Did::Delete, Did::Put];
        assert_eq!(left(&[Did::Put, under, Did::Merge], &seen, None), all, "{under:?}");
    }
}
