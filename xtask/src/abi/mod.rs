//! RocksDB's C interface: `crates/terrane-rocksdb/abi.toml` is its only source. [`rust`] makes the mechanical
//! functions of it, [`header`] the C header, [`page`] the documentation; [`check`] compares the functions
//! that are written by hand with it.

mod check;
pub mod header;
mod ignored;
pub mod page;
pub mod rust;
pub mod table;
mod values;

use std::path::Path;

use self::table::Abi;
use crate::tidy::Finding;
use crate::tree::Tree;

const TABLE: &str = "crates/terrane-rocksdb/abi.toml";

/// Every generated file, with its path.
fn generated(abi: &Abi) -> Result<Vec<(String, String)>, String> {
    let mut files = rust::files(abi)?;
    files.push((header::PATH.to_owned(), header::text(abi)));
    files.push((page::PATH.to_owned(), page::text(abi)));
    Ok(files)
}

/// Checks that the generated files follow from the table, and that every function is there as the table says.
/// A tree without the table needs nothing.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.get(TABLE) else { return Vec::new() };
    let files = Abi::parse(text).and_then(|abi| Ok((generated(&abi)?, abi)));
    let (files, abi) = match files {
        Ok(files) => files,
        Err(why) => return vec![Finding::new(TABLE, 0, why)],
    };
    let stale = files.iter().filter(|(path, text)| tree.get(path) != Some(text));
    let mut findings: Vec<Finding> = stale
        .map(|(path, _)| Finding::new(path, 0, "not what abi.toml says: run `cargo xtask abi --write`"))
        .collect();
    let left = tree.files().filter(|(path, _)| path.starts_with(rust::DIRECTORY));
    findings.extend(
        left.filter(|(path, _)| !files.iter().any(|(known, _)| known == path))
            .map(|(path, _)| Finding::new(path, 0, "nothing generates this file: remove it")),
    );
    findings.extend(check::by_hand(tree, &abi));
    findings
}

/// Checks what the table makes, or with `write` makes it, and prints how many functions are in which state.
///
/// # Errors
/// Why the table or a file cannot be read or written, or how many findings there are.
pub fn run(root: &Path, write: bool) -> Result<(), String> {
    let mut tree = Tree::read(root).map_err(|why| format!("cannot read the tree: {why}"))?;
    let abi = Abi::parse(tree.get(TABLE).ok_or("there is no abi.toml")?)?;
    if write {
        let files = generated(&abi)?;
        let old =
            tree.files().map(|(path, _)| path.to_owned()).filter(|path| path.starts_with(rust::DIRECTORY));
        for path in old.filter(|path| !files.iter().any(|(known, _)| known == path)) {
            std::fs::remove_file(root.join(&path)).map_err(|why| format!("cannot remove {path}: {why}"))?;
        }
        for (path, text) in files {
            let to = root.join(&path);
            let parent = to.parent().expect("a path within the repository");
            std::fs::create_dir_all(parent)
                .map_err(|why| format!("cannot make {}: {why}", parent.display()))?;
            std::fs::write(&to, &text).map_err(|why| format!("cannot write {path}: {why}"))?;
        }
        tree = Tree::read(root).map_err(|why| format!("cannot read the tree: {why}"))?;
    }
    let findings = check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    for state in table::State::ALL {
        println!("{}: {}", state.word(), abi.functions().filter(|function| function.state == state).count());
    }
    if findings.is_empty() { Ok(()) } else { Err(format!("abi: {} findings", findings.len())) }
}
