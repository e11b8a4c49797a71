//! Width of comments: at most 110 columns, as the code. rustfmt wraps code and leaves comments alone, so this
//! check counts the wider comment lines of each package. `xtask/width.txt` says how many a package may have;
//! the counts only fall.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Finding, list_entries};
use crate::tree::Tree;

/// Columns of a comment line, its indentation included; `max_width` of `rustfmt.toml`.
pub const COLUMNS: usize = 110;
const RATCHET: &str = "xtask/width.txt";
const HEAD: &str = "\
# Comment lines wider than 110 columns that each package may have: `PACKAGE COUNT`. A count may only fall;
# `cargo xtask tidy --write` lowers and removes entries, never adds one.
";

/// Checks the count of each package against the ratchet.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let (allowed, mut findings) = ratchet(tree);
    for (package, lines) in wide_lines(tree) {
        let most = allowed.get(package).copied().unwrap_or(0);
        if let (true, Some((path, line))) = (lines.len() > most, lines.last()) {
            let count = lines.len();
            let why = format!(
                "{package} has {count} comment lines wider than {COLUMNS} columns, {most} are allowed: wrap them"
            );
            findings.push(Finding::new(path, *line, why));
        }
    }
    findings
}

/// The wide comment lines of each package: file and line.
fn wide_lines(tree: &Tree) -> BTreeMap<&str, Vec<(&str, usize)>> {
    let mut wide: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for (path, text) in tree.rust_files() {
        for (index, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("//") && line.chars().count() > COLUMNS {
                wide.entry(package_of(path)).or_default().push((path, index + 1));
            }
        }
    }
    wide
}

/// The package of a file: the folder below `crates`, else the first folder.
fn package_of(path: &str) -> &str {
    let inside = path.strip_prefix("crates/").unwrap_or(path);
    inside.split('/').next().unwrap_or(inside)
}

/// The ratchet: package to the count allowed, and findings about entries that do not parse.
fn ratchet(tree: &Tree) -> (BTreeMap<String, usize>, Vec<Finding>) {
    let (mut allowed, mut findings) = (BTreeMap::new(), Vec::new());
    for (line, entry) in list_entries(tree, RATCHET) {
        match entry.split_once(' ').and_then(|(package, count)| Some((package, count.parse().ok()?))) {
            Some((package, count)) => drop(allowed.insert(package.to_owned(), count)),
            None => findings.push(Finding::new(RATCHET, line, "expected `PACKAGE COUNT`")),
        }
    }
    (allowed, findings)
}

/// The ratchet with every count lowered to the present one, if that changes it.
#[must_use]
pub fn renewed(tree: &Tree) -> Option<(&'static str, String)> {
    let wide = wide_lines(tree);
    let (allowed, _) = ratchet(tree);
    let mut text = HEAD.to_owned();
    for (package, most) in allowed {
        let count = wide.get(package.as_str()).map_or(0, Vec::len).min(most);
        if count > 0 {
            let _ = writeln!(text, "{package} {count}");
        }
    }
    (tree.get(RATCHET) != Some(&text)).then_some((RATCHET, text))
}
