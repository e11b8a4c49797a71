//! The layout of batches: written batches are read back, and bytes that no writer made are refused.

use super::*;

fn example() -> Layout {
    let mut layout = Layout::new();
    layout.push(0, Change::Put(b"k", b"v"));
    layout.push(300, Change::Merge(b"k", &[7; 200]));
    layout.push(1, Change::RangeDelete(b"a", b"b"));
    layout.push(0, Change::LogData(b"log"));
    layout.push(2, Change::SingleDelete(b"s"));
    layout
}

#[test]
fn records_are_as_rocksdb_lays_them_out() {
    let mut layout = Layout::new();
    layout.push(0, Change::Put(b"k", b"v"));
    layout.push(300, Change::Delete(b"d"));
    let mut bytes = vec![0; 8];
    bytes.extend([2, 0, 0, 0, 1, 1, b'k', 1, b'v', 4, 0xac, 2, 1, b'd']);
    assert_eq!(layout.bytes(), bytes);
}

#[test]
fn pushed_records_are_read() {
    let layout = example();
    let records: Vec<_> = layout.records().map(|record| record.expect("is whole")).collect();
    assert_eq!(records.len(), 5);
    assert_eq!(records[1], (300, Change::Merge(b"k", &[7; 200])));
    assert_eq!(records[3], (0, Change::LogData(b"log")));
    assert_eq!(layout.count(), 4);
    layout.check().expect("the count is right");
}

#[test]
fn bytes_of_a_caller_are_not_trusted() {
    let whole = example();
    for len in HEADER_BYTES..whole.bytes().len() {
        assert!(Layout::of(&whole.bytes()[..len]).check().is_err(), "cut at {len}");
    }
    for at in HEADER_BYTES..whole.bytes().len() {
        for bit in 0..8 {
            let mut bytes = whole.bytes().to_vec();
            bytes[at] ^= 1 << bit;
            let _ = Layout::of(&bytes).records().count();
        }
    }
    let unknown = Layout::of(&[vec![0; HEADER_BYTES], vec![99]].concat());
    let failure = unknown.check().expect_err("there is no such tag");
    assert_eq!(failure.text(), "Corruption: unknown WriteBatch tag (99)");
    assert_eq!(Layout::of(b"short").records().count(), 0);
}
