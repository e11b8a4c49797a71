//! Each public function of the library crate has an example in its documentation, which compiles as a test.
//!
//! Functions that `#[doc(hidden)]` takes out of the pages need no example. A public function is one that
//! `pub` stands in front of: the compiler refuses a `pub` that nothing outside can reach.

use super::{Finding, is_product};
use crate::source::Source;
use crate::tree::{Tree, line_of};

const LIBRARY: &str = "crates/terrane/src/";
const HIDDEN: &str = "#[doc(hidden)]";

/// Checks every public function of the library.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust_files().filter(|(path, _)| path.starts_with(LIBRARY) && is_product(path)) {
        let source = Source::new(text).without_tests();
        for at in source.find_word("pub") {
            let Some(name) = function(&source.code[at..]) else { continue };
            let line = line_of(text, at);
            if !head(text, line).any(|line| line.starts_with("/// ```") || line == HIDDEN) {
                let why = format!("`{name}` has no example: show a call of it, between two lines of ```");
                findings.push(Finding::new(path, line, why));
            }
        }
    }
    findings
}

/// The name of the function that a `pub` begins; nothing if it begins another item, or one of the crate only.
fn function(code: &str) -> Option<&str> {
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

/// Documentation and attributes in front of `line`, from the last to the first.
fn head(text: &str, line: usize) -> impl Iterator<Item = &str> {
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
";

    #[test]
    fn a_public_function_without_an_example_is_named() {
        let found = check(&Tree::of([("crates/terrane/src/a.rs", CODE)]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/terrane/src/a.rs", 18));
        assert!(found[0].message.contains("`bare` has no example"), "{found:?}");
        let elsewhere = check(&Tree::of([("crates/terrane-engine/src/a.rs", CODE)]));
        assert!(elsewhere.is_empty(), "only the library is for users: {elsewhere:?}");
    }
}
