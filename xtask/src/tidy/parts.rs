//! The parts of the engine: a layer each, imports go down only, so that no two parts need each other.
//!
//! `xtask/engine.txt` has the layers, and a ratchet for the imports that go up still.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Finding, is_product, list_entries};
use crate::source::Source;
use crate::tree::Tree;

const LIST: &str = "xtask/engine.txt";
const SRC: &str = "crates/terrane-engine/src/";
/// Names at the crate's root that are no parts.
const NO_PARTS: [&str; 1] = ["lib"];

/// Imports of a part that lies above or beside the importing one, by file and part.
type Upward = BTreeMap<(String, String), usize>;

struct List {
    layers: BTreeMap<String, u32>,
    allowed: Upward,
    findings: Vec<Finding>,
}

/// Checks that every part has a layer, and that imports go down.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    if tree.get(LIST).is_none() {
        return Vec::new();
    }
    let List { layers, allowed, mut findings } = list(tree);
    for path in files(tree) {
        let part = part_of(path);
        if !layers.contains_key(part) {
            let why = format!("part `{part}` has no layer: add `layer N {part}` to {LIST}");
            findings.push(Finding::new(path, 0, why));
        }
    }
    for ((file, to), count) in upward(tree, &layers) {
        let most = allowed.get(&(file.clone(), to.clone())).copied().unwrap_or(0);
        if count > most {
            let why = format!(
                "imports `crate::{to}` {count} times, {most} are allowed: `{to}` lies above or beside `{}`; move what \
                 both need to a lower part, or hand it in as an argument",
                part_of(&file)
            );
            findings.push(Finding::new(&file, 0, why));
        }
    }
    findings
}

fn files(tree: &Tree) -> impl Iterator<Item = &str> {
    let inside =
        |path: &&str| path.starts_with(SRC) && is_product(path) && !NO_PARTS.contains(&part_of(path));
    tree.files().map(|(path, _)| path).filter(inside)
}

/// The folder or file below `src` that a path lies in.
fn part_of(path: &str) -> &str {
    let inside = path.strip_prefix(SRC).unwrap_or(path);
    inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs")
}

fn upward(tree: &Tree, layers: &BTreeMap<String, u32>) -> Upward {
    let mut found = Upward::new();
    for path in files(tree) {
        let Some(own) = layers.get(part_of(path)) else { continue };
        let source = Source::new(tree.get(path).unwrap_or_default()).without_tests();
        for at in source.find_word("crate") {
            let Some(rest) = source.code[at..].strip_prefix("crate::") else { continue };
            let to: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let is_up = to != part_of(path) && layers.get(&to).is_some_and(|layer| layer >= own);
            if is_up {
                *found.entry((path.to_owned(), to)).or_default() += 1;
            }
        }
    }
    found
}

fn list(tree: &Tree) -> List {
    let mut list = List { layers: BTreeMap::new(), allowed: Upward::new(), findings: Vec::new() };
    for (line, entry) in list_entries(tree, LIST) {
        let words: Vec<&str> = entry.split_whitespace().collect();
        match words.as_slice() {
            ["layer", number, part] if number.parse::<u32>().is_ok() => {
                list.layers.insert((*part).to_owned(), number.parse().unwrap_or_default());
            }
            ["up", file, part, count] if count.parse::<usize>().is_ok() => {
                let key = (format!("{SRC}{file}"), (*part).to_owned());
                list.allowed.insert(key, count.parse().unwrap_or_default());
            }
            _ => list.findings.push(Finding::new(
                LIST,
                line,
                "expected `layer N PART` or `up FILE PART COUNT`",
            )),
        }
    }
    list
}

/// The list with every count lowered to what is true now, if that changes it.
#[must_use]
pub fn renewed(tree: &Tree) -> Option<(&'static str, String)> {
    let before = tree.get(LIST)?;
    let List { layers, allowed, .. } = list(tree);
    let is_up = |line: &&str| line.starts_with("up ");
    let mut text: String = before.lines().filter(|line| !is_up(line)).flat_map(|line| [line, "\n"]).collect();
    for ((file, to), count) in upward(tree, &layers) {
        let most = allowed.get(&(file.clone(), to.clone())).copied().unwrap_or(0);
        if most > 0 {
            let file = file.strip_prefix(SRC).unwrap_or(&file);
            let _ = writeln!(text, "up {file} {to} {}", count.min(most));
        }
    }
    (text != before).then_some((LIST, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine of two parts, the lower of which is `table`.
    fn engine(list: &str, table: &str) -> Tree {
        let mut tree = Tree::of([
            ("crates/terrane-engine/src/lib.rs", "//! Engine.\n"),
            ("crates/terrane-engine/src/read/get.rs", "//! Reads.\nuse crate::table::Table;\n"),
        ]);
        tree.insert(LIST, &format!("layer 0 table\nlayer 1 read\n{list}"));
        tree.insert("crates/terrane-engine/src/table/mod.rs", table);
        tree
    }

    fn messages(tree: &Tree) -> Vec<String> {
        check(tree).iter().map(Finding::to_string).collect()
    }

    const UPWARD: &str = "//! Table.\nfn read() { crate::read::get::get() }\n";

    #[test]
    fn imports_go_down_only() {
        let in_words_only =
            "//! Table. Not `crate::read`.\n#[cfg(test)]\nmod tests { use crate::read::get; }\n";
        assert_eq!(messages(&engine("", in_words_only)), Vec::<String>::new());
        let found = messages(&engine("", UPWARD));
        assert!(
            found.len() == 1 && found[0].contains("imports `crate::read` 1 times, 0 are allowed"),
            "{found:?}"
        );
    }

    #[test]
    fn what_is_allowed_only_falls() {
        let tree = engine("up table/mod.rs read 2\n", UPWARD);
        assert_eq!(messages(&tree), Vec::<String>::new());
        let (_, lowered) = renewed(&tree).expect("one import is left of two");
        assert!(lowered.ends_with("up table/mod.rs read 1\n"), "{lowered}");
        assert_eq!(renewed(&engine("", UPWARD)), None, "nothing is added");
    }

    #[test]
    fn every_part_has_a_layer() {
        let mut tree = engine("", "//! Table.\n");
        tree.insert("crates/terrane-engine/src/new.rs", "//! New.\n");
        let found = messages(&tree);
        assert!(found.len() == 1 && found[0].contains("part `new` has no layer"), "{found:?}");
    }
}
