//! The walks in `ARCHITECTURE.md`: each says how many hops it has, and has so many items in its list,
//! numbered from 1. Each item begins with the one file that it is about, and no walk has a file twice.
//! `cargo xtask tidy --write` renews the numbers that walks say.
//!
//! A walk is a line `**NAME**..: N hops.` with the list behind it, in the section of walks.

use std::collections::BTreeSet;

use super::Finding;
use crate::tree::Tree;

const PAGE: &str = "ARCHITECTURE.md";
const SECTION: &str = "## Walks";

/// A walk of the page.
struct Walk<'t> {
    /// Index of the line that names it.
    at: usize,
    head: &'t str,
    /// The mark in front of each item.
    numbers: Vec<&'t str>,
    /// The items without their marks.
    items: Vec<&'t str>,
}

impl<'t> Walk<'t> {
    /// The line that names it, with the number of its items.
    fn renewed(&self) -> Option<String> {
        let (before, _) = self.head.strip_suffix(" hops.")?.rsplit_once(' ')?;
        Some(format!("{before} {} hops.", self.numbers.len()))
    }

    fn is_numbered(&self) -> bool {
        let expected = (1..=self.numbers.len()).map(|number| number.to_string());
        !self.numbers.is_empty() && self.numbers.iter().copied().eq(expected)
    }

    /// The first item that is not about one file, or about the file of another item.
    fn wrong_item(&self) -> Option<&'t str> {
        let mut known: BTreeSet<&str> = BTreeSet::new();
        self.items.iter().copied().find(|item: &&'t str| {
            let item: &'t str = item;
            let mut files = item.split('`').skip(1).step_by(2).filter(|quoted| quoted.ends_with(".rs"));
            let first = files.next().filter(|_| item.starts_with('`'));
            files.next().is_some() || !first.is_some_and(|file| known.insert(file))
        })
    }
}

/// Checks each walk.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for walk in walks(tree) {
        let why = match walk.renewed() {
            None => "a walk says how many hops it has: end its line with `N hops.`".to_owned(),
            Some(_) if !walk.is_numbered() => "the hops of a walk are numbered from 1, one by one".to_owned(),
            Some(_) if walk.wrong_item().is_some() => {
                let item = walk.wrong_item().unwrap_or_default();
                format!("a hop is one file, which no other hop of the walk names: `{item}`")
            }
            Some(renewed) if renewed != walk.head => {
                format!("the walk has {} hops: run `cargo xtask tidy --write`", walk.numbers.len())
            }
            Some(_) => continue,
        };
        findings.push(Finding::new(PAGE, walk.at + 1, why));
    }
    findings
}

/// The page with the number of hops of each walk, if that changes it.
#[must_use]
pub fn renewed(tree: &Tree) -> Option<(&'static str, String)> {
    let page = tree.get(PAGE)?;
    let mut lines: Vec<String> = page.split('\n').map(str::to_owned).collect();
    for walk in walks(tree) {
        if let Some(renewed) = walk.renewed() {
            lines[walk.at] = renewed;
        }
    }
    let text = lines.join("\n");
    (text != page).then_some((PAGE, text))
}

fn walks(tree: &Tree) -> Vec<Walk<'_>> {
    let lines: Vec<&str> = tree.get(PAGE).unwrap_or_default().lines().collect();
    let start = lines.iter().position(|line| *line == SECTION).map_or(lines.len(), |at| at + 1);
    let end =
        lines[start..].iter().position(|line| line.starts_with("## ")).map_or(lines.len(), |at| start + at);
    let heads = (start..end).filter(|at| lines[*at].starts_with("**"));
    let walk = |at: usize| {
        let behind = lines[at + 1..end].iter().skip_while(|line| line.is_empty());
        let items = behind.take_while(|line| !line.is_empty());
        let items = items.map(|line| line.split_once(". ").unwrap_or(("", line)));
        let (numbers, items) = items.unzip();
        Walk { at, head: lines[at], numbers, items }
    };
    heads.map(walk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(page: &str) -> Vec<String> {
        check(&Tree::of([(PAGE, page)])).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn walks_say_how_many_hops_they_have() {
        let page = "# Map\n\n**No walk**: 9 hops.\n\n## Walks\n\n**Put**: one record: 2 hops.\n\n1. `a.rs`\n2. `b.rs`\n\n\
                    Then back.\n\n**Get**: 1 hops.\n\n1. `a.rs`\n\n## Others\n\n**No walk**, either.\n";
        assert_eq!(messages(page), Vec::<String>::new());
        let long = page.replace("2. `b.rs`", "2. `b.rs`\n3. `c.rs`");
        let found = messages(&long);
        assert!(
            found.len() == 1 && found[0].starts_with("ARCHITECTURE.md:7: the walk has 3 hops"),
            "{found:?}"
        );
        let renewed = renewed(&Tree::of([(PAGE, long.as_str())]));
        assert_eq!(renewed, Some((PAGE, long.replace("2 hops", "3 hops"))));
        let found = messages(&page.replace("2. `b", "3. `b"));
        assert!(found.len() == 1 && found[0].contains("numbered from 1"), "{found:?}");
        for two in ["2. `b.rs`, `c.rs`", "2. no file", "2. `a.rs` again"] {
            let found = messages(&page.replace("2. `b.rs`", two));
            assert!(found.len() == 1 && found[0].contains("a hop is one file"), "{two}: {found:?}");
        }
        let found = messages(&page.replace("record: 2 hops.", "record."));
        assert!(found.len() == 1 && found[0].contains("says how many"), "{found:?}");
    }
}
