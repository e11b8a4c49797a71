//! Chains of versions and the built-in operators against plain folds.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

use std::sync::Arc;

use proptest::prelude::*;
use terrane_base::chain::{Base, Chain};
use terrane_base::key_order::{KeyOrders, OperatorInOrder};
use terrane_base::merge_operator::{MergeOperator, built_in, counter};
use terrane_base::record::Record;
use terrane_base::stored::put_prefix;
use terrane_base::{Batch, Kind, Moment, RecordKind, SeqKind, SeqNo, Stored, TableId};

const NOW: Moment = Moment(1000);

fn entry(seq: u64, span: Option<u64>, value: &[u8]) -> (SeqKind, Vec<u8>) {
    let mut bytes = Vec::new();
    let kind = put_prefix(&mut bytes, Moment::NEVER, span);
    bytes.extend_from_slice(value);
    (SeqKind::new(SeqNo(seq), kind), bytes)
}

fn fold(chain: &Chain) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let append = built_in("append").unwrap();
    chain.fold(Some(&*append), b"k", &mut out).unwrap().then_some(out)
}

fn take_all(versions: &[(SeqKind, Vec<u8>)]) -> Chain {
    let mut chain = Chain::new();
    for (seq_kind, bytes) in versions {
        if !chain.take(*seq_kind, bytes, NOW).unwrap() {
            break;
        }
    }
    chain
}

#[test]
fn an_operand_in_two_places_counts_once() {
    let (one, two, three) = (entry(1, Some(0), b"1"), entry(2, Some(0), b"2"), entry(3, Some(0), b"3"));
    let base = entry(0, None, b"0");
    // In memory as written; deeper, folded with each other.
    let folded = entry(2, Some(1), b"12");
    let chain = take_all(&[three.clone(), two.clone(), one.clone(), folded.clone(), base.clone()]);
    assert_eq!(fold(&chain).unwrap(), b"0123");
    // Deeper, folded to a value.
    let value = entry(2, None, b"012");
    let chain = take_all(&[three.clone(), two.clone(), one.clone(), value]);
    assert_eq!(fold(&chain).unwrap(), b"0123");
    // As a scan meets them: in order of numbers, the older place first.
    let chain = take_all(&[three.clone(), folded, two.clone(), one.clone(), base.clone()]);
    assert_eq!(fold(&chain).unwrap(), b"0123");
    // The same, twice.
    let chain = take_all(&[three.clone(), two.clone(), three, two, one, base]);
    assert_eq!(fold(&chain).unwrap(), b"0123");
}

/// Sets joined operands in brackets.
#[derive(Debug)]
struct Brackets;

impl MergeOperator for Brackets {
    fn name(&self) -> &str {
        "brackets"
    }

    fn full(
        &self,
        _: &[u8],
        base: Option<&[u8]>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> terrane_base::Result<()> {
        out.extend_from_slice(base.unwrap_or(b"-"));
        operands.iter().for_each(|operand| out.extend_from_slice(operand));
        Ok(())
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> terrane_base::Result<bool> {
        if key == b"apart" {
            return Ok(false);
        }
        if key == b"broken" {
            out.extend_from_slice(b"half of it");
            return Err(terrane_base::Error::invalid("these do not go together"));
        }
        assert!(key != b"panics", "no key of mine");
        out.extend_from_slice(&[b"(", &*operands.concat(), b")"].concat());
        Ok(true)
    }

    fn joins_first(&self) -> bool {
        true
    }
}

#[test]
fn an_operator_may_want_operands_joined_before_they_meet_the_value() {
    let (one, two, base) = (entry(1, Some(0), b"1"), entry(2, Some(0), b"2"), entry(0, None, b"0"));
    let stored = |versions: &[_], key: &[u8]| {
        let chain = take_all(versions);
        let mut out = b"in front ".to_vec();
        assert!(chain.fold_to_store(&Brackets, key, chain.operands(), &mut out).unwrap());
        String::from_utf8(out).unwrap()
    };
    assert_eq!(stored(&[two.clone(), one.clone(), base.clone()], b"k"), "in front 0(12)");
    assert_eq!(stored(&[two.clone(), one.clone(), base.clone()], b"apart"), "in front 012");
    for key in [&b"broken"[..], b"panics"] {
        assert_eq!(
            stored(&[two.clone(), one.clone(), base.clone()], key),
            "in front 012",
            "a value needs no joined operand"
        );
    }
    assert_eq!(stored(&[two.clone(), base], b"k"), "in front 02");
    let order = KeyOrders::new().find("reverse").unwrap();
    let ordered = OperatorInOrder::new(Arc::new(Brackets), order);
    assert!(ordered.joins_first(), "an order of keys changes nothing about it");
}

#[test]
fn operands_that_overlap_are_damage() {
    let mut chain = Chain::new();
    let (newer, older) = (entry(5, Some(3), b"2..5"), entry(3, None, b"up to 3"));
    assert!(chain.take(newer.0, &newer.1, NOW).unwrap());
    assert_eq!(chain.take(older.0, &older.1, NOW).unwrap_err().kind(), Kind::Corrupt);
}

#[test]
fn a_range_delete_hides_older_versions_and_none_of_its_own_number() {
    let (two, three, four) = (entry(2, Some(0), b"2"), entry(3, Some(0), b"3"), entry(4, Some(0), b"4"));
    let folded = entry(5, Some(2), b"345");
    let ends = [
        (vec![four.clone(), three.clone()], 3, Some(&b"34"[..])),
        (vec![folded.clone()], 3, Some(b"345")),
        (vec![four, three, two.clone()], 4, Some(b"4")),
        (vec![two.clone()], 3, None),
        (vec![entry(0, Some(0), b"0")], 0, Some(b"0")),
        (Vec::new(), 0, None),
    ];
    for (versions, seq, value) in ends {
        let mut chain = take_all(&versions);
        chain.end_by_range_delete(SeqNo(seq)).unwrap();
        assert_eq!(fold(&chain).as_deref(), value, "{versions:?} at {seq}");
        assert_eq!(chain.base(), &Base::Delete { seq: SeqNo(seq) });
    }
    let mut chain = take_all(&[folded]);
    assert_eq!(chain.end_by_range_delete(SeqNo(4)).unwrap_err().kind(), Kind::Corrupt);
}

#[test]
fn an_expired_value_ends_a_chain() {
    let mut bytes = Vec::new();
    let kind = put_prefix(&mut bytes, Moment(1000), Some(0));
    assert_eq!(kind, RecordKind::MergeUntil);
    bytes.push(b'x');
    let seq_kind = SeqKind::new(SeqNo(9), kind);
    let mut chain = Chain::new();
    assert!(!chain.take(seq_kind, &bytes, Moment(1000)).unwrap());
    assert_eq!((chain.base(), fold(&chain)), (&Base::Delete { seq: SeqNo(9) }, None));
    chain.clear();
    assert!(chain.take(seq_kind, &bytes, Moment(999)).unwrap());
    assert_eq!(fold(&chain).unwrap(), b"x");
}

#[test]
fn without_an_operator_values_can_be_read_and_operands_not() {
    let chain = take_all(&[entry(1, None, b"v")]);
    let mut out = Vec::new();
    assert!(chain.fold(None, b"k", &mut out).unwrap());
    assert_eq!(out, b"v");
    let error = take_all(&[entry(1, Some(0), b"v")]).fold(None, b"k", &mut out).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
}

/// The examples of `docs/format/segment.md`.
#[test]
fn the_examples_of_the_page() {
    let mut batch = Batch::new();
    batch.merge(TableId(5), b"n", b"+", Moment::NEVER).unwrap();
    assert_eq!(batch.bytes(), [0x03, 0x05, 0x01, 0x02, 0x6e, 0x00, 0x2b]);
    batch.clear();
    batch.put_until(TableId(0), b"k", b"v", Moment(1_000_000_000_000)).unwrap();
    assert_eq!(batch.bytes(), [0x09, 0x00, 0x01, 0x07, 0x6b, 0x80, 0xa0, 0x94, 0xa5, 0x8d, 0x1d, 0x76]);
    let record = batch.records().next().unwrap();
    assert_eq!((record.kind, record.key), (RecordKind::PutUntil, &b"k"[..]));
    // A value without the number that its kind has in front is damage.
    let cut = [0x09, 0x00, 0x01, 0x01, 0x6b, 0x80];
    assert_eq!(Record::decode(&cut).unwrap_err().kind(), Kind::Corrupt);
}

fn apply(operator: &dyn MergeOperator, base: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    operator.full(b"k", base, operands, &mut out).unwrap();
    out
}

/// `partial` in front of `full` changes nothing.
fn check_partial(operator: &dyn MergeOperator, base: Option<&[u8]>, operands: &[&[u8]], cut: (usize, usize)) {
    let (from, to) = (cut.0 % operands.len(), cut.1 % operands.len() + 1);
    let whole = apply(operator, base, operands);
    let mut folded = Vec::new();
    if from + 2 > to || !operator.partial(b"k", &operands[from..to], &mut folded).unwrap() {
        return;
    }
    let parts = [&operands[..from], &[&folded[..]][..], &operands[to..]].concat();
    assert_eq!(apply(operator, base, &parts), whole, "{} {from}..{to}", operator.name());
}

proptest! {
    #[test]
    fn hostile_prefixes_never_panic(kind in 0u8..16, seq in 0u64..100, bytes: Vec<u8>) {
        if let Some(kind) = RecordKind::from_u8(kind) {
            let seq_kind = SeqKind::new(SeqNo(seq), kind);
            if let Ok(stored) = Stored::of_entry(seq_kind, &bytes) {
                prop_assert!(bytes.ends_with(stored.value));
            }
            let _ = Chain::new().take(seq_kind, &bytes, NOW);
        }
    }

    #[test]
    fn prefixes_are_decoded(expires in prop_oneof![Just(u64::MAX), any::<u64>()], span in prop::option::of(0u64..1 << 56), value: Vec<u8>) {
        let mut bytes = Vec::new();
        let kind = put_prefix(&mut bytes, Moment(expires), span);
        bytes.extend_from_slice(&value);
        let stored = Stored::decode(kind, &bytes).unwrap();
        prop_assert_eq!(stored, Stored { expires_at: Moment(expires), span: span.unwrap_or(0), value: &value });
        for cut in 0..bytes.len() - value.len() {
            prop_assert!(Stored::decode(kind, &bytes[..cut]).is_err());
        }
    }

    #[test]
    fn parts_fold_to_the_same(
        base in prop::option::of(any::<i64>()),
        numbers in prop::collection::vec(any::<i64>(), 1..8),
        cut: (usize, usize),
    ) {
        let base = base.map(counter::encode);
        let base = base.as_ref().map(|bytes| &bytes[..]);
        let encoded: Vec<[u8; 8]> = numbers.iter().map(|number| counter::encode(*number)).collect();
        let operands: Vec<&[u8]> = encoded.iter().map(|bytes| &bytes[..]).collect();
        for name in ["counter", "append", "append:, ", "max", "min"] {
            check_partial(&*built_in(name).unwrap(), base, &operands, cut);
        }
        let sum = numbers.iter().chain(base.map(|base| counter::decode(base).unwrap()).iter()).fold(0i64, |sum, number| sum.wrapping_add(*number));
        prop_assert_eq!(apply(&*built_in("counter").unwrap(), base, &operands), counter::encode(sum));
    }
}
