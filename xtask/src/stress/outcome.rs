//! How a run ended, and which tests its output names.

use std::collections::BTreeSet;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every test passed.
    Passed,
    /// With this status.
    Failed(String),
    /// At its limit: something hangs, or is far too slow.
    Hung,
    /// By the end of the whole command, before it had an outcome.
    Ended,
}

/// The tests that the output of a test program names as failed.
#[must_use]
pub fn failed_tests(output: &str) -> Vec<String> {
    // The list at the end: lines with results may have words of other threads within.
    let list = output.rsplit_once("\nfailures:\n").map_or("", |(_, list)| list);
    let names = list.lines().map_while(|line| line.strip_prefix("    "));
    let names: BTreeSet<&str> = names.filter(|name| !name.is_empty() && !name.contains(' ')).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Those of all tests that the output gives no result of: where a program was ended or died, one of them is to blame.
#[must_use]
pub fn unfinished_tests(output: &str, all: &[String]) -> Vec<String> {
    let results: Vec<&str> = output.lines().filter(|line| line.starts_with("test ")).collect();
    let has_result = |test: &String| {
        let head = format!("test {test} ");
        let is_result = |line: &&&str| [" ok", " FAILED", " ignored"].iter().any(|end| line.contains(end));
        results.iter().filter(is_result).any(|line| line.starts_with(&head))
    };
    all.iter().filter(|test| !has_result(test)).cloned().collect()
}

/// The names in what a test program says to `--list`.
#[must_use]
pub fn listed_tests(output: &str) -> Vec<String> {
    output.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}
