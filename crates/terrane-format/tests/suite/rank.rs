//! The contract of the search kernels: each of them returns the same count as a plain loop.
//!
//! 1. The count of numbers at most the target, in a root and in a leaf, for sorted numbers.
//! 2. Never more than the count of numbers, also for unsorted numbers.
//! 3. Every kernel that the processor has is tried; the others are refused by name.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use proptest::prelude::*;
use terrane_base::Kind;
use terrane_base::options::SearchKernel;
use terrane_format::rank::{self, LEAF, LEAF_HEAD_BYTES, ROOT};

fn leaf_bytes(heads: &[u64]) -> [u8; LEAF_HEAD_BYTES] {
    let bytes: Vec<u8> = heads.iter().flat_map(|head| head.to_le_bytes()).collect();
    bytes.try_into().unwrap()
}

fn check(root: [u64; ROOT], target: u64) {
    let expected = root.iter().filter(|head| **head <= target).count();
    let leaf = leaf_bytes(&root[..LEAF]);
    let expected_in_leaf = root[..LEAF].iter().filter(|head| **head <= target).count();
    let is_sorted = root.is_sorted();
    for kernel in rank::available() {
        let found = rank::root_with(kernel, &root, target);
        let found_in_leaf = rank::leaf_with(kernel, &leaf, target);
        assert!(found <= ROOT && found_in_leaf <= LEAF, "{kernel:?}");
        if is_sorted {
            assert_eq!(found, expected, "{kernel:?}: {target:x} in {root:x?}");
            assert_eq!(found_in_leaf, expected_in_leaf, "{kernel:?}: {target:x} in {:x?}", &root[..LEAF]);
        }
    }
}

/// Numbers that differ in the sign bit, in one half only, or not at all.
fn head() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0u64..4,
        (0u64..4).prop_map(|low| u64::MAX - low),
        (0u64..4, 0u64..4).prop_map(|(high, low)| high << 32 | low),
        (0u64..4).prop_map(|low| (1 << 63) - 2 + low),
        (0u64..4).prop_map(|low| (1 << 31) - 2 + low),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(4000)))]

    #[test]
    fn kernels_agree_with_a_loop(mut root in prop::array::uniform16(head()), other in head(), sorted in 0..8) {
        if sorted > 0 {
            root.sort_unstable();
        }
        for target in root.into_iter().chain([other]) {
            for target in [target, target.wrapping_sub(1), target.wrapping_add(1)] {
                check(root, target);
            }
        }
    }
}

#[test]
fn ties_and_ends() {
    for number in [0, 1, 1 << 31, 1 << 32, 1 << 63, u64::MAX] {
        for target in [0, 1, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX] {
            check([number; ROOT], target);
        }
    }
}

#[test]
fn a_kernel_that_is_missing_is_refused_by_name() {
    let mut tried = 0;
    for kernel in SearchKernel::ALL {
        match rank::choose(kernel) {
            Ok(chosen) => {
                assert!(rank::is_available(kernel));
                assert!(kernel == SearchKernel::Auto || chosen == kernel);
                tried += 1;
            }
            Err(error) => {
                assert!(!rank::is_available(kernel));
                assert_eq!(error.kind(), Kind::Invalid);
                assert!(error.to_string().contains("search_kernel="), "{error}");
            }
        }
    }
    assert!(tried >= 2, "automatic choice and the kernel without vectors are everywhere");
    rank::choose(SearchKernel::Auto).unwrap();
}
