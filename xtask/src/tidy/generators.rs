//! One generator of pseudo-random numbers serves tests, benchmarks and tools: `terrane_base::Rng`. Another
//! one is known by its constants, by the first shift of an xorshift, or by a state that is multiplied and
//! rotated.

use super::Finding;
use crate::source::Source;
use crate::tree::{Tree, line_of};

/// Constants of SplitMix64, of Knuth's linear congruential generator, of xorshift64* and of wyrand, in
/// lower case and without separators.
const CONSTANTS: [&str; 9] = [
    "bf58476d1ce4e5b9",
    "94d049bb133111eb",
    "5851f42d4c957f2d",
    "6364136223846793005",
    "2545f4914f6cdd1d",
    "2685821657736338717",
    "a0761d6478bd642f",
    "e7037ed1a0b428db",
    "1442695040888963407",
];

/// Files that have one, and why.
const NAMED: [(&str, &str); 4] = [
    ("crates/terrane-base/src/rng.rs", "the one generator"),
    ("crates/terrane-base/src/sampling.rs", "the engine samples its own calls: three shifts for each"),
    ("crates/terrane-base/src/sync/points.rs", "delays of threads that no test starts"),
    (
        "crates/terrane-bench/src/generate/random.rs",
        "drawn while it is measured: one multiplication a number",
    ),
];

/// Checks that no other file has a generator, and that each named file has one.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust_files() {
        let is_named = NAMED.iter().any(|(named, _)| *named == path);
        match (first_generator(text), is_named) {
            (Some(line), false) => {
                let why = "a generator of pseudo-random numbers: use `terrane_base::Rng`";
                findings.push(Finding::new(path, line, why));
            }
            (None, true) => {
                let why = "has no generator: remove it from `xtask/src/tidy/generators.rs`";
                findings.push(Finding::new(path, 0, why));
            }
            _ => {}
        }
    }
    findings
}

/// The line of the first generator in a file; comments and texts do not count.
fn first_generator(text: &str) -> Option<usize> {
    let source = Source::new(text);
    let is_one = |line: &str| {
        let plain = line.replace('_', "").to_ascii_lowercase();
        CONSTANTS.iter().any(|constant| plain.contains(constant))
            || plain.contains("^=") && plain.contains("<< 13")
            || plain.contains(".wrappingmul(0x9e3779b97f4a7c15).rotateleft(")
    };
    let mut start = 0;
    for line in source.code.split_inclusive('\n') {
        if is_one(line) {
            return Some(line_of(text, start));
        }
        start += line.len();
    }
    None
}
