//! Code that product files must not hold: calls that enter only by doors, panics in place of errors,
//! unfinished work, unsafe code outside the named modules, lints silenced without a reason.

use std::collections::BTreeSet;

use super::{Finding, is_product, list_entries};
use crate::imports::{Import, imports};
use crate::source::Source;
use crate::tree::{Tree, line_of};

/// A word that product code must not hold, and what to write instead.
struct Ban {
    /// Name in `xtask/doors.txt`.
    rule: &'static str,
    words: &'static [&'static str],
    remedy: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        rule: "clock",
        words: &["Instant::now", "SystemTime::now", "thread::sleep"],
        remedy: "use terrane_base::env::Clock",
    },
    Ban {
        rule: "thread",
        words: &["thread::spawn", "thread::Builder", "thread::scope"],
        remedy: "use terrane_base::env::Spawn",
    },
    Ban {
        rule: "file",
        words: &["std::fs", "fs::File", "File::open", "File::create", "OpenOptions"],
        remedy: "use terrane_device::Disk",
    },
    Ban {
        rule: "random",
        words: &["rand::", "fastrand::", "getrandom", "RandomState"],
        remedy: "use terrane_base::env::Random",
    },
    Ban {
        rule: "lock",
        words: &[
            "parking_lot::",
            "std::sync::Mutex",
            "std::sync::RwLock",
            "std::sync::Condvar",
            "std::sync::Barrier",
            "std::sync::mpsc",
            "std::sync::*",
            "use std::sync;",
        ],
        remedy: "use terrane_base::sync, or no explored schedule stops there",
    },
    Ban { rule: "unwrap", words: &[".unwrap()"], remedy: "return an Error, or `expect` the invariant" },
    Ban { rule: "debris", words: &["dbg!", "todo!", "unimplemented!"], remedy: "finish it or take it out" },
];

const DOORS: &str = "xtask/doors.txt";
pub(super) const UNSAFE: &str = "xtask/unsafe.txt";

/// Checks product code for banned words, and all code for silenced lints and unfinished marks.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_words(tree, &mut findings);
    check_unsafe(tree, &mut findings);
    for (path, text) in tree.rust_files() {
        check_lints(path, &Source::new(text), &mut findings);
        check_marks(path, text, &mut findings);
    }
    findings
}

fn check_words(tree: &Tree, findings: &mut Vec<Finding>) {
    let doors: Vec<(usize, &str, &str)> = list_entries(tree, DOORS)
        .filter_map(|(line, entry)| entry.split_once(' ').map(|(rule, path)| (line, rule, path.trim())))
        .collect();
    let mut used = BTreeSet::new();
    for (path, text) in tree.rust_files().filter(|(path, _)| is_product(path)) {
        let source = Source::new(text).without_tests();
        let grouped: Vec<Import> = imports(&source)
            .into_iter()
            .filter(|import| source.code[import.item.clone()].contains('{'))
            .collect();
        for ban in BANS {
            let door = doors.iter().find(|(_, rule, door)| *rule == ban.rule && path.starts_with(door));
            for (word, at) in
                ban.words.iter().flat_map(|word| places(&source, &grouped, word).map(move |at| (word, at)))
            {
                match door {
                    Some((line, ..)) => drop(used.insert(*line)),
                    None => {
                        let why = format!("`{word}` outside the doors ({}): {}", ban.rule, ban.remedy);
                        findings.push(Finding::new(path, line_of(text, at), why));
                    }
                }
            }
        }
    }
    for (line, rule, path) in doors.iter().filter(|(line, ..)| !used.contains(line)) {
        findings.push(Finding::new(DOORS, *line, format!("door `{rule} {path}` is not used: remove it")));
    }
}

/// Where a word stands: as it is, or spread over the braces of an import.
fn places<'s>(
    source: &'s Source<'_>,
    grouped: &'s [Import],
    word: &'s str,
) -> impl Iterator<Item = usize> + 's {
    let is_meant = move |import: &&Import| {
        let stands = source.code[import.item.clone()].contains(word);
        !stands && Source::new(&format!("use {};", import.path)).find_word(word).next().is_some()
    };
    let spread = grouped.iter().filter(is_meant).map(|import| import.item.start);
    source.find_word(word).chain(spread)
}

fn check_unsafe(tree: &Tree, findings: &mut Vec<Finding>) {
    let named: BTreeSet<&str> = list_entries(tree, UNSAFE).map(|(_, path)| path).collect();
    let mut found = BTreeSet::new();
    for (path, text) in tree.rust_files().filter(|(path, _)| is_product(path)) {
        let Some(at) = Source::new(text).find_word("unsafe").next() else { continue };
        found.insert(path);
        if !named.contains(path) {
            let why =
                format!("`unsafe` in a module that is not in {UNSAFE}: do without it, or name the module");
            findings.push(Finding::new(path, line_of(text, at), why));
        }
    }
    for path in named.difference(&found) {
        findings.push(Finding::new(
            UNSAFE,
            0,
            format!("{path} holds no unsafe code: remove it from the list"),
        ));
    }
}

/// `allow` hides a lint for ever; `expect` with a reason tells why and when it is over. Helpers that several
/// test binaries share cannot promise that a lint fires in each, so tests may `allow`, with a reason.
fn check_lints(path: &str, source: &Source<'_>, findings: &mut Vec<Finding>) {
    for mark in ["#[allow(", "#![allow(", "#[expect(", "#![expect("] {
        for (at, _) in source.code.match_indices(mark) {
            let attribute = &source.code[at..];
            let attribute = attribute.split_once(")]").map_or(attribute, |(before, _)| before);
            let why = if mark.contains("allow") && is_product(path) {
                "`allow` in product code: write `expect(lint, reason = \"...\")`"
            } else if !attribute.contains("reason") {
                "lint silenced without a reason: add `reason = \"...\"`"
            } else {
                continue;
            };
            findings.push(Finding::new(path, line_of(source.text, at), why));
        }
    }
}

/// A mark of unfinished work is fine only with the number of the issue that will finish it.
fn check_marks(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for mark in [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")] {
        for (at, _) in text.match_indices(mark) {
            let rest = &text[at + mark.len()..];
            let part_of_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            let inside = part_of_name(text[..at].chars().next_back()) || part_of_name(rest.chars().next());
            if !inside && !rest.starts_with("(#") {
                let why = format!("bare {mark}: finish it, or write {mark}(#ISSUE)");
                findings.push(Finding::new(path, line_of(text, at), why));
            }
        }
    }
}
