//! Histories of callers, by the text that people read.

use std::collections::BTreeSet;

use terrane_sim::threads::campaign::show;

/// The kinds of the operations of its callers.
fn kinds(history: &str) -> impl Iterator<Item = String> {
    let operations = history.lines().filter_map(|line| line.strip_prefix("caller ")?.split_once(": "));
    operations.filter_map(|(_, operation)| operation.split([' ', '{']).next()).map(str::to_owned)
}

#[test]
fn a_seed_is_a_history_and_all_kinds_come_up() {
    assert_eq!(show(5), show(5));
    let histories: Vec<String> = (0..400).map(show).collect();
    let kinds: BTreeSet<String> = histories.iter().flat_map(|history| kinds(history)).collect();
    assert_eq!(kinds.len(), 39, "{kinds:?}");
}
