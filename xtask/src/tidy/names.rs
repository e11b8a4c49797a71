//! Names in pages that users read: options, metrics, functions and tests that a page names in back quotes
//! must be in the code.
//!
//! A name is lower-case words joined by underscores; one that ends in two dots stands for every name that
//! begins so. An option of a list with a prefix is named with it: `experiments.NAME`, `diagnostics.NAME`.
//! Design pages and logs are not checked: they name what was tried and removed.

use std::collections::BTreeSet;

use super::Finding;
use crate::tree::Tree;

const PAGES: [&str; 13] = [
    "README.md",
    "docs/comparison.md",
    "docs/compatibility.md",
    "docs/degradation.md",
    "docs/findings.md",
    "docs/misuse.md",
    "docs/operations.md",
    "docs/pains.md",
    "docs/promises.md",
    "docs/recipes.md",
    "docs/reliability.md",
    "docs/start.md",
    "docs/tuning.md",
];
const OPTIONS: &str = "crates/terrane-base/src/options.rs";
/// The lists whose names have a prefix: the prefix, what a row is, the file.
const PREFIXED: [(&str, &str, &str); 2] = [
    ("diagnostics.", "a diagnostic option", "crates/terrane-base/src/options/diagnostics.rs"),
    ("experiments.", "an experiment", "crates/terrane-base/src/options/experiments.rs"),
];
const TUNING: &str = "docs/tuning.md";

/// Checks the names of each page, and the defaults of options.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let pages: Vec<(&str, &str)> = PAGES.iter().filter_map(|page| Some((*page, tree.get(page)?))).collect();
    if pages.is_empty() {
        return Vec::new();
    }
    let (code, prefixed, mut findings) = (identifiers(tree), prefixed(tree), Vec::new());
    for (page, text) in pages {
        for (index, line) in text.lines().enumerate() {
            for span in line.split('`').skip(1).step_by(2) {
                findings.extend(wrong(span, &code, &prefixed).map(|why| Finding::new(page, index + 1, why)));
            }
        }
    }
    findings.extend(defaults(tree));
    findings
}

/// The fault of the text in back quotes, if it is a name.
fn wrong(span: &str, code: &BTreeSet<&str>, prefixed: &[BTreeSet<&str>; 2]) -> Option<String> {
    for ((prefix, row, _), names) in PREFIXED.iter().zip(prefixed) {
        match span.strip_prefix(prefix) {
            Some(name) if is_name(name) && !names.contains(name) => {
                return Some(format!("`{span}` is not {row}: it was renamed or removed"));
            }
            None if names.contains(span) => {
                return Some(format!("`{span}` is {row}: call it `{prefix}{span}`"));
            }
            _ => {}
        }
    }
    (is_name(span) && !is_known(code, span))
        .then(|| format!("`{span}` is not an option, metric, function or test: it was renamed or removed"))
}

/// Names of the rows of the lists of [`PREFIXED`].
fn prefixed(tree: &Tree) -> [BTreeSet<&str>; 2] {
    PREFIXED.map(|(_, _, list)| {
        let rows = tree.get(list).unwrap_or_default().lines();
        let names = rows.filter_map(|row| Some(row.strip_prefix("    ")?.split_once(": ")?.0));
        names.filter(|name| is_name(name)).collect()
    })
}

/// Every word of the Rust files and of their paths, which name test targets.
fn identifiers(tree: &Tree) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let texts = tree.rust_files().flat_map(|(path, text)| [path, text]);
    texts.flat_map(|text| text.split(move |c: char| !is_part(c))).collect()
}

fn is_name(span: &str) -> bool {
    let stem = span.trim_end_matches("..");
    let plain = stem.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    plain && stem.contains('_') && stem.starts_with(|c: char| c.is_ascii_lowercase())
}

fn is_known(code: &BTreeSet<&str>, name: &str) -> bool {
    match name.strip_suffix("..") {
        Some(stem) => code.range(stem..).next().is_some_and(|word| word.starts_with(stem)),
        None => code.contains(name),
    }
}

/// The second cell of each row of the tuning page about one option is its default. A default of 0 is derived
/// or off, which a page says in words.
fn defaults(tree: &Tree) -> Vec<Finding> {
    let (Some(page), Some(options)) = (tree.get(TUNING), tree.get(OPTIONS)) else { return Vec::new() };
    let mut findings = Vec::new();
    for (index, line) in page.lines().enumerate() {
        let cells: Vec<&str> = line.split(" | ").collect();
        let option = cells[0].strip_prefix("| `").and_then(|cell| cell.strip_suffix('`'));
        let Some((name, said)) = option.zip(cells.get(1)) else { continue };
        let start = format!("    {name}: ");
        let row = options.lines().find_map(|row| row.strip_prefix(&start)?.split_once(" = "));
        let said = said.trim_matches('`');
        match row.map(|(_, rest)| shown(rest.split_once(", \"").map_or(rest, |(default, _)| default))) {
            None => findings.push(Finding::new(TUNING, index + 1, format!("there is no option `{name}`"))),
            Some(default) if default != "0" && default != said => {
                let why = format!("says that the default of `{name}` is {said}: it is {default}");
                findings.push(Finding::new(TUNING, index + 1, why));
            }
            Some(_) => {}
        }
    }
    findings
}

/// A default as the options show it: `512 * MIB` is 512 MiB, `BlockMemory::Arena` is arena.
fn shown(default: &str) -> String {
    let text = default.trim().trim_end_matches(',');
    match text.split_once(" * ") {
        Some((number, unit)) => format!("{number} {}iB", &unit[..1]),
        None => text.rsplit("::").next().unwrap_or(text).trim_end_matches("()").to_lowercase(),
    }
}
