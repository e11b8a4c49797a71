//! Locks and atomic variables of the seam (`terrane_base::sync`) in statics. A static outlives one execution
//! of the explorer: the next execution finds the state that the last one left, and objects of the explorer
//! that do not exist any more.

use super::{Finding, is_product};
use crate::imports::{Import, imports, resolved};
use crate::source::Source;
use crate::tree::{Tree, line_of};

/// Where the types of the seam come from; `crate` in the crate that has it.
const SEAMS: [&str; 3] = ["terrane_base::sync", "crate::sync", "shuttle::sync"];
const LOCKS: [&str; 3] = ["Mutex", "RwLock", "Condvar"];

/// Checks product code and the tests of the explorer.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust_files().filter(|(path, _)| is_product(path) || is_explored(path)) {
        let source = Source::new(text).without_tests();
        let imports = imports(&source);
        for (at, of) in statics(&source) {
            if let Some(word) = names(of).find(|name| is_of_seam(&imports, name, at)) {
                let why = format!(
                    "a static of `{word}` of the seam outlives an execution of the explorer: take std::sync::atomic, or a field"
                );
                findings.push(Finding::new(path, line_of(text, at), why));
            }
        }
    }
    findings
}

fn is_explored(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/tests/shuttle")
}

/// Place and type of every static.
fn statics<'s>(source: &'s Source<'_>) -> impl Iterator<Item = (usize, &'s str)> {
    source.find_word("static").filter_map(|at| {
        // Not a lifetime, nor a bound.
        let rest =
            source.code[at..].strip_prefix("static ").filter(|_| !source.code[..at].ends_with('\''))?;
        let end = rest.find(['=', ';'])?;
        let (name, of) = rest[..end].split_once(':')?;
        let is_name = name.trim().chars().all(|c| c.is_alphanumeric() || "_ ".contains(c));
        is_name.then_some((at, of))
    })
}

/// The names and paths in a type.
fn names(of: &str) -> impl Iterator<Item = &str> {
    let parts = of.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    parts.map(|part| part.trim_matches(':')).filter(|part| !part.is_empty())
}

fn is_of_seam(imports: &[Import], name: &str, at: usize) -> bool {
    let last = |path: &str| path.rsplit("::").next().unwrap_or_default().to_owned();
    let is_kind = |name: &str| name.starts_with("Atomic") || LOCKS.contains(&name);
    let is_within =
        |path: &str| SEAMS.iter().any(|seam| path == *seam || path.starts_with(&format!("{seam}::")));
    let path = resolved(imports, name, at);
    if path != name || name.contains("::") {
        return is_kind(&last(&path)) && is_within(&path);
    }
    // A name that no import has: perhaps one that brings in all.
    let globs = imports.iter().filter(|import| import.name == "*" && import.scope.contains(&at));
    is_kind(name) && globs.into_iter().any(|glob| is_within(glob.path.trim_end_matches("::*")))
}
