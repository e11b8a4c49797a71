//! Keys and values: unique, in order, in range, checkable, and as compressible as asked.
#![allow(clippy::disallowed_methods, clippy::type_complexity, reason = "a test, on files of its own")]

use std::collections::BTreeSet;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use terrane_bench::generate::keys::Keys;
use terrane_bench::generate::random::Random;
use terrane_bench::generate::values::Values;
use terrane_bench::plan::Data;

fn key(keys: &Keys, number: u64) -> Vec<u8> {
    let mut key = vec![b'?'; keys.bytes()];
    keys.write(number, &mut key);
    key
}

fn missing(keys: &Keys, number: u64) -> Vec<u8> {
    let mut key = vec![b'?'; keys.bytes()];
    keys.write_missing(number, &mut key);
    key
}

/// Every form of keys, over few and many tables.
fn every_form(count: u64) -> Vec<Data> {
    let mut forms = Vec::new();
    for key_bytes in [8, 12, 15, 16, 17, 20, 24, 64] {
        for hashed_keys in [false, true] {
            for tables in [1, 3, 16] {
                forms.push(Data { key_bytes, hashed_keys, tables, ..crate::common::data::data(count) });
            }
        }
    }
    // So many keys that eight digits do not hold them.
    forms.push(Data { key_bytes: 8, ..crate::common::data::data(1 << 40) });
    forms
}

#[test]
fn decimal_keys_are_the_decimal_number() {
    let mut random = Random::new(1);
    for key_bytes in [8, 11, 16, 18, 20, 40] {
        let keys = Keys::new(&Data { key_bytes, ..crate::common::data::data(1000) });
        let most = 10u64.checked_pow(key_bytes as u32).map_or(u64::MAX, |most| most - 1);
        let edges = [0, 9, 10, 99, 100, 9_999, 10_000, 99_999_999, 100_000_000, u64::MAX, most];
        let drawn = (0..20_000).map(|_| random.next_u64() >> random.below(64));
        for number in edges.into_iter().chain(drawn).filter(|number| *number <= most) {
            assert_eq!(key(&keys, number), format!("{number:0key_bytes$}").into_bytes());
        }
    }
}

#[test]
fn hashed_keys_are_sixteen_hexadecimal_digits() {
    let keys = Keys::new(&Data { key_bytes: 20, hashed_keys: true, ..crate::common::data::data(1000) });
    for number in 0..10_000 {
        let key = String::from_utf8(key(&keys, number)).expect("a sound case");
        let place = u64::from_str_radix(&key, 16).expect("a sound case");
        assert_eq!(key, format!("{place:020x}"));
        assert_eq!(place % 2, 0, "even: {key}");
    }
}

#[test]
fn keys_are_unique_and_in_order_unless_hashed() {
    const COUNT: u64 = 12_000;
    for data in every_form(COUNT) {
        let keys = Keys::new(&data);
        let mut written: Vec<Vec<u8>> = (0..COUNT).map(|number| key(&keys, number)).collect();
        assert_eq!(written.is_sorted(), !data.hashed_keys, "{data:?}");
        written.sort_unstable();
        assert!(written.is_sorted_by(|left, right| left < right), "a key twice: {data:?}");
    }
}

#[test]
fn hashed_keys_spread_evenly() {
    const COUNT: u64 = 64_000;
    let keys = Keys::new(&Data { hashed_keys: true, ..crate::common::data::data(COUNT) });
    let mut parts = [0u64; 16];
    for number in 0..COUNT {
        let first = key(&keys, number)[0];
        parts[char::from(first).to_digit(16).expect("a sound case") as usize] += 1;
    }
    let expected = COUNT / 16;
    assert!(parts.iter().all(|part| part.abs_diff(expected) < expected / 10), "{parts:?}");
}

#[test]
fn missing_keys_never_exist_and_lie_inside_their_table() {
    const COUNT: u64 = 1_500;
    for data in every_form(COUNT) {
        let keys = Keys::new(&data);
        // Ten times the loaded keys, since inserts go on above them.
        let mut existing: Vec<Vec<u8>> = (0..10 * COUNT).map(|number| key(&keys, number)).collect();
        existing.sort_unstable();
        for table in 0..data.tables {
            let mine = (0..COUNT).filter(|number| keys.table_of(*number) == table);
            let written: BTreeSet<Vec<u8>> = mine.clone().map(|number| key(&keys, number)).collect();
            let (first, last) =
                (written.first().expect("a sound case"), written.last().expect("a sound case"));
            for number in mine {
                let missing = missing(&keys, number);
                assert!(
                    existing.binary_search(&missing).is_err(),
                    "{missing:?} of {number} exists, {data:?}"
                );
                assert!(first < &missing && &missing < last, "{missing:?} of {number} outside, {data:?}");
            }
        }
    }
}

#[test]
fn missing_keys_are_as_many_as_keys() {
    let keys = Keys::new(&crate::common::data::data(10_000));
    let distinct: BTreeSet<Vec<u8>> = (0..10_000).map(|number| missing(&keys, number)).collect();
    assert_eq!(distinct.len(), 10_000);
}

#[test]
fn tables_get_equal_shares() {
    let keys = Keys::new(&Data { tables: 7, ..crate::common::data::data(700) });
    let mut counts = [0; 7];
    (0..700).for_each(|number| counts[keys.table_of(number) as usize] += 1);
    assert_eq!(counts, [100; 7]);
}

#[test]
fn a_value_is_that_of_its_key_in_any_version() {
    for entropy in [0.0, 0.3, 0.5, 1.0] {
        let mut writer = Values::new(9, 5000, entropy);
        let reader = Values::new(9, 6000, entropy);
        for len in [0, 1, 7, 8, 11, 12, 13, 40, 100, 1000, 5000] {
            for version in [0, 1, 77, u64::from(u32::MAX)] {
                for number in [0, 1, 12_345, u64::MAX] {
                    let value = writer.write(number, version, len).to_vec();
                    assert_eq!(value.len(), len);
                    assert!(reader.check(number, &value), "{number} {version} {len} {entropy}");
                    assert!(len == 0 || !reader.check(number ^ 1, &value), "{number} {version} {len}");
                }
            }
        }
    }
}

#[test]
fn every_damaged_byte_of_a_value_is_seen() {
    for entropy in [0.2, 0.5, 1.0] {
        let mut values = Values::new(9, 300, entropy);
        let good = values.write(4711, 3, 300).to_vec();
        for at in 0..good.len() {
            // A damaged version is another version: its noise differs, if it has noise.
            for bit in [0, 7] {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                assert!(!values.check(4711, &bad), "byte {at} bit {bit}");
            }
        }
        assert!(!values.check(4711, &good[..299]), "cut");
    }
}

#[test]
fn versions_differ() {
    let mut values = Values::new(9, 100, 0.5);
    let versions: BTreeSet<Vec<u8>> = (0..1000).map(|v| values.write(1, v, 100).to_vec()).collect();
    assert_eq!(versions.len(), 1000);
}

/// The share that a compressor leaves of blocks of 16 KB of values.
fn left(entropy: f64, len: usize, compress: impl Fn(&[u8]) -> usize) -> f64 {
    let mut values = Values::new(5, len, entropy);
    let mut bytes = Vec::new();
    for number in 0.. {
        bytes.extend_from_slice(values.write(number, 1, len));
        if bytes.len() >= 1 << 18 {
            break;
        }
    }
    let compressed: usize = bytes.chunks(16 << 10).map(compress).sum();
    compressed as f64 / bytes.len() as f64
}

#[test]
fn compression_leaves_the_entropy_asked_for() {
    for entropy in [0.25, 0.5, 0.75, 1.0] {
        for len in [100, 128, 400, 1000, 8000] {
            let lz4 = left(entropy, len, |block| lz4_flex::block::compress(block).len());
            let zstd = left(entropy, len, |block| compress_to_vec(block, CompressionLevel::Fastest).len());
            for (codec, left) in [("lz4", lz4), ("zstd", zstd)] {
                // LZ4 notes a run with four bytes or more and finds it late after noise, Zstandard with two:
                // a few bytes either way, which are some hundredths of 100 B.
                assert!((left - entropy).abs() < 0.05, "{codec} leaves {left:.3} of {len} B for {entropy}");
            }
        }
    }
}

#[test]
fn the_end_of_a_range_lies_behind_its_start_by_about_so_many_keys() {
    for (hashed_keys, tables) in [(false, 1), (false, 3), (true, 1), (true, 3)] {
        let keys = Keys::new(&Data { hashed_keys, tables, ..crate::common::data::data(9_000) });
        let mut within = 0;
        for number in (0..8_000).step_by(400) {
            let mut end = vec![b'?'; keys.bytes()];
            keys.write_end(number, 100, 9_000, &mut end);
            let start = key(&keys, number);
            assert!(start < end);
            let others = (0..9_000).filter(|other| keys.table_of(*other) == keys.table_of(number));
            within += others.filter(|other| (&start..&end).contains(&&key(&keys, *other))).count();
        }
        assert!((1_500..2_500).contains(&within), "{within} keys in 20 ranges of 100");
    }
}
