//! Each public function and type of the library crate has an example in its documentation, which compiles as
//! a test; so has each item of the crates below that it shows ([`shown`](super::shown)).
//!
//! Items that `#[doc(hidden)]` takes out of the pages need no example. A public function is one that `pub`
//! stands in front of: the compiler refuses a `pub` that nothing outside can reach.

use super::{Finding, is_product};
use crate::source::Source;
use crate::tree::{Tree, line_of};

pub(super) const LIBRARY: &str = "crates/terrane/src/";
pub(super) const HIDDEN: &str = "#[doc(hidden)]";

/// Checks every public function and type of the library.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust_files().filter(|(path, _)| path.starts_with(LIBRARY) && is_product(path)) {
        let source = Source::new(text).without_tests();
        for at in source.find_word("pub") {
            let (rest, line) = (&source.code[at..], line_of(text, at));
            // A type in another item is one of a module that is not shown.
            let is_outside = at == 0 || source.code[..at].ends_with('\n');
            let name = function(rest).or_else(|| type_name(rest).filter(|_| is_outside));
            let Some(name) = name else { continue };
            if !head(text, line).any(|line| line.starts_with("/// ```") || line == HIDDEN) {
                let why = format!("`{name}` has no example: show a use of it, between two lines of ```");
                findings.push(Finding::new(path, line, why));
            }
        }
    }
    findings
}

/// The name of the function that a `pub` begins; nothing if it begins another item, or one of the crate only.
pub(super) fn function(code: &str) -> Option<&str> {
    let mut words = code.split_whitespace();
    if words.next() != Some("pub") {
        return None;
    }
    let mut rest = words.skip_while(|word| ["const", "unsafe", "async"].contains(word));
    if rest.next() != Some("fn") {
        return None;
    }
    rest.next()?.split(['(', '<']).next()
}

/// The name of the type or trait that a `pub` begins.
pub(super) fn type_name(code: &str) -> Option<&str> {
    let mut words = code.split_whitespace();
    let is_type = words.next() == Some("pub") && ["struct", "enum", "trait"].contains(&words.next()?);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    words.next().filter(|_| is_type)?.split(|c| !is_of_name(c)).next()
}

/// Documentation and attributes in front of `line`, from the last to the first.
pub(super) fn head(text: &str, line: usize) -> impl Iterator<Item = &str> {
    let before: Vec<&str> = text.lines().take(line - 1).map(str::trim).collect();
    // What ends the item before ends with a brace or a semicolon; attributes may go over several lines.
    let is_head =
        |line: &&str| line.starts_with("///") || !line.is_empty() && !line.ends_with(['{', '}', ';']);
    before.into_iter().rev().take_while(is_head)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "//! Shown.
impl A {
    /// Gives it.
    ///
    /// ```
    /// a.shown();
    /// ```
    #[must_use]
    pub fn shown(&self) -> u8 {
        self.0
    }

    /// Gives it; {braces};
    #[expect(
        lint,
        reason = \"of two lines\"
    )]
    pub const fn bare<T>(&self) -> u8 {
        self.0
    }
    /// Gives it.
    #[doc(hidden)]
    pub fn hidden(&self) {}
    pub(crate) fn inside(&self) {}
    pub field: u8,
}
mod sealed {
    pub trait Sealed {}
}
pub struct Bare<T>(T);
";

    #[test]
    fn a_public_item_without_an_example_is_named() {
        let found = check(&Tree::of([("crates/terrane/src/a.rs", CODE)]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/terrane/src/a.rs", 18));
        assert!(found[0].message.contains("`bare` has no example"), "{found:?}");
        assert!(found[1].message.contains("`Bare` has no example"), "{found:?}");
        let elsewhere = check(&Tree::of([("crates/terrane-engine/src/a.rs", CODE)]));
        assert!(elsewhere.is_empty(), "only the library is for users: {elsewhere:?}");
    }
}
