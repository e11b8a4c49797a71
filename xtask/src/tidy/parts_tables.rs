//! The tables of the engine's parts in pages: the one of the design page and the diagram in
//! `ARCHITECTURE.md` have each part of `xtask/engine.txt` at its layer, and no other.

use std::collections::BTreeSet;

use super::{Finding, list_entries};
use crate::tree::Tree;

const LIST: &str = "xtask/engine.txt";
const DESIGN: &str = "docs/design/0031-engine-of-parts.md";
const HEAD: &str = "| layer | part |";
const MAP: &str = "ARCHITECTURE.md";
const SECTION: &str = "## Parts of the engine";

/// A layer and a part.
type Row = (u32, String);

/// Compares each page that is there with the list.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let listed: BTreeSet<Row> = list_entries(tree, LIST).filter_map(|(_, entry)| listed(entry)).collect();
    let mut findings = Vec::new();
    if listed.is_empty() {
        return findings;
    }
    if let Some(page) = tree.get(DESIGN) {
        let rows = page.lines().skip_while(|line| !line.starts_with(HEAD)).skip(2);
        let said: BTreeSet<Row> = rows.take_while(|line| line.starts_with('|')).flat_map(row).collect();
        for (layer, part) in listed.difference(&said) {
            let why = format!("the table of parts lacks `{part}` at layer {layer}, where {LIST} has it");
            findings.push(Finding::new(DESIGN, 0, why));
        }
        for (layer, part) in said.difference(&listed) {
            let why =
                format!("the table of parts has `{part}` at layer {layer}, where {LIST} does not have it");
            findings.push(Finding::new(DESIGN, 0, why));
        }
    }
    if let Some(page) = tree.get(MAP).filter(|page| page.contains(SECTION)) {
        for (layer, part) in listed.iter().filter(|row| !is_drawn(page, row)) {
            let why = format!("the diagram of parts lacks `{part}` at layer {layer}, where {LIST} has it");
            findings.push(Finding::new(MAP, 0, why));
        }
    }
    findings
}

/// The layer and the name of a part of the engine; nothing for a part of one of its folders.
fn listed(entry: &str) -> Option<Row> {
    let words: Vec<&str> = entry.split_whitespace().collect();
    match words.as_slice() {
        ["layer", number, part] if !part.contains('/') => Some((number.parse().ok()?, (*part).to_owned())),
        _ => None,
    }
}

/// The parts of a row: the names in back quotes in its second column.
fn row(line: &str) -> Vec<Row> {
    let mut columns = line.split('|').skip(1);
    let layer = columns.next().and_then(|layer| layer.trim().parse().ok());
    let (Some(layer), Some(names)) = (layer, columns.next()) else { return Vec::new() };
    let names = names.split('`').skip(1).step_by(2);
    names.map(|name| (layer, name.trim_end_matches('/').trim_end_matches(".rs").to_owned())).collect()
}

/// Returns true if the line of the diagram that begins with the layer has the part.
fn is_drawn(page: &str, (layer, part): &Row) -> bool {
    let section = page.split_once(SECTION).map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    section.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next().and_then(|word| word.parse().ok()) == Some(*layer) && words.any(|word| word == part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# Parts\n\n| layer | part | content |\n|---|---|---|\n| 0 | `pace/`, `a.rs` | `no.rs` |\n\n| 3 | `x` |\n";
    const DIAGRAM: &str = "# Map\n\n## Parts of the engine\n\n  0  pace   a    own threads\n\n## Threads\n";

    fn messages(list: &str) -> Vec<String> {
        let tree = Tree::of([(LIST, list), (DESIGN, TABLE), (MAP, DIAGRAM)]);
        check(&tree).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn tables_of_parts_have_those_of_the_list() {
        assert_eq!(messages("layer 0 pace\nlayer 0 a\nlayer 1 background/job\n"), Vec::<String>::new());
        let found = messages("layer 0 pace\nlayer 0 a\nlayer 1 read\n");
        assert!(
            found.len() == 2 && found.iter().all(|why| why.contains("lacks `read` at layer 1")),
            "{found:?}"
        );
        let found = messages("layer 0 pace\n");
        assert!(found.len() == 1 && found[0].contains("has `a` at layer 0"), "{found:?}");
    }
}
