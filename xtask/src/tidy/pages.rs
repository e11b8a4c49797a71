//! Documents that must say what the code says: a page for each format, a reason for each outside crate, no
//! path that leads nowhere, a row for each example, an answer in each design page, and no generated report: a
//! page keeps the tables and names the command.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::manifest::packages;
use crate::tree::Tree;

const FORMAT: &str = "crates/terrane-format/src";
const DEPENDENCIES: &str = "docs/dependencies.md";
/// The section of crates that no user of the library or the command builds.
const TOOLS: &str = "## In tests, benches and tools";
const SECURITY: &str = "SECURITY.md";
const RECIPES: &str = "docs/recipes.md";
/// Pages for a first reading, with the most words that each may have.
const WORDS_MAX: [(&str, usize); 1] = [("ARCHITECTURE.md", 2400)];

/// Checks the pages.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_formats(tree, &mut findings);
    check_dependencies(tree, &mut findings);
    check_build_scripts(tree, &mut findings);
    check_examples(tree, &mut findings);
    check_lengths(tree, &mut findings);
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        check_paths(tree, path, text, &mut findings);
    }
    for (path, text) in tree.files().filter(|(path, _)| path.starts_with("docs/design/")) {
        if !text.lines().any(|line| line == "## Answer") {
            let why = "a design page without its conclusion: say it in a few sentences under `## Answer`";
            findings.push(Finding::new(path, 0, why));
        }
    }
    for (path, _) in tree.files().filter(|(path, _)| path.starts_with("docs/") && path.ends_with(".html")) {
        let why = "generated report: keep its tables in a page with the command that makes it, and remove it";
        findings.push(Finding::new(path, 0, why));
    }
    findings
}

/// A page that is read at a sitting has at most as many words as it may have.
fn check_lengths(tree: &Tree, findings: &mut Vec<Finding>) {
    for (page, most) in WORDS_MAX {
        let count = tree.get(page).unwrap_or_default().split_whitespace().count();
        if count > most {
            let why = format!(
                "has {count} words, {most} are allowed: it is read in ten minutes; move detail to docs/"
            );
            findings.push(Finding::new(page, 0, why));
        }
    }
}

/// Each public module of `terrane-format` has its page, or its head names the page that covers it.
fn check_formats(tree: &Tree, findings: &mut Vec<Finding>) {
    let library = tree.get(&format!("{FORMAT}/lib.rs")).unwrap_or_default();
    let modules = library.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    for module in modules {
        let page = format!("docs/format/{module}.md");
        if tree.get(&page).is_some() {
            continue;
        }
        let files = [format!("{FORMAT}/{module}.rs"), format!("{FORMAT}/{module}/mod.rs")];
        let head = files.iter().find_map(|file| tree.get(file)).unwrap_or_default();
        let names_page = head.lines().take_while(|line| line.starts_with("//!")).any(|line| {
            quoted_paths(line).any(|path| path.starts_with("docs/format/") && tree.get(path).is_some())
        });
        if !names_page {
            let why =
                format!("format without a page: write {page}, or name the page that covers it in the head");
            findings.push(Finding::new(&files[0], 1, why));
        }
    }
}

/// `docs/dependencies.md` has one row `| \`name\` | ...` for each outside crate that a manifest names.
fn check_dependencies(tree: &Tree, findings: &mut Vec<Finding>) {
    let Ok(packages) = packages(tree) else { return };
    let mut used: BTreeMap<&str, &str> = BTreeMap::new();
    for package in packages.values() {
        for name in package.dependencies.iter().chain(&package.dev_dependencies) {
            if !packages.contains_key(name) {
                used.entry(name).or_insert(&package.path);
            }
        }
    }
    let rows = tree.get(DEPENDENCIES).unwrap_or_default().lines();
    let listed: BTreeSet<&str> =
        rows.filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name)).collect();
    for (name, path) in used.iter().filter(|(name, _)| !listed.contains(**name)) {
        let why =
            format!("depends on `{name}`, which {DEPENDENCIES} does not list: add a row with the reason");
        findings.push(Finding::new(path, 0, why));
    }
    for name in listed.iter().filter(|name| !used.contains_key(**name)) {
        findings.push(Finding::new(DEPENDENCIES, 0, format!("no crate depends on `{name}`: remove the row")));
    }
    let tools = tree.get(DEPENDENCIES).and_then(|page| page.split_once(TOOLS)).map_or("", |(_, rows)| rows);
    for package in packages.values().filter(|package| package.path.starts_with("crates/")) {
        for name in package.needed.iter().filter(|name| tools.contains(&format!("\n| `{name}` |"))) {
            let why =
                format!("`{name}` is listed under tools, and `{}` needs it: move the row", package.name);
            findings.push(Finding::new(DEPENDENCIES, 0, why));
        }
    }
}

/// `SECURITY.md` names every build script: they run on the machine of each user that compiles the library.
fn check_build_scripts(tree: &Tree, findings: &mut Vec<Finding>) {
    let Some(page) = tree.get(SECURITY) else { return };
    let is_script =
        |path: &str| path.starts_with("crates/") && path.ends_with("/build.rs") && !path.contains("/src/");
    for (path, _) in tree.files().filter(|(path, _)| is_script(path)) {
        if !page.contains(&format!("`{path}`")) {
            let why = format!("does not name the build script `{path}` and what it does");
            findings.push(Finding::new(SECURITY, 0, why));
        }
    }
}

/// `docs/recipes.md` names every example, or no reader finds it.
fn check_examples(tree: &Tree, findings: &mut Vec<Finding>) {
    let Some(page) = tree.get(RECIPES) else { return };
    let examples = tree.rust_files().filter_map(|(path, _)| Some((path, path.split_once("/examples/")?.1)));
    for (path, file) in examples {
        if !page.contains(&format!("`{}`", file.trim_end_matches(".rs"))) {
            findings.push(Finding::new(RECIPES, 0, format!("does not name the example `{path}`")));
        }
    }
}

/// Paths and names of source files in back quotes, and targets of links, lead to something in the tree. Logs
/// keep old names.
fn check_paths(tree: &Tree, page: &str, text: &str, findings: &mut Vec<Finding>) {
    let directory = page.rsplit_once('/').map_or("", |(directory, _)| directory);
    for (index, line) in text.lines().enumerate() {
        for path in quoted_paths(line).filter(|path| is_tree_path(path)) {
            if !tree.has(path) {
                findings.push(Finding::new(page, index + 1, format!("`{path}` does not exist")));
            }
        }
        for name in quoted_paths(line).filter(|name| is_source_name(name) && !page.ends_with("-log.md")) {
            let end = format!("/{name}");
            if !tree.rust_files().any(|(path, _)| path.ends_with(&end)) {
                findings.push(Finding::new(
                    page,
                    index + 1,
                    format!("no file of the tree is called `{name}`"),
                ));
            }
        }
        for target in link_targets(line) {
            if !tree.has(&join(directory, target)) {
                findings.push(Finding::new(page, index + 1, format!("the link to {target} leads nowhere")));
            }
        }
    }
}

fn quoted_paths(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_tree_path(path: &str) -> bool {
    let plain = path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    plain && ["crates/", "docs/", "xtask/", "tests/"].iter().any(|start| path.starts_with(start))
}

/// The end of a source file's path, as `write/commit.rs`; a placeholder has capitals.
fn is_source_name(name: &str) -> bool {
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "/._-".contains(c));
    plain && name.ends_with(".rs") && !is_tree_path(name)
}

/// Targets of `[text](target)` that are files of the tree.
fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let files = targets.map(|target| target.split('#').next().unwrap_or_default());
    // What names no file, as an item of the code in the inventory, is not a path.
    files.filter(|target| target.contains('.') && !target.contains([':', ' ']))
}

fn join(directory: &str, target: &str) -> String {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
