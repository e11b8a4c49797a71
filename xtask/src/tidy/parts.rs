//! The parts of the engine: a layer each, imports and calls go down only, so that no two parts need each
//! other.
//!
//! `xtask/engine.txt` has the layers. Two rules: 1. A part imports from parts with a smaller layer. 2. A part
//! may add methods to a struct of a lower part (`impl Shared` in `read/`). No part below or beside it calls
//! them: such a call is an import that no `use` shows. The second rule looks at methods whose name only one
//! part defines, where the receiver is a context (`self`, `engine`, `shared`, `control`).

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, is_product, list_entries};
use crate::source::{Source, item_end};
use crate::tree::{Tree, line_of};

const LIST: &str = "xtask/engine.txt";
const SRC: &str = "crates/terrane-engine/src/";
/// Names at the crate's root that are no parts.
const NO_PARTS: [&str; 1] = ["lib"];
/// Names under which code has the struct that a method was added to.
const RECEIVERS: [&str; 4] = ["self", "engine", "shared", "control"];

/// Layers by part.
type Layers = BTreeMap<String, u32>;

/// A file of a part.
struct File<'t> {
    path: &'t str,
    part: &'t str,
    source: Source<'t>,
}

/// Checks that every part has a layer, and that imports and calls go down.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    if tree.get(LIST).is_none() {
        return Vec::new();
    }
    let (layers, mut findings) = list(tree);
    let files: Vec<File<'_>> = files(tree).collect();
    for file in files.iter().filter(|file| !layers.contains_key(file.part)) {
        let why = format!("part `{0}` has no layer: add `layer N {0}` to {LIST}", file.part);
        findings.push(Finding::new(file.path, 0, why));
    }
    findings.extend(files.iter().flat_map(|file| upward_imports(file, &layers)));
    let added = added_methods(&files);
    findings.extend(files.iter().flat_map(|file| upward_calls(file, &layers, &added)));
    findings
}

/// The methods without a trait that all parts give to each of these structs.
pub(super) fn method_counts<'s>(tree: &Tree, structs: &[&'s str]) -> BTreeMap<&'s str, u64> {
    let mut counts = BTreeMap::new();
    for file in files(tree) {
        for (of, methods) in inherent_impls(&file.source) {
            if let Some(known) = structs.iter().find(|known| **known == of) {
                *counts.entry(*known).or_default() += methods.len() as u64;
            }
        }
    }
    counts
}

fn files(tree: &Tree) -> impl Iterator<Item = File<'_>> {
    let inside =
        |path: &&str| path.starts_with(SRC) && is_product(path) && !NO_PARTS.contains(&part_of(path));
    tree.files().map(|(path, _)| path).filter(inside).map(|path| File {
        path,
        part: part_of(path),
        source: Source::new(tree.get(path).unwrap_or_default()).without_tests(),
    })
}

/// The folder or file below `src` that a path lies in.
fn part_of(path: &str) -> &str {
    let inside = path.strip_prefix(SRC).unwrap_or(path);
    inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs")
}

/// Returns true if `to` lies above `file`, or beside it.
fn is_up(file: &File<'_>, to: &str, layers: &Layers) -> bool {
    to != file.part && layers.get(to).zip(layers.get(file.part)).is_some_and(|(to, own)| to >= own)
}

fn name_at(code: &str) -> &str {
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
    &code[..end]
}

fn upward_imports(file: &File<'_>, layers: &Layers) -> Vec<Finding> {
    let code = &file.source.code;
    let found = file.source.find_word("crate").filter_map(|at| {
        let to = name_at(code[at..].strip_prefix("crate::")?);
        is_up(file, to, layers).then(|| {
            let why = format!(
                "imports `crate::{to}`, which lies above or beside `{}`: move what both need to a lower part, or hand \
                 it in as an argument",
                file.part
            );
            Finding::new(file.path, line_of(code, at), why)
        })
    });
    found.collect()
}

/// Methods that one part adds to a struct of another part, by name; of names that several parts define, none.
fn added_methods<'t>(files: &'t [File<'t>]) -> BTreeMap<String, &'t str> {
    let mut homes: BTreeMap<&str, &str> = BTreeMap::new();
    let mut definers: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for file in files {
        let code = &file.source.code;
        homes.extend(
            file.source.find_word("struct").map(|at| (name_at(code[at + 6..].trim_start()), file.part)),
        );
        for function in file.source.functions() {
            definers.entry(function.name).or_default().insert(file.part);
        }
    }
    let mut added = BTreeMap::new();
    for file in files {
        let methods = inherent_impls(&file.source)
            .filter(|(of, _)| homes.get(of).is_some_and(|home| *home != file.part))
            .flat_map(|(_, methods)| methods);
        added.extend(methods.filter(|name| definers[name].len() == 1).map(|name| (name, file.part)));
    }
    added
}

/// The struct and the methods of each `impl` without a trait.
fn inherent_impls<'s>(source: &'s Source<'_>) -> impl Iterator<Item = (&'s str, Vec<String>)> {
    source.find_word("impl").filter_map(|at| {
        let code = &source.code;
        if at > 0 && !code[..at].ends_with('\n') {
            return None; // a type, such as that of an argument
        }
        let of = code[at + 4..].strip_prefix(' ')?;
        let block = &code[at..item_end(code, at)];
        let head = block.split('{').next().unwrap_or_default();
        let names = Source::new(block).functions().into_iter().map(|function| function.name);
        (!head.contains(" for ")).then(|| (name_at(of), names.collect()))
    })
}

fn upward_calls(file: &File<'_>, layers: &Layers, added: &BTreeMap<String, &str>) -> Vec<Finding> {
    let code = &file.source.code;
    let calls = code.match_indices('.').filter_map(|(at, _)| {
        let rest = code[at + 1..].trim_start();
        let name = name_at(rest);
        if !rest[name.len()..].starts_with('(') {
            return None; // a field
        }
        let to = added.get(name).filter(|to| is_up(file, to, layers))?;
        let receiver = code[..at].trim_end();
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let start = receiver.bytes().rposition(|byte| !is_word(byte)).map_or(0, |before| before + 1);
        RECEIVERS.contains(&&receiver[start..]).then(|| {
            let why = format!(
                "calls `{name}`, a method that part `{to}` adds, which lies above or beside `{}`: move the method to a \
                 lower part",
                file.part
            );
            Finding::new(file.path, line_of(code, at), why)
        })
    });
    calls.collect()
}

fn list(tree: &Tree) -> (Layers, Vec<Finding>) {
    let (mut layers, mut findings) = (Layers::new(), Vec::new());
    for (line, entry) in list_entries(tree, LIST) {
        let words: Vec<&str> = entry.split_whitespace().collect();
        match words.as_slice() {
            ["layer", number, part] if number.parse::<u32>().is_ok() => {
                layers.insert((*part).to_owned(), number.parse().unwrap_or_default());
            }
            ["up", ..] => {
                let why = "no import goes upward: give the part what it needs as a context of lower parts";
                findings.push(Finding::new(LIST, line, why));
            }
            _ => findings.push(Finding::new(LIST, line, "expected `layer N PART`")),
        }
    }
    (layers, findings)
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
        assert!(found.len() == 1 && found[0].contains("table/mod.rs:2: imports `crate::read`"), "{found:?}");
    }

    #[test]
    fn no_import_upward_can_be_allowed() {
        let found = messages(&engine("up table/mod.rs read 1\n", UPWARD));
        assert!(found.len() == 2 && found[0].contains("no import goes upward"), "{found:?}");
    }

    #[test]
    fn methods_that_a_higher_part_adds_are_not_called_below() {
        let table = "//! Table.\npub struct Table;\nimpl Table {\n fn look(&self) { self.read_all() }\n}\n";
        let mut tree = engine("", table);
        assert_eq!(messages(&tree), Vec::<String>::new(), "no part adds such a method");
        let added = "//! Reads.\nimpl Table {\n pub fn read_all(&self) { self.look() }\n}\n";
        tree.insert("crates/terrane-engine/src/read/all.rs", added);
        let found = messages(&tree);
        assert!(found.len() == 1 && found[0].contains("table/mod.rs:4: calls `read_all`"), "{found:?}");
        // What another object answers, or a trait asks for, is no such call.
        let elsewhere = "//! Table.\npub struct Table;\nfn look(rows: &Rows) { rows.read_all() }\n";
        tree.insert("crates/terrane-engine/src/table/mod.rs", elsewhere);
        assert_eq!(messages(&tree), Vec::<String>::new());
        let of_a_trait = "//! Reads.\nimpl Reader for Table {\n fn read_all(&self) {}\n}\n";
        tree.insert("crates/terrane-engine/src/table/mod.rs", table);
        tree.insert("crates/terrane-engine/src/read/all.rs", of_a_trait);
        assert_eq!(messages(&tree), Vec::<String>::new());
    }

    #[test]
    fn every_part_has_a_layer() {
        let mut tree = engine("", "//! Table.\n");
        tree.insert("crates/terrane-engine/src/new.rs", "//! New.\n");
        let found = messages(&tree);
        assert!(found.len() == 1 && found[0].contains("part `new` has no layer"), "{found:?}");
    }
}
