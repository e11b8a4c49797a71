//! Cycles of imports among the modules of the engine: a figure of the page about its parts.
//!
//! A module is a file of product code. It imports each module that a path in it begins with, in a `use` item
//! or elsewhere (`crate::`, `self::`, `super::`). What a module shows of its own children is not an import.
//! Two modules are in one cycle if each reaches the other over imports.

use std::collections::{BTreeMap, BTreeSet};

use super::is_product;
use crate::imports::imports;
use crate::source::Source;
use crate::tree::Tree;

const SRC: &str = "crates/terrane-engine/src/";
const ROOTS: [&str; 3] = ["crate::", "self::", "super::"];

/// Modules and what each imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The number of modules in the longest cycle of imports, and of all modules.
#[must_use]
pub fn longest(tree: &Tree) -> Option<(usize, usize)> {
    let graph = graph(tree);
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|module| (module.as_str(), reached_from(&graph, module))).collect();
    let cycle_of = |module: &str| {
        let back = reached[module].iter().filter(|other| reached[*other].contains(module));
        back.count()
    };
    let longest = graph.keys().map(|module| cycle_of(module)).max()?;
    Some((longest, graph.len()))
}

fn reached_from<'g>(graph: &'g Graph, from: &'g str) -> BTreeSet<&'g str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        let next = graph.get(module).into_iter().flatten().map(String::as_str);
        open.extend(next.filter(|module| reached.insert(*module)));
    }
    reached
}

fn graph(tree: &Tree) -> Graph {
    let inside = |path: &&str| path.starts_with(SRC) && is_product(path) && !path.ends_with("/src/lib.rs");
    let files = || tree.files().map(|(path, _)| path).filter(inside);
    let modules: BTreeSet<String> = files().map(module_of).collect();
    let imported = |path: &str| {
        let own = module_of(path);
        let source = Source::new(tree.get(path).unwrap_or_default()).without_tests();
        let paths = imports(&source).into_iter().map(|import| import.path);
        let named = ROOTS.iter().flat_map(|root| source.find_word(root).map(|at| path_at(&source.code, at)));
        let targets = paths.chain(named).filter_map(|path| target(&path, &own, &modules));
        let others: BTreeSet<String> = targets.filter(|target| *target != own).collect();
        (own, others)
    };
    files().map(imported).collect()
}

/// The path of a module in the crate: `read::get`.
fn module_of(path: &str) -> String {
    let inside = path.strip_prefix(SRC).unwrap_or(path).trim_end_matches(".rs");
    inside.trim_end_matches("/mod").replace('/', "::")
}

/// The path that begins at a byte of the code.
fn path_at(code: &str, at: usize) -> String {
    code[at..].chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect()
}

/// The module in which a path ends or begins, if it is a path of this crate.
fn target(path: &str, own: &str, modules: &BTreeSet<String>) -> Option<String> {
    let own: Vec<&str> = own.split("::").collect();
    let mut parts: Vec<&str> = path.split("::").map(str::trim).collect();
    let mut base = match *parts.first()? {
        "crate" => Vec::new(),
        "self" | "super" => own,
        _ => return None,
    };
    while let Some(first @ ("crate" | "self" | "super")) = parts.first().copied() {
        if first == "super" {
            base.pop();
        }
        parts.remove(0);
    }
    base.extend(parts);
    (1..=base.len()).rev().map(|length| base[..length].join("::")).find(|path| modules.contains(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_cycle_goes_through_braces_and_parents() {
        let mut tree = Tree::of([
            ("crates/terrane-engine/src/lib.rs", "//! Engine.\nuse crate::read::get;\n"),
            ("crates/terrane-engine/src/read/mod.rs", "//! Reads.\nfn a() { self::get::get() }\n"),
            ("crates/terrane-engine/src/read/get.rs", "//! Gets.\nuse crate::{table::Table, other};\n"),
            ("crates/terrane-engine/src/table.rs", "//! Table. Not `crate::read`.\n"),
        ]);
        assert_eq!(longest(&tree), Some((0, 3)), "no module reaches itself");
        tree.insert(
            "crates/terrane-engine/src/read/get.rs",
            "//! Gets.\nuse super::rows;\nuse crate::table;\n",
        );
        assert_eq!(longest(&tree), Some((2, 3)));
        tree.insert("crates/terrane-engine/src/table.rs", "//! Table.\nfn a() { crate::read::get::get() }\n");
        assert_eq!(longest(&tree), Some((3, 3)));
    }
}
