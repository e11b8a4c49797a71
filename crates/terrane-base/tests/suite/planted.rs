//! A normal build contains no planted bug.

use terrane_base::planted::ALL;
#[cfg(not(feature = "planted"))]
use terrane_base::planted::{Bug, is_planted};

/// A constant: what stands behind it is not even compiled into the program. `cargo xtask test` builds with
/// planted bugs, so that this one is for the lints without the explorer, which evaluate it.
#[cfg(not(feature = "planted"))]
const _: () = assert!(!terrane_base::planted!(SkipJournalSync) && !is_planted(Bug::ImpurePicker));

#[test]
#[cfg(not(feature = "planted"))]
fn a_normal_build_has_no_planted_bug() {
    assert!(ALL.iter().all(|(bug, _)| !is_planted(*bug)));
}

#[test]
fn names_are_used_once_and_rows_are_whole() {
    for (at, (bug, row)) in ALL.iter().enumerate() {
        assert_eq!(row[0], format!("{bug:?}"));
        assert!(row.iter().all(|field| !field.is_empty()), "{row:?}");
        assert_eq!(row[3].split(' ').count(), 3, "package, test target, test: {row:?}");
        assert!(ALL[..at].iter().all(|(_, earlier)| earlier[0] != row[0]), "{row:?}");
    }
}
