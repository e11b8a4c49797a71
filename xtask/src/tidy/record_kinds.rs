//! The kinds of a record in `docs/format/segment.md`: the page lists exactly the numbers that the code reads.

use std::collections::BTreeSet;

use super::Finding;
use crate::tree::Tree;

const PAGE: &str = "docs/format/segment.md";
const SOURCE: &str = "crates/terrane-base/src/sequence.rs";

/// Checks the table of kinds.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let (Some(page), Some(source)) = (tree.get(PAGE), tree.get(SOURCE)) else { return Vec::new() };
    let (listed, read) = (listed(page), read(source));
    let differs = |numbers: BTreeSet<u8>, why: &str| {
        (!numbers.is_empty()).then(|| Finding::new(PAGE, 0, format!("{why}: {numbers:?}, see {SOURCE}")))
    };
    let lacks = differs(&read - &listed, "does not list kinds of records that the code reads");
    let invents = differs(&listed - &read, "lists kinds of records that the code does not read");
    lacks.into_iter().chain(invents).collect()
}

/// Numbers of the table `| kind | number | value |`.
fn listed(page: &str) -> BTreeSet<u8> {
    let rows = page.lines().skip_while(|line| !line.starts_with("| kind | number |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.split('|').nth(2)?.trim().parse().ok()).collect()
}

/// Numbers that `RecordKind::from_u8` knows: `NUMBER => Some(RecordKind::..`.
fn read(source: &str) -> BTreeSet<u8> {
    let arms = source.lines().filter_map(|line| line.trim().split_once(" => Some(RecordKind::"));
    arms.filter_map(|(number, _)| number.parse().ok()).collect()
}
