//! The parts of the engine: a layer each, imports and calls go down only, so that no two parts need each
//! other.
//!
//! `xtask/engine.txt` has the layers. Two rules: 1. A part imports from parts with a smaller layer. 2. A part
//! may add methods to a struct of a lower part (`impl Shared` in `read/`). No part below or beside it calls
//! them: such a call is an import that no `use` shows. The second rule looks at methods whose name only one
//! part defines, where the receiver is a context (`self`, `engine`, `shared`, `control`, `look`).
//!
//! The list has the parts of a folder of the engine, too (`layer 1 background/scheduler`). Both rules hold
//! between them; what the `mod.rs` of the folder defines is its part `mod`.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, is_product, list_entries};
use crate::imports::imports;
use crate::source::{Source, item_end};
use crate::tree::{Tree, line_of};

const LIST: &str = "xtask/engine.txt";
const SRC: &str = "crates/terrane-engine/src/";
/// Names at the crate's root that are not parts.
const NO_PARTS: [&str; 1] = ["lib"];
/// Names under which code has the struct that a method was added to.
const RECEIVERS: [&str; 5] = ["self", "engine", "shared", "control", "look"];
/// The part of what the `mod.rs` of a folder defines.
const ROOT: &str = "mod";

/// Layers by part.
type Layers = BTreeMap<String, u32>;

/// The parts of the engine, or those of one of its folders.
struct House {
    /// The folder in `src`, with a slash behind it; nothing for the engine.
    folder: String,
    layers: Layers,
}

impl House {
    /// The path of an import up to the name of a part.
    fn path(&self) -> String {
        format!("crate::{}", self.folder.replace('/', "::"))
    }

    /// The part that has a name at the root of the house, if it is one.
    fn part_with<'n>(&self, name: &'n str) -> Option<&'n str> {
        let is_inside = !self.folder.is_empty() && !name.is_empty() && name != "*";
        if self.layers.contains_key(name) { Some(name) } else { is_inside.then_some(ROOT) }
    }

    /// The product files inside, with the part of each.
    fn files<'t>(&self, tree: &'t Tree) -> Vec<File<'t>> {
        let root = format!("{SRC}{}", self.folder);
        let of = |path: &'t str| {
            let inside = path.strip_prefix(&root).filter(|_| is_product(path))?;
            let part = inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs");
            let source = Source::new(tree.get(path).unwrap_or_default()).without_tests();
            (!NO_PARTS.contains(&part)).then_some(File { path, part, source })
        };
        tree.files().filter_map(|(path, _)| of(path)).collect()
    }
}

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
    let (houses, mut findings) = list(tree);
    for house in &houses {
        let files = house.files(tree);
        for file in files.iter().filter(|file| !house.layers.contains_key(file.part)) {
            let part = format!("{}{}", house.folder, file.part);
            let why = format!("part `{part}` has no layer: add `layer N {part}` to {LIST}");
            findings.push(Finding::new(file.path, 0, why));
        }
        findings.extend(files.iter().flat_map(|file| upward_imports(file, house)));
        let added = added_methods(&files);
        findings.extend(files.iter().flat_map(|file| upward_calls(file, &house.layers, &added)));
    }
    findings
}

/// The methods without a trait that all parts give to each of these structs.
pub(super) fn method_counts<'s>(tree: &Tree, structs: &[&'s str]) -> BTreeMap<&'s str, u64> {
    let mut counts = BTreeMap::new();
    for file in (House { folder: String::new(), layers: Layers::new() }).files(tree) {
        for (of, methods) in inherent_impls(&file.source) {
            if let Some(known) = structs.iter().find(|known| **known == of) {
                *counts.entry(*known).or_default() += methods.len() as u64;
            }
        }
    }
    counts
}

/// Returns true if `to` lies above `file`, or beside it.
fn is_up(file: &File<'_>, to: &str, layers: &Layers) -> bool {
    to != file.part && layers.get(to).zip(layers.get(file.part)).is_some_and(|(to, own)| to >= own)
}

fn name_at(code: &str) -> &str {
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
    &code[..end]
}

fn upward_imports(file: &File<'_>, house: &House) -> Vec<Finding> {
    let (code, root) = (&file.source.code, house.path());
    // Names of `use` items, which may stand in braces, and paths in the code.
    let imported = imports(&file.source).into_iter().map(|import| (import.item.start, import.path));
    let named = code.match_indices(root.as_str()).map(|(at, _)| {
        let length = code[at..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        (at, code[at..].get(..length.unwrap_or(code.len() - at)).unwrap_or_default().to_owned())
    });
    let mut found: BTreeSet<(usize, String)> = BTreeSet::new();
    for (at, path) in imported.chain(named) {
        let part = path.strip_prefix(root.as_str()).map(name_at).and_then(|name| house.part_with(name));
        if let Some(part) = part.filter(|part| is_up(file, part, &house.layers)) {
            found.insert((line_of(code, at), format!("{root}{part}")));
        }
    }
    let finding = |(line, path)| {
        let why = format!(
            "imports `{path}`, which lies above or beside `{}`: move what both need to a lower part, or hand it in as \
             an argument",
            file.part
        );
        Finding::new(file.path, line, why)
    };
    found.into_iter().map(finding).collect()
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

/// The house of the engine, and one for each of its folders that the list has parts of.
fn list(tree: &Tree) -> (Vec<House>, Vec<Finding>) {
    let (mut houses, mut findings) = (BTreeMap::from([(String::new(), Layers::new())]), Vec::new());
    for (line, entry) in list_entries(tree, LIST) {
        let words: Vec<&str> = entry.split_whitespace().collect();
        match words.as_slice() {
            ["layer", number, part] if number.parse::<u32>().is_ok() => {
                let (folder, part) = part.rsplit_once('/').unwrap_or(("", part));
                let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
                let layers: &mut Layers = houses.entry(folder).or_default();
                layers.insert(part.to_owned(), number.parse().unwrap_or_default());
            }
            ["up", ..] => {
                let why = "no import goes upward: give the part what it needs as a context of lower parts";
                findings.push(Finding::new(LIST, line, why));
            }
            _ => findings.push(Finding::new(LIST, line, "expected `layer N PART` or `layer N FOLDER/PART`")),
        }
    }
    (houses.into_iter().map(|(folder, layers)| House { folder, layers }).collect(), findings)
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
    fn imports_in_braces_go_down_only() {
        let found = messages(&engine("", "//! Table.\nuse crate::{read::get, table::Table};\n"));
        assert!(found.len() == 1 && found[0].contains("table/mod.rs:2: imports `crate::read`"), "{found:?}");
    }

    #[test]
    fn imports_between_the_parts_of_a_folder_go_down_only() {
        let list = "layer 0 table/rows\nlayer 1 table/mod\nlayer 2 table/scan\n";
        let mut tree = engine(list, "//! Table.\nuse crate::table::rows::Row;\npub struct Table;\n");
        tree.insert("crates/terrane-engine/src/table/rows.rs", "//! Rows.\npub struct Row;\n");
        let scan = "//! Scans.\nuse crate::table::{Table, rows::Row};\n";
        tree.insert("crates/terrane-engine/src/table/scan/mod.rs", scan);
        assert_eq!(messages(&tree), Vec::<String>::new());
        let rows = "//! Rows.\nuse crate::table::Table;\nuse crate::table::{scan::Scan};\n";
        tree.insert("crates/terrane-engine/src/table/rows.rs", rows);
        let found = messages(&tree);
        assert!(found.len() == 2 && found[0].contains("rows.rs:2: imports `crate::table::mod`"), "{found:?}");
        assert!(found[1].contains("rows.rs:3: imports `crate::table::scan`"), "{found:?}");
        tree.insert("crates/terrane-engine/src/table/new.rs", "//! New.\n");
        assert!(messages(&tree)[0].contains("part `table/new` has no layer"));
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
        // What another object answers, or a trait asks for, is not such a call.
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
