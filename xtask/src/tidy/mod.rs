//! The rules of the house as text checks. Each rule is a pure function from a [`Tree`] to findings; each
//! finding names the place and the remedy.
//!
//! * [`layers`]: edges go down, the crate map is true. [`length`]: files and functions, with a ratchet.
//! * [`bans`]: calls and marks that product code must not hold. [`text`]: what no file may hold.
//! * [`statics`]: locks and atomic variables that outlive an execution of the explorer. [`generators`]: of
//!   pseudo-random numbers, beside the one that there is. [`targets`]: tests that no program has.
//! * [`pages`]: documents that must say what the code says. [`figures`]: counts and limits in them.
//!   [`chart`]: the chart that is made of a recorded table. [`threads`]: the tables of threads.
//!   [`walks`]: the walks through the code.
//!   [`record_kinds`]: those of the journal's format. [`glossary`]: each noun once, with its place.
//!   [`names`]: options, metrics, functions and tests that pages name. [`inventory`]: the page of unsafe
//!   code.
//!   [`examples`]: one for each public function and type of the library. [`shown`]: for those that it shows
//!   of other crates.
//! * [`parts`]: the parts of the engine import downwards only. [`parts_tables`]: pages have each of them.
//!   [`cycles`]: the longest cycle of imports among its modules, a figure. [`contexts`]: methods of the
//!   structs that hold them, with a ratchet.
//! * [`words`]: words that a reader must read twice, with a ratchet. [`width`]: columns of comments, with a
//!   ratchet. [`assertions`]: how dense assertions are, with a ratchet that rises.
//! * [`metrics`]: the page of metrics. [`crate::abi`]: files that are made of the table of the C interface.

pub mod assertions;
pub mod bans;
pub mod chart;
pub mod contexts;
pub mod cycles;
pub mod examples;
pub mod figures;
pub mod generators;
pub mod glossary;
pub mod inventory;
pub mod layers;
pub mod length;
pub mod metrics;
pub mod names;
pub mod pages;
pub mod parts;
pub mod parts_tables;
pub mod record_kinds;
pub mod shown;
pub mod statics;
pub mod targets;
pub mod text;
pub mod threads;
pub mod walks;
pub mod width;
pub mod words;

use std::fmt;
use std::path::Path;

use crate::tree::Tree;

/// Something that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path of the file.
    pub path: String,
    /// Line, from 1; 0 if the finding is about the whole file.
    pub line: usize,
    /// The fault and the remedy.
    pub message: String,
}

impl Finding {
    /// A finding about one line (0: the whole file).
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Finding { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Every finding of every rule, sorted by place.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let rules: [fn(&Tree) -> Vec<Finding>; 27] = [
        layers::check,
        parts::check,
        parts_tables::check,
        contexts::check,
        length::check,
        bans::check,
        statics::check,
        targets::check,
        threads::check,
        walks::check,
        generators::check,
        text::check,
        words::check,
        width::check,
        assertions::check,
        pages::check,
        figures::check,
        examples::check,
        shown::check,
        chart::check,
        record_kinds::check,
        glossary::check,
        names::check,
        inventory::check,
        metrics::check,
        crate::planted::check,
        crate::abi::check,
    ];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| rule(tree)).collect();
    findings.sort();
    findings
}

/// Checks the tree at `root` and prints the findings. With `write`, first renews what can be renewed without
/// a decision: the ratchet goes down, the crate map follows the manifests, the inventory the modules.
///
/// # Errors
/// Says how many findings there are, or why the tree could not be read.
pub fn run(root: &Path, write: bool) -> Result<(), String> {
    let mut tree = Tree::read(root).map_err(|why| format!("cannot read the tree: {why}"))?;
    if write {
        let ratchets = [
            length::renewed(&tree),
            words::renewed(&tree),
            width::renewed(&tree),
            assertions::renewed(&tree),
            contexts::renewed(&tree),
            layers::renewed(&tree),
            inventory::renewed(&tree),
            metrics::renewed(&tree),
            chart::renewed(&tree),
        ];
        write_all(root, &mut tree, ratchets.into_iter().flatten())?;
        // Some figures are counts of the files just written, and one page has both a map and walks.
        let figures = figures::renewed(&tree);
        write_all(root, &mut tree, figures)?;
        let walks = walks::renewed(&tree);
        write_all(root, &mut tree, walks)?;
    }
    let findings = check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            let crates = crate::licences::check(root, &tree)?;
            println!("tidy: {} files, {crates} crates, no findings", tree.files().count());
            Ok(())
        }
        count => Err(format!("tidy: {count} findings")),
    }
}

fn write_all(
    root: &Path,
    tree: &mut Tree,
    pages: impl IntoIterator<Item = (&'static str, String)>,
) -> Result<(), String> {
    for (path, text) in pages {
        std::fs::write(root.join(path), &text).map_err(|why| format!("cannot write {path}: {why}"))?;
        tree.insert(path, &text);
    }
    Ok(())
}

/// Returns true if a path is product code: what runs for users, neither test nor bench nor tool. A
/// `conformance.rs` is a test suite that lies in `src` so that every implementer of a trait can run it.
#[must_use]
pub fn is_product(path: &str) -> bool {
    let inside = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    inside && !path.contains("/tests/") && !path.ends_with("/tests.rs") && !path.ends_with("/conformance.rs")
}

/// The entries of a list file: lines that are neither empty nor comments, with their line numbers.
pub fn list_entries<'a>(tree: &'a Tree, path: &str) -> impl Iterator<Item = (usize, &'a str)> {
    let lines = tree.get(path).unwrap_or_default().lines().enumerate();
    let entries = lines.map(|(index, line)| (index + 1, line.split('#').next().unwrap_or_default().trim()));
    entries.filter(|(_, line)| !line.is_empty())
}
