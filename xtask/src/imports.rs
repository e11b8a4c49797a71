//! The imports of a file: each name of its `use` items with its full path, and its scope.

use std::ops::Range;

use crate::source::{Source, item_end};

/// One name that a `use` item brings in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The path as it stands, without braces: `std::sync::Mutex`.
    pub path: String,
    /// The name that code says; `*` for all that the path has.
    pub name: String,
    /// Bytes of the whole item.
    pub item: Range<usize>,
    /// Bytes of the block that the item stands in; the whole file, if in none.
    pub scope: Range<usize>,
}

/// Every import of a file.
#[must_use]
pub fn imports(source: &Source<'_>) -> Vec<Import> {
    let code = source.code.as_str();
    let mut found = Vec::new();
    for at in source.find_word("use") {
        // A bound of captures: `impl Trait + use<'a>`.
        if code[at + 3..].trim_start().starts_with('<') {
            continue;
        }
        let end = code[at..].find(';').map_or(code.len(), |length| at + length);
        let scope = block_around(code, at);
        expand("", &code[at + 3..end], &mut |path, name| {
            let (path, name, scope) = (path.to_owned(), name.to_owned(), scope.clone());
            found.push(Import { path, name, item: at..end, scope });
        });
    }
    found
}

/// The path that the first segment of `path` stands for at byte `at`: that of the innermost import, or
/// itself.
#[must_use]
pub fn resolved(imports: &[Import], path: &str, at: usize) -> String {
    let (first, rest) = path.split_once("::").map_or((path, None), |(first, rest)| (first, Some(rest)));
    let visible = imports.iter().filter(|import| import.scope.contains(&at));
    let named = visible.filter(|import| import.name == first).max_by_key(|import| import.scope.start);
    match (named, rest) {
        (Some(import), Some(rest)) => format!("{}::{rest}", import.path),
        (Some(import), None) => import.path.clone(),
        (None, _) => path.to_owned(),
    }
}

/// Calls `each` with every path and name of a tree such as `a::{b, c::{self, d as e}}`.
fn expand(before: &str, tree: &str, each: &mut dyn FnMut(&str, &str)) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let before = joined(before, head.trim().trim_end_matches("::"));
        let group = group.rsplit_once('}').map_or(group, |(group, _)| group);
        split_at_commas(group).for_each(|part| expand(&before, part, each));
        return;
    }
    let (path, name) = tree.split_once(" as ").map_or((tree, None), |(path, name)| (path, Some(name.trim())));
    let path = joined(before, path.trim());
    if path.is_empty() {
        return;
    }
    let path = path.strip_suffix("::self").unwrap_or(&path);
    each(path, name.unwrap_or_else(|| path.rsplit("::").next().unwrap_or(path)));
}

fn joined(before: &str, path: &str) -> String {
    let path = path.trim_start_matches("::");
    match (before, path) {
        ("", path) => path.to_owned(),
        (before, "") => before.to_owned(),
        (before, path) => format!("{before}::{path}"),
    }
}

/// The parts between commas that stand in no further braces.
fn split_at_commas(group: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    group.split(move |c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    })
}

/// The innermost block that has byte `at` within it.
fn block_around(code: &str, at: usize) -> Range<usize> {
    let mut depth = 0;
    let open = code[..at].bytes().rposition(|byte| {
        depth += i32::from(byte == b'}') - i32::from(byte == b'{');
        depth < 0
    });
    open.map_or(0..code.len(), |open| open..item_end(code, open))
}
