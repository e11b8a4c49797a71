//! `docs/unsafe.md`: the modules that hold unsafe code, how much of it, and why. The list of modules is
//! `xtask/unsafe.txt`; everything else is read from the modules themselves, so the page cannot say otherwise.

use std::fmt::Write as _;

use super::bans::UNSAFE;
use super::{Finding, list_entries};
use crate::source::{Source, item_end};
use crate::tree::Tree;

const PAGE: &str = "docs/unsafe.md";
const HEAD: &str = "\
# Unsafe code

`cargo xtask tidy --write` writes this page from `xtask/unsafe.txt` and the modules. `cargo xtask tidy` refuses a
page that differs from them, and unsafe code in any other module. Every block gives its reason in a `// SAFETY:` comment, every
module its rules in its head. Lines are the lines within blocks, without tests. `cargo xtask miri` and `cargo xtask
sanitize` run the modules that they support.

| module | content | why unsafe | blocks | functions and impls | lines |
|---|---|---|---|---|---|
";

/// The content of one module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    blocks: usize,
    /// `unsafe fn`, `unsafe impl`, `unsafe trait`, `unsafe extern`.
    items: usize,
    lines: usize,
}

/// Checks that the page is what the modules say.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    match renewed(tree) {
        Some(_) => {
            let why = "the inventory is not what the modules say: run `cargo xtask tidy --write`";
            vec![Finding::new(PAGE, 0, why)]
        }
        None => Vec::new(),
    }
}

/// The page as the modules say, if it differs. A tree without unsafe code needs none.
#[must_use]
pub fn renewed(tree: &Tree) -> Option<(&'static str, String)> {
    let mut page = HEAD.to_owned();
    let mut total = Count::default();
    let mut modules = 0;
    for (path, text) in list_entries(tree, UNSAFE).filter_map(|(_, path)| Some((path, tree.get(path)?))) {
        let count = count(text);
        let (what, why) = (first_sentence(text), reason(text));
        let Count { blocks, items, lines } = count;
        let _ = writeln!(page, "| `{path}` | {what} | {why} | {blocks} | {items} | {lines} |");
        total.blocks += blocks;
        total.items += items;
        total.lines += lines;
        modules += 1;
    }
    if modules == 0 {
        return None;
    }
    let Count { blocks, items, lines } = total;
    let _ = writeln!(
        page,
        "\n{modules} modules, {blocks} blocks, {items} functions and impls, {lines} lines within blocks."
    );
    (tree.get(PAGE) != Some(&page)).then_some((PAGE, page))
}

fn count(text: &str) -> Count {
    let source = Source::new(text).without_tests();
    let mut count = Count::default();
    for at in source.find_word("unsafe") {
        if source.code[at + "unsafe".len()..].trim_start().starts_with('{') {
            let block = &source.code[at..item_end(&source.code, at)];
            count.blocks += 1;
            count.lines += 1 + block.bytes().filter(|&byte| byte == b'\n').count();
        } else {
            count.items += 1;
        }
    }
    count
}

/// The first sentence of the module's head.
fn first_sentence(text: &str) -> String {
    let head = text.lines().take_while(|line| line.starts_with("//!"));
    let head: Vec<&str> = head.map(|line| line.trim_start_matches("//!").trim()).collect();
    let paragraph = head.iter().take_while(|line| !line.is_empty()).copied().collect::<Vec<_>>().join(" ");
    let end = paragraph.find(". ").unwrap_or(paragraph.trim_end_matches('.').len());
    paragraph[..end].replace('|', "\\|")
}

/// The reasons that the module gives where it silences the lint.
fn reason(text: &str) -> String {
    let code = Source::new(text).without_tests().code;
    let mut reasons = Vec::new();
    for (at, mark) in code.match_indices("expect(unsafe_code") {
        let given =
            text[at + mark.len()..].split_once("reason = \"").and_then(|(_, rest)| rest.split_once('"'));
        if let Some((reason, _)) = given
            && !reasons.contains(&reason)
        {
            reasons.push(reason);
        }
    }
    reasons.join("; ").replace('|', "\\|")
}
