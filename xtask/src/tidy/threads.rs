//! The tables of threads in `ARCHITECTURE.md` and, of the command, in `docs/operations.md`: each thread that
//! product code starts, by its name, and no other.
//!
//! A name is a text that begins with `terrane-`, in a statement that says `spawn`, `thread_name` or
//! `stepper`. A number that the code puts into a name is `N` in the table.

use std::collections::BTreeMap;

use super::{Finding, is_product};
use crate::source::Source;
use crate::tree::{Tree, line_of};

const PAGE: &str = "ARCHITECTURE.md";
/// The page with the threads of the command.
const OPERATIONS: &str = "docs/operations.md";
const HEAD: &str = "| thread |";
const QUOTED: &str = "\"terrane-";
/// One of these stands in each statement that names a thread.
const MARKS: [&str; 3] = ["spawn", "thread_name", "stepper"];

/// Compares the names in the code with those of the table, if there is one.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    if !tree.get(PAGE).is_some_and(|page| page.contains(HEAD)) {
        return Vec::new();
    }
    let started = started(tree);
    let pages = [PAGE, OPERATIONS].into_iter();
    let listed: BTreeMap<_, _> = pages.flat_map(|page| listed(tree, page)).collect();
    let lacks = started.iter().filter(|(name, _)| !listed.contains_key(*name)).map(|(name, (path, line))| {
        let why =
            format!("starts the thread `{name}`, which the tables of threads in {PAGE} and {OPERATIONS} lack: add a row");
        Finding::new(path, *line, why)
    });
    let invents =
        listed.iter().filter(|(name, _)| !started.contains_key(*name)).map(|(name, (page, line))| {
            Finding::new(
                page,
                *line,
                format!("no code starts a thread `{name}`: remove the row, or mend its name"),
            )
        });
    lacks.chain(invents).collect()
}

/// The threads of product code, each with a place that starts it.
fn started(tree: &Tree) -> BTreeMap<String, (&str, usize)> {
    let mut names = BTreeMap::new();
    for (path, text) in tree.rust_files().filter(|(path, text)| is_product(path) && text.contains(QUOTED)) {
        let source = Source::new(text).without_tests();
        for (at, _) in text.match_indices(QUOTED) {
            let code = &source.code[..at];
            let start = code.rfind([';', '{', '}']).map_or(0, |end| end + 1);
            // Code of tests is blank, so a name there stands in no statement.
            if MARKS.iter().any(|mark| code[start..].contains(mark)) {
                let name = text[at + 1..].split('"').next().unwrap_or_default();
                names.entry(plain(name)).or_insert((path, line_of(text, at)));
            }
        }
    }
    names
}

/// `terrane-core-{number}` as `terrane-core-N`.
fn plain(name: &str) -> String {
    match (name.find('{'), name.rfind('}')) {
        (Some(start), Some(end)) if start < end => [&name[..start], "N", &name[end + 1..]].concat(),
        _ => name.to_owned(),
    }
}

/// The names in back quotes in the first column of the table of a page, with their places.
fn listed(tree: &Tree, page: &'static str) -> BTreeMap<String, (&'static str, usize)> {
    let lines = tree
        .get(page)
        .unwrap_or_default()
        .lines()
        .enumerate()
        .skip_while(|(_, line)| !line.starts_with(HEAD));
    let rows = lines.take_while(|(_, line)| line.starts_with('|'));
    rows.filter_map(|(index, row)| {
        let name = row.strip_prefix("| `")?.split('`').next()?;
        Some((name.to_owned(), (page, index + 1)))
    })
    .collect()
}
