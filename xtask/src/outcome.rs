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

/// Those of all tests that the output gives no result of: where a program was ended or died, one of them is
/// the cause.
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

/// How many tests a program ran, as its output says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that are left out unless they are asked for.
    pub ignored: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

/// Counts from the lines `test result: ok. 3 passed; 0 failed; 1 ignored`, of which doc tests print several,
/// and from the line `3 passed, 0 failed, 1 not run` of a program with a main of its own. A benchmark that
/// runs once and a planted bug count as one each.
#[must_use]
pub fn counts(output: &str) -> Counts {
    let mut sum = Counts::default();
    for line in output.lines() {
        let line = line.strip_prefix("test result: ").unwrap_or(line);
        let words: Vec<&str> = line.split([' ', ';', ',', '.']).filter(|word| !word.is_empty()).collect();
        let before = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            words.get(at.checked_sub(1)?)?.parse::<u64>().ok()
        };
        if let (Some(passed), Some(failed)) = (before("passed"), before("failed")) {
            sum += Counts { passed, failed, ignored: before("ignored").unwrap_or(0) };
        } else if line == "Success" {
            sum.passed += 1;
        } else if line.ends_with(" planted bugs caught") {
            sum.passed += words.get(1).and_then(|number| number.parse().ok()).unwrap_or(0);
        }
    }
    sum
}

/// The lines in which tests say that they did not run, and why: `not run: there is no cc`.
#[must_use]
pub fn not_run(output: &str) -> Vec<String> {
    let mut test = "";
    let mut found = Vec::new();
    for line in output.lines() {
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            test = name;
        } else if let Some(why) = ["not run: ", "NOT RUN: "].iter().find_map(|mark| line.strip_prefix(mark)) {
            found.push(format!("{test}: {why}"));
        } else if let Some((name, why)) = line.split_once(" ... NOT RUN: ") {
            found.push(format!("{}: {why}", name.trim_start_matches("test ")));
        }
    }
    found
}

/// The output without what passing tests printed.
#[must_use]
pub fn without_successes(output: &str) -> String {
    let Some((head, rest)) = output.split_once("\nsuccesses:\n") else { return output.to_owned() };
    let end = ["\nfailures:\n", "\ntest result: "].iter().filter_map(|mark| rest.find(mark)).min();
    format!("{head}{}", end.map_or("", |end| &rest[end..]))
}
