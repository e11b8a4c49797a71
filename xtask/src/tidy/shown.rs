//! Examples of the items that the library shows of the crates below it, by `pub use` in its `lib.rs`.
//!
//! A trait, which users implement, has an example. So has each function: its own one, or a call in an example
//! of its type, where a function alone says nothing. A type without functions is shown by what returns it.
//! A name is looked up in the crate that is named, or in all crates where that one only passes it on.
//! Exempt is what `xtask/examples.txt` names, which has no line for what has an example.

use std::collections::BTreeSet;

use super::examples::{HIDDEN, LIBRARY, function, head, type_name};
use super::{Finding, is_product};
use crate::source::Source;
use crate::tree::Tree;

const EXEMPT: &str = "xtask/examples.txt";

/// Something that should have an example.
struct Item<'t> {
    path: &'t str,
    line: usize,
    /// `Type::function`, or the name of a trait or a free function.
    name: String,
    has_example: bool,
}

/// A file without its tests, as written and without comments and strings, line by line.
struct File<'t> {
    path: &'t str,
    text: &'t str,
    code: String,
}

/// Checks every item that the library shows.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let shown = tree.get(&format!("{LIBRARY}lib.rs")).map(names).unwrap_or_default();
    let files: Vec<File<'_>> = tree.rust_files().filter_map(|(path, text)| File::of(path, text)).collect();
    let items: Vec<Item<'_>> = shown.iter().flat_map(|(of, name)| items(&files, of, name)).collect();
    let list = tree.get(EXEMPT).unwrap_or_default();
    let exempt: BTreeSet<&str> =
        list.lines().map(|line| line.split('#').next().unwrap_or("").trim()).collect();
    let lacks: BTreeSet<&str> =
        items.iter().filter(|item| !item.has_example).map(|item| item.name.as_str()).collect();
    let unknown = exempt.iter().filter(|name| !name.is_empty() && !lacks.contains(*name)).map(|name| {
        Finding::new(EXEMPT, 0, format!("`{name}` is not there, or has an example: remove its line"))
    });
    let bare = items.iter().filter(|item| !item.has_example && !exempt.contains(item.name.as_str()));
    let bare = bare.map(|Item { path, line, name, .. }| {
        let why = format!(
            "`{name}` is shown by the library and has no example: show a use of it, here or on its type"
        );
        Finding::new(path, *line, why)
    });
    unknown.chain(bare).collect()
}

/// The crates and names of `pub use`.
fn names(library: &str) -> BTreeSet<(String, String)> {
    let mut names = BTreeSet::new();
    for part in library.split("\npub use terrane_").skip(1) {
        let statement = part.split(';').next().unwrap_or(part);
        let of = format!("terrane-{}", statement.split("::").next().unwrap_or(statement));
        let list = statement.split_once('{').map_or(statement, |(_, list)| list.trim_end_matches('}'));
        for name in list.split(',').map(|path| path.rsplit("::").next().unwrap_or(path).trim()) {
            if !name.is_empty() {
                names.insert((of.clone(), name.to_owned()));
            }
        }
    }
    names
}

impl<'t> File<'t> {
    fn of(path: &'t str, text: &'t str) -> Option<File<'t>> {
        let is_below = path.starts_with("crates/") && !path.starts_with(LIBRARY) && is_product(path);
        is_below.then(|| File { path, text, code: Source::new(text).without_tests().code })
    }

    /// Lines that begin an item outside of all others, with their numbers.
    fn outer(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.code.lines()).filter(|(_, line)| line.starts_with("pub "))
    }

    /// Functions in the `impl` blocks of a type.
    fn functions_of<'s>(&'s self, name: &'s str) -> impl Iterator<Item = (usize, &'s str)> {
        let mut is_inside = false;
        (1..).zip(self.code.lines()).filter_map(move |(number, line)| {
            if line.starts_with("impl") || line.starts_with('}') {
                is_inside = subject(line) == Some(name);
            }
            let function =
                line.strip_prefix("    ").filter(|line| line.starts_with("pub ")).and_then(function);
            function.filter(|_| is_inside).map(|function| (number, function))
        })
    }

    fn is_hidden(&self, line: usize) -> bool {
        head(self.text, line).any(|line| line == HIDDEN)
    }

    /// The code of the examples of what begins in a line.
    fn examples(&self, line: usize) -> String {
        let mut lines: Vec<&str> =
            head(self.text, line).filter_map(|line| line.strip_prefix("///")).collect();
        lines.reverse();
        let mut is_code = false;
        let code = lines.into_iter().filter(|line| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            is_code && !is_fence
        });
        code.fold(String::new(), |all, line| all + line + "\n")
    }
}

/// The type of an `impl` block of its own functions.
fn subject(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        })?;
        rest = &rest[end + 1..];
    }
    let is_of_trait = rest.contains(" for ");
    rest.trim_start().split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().filter(|_| !is_of_trait)
}

/// The parts of a name that need an example.
fn items<'t>(files: &[File<'t>], of: &str, name: &str) -> Vec<Item<'t>> {
    let folder = format!("crates/{of}/src/");
    let is_named = |code: &str| type_name(code) == Some(name) || function(code) == Some(name);
    let defines = |file: &&File<'_>| file.outer().any(|(_, code)| is_named(code));
    let is_own = files.iter().filter(|file| file.path.starts_with(&folder)).any(|file| defines(&file));
    // The whole crate: a type has functions in several files.
    let homes: Vec<&str> = match is_own {
        true => vec![&folder],
        false => files
            .iter()
            .filter(defines)
            .filter_map(|file| file.path.split_inclusive("/src/").next())
            .collect(),
    };
    let homes = if homes.is_empty() { vec![folder.as_str()] } else { homes };
    let near: Vec<&File<'t>> =
        files.iter().filter(|file| homes.iter().any(|home| file.path.starts_with(home))).collect();
    let (mut items, mut of_type) = (Vec::new(), String::new());
    for file in &near {
        for (line, code) in file.outer().filter(|(_, code)| is_named(code)) {
            let example = file.examples(line);
            if function(code).is_some() || code.starts_with("pub trait ") {
                let has_example = !example.is_empty() || file.is_hidden(line);
                items.push(Item { path: file.path, line, name: name.to_owned(), has_example });
            }
            of_type += &example;
        }
    }
    for file in near {
        for (line, function) in file.functions_of(name) {
            let is_called = [".", "::"].iter().any(|dots| of_type.contains(&format!("{dots}{function}(")));
            let has_example = is_called || file.is_hidden(line) || !file.examples(line).is_empty();
            items.push(Item { path: file.path, line, name: format!("{name}::{function}"), has_example });
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str =
        "//! The library.\npub use terrane_b::{inner::Shape, Hears, count};\npub use terrane_b::Passed;\n";
    const BELOW: &str = "/// A shape.
///
/// ```
/// b::Shape::new().grow(2);
/// ```
pub struct Shape<T>(T);

impl<T: Into<u64>> Shape<T> {
    /// Called above.
    pub fn new() -> Self {}
    /// Called above.
    pub fn grow(&self, by: u64) {}
    /// Not called.
    pub fn shrink(&self) {}
    #[doc(hidden)]
    pub fn hidden(&self) {}
    fn own(&self) {}
}

impl Iterator for Shape<u8> {
    pub fn of_a_trait() {}
}

pub trait Hears {}
pub fn count() {}
pub fn not_shown() {}
";
    const PASSED: &str = "pub struct Passed;\nimpl Passed {\n    pub fn on(&self) {}\n}\n";

    fn found(exempt: &str) -> Vec<String> {
        let files = [
            ("crates/terrane/src/lib.rs", LIB),
            ("crates/terrane-b/src/inner.rs", BELOW),
            ("crates/terrane-c/src/lib.rs", PASSED),
            (EXEMPT, exempt),
        ];
        let name = |finding: &Finding| finding.message.split('`').nth(1).unwrap_or_default().to_owned();
        check(&Tree::of(files)).iter().map(name).collect()
    }

    #[test]
    fn items_that_the_library_shows_have_examples() {
        assert_eq!(found(""), ["Hears", "Passed::on", "Shape::shrink", "count"]);
    }

    #[test]
    fn exemptions_hold_for_what_lacks_an_example_and_for_nothing_else() {
        let list = "# Why.\nHears # reason\nPassed::on\nShape::shrink\ncount\n";
        assert!(found(list).is_empty());
        assert_eq!(found(&format!("{list}Shape::grow\nGone\n")), ["Gone", "Shape::grow"]);
    }
}
