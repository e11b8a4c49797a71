//! How far the collection of dead values is behind: which values above the ceiling are a debt.

use std::sync::Arc;

use terrane_base::options::Options;
use terrane_base::{TableId, ValueTableId};
use terrane_compaction::{Limits, TableShape, ValuesView, value_debt_permille};
use terrane_format::extent::ExtentMeta;
use terrane_levels::{Metasnapshot, Totals};

const MIB: u64 = 1 << 20;
/// Fewer value tables are not collected.
const COLLECTED_MIB_MIN: u64 = 8;

/// Value tables of which sums alone are known: so many MiB, and the share of them that is live.
struct Sums {
    mib: u64,
    live_mib: u64,
}

impl ValuesView for Sums {
    fn values(&self, _number: ValueTableId) -> Option<(&ExtentMeta, u64)> {
        None
    }

    fn each(&self, _see: &mut dyn FnMut(&ExtentMeta, u64)) {}

    fn sums(&self) -> (Totals, u64) {
        let entries = self.mib * 1000;
        (Totals { bytes: self.mib * MIB, entries, ..Totals::default() }, self.live_mib * 1000)
    }

    fn live_bytes(&self) -> u64 {
        self.live_mib * MIB
    }
}

fn debt(live_mib: u64, mib: u64, change: impl FnOnce(&mut Limits)) -> u64 {
    let tree = Metasnapshot::<Arc<ExtentMeta>>::default();
    let shape = TableShape::of(TableId::DEFAULT, &tree, &[]);
    let values = Sums { mib, live_mib };
    let mut limits = Limits::from_options(&Options::default());
    limits.value_space_permille = 1250;
    change(&mut limits);
    value_debt_permille(&TableShape { values: &values, ..shape }, &limits)
}

#[test]
fn values_above_the_ceiling_are_a_debt_by_half_of_the_allowed_excess() {
    let of = |mib| debt(1000, mib, |_| {});
    assert_eq!((of(1000), of(1200), of(1250)), (0, 0, 0), "below the ceiling, and at it");
    // The ceiling leaves 250 MiB, so the most is 125 above it.
    assert_eq!((of(1275), of(1300), of(1375), of(1500)), (200, 400, 1000, 2000));
    assert_eq!((of(1750), of(10_000)), (4000, 4000), "writers go on however far the ceiling is");
}

#[test]
fn little_tables_may_have_what_two_jobs_move() {
    let of = |live_mib, mib| debt(live_mib, mib, |_| {});
    assert_eq!((of(16, 20), of(16, 44), of(16, 68)), (0, 500, 1000), "a ceiling of 20 MiB");
    assert_eq!(of(0, 48), 1000, "all of them are dead, and two jobs move as much");
    let below = COLLECTED_MIB_MIN - 1;
    assert_eq!((of(0, below), of(0, below + 1)), (0, 166), "a few are not collected");
}

#[test]
fn dead_bytes_that_no_job_collects_are_not_debt() {
    let of = |change: fn(&mut Limits)| debt(100, 1000, change);
    assert_eq!(of(|_| {}), 4000);
    assert_eq!(of(|limits| limits.automatic = false), 0);
    assert_eq!(of(|limits| limits.value_collect_jobs = false), 0);
    assert_eq!(of(|limits| limits.value_space_permille = 0), 0, "there is no ceiling");
}
