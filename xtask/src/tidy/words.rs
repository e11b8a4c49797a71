//! Words that a reader from another country must read twice, counted over code and pages. `xtask/words.txt`
//! says how often each may stand in the tree; the counts only fall.
//!
//! A word counts where it stands alone: between characters that are neither letters nor digits, so that parts
//! of names count, too. In the name of a function `_` is a blank, so that phrases count in names of tests.
//! "It is no file" counts; "there is no file", "it is no longer" and "it is no older" do not.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Finding, list_entries};
use crate::tree::Tree;

const RATCHET: &str = "xtask/words.txt";
const HEAD: &str = "\
# How often words may stand in code and pages that a reader must read twice: `COUNT WORDS`. A count may only fall;
# `cargo xtask tidy --write` lowers counts, never raises one. What to write instead: `xtask/src/tidy/words.rs`.
";
/// Files in which the words are named.
const NAMED_IN: [&str; 3] = [RATCHET, "xtask/src/tidy/words.rs", "xtask/src/tidy/figures/house.rs"];

/// Each word or phrase, and what to write instead.
pub const WORDS: &[(&str, &str)] = &[
    ("who", "name the agent: reader, writer, flush, compaction, caller"),
    ("whom", "name the agent: reader, writer, flush, compaction, caller"),
    ("whoever", "name the agent: `a caller that ...`"),
    ("nobody", "name the agent: `no reader`, `no writer`"),
    ("somebody", "name the agent: `a reader`, `a writer`"),
    ("everybody", "name the agents: `every reader`, `all callers`"),
    ("is told", "say what happens: `the caller gets the error`, `the listener is called`"),
    ("are told", "say what happens: `callers get the error`, `listeners are called`"),
    ("on its way", "say the state: `running`, `not indexed yet`, `not durable yet`"),
    ("on their way", "say the state: `running`, `not indexed yet`, `not durable yet`"),
    ("let in", "the field's term: `admitted`"),
    ("lets in", "the field's term: `admits`"),
    ("owes", "the field's term: `debt`"),
    ("owed", "the field's term: `debt`"),
    ("owe", "the field's term: `debt`"),
    ("at hand", "say where it is: `registered`, `in memory`"),
    ("picture", "the glossary's noun: `read view` of a table, `metasnapshot` of its levels"),
    ("patience", "the glossary's noun: `lock wait`, `write deadline`"),
    ("/// what", "begin with the noun or the verb: `The extents that ..`, `Returns the ..`"),
    ("//! what", "begin with the noun: `Bounds of ..`, `The page of ..`"),
    ("fn what", "begin the name of a test with its subject"),
    ("what is", "name the thing: `the file`, `the stored value`"),
    ("told", "say what happens: `returned`, `reported`, `logged`, `distinguished from`"),
    ("is none", "say what is missing: `there is no ..`, `lacks ..`, `is not ..`"),
    ("are none", "say what is missing: `there are no ..`, `lack ..`, `are not ..`"),
    ("is no", "`is not a ..`; the phrase with `there` or a comparative does not count"),
    ("are no", "`are not ..`; the phrase with `there` or a comparative does not count"),
    ("no more", "`no longer`, `not .. any more`, `at most`"),
    ("anew", "`again`, `from the beginning`"),
    ("/// whether", "a function: `Returns true if ..`; a field or a constant: `True if ..`"),
];

/// Phrases that deny a noun: what a sentence says by them, `not` says, too.
const DENIALS: [&str; 2] = ["is no", "are no"];
/// Words behind which they stand for `not`.
const COMPARATIVES: [&str; 8] = ["longer", "more", "older", "newer", "smaller", "larger", "less", "later"];

/// Checks the counts.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let (allowed, mut findings) = ratchet(tree);
    for (words, count) in counts(tree) {
        let most = allowed.get(words).copied().unwrap_or(0);
        if count > most {
            let instead = WORDS.iter().find(|(known, _)| *known == words).map_or("", |(_, instead)| instead);
            let why = format!("`{words}` stands {count} times in the tree, {most} are allowed: {instead}");
            findings.push(Finding::new(RATCHET, 0, why));
        }
    }
    findings
}

/// How often each of [`WORDS`] stands in Rust files and pages.
fn counts(tree: &Tree) -> BTreeMap<&'static str, usize> {
    let mut counts: BTreeMap<&str, usize> = WORDS.iter().map(|(words, _)| (*words, 0)).collect();
    for (path, text) in tree.files() {
        let is_text = path.ends_with(".rs") || path.ends_with(".md");
        if !is_text || NAMED_IN.contains(&path) {
            continue;
        }
        let text = with_blanks(&text.to_lowercase());
        for (words, count) in &mut counts {
            *count += times(&text, words);
        }
    }
    counts
}

/// With blanks for `_` in the names of functions.
fn with_blanks(text: &str) -> String {
    let mut parts = text.split("fn ");
    let mut blank = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        blank.extend(["fn ", &name.replace('_', " "), rest]);
    }
    blank
}

fn times(text: &str, words: &str) -> usize {
    let stands_alone = |at: usize| {
        let (before, behind) = (text[..at].chars().next_back(), text[at + words.len()..].chars().next());
        ![before, behind].into_iter().flatten().any(char::is_alphanumeric)
    };
    let counts =
        |at: usize| !DENIALS.contains(&words) || denies_a_noun(&text[..at], &text[at + words.len()..]);
    text.match_indices(words).filter(|(at, _)| stands_alone(*at) && counts(*at)).count()
}

/// Returns true if the text between these says of a thing that it is not another one.
fn denies_a_noun(before: &str, behind: &str) -> bool {
    // A line of comment may end between the words.
    let is_between = |c: char| c.is_whitespace() || matches!(c, '/' | '!' | '\\');
    let (before, behind) = (before.trim_end_matches(is_between), behind.trim_start_matches(is_between));
    let end = behind.find(|c: char| !c.is_alphanumeric()).unwrap_or(behind.len());
    !before.ends_with("there") && end > 0 && !COMPARATIVES.contains(&&behind[..end])
}

fn ratchet(tree: &Tree) -> (BTreeMap<String, usize>, Vec<Finding>) {
    let (mut allowed, mut findings) = (BTreeMap::new(), Vec::new());
    for (line, entry) in list_entries(tree, RATCHET) {
        let parts = entry.split_once(' ').and_then(|(count, words)| Some((words, count.parse().ok()?)));
        match parts {
            Some((words, count)) if WORDS.iter().any(|(known, _)| *known == words) => {
                allowed.insert(words.to_owned(), count);
            }
            _ => findings.push(Finding::new(
                RATCHET,
                line,
                "expected `COUNT WORDS`, with words that are counted",
            )),
        }
    }
    (allowed, findings)
}

/// The ratchet with every count lowered to the present one, if that changes it.
#[must_use]
pub fn renewed(tree: &Tree) -> Option<(&'static str, String)> {
    let (allowed, _) = ratchet(tree);
    let mut text = HEAD.to_owned();
    for (words, count) in counts(tree) {
        let _ = writeln!(text, "{} {words}", count.min(allowed.get(words).copied().unwrap_or(0)));
    }
    (tree.get(RATCHET) != Some(&text)).then_some((RATCHET, text))
}
