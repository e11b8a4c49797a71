//! Assertions of each crate: how many there are for a thousand functions with state, and how many of those
//! functions have one at least, so that several in one function do not stand for others.
//! `xtask/assertions.txt` says both; both only rise. The second is a number, not a share: a new function
//! without an assertion leaves it as it is.
//!
//! A function has state if it takes `self` or a `&mut`, except:
//!
//! * what has three lines at most: an accessor, with nothing to check;
//! * what changes nothing that it was given and is one expression, however long, of which it may name parts
//!   (a body of `let` without `mut`, from which no `?` or `return` leads out): it picks, hands on a call or
//!   gives a value another shape, and has nothing to state but of the functions that it calls;
//! * what writes text into a `Formatter`.
//!
//! Every `assert!`, `debug_assert!` and `verify!` of product code counts, those that the compiler checks
//! (`const _`) as well.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::{Finding, is_product, list_entries};
use crate::source::{Function, Source};
use crate::tree::{Tree, line_of};

const RATCHET: &str = "xtask/assertions.txt";
const HEAD: &str = "\
# Assertions of each crate: `CRATE FUNCTIONS ASSERTIONS PERMILLE ASSERTED`, where FUNCTIONS counts those with state
# and ASSERTED those of them that have an assertion. The last two numbers may only rise: `cargo xtask tidy --write`
# renews a line when one does. What counts is said in `xtask/src/tidy/assertions.rs`.
";
/// Crates that are tests themselves: their assertions are about other crates.
const TESTING: [&str; 2] = ["terrane-fuzz", "terrane-sim"];
const MACROS: [&str; 7] =
    ["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne", "verify"];
/// Lines of the longest accessor.
const ACCESSOR_LINES: usize = 3;

/// The counts of one crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    functions: usize,
    assertions: usize,
    /// Functions with state that have an assertion.
    asserted: usize,
}

/// The ratchet's entry of one crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Least {
    permille: usize,
    asserted: usize,
}

impl Count {
    fn permille(self) -> usize {
        (self.assertions * 1000).checked_div(self.functions).unwrap_or(0)
    }
}

/// Checks the counts of each crate against the ratchet.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let (least, mut findings) = ratchet(tree);
    let counts = counts(tree);
    for (name, least) in &least {
        let count = counts.get(name.as_str()).copied().unwrap_or_default();
        let density = count.permille();
        if density < least.permille {
            let why = format!(
                "{name} has {} assertions in {} functions with state, {density} for a thousand; it had {}: \
                 state what the new functions rely on or leave behind",
                count.assertions, count.functions, least.permille
            );
            findings.push(Finding::new(RATCHET, 0, why));
        }
        if count.asserted < least.asserted {
            let why = format!(
                "{name} has {} functions with state that assert something; it had {}: state what a function relies \
                 on or leaves behind in place of an assertion that went",
                count.asserted, least.asserted
            );
            findings.push(Finding::new(RATCHET, 0, why));
        }
    }
    findings
}

/// The counts in the product code of each crate.
fn counts(tree: &Tree) -> BTreeMap<&str, Count> {
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for (path, text) in tree.rust_files().filter(|(path, _)| is_product(path)) {
        let Some(name) = path.split('/').nth(1).filter(|name| !TESTING.contains(name)) else { continue };
        let source = Source::new(text).without_tests();
        let count = counts.entry(name).or_default();
        let lines = assertion_lines(&source);
        let functions = functions_with_state(&source);
        count.assertions += lines.len();
        count.functions += functions.len();
        let has_one = |lines_of: &Range<usize>| lines.iter().any(|line| lines_of.contains(line));
        count.asserted += functions.iter().filter(|lines_of| has_one(lines_of)).count();
    }
    counts
}

/// The line of each assertion.
fn assertion_lines(source: &Source) -> Vec<usize> {
    let is_call = |at: usize, name: &str| source.code[at + name.len()..].starts_with('!');
    let places = |name: &'static str| source.find_word(name).filter(move |at| is_call(*at, name));
    MACROS.iter().flat_map(|name| places(name)).map(|at| line_of(&source.code, at)).collect()
}

/// The lines of each function with state.
fn functions_with_state(source: &Source) -> Vec<Range<usize>> {
    let functions = source.functions().into_iter();
    let is_counted = |function: &Function| function.lines > ACCESSOR_LINES && has_state(source, function);
    functions.filter(is_counted).map(|function| function.line..function.line + function.lines).collect()
}

/// True if the parameters of a function hold `self` or a `&mut`, and it does more than to read or write text.
fn has_state(source: &Source, function: &Function) -> bool {
    let lines = source.code.split_inclusive('\n').skip(function.line - 1).take(function.lines);
    let text: String = lines.collect();
    let (head, body) = text.split_at(text.find('{').unwrap_or(text.len()));
    let Some(open) = head.find("fn ").and_then(|at| Some(at + head[at..].find('(')?)) else { return false };
    let parameters = head[open..].split("->").next().unwrap_or_default();
    let mut words = parameters.split(|c: char| !c.is_alphanumeric() && c != '_');
    let changes = parameters.contains("&mut ") || is_changed_self(parameters);
    let is_read = !changes && is_one_expression(body);
    let writes_text = words.clone().any(|word| word == "Formatter");
    (changes || words.any(|word| word == "self")) && !is_read && !writes_text
}

/// True if a body is one expression, behind names of its parts.
fn is_one_expression(body: &str) -> bool {
    let (names, value) = body.rsplit_once(';').unwrap_or(("", body));
    let names: Vec<&str> = names.trim_start_matches('{').split(';').map(str::trim).collect();
    let leads_out = |name: &str| {
        let mut words = name.split(|c: char| !c.is_alphanumeric() && c != '_');
        name.contains('?') || words.any(|word| word == "mut" || word == "return")
    };
    let is_name = |name: &&str| name.is_empty() || name.starts_with("let ") && !leads_out(name);
    names.iter().all(is_name) && value.chars().any(|c| !c.is_whitespace() && c != '}')
}

/// True for `mut self`, and for `&'a mut self`.
fn is_changed_self(parameters: &str) -> bool {
    let first = parameters.split(',').next().unwrap_or_default();
    first.trim_matches(['(', ')', ' ', '\n']).ends_with("mut self")
}

/// The ratchet: crate to its least counts, and findings about entries that do not parse.
fn ratchet(tree: &Tree) -> (BTreeMap<String, Least>, Vec<Finding>) {
    let (mut least, mut findings) = (BTreeMap::new(), Vec::new());
    for (line, entry) in list_entries(tree, RATCHET) {
        let mut words = entry.split_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        match words.map(|word| word.parse().ok()).collect::<Option<Vec<usize>>>().as_deref() {
            Some(&[_, _, permille, asserted]) => drop(least.insert(name, Least { permille, asserted })),
            _ => {
                let why = "expected `CRATE FUNCTIONS ASSERTIONS PERMILLE ASSERTED`";
                findings.push(Finding::new(RATCHET, line, why));
            }
        }
    }
    (least, findings)
}

/// The ratchet with the lines of all crates whose counts have risen, if there are any.
#[must_use]
pub fn renewed(tree: &Tree) -> Option<(&'static str, String)> {
    let (least, _) = ratchet(tree);
    let old =
        |name: &str| list_entries(tree, RATCHET).find(|(_, entry)| entry.split(' ').next() == Some(name));
    let mut text = HEAD.to_owned();
    for (name, count) in counts(tree) {
        let least = least.get(name).copied().unwrap_or_default();
        if count.permille() > least.permille || count.asserted > least.asserted {
            // What has fallen stays a finding.
            let (permille, asserted) =
                (count.permille().max(least.permille), count.asserted.max(least.asserted));
            let Count { functions, assertions, .. } = count;
            let _ = writeln!(text, "{name} {functions} {assertions} {permille} {asserted}");
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
        assert!(text.ends_with("\nlow 2 1 500 1\n"), "two functions with state, one assertion: {text}");
        tree.insert(ratchet, &text);
        assert!(messages(&tree).is_empty());
        assert_eq!(renewed(&tree), None);

        tree.insert(path, &CODE.replace("assert!(self.0 < 9);", ""));
        let found = messages(&tree);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[1].contains("low has 0 functions with state that assert something; it had 1"),
            "{found:?}"
        );
        assert!(
            found[0].contains("low has 0 assertions in 2 functions with state, 0 for a thousand; it had 500")
        );
        assert_eq!(renewed(&tree), None, "never lowered");

        let more = "debug_assert_ne!(to.len(), 0);\n        verify!(to.is_empty());";
        tree.insert(path, &CODE.replace("to.fill(1);", more));
        let (_, text) = renewed(&tree).expect("the density has risen");
        assert!(text.ends_with("\nlow 2 3 1500 2\n"), "{text}");
    }

    #[test]
    fn functions_that_only_read_or_write_text_have_no_state() {
        let count = |code: &str| {
            let tree = Tree::of([("crates/low/src/state.rs", code)]);
            counts(&tree).values().map(|count| count.functions).sum::<usize>()
        };
        let pick = "fn pick(&self) -> u8 {
    match self {
        A => 1,
        B => 2,
    }
}
";
        assert_eq!(count(pick), 0, "one expression");
        assert_eq!(
            count(&pick.replace("match self", "let a = self.b();\n    match a")),
            0,
            "it names a part"
        );
        for step in
            ["let mut a = 1;", "let a = self.b()?;", "let Some(a) = self.b() else { return 0 };", "b();"]
        {
            assert_eq!(count(&pick.replace("match self", &format!("{step}\n    match self"))), 1, "{step}");
        }
        assert_eq!(count("fn put(&self) {\n    let a = 1;\n    let _ = a;\n}\n"), 1, "it has no value");
        assert_eq!(count(&pick.replace("&self", "&mut self")), 1, "it may change itself");
        assert_eq!(count(&pick.replace("&self", "&'a mut self")), 1);
        assert_eq!(count(&pick.replace("&self", "mut self")), 1);
        assert_eq!(
            count(&pick.replace("&self", "&self, to: &mut [u8]")),
            1,
            "it may change what it is given"
        );

        let text = "fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(\"a\")?;
    f.write_str(\"b\")
}
";
        assert_eq!(count(text), 0, "text");
        assert_eq!(count(&text.replace("fmt::Formatter<'_>", "String")), 1);
    }

    #[test]
    fn an_assertion_that_moves_to_another_function_is_missed() {
        let path = "crates/low/src/state.rs";
        let both = CODE.replace("to.fill(1);", "assert!(to.is_empty());");
        let mut tree = Tree::of([(path, both.as_str())]);
        let (ratchet, text) = renewed(&tree).expect("a crate comes in");
        assert!(text.ends_with("\nlow 2 2 1000 2\n"), "{text}");
        tree.insert(ratchet, &text);
        let moved =
            CODE.replace("assert!(self.0 < 9);", "assert!(self.0 < 9);\n        assert!(self.0 > 1);");
        tree.insert(path, &moved);
        let found = messages(&tree);
        assert_eq!(found.len(), 1, "the density is as it was: {found:?}");
        assert!(found[0].contains("low has 1 functions with state that assert something; it had 2"));
    }

    #[test]
    fn a_line_that_does_not_parse_is_named() {
        let found = messages(&Tree::of([(RATCHET, "# Head\nlow 2 1 500\n")]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0]
                .contains("xtask/assertions.txt:2: expected `CRATE FUNCTIONS ASSERTIONS PERMILLE ASSERTED`")
        );
    }
}
