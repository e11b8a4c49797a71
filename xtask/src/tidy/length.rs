//! Lengths: files up to 400 lines, functions up to 70. A longer one stands in `xtask/ratchet.txt` with its
//! length and may only shrink; a file over 1000 lines is refused.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Finding, list_entries};
use crate::source::Source;
use crate::tree::Tree;

/// Lines of a file that need no entry.
pub const FILE_LINES: usize = 400;
/// Lines of a file that no entry excuses.
pub const FILE_LINES_MAX: usize = 1000;
/// Lines of a function that need no entry.
pub const FUNCTION_LINES: usize = 70;
const RATCHET: &str = "xtask/ratchet.txt";
const HEAD: &str = "\
# What is longer than STYLE.md allows: `file PATH LINES` (over 400) and `function PATH NAME LINES` (over 70).
# An entry may only shrink; `cargo xtask tidy --write` lowers and removes entries, never adds one.
";

/// Checks every Rust file against the limits and the ratchet.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let long = too_long(tree);
    let (allowed, mut findings) = ratchet(tree);
    for (key, &(lines, line)) in &long {
        let path = key.split(' ').nth(1).unwrap_or_default();
        let what = if key.starts_with("file") { "file" } else { "function" };
        let finding = match allowed.get(key) {
            _ if what == "file" && lines > FILE_LINES_MAX => {
                format!("file of {lines} lines: {FILE_LINES_MAX} is the most; split it by purpose")
            }
            Some(&most) if lines > most => {
                format!(
                    "`{key}` has grown from {most} to {lines} lines: the ratchet goes down only; split it"
                )
            }
            Some(&most) if lines < most => {
                format!("`{key}` has shrunk from {most} to {lines} lines: run `cargo xtask tidy --write`")
            }
            Some(_) => continue,
            None => {
                let limit = if what == "file" { FILE_LINES } else { FUNCTION_LINES };
                format!("{what} of {lines} lines: the limit is {limit}; split it (`{key} {lines}`)")
            }
        };
        findings.push(Finding::new(path, line, finding));
    }
    for key in allowed.keys().filter(|key| !long.contains_key(*key)) {
        let why = format!("`{key}` is no longer needed: run `cargo xtask tidy --write`");
        findings.push(Finding::new(RATCHET, 0, why));
    }
    findings
}

/// Everything over its limit: key as in the ratchet, to its lines and the line where it stands.
fn too_long(tree: &Tree) -> BTreeMap<String, (usize, usize)> {
    let mut long = BTreeMap::new();
    for (path, text) in tree.rust_files() {
        let lines = text.lines().count();
        if lines > FILE_LINES {
            long.insert(format!("file {path}"), (lines, 0));
        }
        for function in Source::new(text).functions() {
            if function.lines > FUNCTION_LINES {
                let entry = long.entry(format!("function {path} {}", function.name)).or_insert((0, 0));
                *entry = (*entry).max((function.lines, function.line));
            }
        }
    }
    long
}

/// The ratchet: key to the lines allowed, and findings about entries that do not parse.
fn ratchet(tree: &Tree) -> (BTreeMap<String, usize>, Vec<Finding>) {
    let mut allowed = BTreeMap::new();
    let mut findings = Vec::new();
    for (line, entry) in list_entries(tree, RATCHET) {
        match entry.rsplit_once(' ').and_then(|(key, lines)| Some((key, lines.parse().ok()?))) {
            Some((key, lines)) => drop(allowed.insert(key.to_owned(), lines)),
            None => {
                findings.push(Finding::new(RATCHET, line, "expected `file PATH LINES` or `function ...`"))
            }
        }
    }
    (allowed, findings)
}

/// The ratchet with every entry lowered to the present length, if that changes it.
#[must_use]
pub fn renewed(tree: &Tree) -> Option<(&'static str, String)> {
    let long = too_long(tree);
    let (allowed, _) = ratchet(tree);
    let mut text = HEAD.to_owned();
    for (key, most) in allowed {
        if let Some(&(lines, _)) = long.get(&key) {
            let _ = writeln!(text, "{key} {}", lines.min(most));
        }
    }
    (tree.get(RATCHET) != Some(&text)).then_some((RATCHET, text))
}
