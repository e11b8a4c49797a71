//! `docs/glossary.md`: each noun of the project once, in one sentence, with RocksDB's word for it and the
//! file where it lives.
//!
//! A row is `| noun, other noun | meaning | RocksDB's word | place |`. The nouns of [`VOCABULARY`] and
//! the kinds of background jobs must be there.

use std::collections::BTreeMap;

use super::Finding;
use crate::tree::Tree;

const PAGE: &str = "docs/glossary.md";
const HEAD: &str = "| noun |";

/// The nouns that the design fixes.
pub const VOCABULARY: &[&str] = &[
    "key",
    "value",
    "sequence number",
    "kind",
    "write batch",
    "table",
    "commit ring",
    "commit group",
    "segment",
    "journal",
    "memtable",
    "global index",
    "extent",
    "block",
    "level",
    "metasnapshot",
    "manifest",
    "swip",
    "shape",
    "store",
    "job",
    "compactor",
];

/// Checks the page, if there is one.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.get(PAGE) else { return Vec::new() };
    let (mut findings, mut known) = (Vec::new(), BTreeMap::new());
    for (line, row) in rows(page) {
        match row.split(" | ").collect::<Vec<_>>()[..] {
            [nouns, meaning, theirs, place] if ![nouns, meaning, theirs].contains(&"") => {
                check_place(tree, line, place, &mut findings);
                for noun in nouns.split(", ") {
                    if let Some(first) = known.insert(noun.to_owned(), line) {
                        let why =
                            format!("`{noun}` has a row already, in line {first}: one noun, one meaning");
                        findings.push(Finding::new(PAGE, line, why));
                    }
                }
            }
            _ => findings.push(Finding::new(
                PAGE,
                line,
                "expected `| NOUNS | MEANING | ROCKSDB'S WORD | PLACE |`",
            )),
        }
    }
    for noun in VOCABULARY.iter().filter(|noun| !known.contains_key(**noun)) {
        findings.push(Finding::new(PAGE, 0, format!("lacks `{noun}`, a noun of the design")));
    }
    for kind in job_kinds(tree).into_iter().filter(|kind| !known.contains_key(*kind)) {
        findings.push(Finding::new(PAGE, 0, format!("lacks `{kind}`, a kind of a background job")));
    }
    findings
}

/// The engine's names of its background jobs: `JobKind::Flush => "flush"`.
fn job_kinds(tree: &Tree) -> Vec<&str> {
    let engine = tree.rust_files().filter(|(path, _)| path.starts_with("crates/terrane-engine/src/"));
    let lines = engine.flat_map(|(_, text)| text.lines());
    let names = lines.filter_map(|line| line.trim().strip_prefix("JobKind::")?.split_once(" => \""));
    names.filter_map(|(_, rest)| rest.split_once("\",").map(|(name, _)| name)).collect()
}

/// The rows of all tables of nouns, without their outer bars, with their line numbers.
fn rows(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_inside = false;
    page.lines().enumerate().filter_map(move |(index, line)| {
        let is_row = is_inside && line.starts_with("| ");
        is_inside = line.starts_with(HEAD) || is_inside && line.starts_with('|');
        is_row.then(|| (index + 1, line.trim_start_matches("| ").trim_end_matches(" |")))
    })
}

/// A place is one path or more, each of a file or a folder that is there.
fn check_place(tree: &Tree, line: usize, place: &str, findings: &mut Vec<Finding>) {
    let paths: Vec<&str> = place.split('`').skip(1).step_by(2).collect();
    if paths.is_empty() {
        findings.push(Finding::new(
            PAGE,
            line,
            "a noun without a place: name its file or folder in back quotes",
        ));
    }
    // Paths below `crates/` and the like are checked in all pages.
    for path in paths.into_iter().filter(|path| !tree.has(path) && !path.contains('/')) {
        findings.push(Finding::new(PAGE, line, format!("`{path}` is not a path of the tree")));
    }
}
