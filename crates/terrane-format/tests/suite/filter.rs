//! The promise of a filter: it has no false negatives, and few false positives.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use terrane_format::filter::{self, Filter};

fn hashes(keys: std::ops::Range<u64>) -> Vec<u64> {
    keys.map(|key| filter::hash(&key.to_le_bytes())).collect()
}

fn made(hashes: &[u64], bits_per_key: u32) -> Filter {
    let mut bytes = Vec::new();
    filter::build(hashes, bits_per_key, &mut bytes);
    assert_eq!(bytes.len(), filter::encoded_len(hashes.len(), bits_per_key));
    Filter::decode(&bytes).unwrap()
}

#[test]
fn no_key_is_denied() {
    for count in [1, 2, 50, 1000, 30_000] {
        for bits_per_key in [1, 5, 10, 20, 30, 1000] {
            let keys = hashes(0..count);
            let filter = made(&keys, bits_per_key);
            assert!(keys.iter().all(|hash| filter.may_contain(*hash)), "{count} keys, {bits_per_key} bits");
            assert_eq!(u64::from(filter.keys()), count);
        }
    }
}

/// Bounds are a quarter above what was measured.
#[test]
fn false_positives_stay_within_bounds() {
    let strangers = hashes(1 << 40..(1 << 40) + 200_000);
    for (bits_per_key, per_cent_max) in [(5, 12.0), (8, 3.2), (10, 1.25), (16, 0.2), (20, 0.08)] {
        let filter = made(&hashes(0..30_000), bits_per_key);
        let let_in = strangers.iter().filter(|hash| filter.may_contain(**hash)).count();
        let per_cent = let_in as f64 * 100.0 / strangers.len() as f64;
        assert!(per_cent <= per_cent_max, "{bits_per_key} bits per key: {per_cent} % false positives");
    }
}

#[test]
fn no_bits_or_no_keys_make_no_filter() {
    let mut bytes = Vec::new();
    filter::build(&hashes(0..10), 0, &mut bytes);
    filter::build(&[], 10, &mut bytes);
    assert!(bytes.is_empty());
    assert_eq!(filter::encoded_len(10, 0), 0);
}
