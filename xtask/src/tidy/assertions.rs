//! Assertions of each crate: how many there are for a thousand functions with state. `xtask/assertions.txt`
//! says how dense they are; the density only rises.
//!
//! A function has state if it takes `self` or a `&mut` and is longer than three lines: what is shorter is an
//! accessor, with nothing to check. Every `assert!`, `debug_assert!` and `verify!` of product code counts,
//! those that the compiler checks (`const _`) as well.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Finding, is_product, list_entries};
use crate::source::Source;
use crate::tree::Tree;

const RATCHET: &str = "xtask/assertions.txt";
const HEAD: &str = "\
# Assertions of each crate: `CRATE FUNCTIONS ASSERTIONS PERMILLE`, where FUNCTIONS counts those with state. The
# last number may only rise: `cargo xtask tidy --write` renews a line when it does. What counts is said in
# `xtask/src/tidy/assertions.rs`.
";
/// Crates that are tests themselves: their assertions are about other crates.
const TESTING: [&str; 2] = ["terrane-fuzz", "terrane-sim"];
const MACROS: [&str; 7] =
    ["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne", "verify"];
/// Lines of the longest accessor.
const ACCESSOR_LINES: usize = 3;

/// What is counted of one crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    functions: usize,
    assertions: usize,
}

impl Count {
    fn permille(self) -> usize {
        (self.assertions * 1000).checked_div(self.functions).unwrap_or(0)
    }
}

/// Checks the density of each crate against the ratchet.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let (least, mut findings) = ratchet(tree);
    let counts = counts(tree);
    for (name, least) in &least {
        let count = counts.get(name.as_str()).copied().unwrap_or_default();
        let density = count.permille();
        if density < *least {
            let why = format!(
                "{name} has {} assertions in {} functions with state, {density} for a thousand; it had {least}: \
                 state what the new functions rely on or leave behind",
                count.assertions, count.functions
            );
            findings.push(Finding::new(RATCHET, 0, why));
        }
    }
    findings
}

/// What is counted in the product code of each crate.
fn counts(tree: &Tree) -> BTreeMap<&str, Count> {
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for (path, text) in tree.rust_files().filter(|(path, _)| is_product(path)) {
        let Some(name) = path.split('/').nth(1).filter(|name| !TESTING.contains(name)) else { continue };
        let source = Source::new(text).without_tests();
        let count = counts.entry(name).or_default();
        count.assertions += assertions(&source);
        count.functions += functions_with_state(&source);
    }
    counts
}

fn assertions(source: &Source) -> usize {
    let is_call = |at: usize, name: &str| source.code[at + name.len()..].starts_with('!');
    MACROS.iter().map(|name| source.find_word(name).filter(|at| is_call(*at, name)).count()).sum()
}

fn functions_with_state(source: &Source) -> usize {
    let long = |lines: usize| lines > ACCESSOR_LINES;
    source
        .functions()
        .iter()
        .filter(|function| long(function.lines) && has_state(source, function.line))
        .count()
}

/// True if the parameters of the function in `line` hold `self` or a `&mut`.
fn has_state(source: &Source, line: usize) -> bool {
    let start: usize = source.code.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let head = &source.code[start..];
    let head = &head[..head.find('{').unwrap_or(head.len())];
    let Some(open) = head.find("fn ").and_then(|at| Some(at + head[at..].find('(')?)) else { return false };
    let parameters = head[open..].split("->").next().unwrap_or_default();
    let mut words = parameters.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| word == "self") || parameters.contains("&mut ")
}

/// The ratchet: crate to its least density, and findings about entries that do not parse.
fn ratchet(tree: &Tree) -> (BTreeMap<String, usize>, Vec<Finding>) {
    let (mut least, mut findings) = (BTreeMap::new(), Vec::new());
    for (line, entry) in list_entries(tree, RATCHET) {
        let mut words = entry.split_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        match words.map(|word| word.parse().ok()).collect::<Option<Vec<usize>>>().as_deref() {
            Some(&[_, _, permille]) => drop(least.insert(name, permille)),
            _ => findings.push(Finding::new(RATCHET, line, "expected `CRATE FUNCTIONS ASSERTIONS PERMILLE`")),
        }
    }
    (least, findings)
}

/// The ratchet with the lines of all crates whose density has risen, if there are any.
#[must_use]
pub fn renewed(tree: &Tree) -> Option<(&'static str, String)> {
    let (least, _) = ratchet(tree);
    let old =
        |name: &str| list_entries(tree, RATCHET).find(|(_, entry)| entry.split(' ').next() == Some(name));
    let mut text = HEAD.to_owned();
    for (name, count) in counts(tree) {
        let density = count.permille();
        if density > least.get(name).copied().unwrap_or(0) {
            let _ = writeln!(text, "{name} {} {} {density}", count.functions, count.assertions);
        } else if let Some((_, line)) = old(name) {
            let _ = writeln!(text, "{line}");
        }
    }
    (text != HEAD && tree.get(RATCHET) != Some(&text)).then_some((RATCHET, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "//! Low.
impl A {
    fn get(&self) -> u8 {
        self.0
    }
    fn add(&mut self) {
        assert!(self.0 < 9);
        // assert!(false)
        self.0 += 1;
    }
    fn fill(
        to: &mut [u8],
    ) {
        to.fill(1);
    }
    fn pure(a: u8) -> u8 {
        let b = a;
        b
    }
}
#[cfg(test)]
mod tests {
    fn test(&self) {
        assert_eq!(1, 1);
        assert!(true);
    }
}
";

    fn messages(tree: &Tree) -> Vec<String> {
        check(tree).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn the_density_only_rises() {
        let path = "crates/low/src/state.rs";
        let mut tree = Tree::of([(path, CODE)]);
        tree.insert("crates/low/src/conformance.rs", "fn all() {\n    assert!(true);\n}\n");
        let (ratchet, text) = renewed(&tree).expect("a crate comes in");
        assert!(text.ends_with("\nlow 2 1 500\n"), "two functions with state, one assertion: {text}");
        tree.insert(ratchet, &text);
        assert!(messages(&tree).is_empty());
        assert_eq!(renewed(&tree), None);

        tree.insert(path, &CODE.replace("assert!(self.0 < 9);", ""));
        let found = messages(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("low has 0 assertions in 2 functions with state, 0 for a thousand; it had 500")
        );
        assert_eq!(renewed(&tree), None, "never lowered");

        let more = "debug_assert_ne!(to.len(), 0);\n        verify!(to.is_empty());";
        tree.insert(path, &CODE.replace("to.fill(1);", more));
        let (_, text) = renewed(&tree).expect("the density has risen");
        assert!(text.ends_with("\nlow 2 3 1500\n"), "{text}");
    }

    #[test]
    fn a_line_that_does_not_parse_is_named() {
        let found = messages(&Tree::of([(RATCHET, "# Head\nlow 2 1\n")]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("xtask/assertions.txt:2: expected `CRATE FUNCTIONS ASSERTIONS PERMILLE`"));
    }
}
