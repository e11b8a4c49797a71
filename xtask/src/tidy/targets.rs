//! A library whose manifest says `test = false` is compiled once, for others: tests in its modules would
//! never run, and nothing would say so.

use super::Finding;
use crate::manifest::packages;
use crate::source::Source;
use crate::tree::{Tree, line_of};

/// Marks of tests.
const MARKS: [&str; 6] = ["#[test]", "proptest!", "cfg(test", "cfg(all(test", "cfg(any(test", "cfg!(test"];

/// Checks the modules of every library that has no test program of its own; names the first test of each.
/// Manifests that cannot be read are for [`super::layers`].
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let packages = packages(tree).unwrap_or_default();
    let mut findings = Vec::new();
    for package in packages.values().filter(|package| !package.tests_library) {
        let folder = format!("{}/src/", package.directory());
        for (path, text) in tree.rust_files().filter(|(path, _)| path.starts_with(&folder)) {
            let source = Source::new(text);
            let Some(at) = MARKS.iter().filter_map(|mark| source.code.find(mark)).min() else { continue };
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
