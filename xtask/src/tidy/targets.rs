//! A library whose manifest says `test = false` is compiled once, for others: tests in its modules would
//! never run, and nothing would say so.

use super::Finding;
use crate::manifest::packages;
use crate::source::Source;
use crate::tree::{Tree, line_of};

/// Marks of tests, beside conditions that name `test`.
const MARKS: [&str; 2] = ["#[test]", "proptest!"];
/// Beginnings of conditions.
const CONDITIONS: [&str; 2] = ["cfg(", "cfg!("];

/// Checks the modules of every library that has no test program of its own; names the first test of each.
/// Manifests that cannot be read are for [`super::layers`].
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let packages = packages(tree).unwrap_or_default();
    let mut findings = Vec::new();
    for package in packages.values().filter(|package| !package.tests_library) {
        let folder = format!("{}/src/", package.directory());
        // A program has tests of its own.
        let (programs, main) = (format!("{folder}bin/"), format!("{folder}main.rs"));
        let is_of_library =
            |path: &str| path.starts_with(&folder) && !path.starts_with(&programs) && path != main;
        for (path, text) in tree.rust_files().filter(|(path, _)| is_of_library(path)) {
            let source = Source::new(text);
            let Some(at) = first_test(&source.code) else { continue };
            let why = format!(
                "a test in a library that is not built for tests would never run: move it to `{0}/tests/suite`, or \
                 take `test = false` out of `[lib]` in {1}",
                package.directory(),
                package.path
            );
            findings.push(Finding::new(path, line_of(text, at), why));
        }
    }
    findings
}

/// Where the first test begins, or the first condition that holds in tests.
fn first_test(code: &str) -> Option<usize> {
    let conditions = CONDITIONS.iter().flat_map(|begin| code.match_indices(begin).map(|(at, _)| at));
    let of_tests = conditions.filter(|at| names_test(condition(&code[*at..])));
    MARKS.iter().filter_map(|mark| code.find(mark)).chain(of_tests).min()
}

/// A condition, to the parenthesis that ends it.
fn condition(code: &str) -> &str {
    let mut depth = 0_usize;
    let end = code.find(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => return false,
        }
        depth == 0
    });
    &code[..end.unwrap_or(code.len())]
}

/// Returns true if a condition has the word `test` other than as `not(test)`.
fn names_test(condition: &str) -> bool {
    let condition = condition.replace("not(test)", "");
    condition.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == "test")
}
