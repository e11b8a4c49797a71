//! A manifest that does not fit leaves the store of a follower as it was.

use std::collections::BTreeMap;

use terrane_base::{ExtentId, Kind};

use super::{DataName, State};

fn listed(files: &[(u32, u64)]) -> BTreeMap<DataName, u64> {
    files.iter().map(|(file, epoch)| (DataName { number: *file, part: 0, epoch: *epoch }, 4096)).collect()
}

fn extent(file: u32, slot: u32, slots: u32) -> (ExtentId, u32) {
    (ExtentId { file, slot }, slots)
}

#[test]
fn extents_that_do_not_fit_change_nothing() {
    let none = BTreeMap::new();
    let mut state = State::new(3, 0, &none);
    state.follow(&listed(&[(7, 2)]), &[extent(7, 0, 2)], &[]).expect("fits");
    let before = state.live_slots;
    for (bad, why) in [
        // File 5 comes before the one that does not fit.
        (listed(&[(5, 2), (7, 3)]), "had those of 2 before"),
        (listed(&[(5, 2)]), "there is no object of it"),
    ] {
        let added = [extent(5, 0, 1), extent(7, 2, 1)];
        let error = state.follow(&bad, &added, &[]).expect_err("it does not fit");
        assert_eq!(error.kind(), Kind::Corrupt);
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!((state.live_slots, state.groups.len()), (before, 1));
    }
    let again = [extent(5, 0, 1), extent(7, 0, 3)];
    let error = state.follow(&listed(&[(5, 2), (7, 2)]), &again, &[]).expect_err("it does not fit");
    assert!(error.to_string().contains("has other slots than before"), "{error}");
    assert_eq!((state.live_slots, state.groups.len()), (before, 1));
    // The bucket healed.
    let added = [extent(5, 0, 1), extent(7, 2, 1)];
    state.follow(&listed(&[(5, 2), (7, 2)]), &added, &[]).expect("fits");
    assert_eq!((state.live_slots, state.groups.len()), (before + 2, 2));
}
