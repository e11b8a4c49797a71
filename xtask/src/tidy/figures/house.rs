//! Figures of the page about the engine's parts: sizes of the contexts, numbers of options, and what the
//! files of tidy allow now.

use super::{Figure, figure, grouped, is_option, rows};
use crate::tidy::contexts::CONTEXTS;
use crate::tidy::{cycles, list_entries, parts, words};
use crate::tree::Tree;

const PAGE: &str = "docs/design/0031-engine-of-parts.md";
const OPTIONS: &str = "crates/terrane-base/src/options.rs";
const DIAGNOSTICS: &str = "crates/terrane-base/src/options/diagnostics.rs";
const EXPERIMENTS: &str = "crates/terrane-base/src/options/experiments.rs";
const ENGINE: &str = "crates/terrane-engine/src/engine.rs";
const WIDTH: &str = "xtask/width.txt";
const WORDS: &str = "xtask/words.txt";
const ASSERTIONS: &str = "xtask/assertions.txt";
const RATCHET: &str = "xtask/ratchet.txt";

/// Words that stand for an agent without its name.
const PRONOUNS: [&str; 6] = ["who", "whom", "whoever", "nobody", "somebody", "everybody"];
/// Idioms for a state or a debt.
const IDIOMS: [&str; 6] = ["is told", "are told", "on its way", "on their way", "owes", "at hand"];

pub(super) const FIGURES: &[Figure] = &[
    figure(PAGE, ["There are ", " options now: "], OPTIONS, |tree, _| {
        grouped([OPTIONS, DIAGNOSTICS, EXPERIMENTS].into_iter().map(|path| options(tree, path)).sum())
    }),
    figure(PAGE, [" options now: ", " ordinary ones"], OPTIONS, |tree, at| grouped(options(tree, at))),
    figure(PAGE, [" ordinary ones, ", " in\n`Options::diagnostics`"], DIAGNOSTICS, |tree, at| {
        grouped(options(tree, at))
    }),
    figure(PAGE, ["`Options::diagnostics`, ", " in `Options::experiments`"], EXPERIMENTS, |tree, at| {
        grouped(options(tree, at))
    }),
    figure(PAGE, ["| ordinary options | 61 | ", " |"], OPTIONS, |tree, at| grouped(options(tree, at))),
    figure(PAGE, ["methods | 43; 319 | ", " on the four structs"], ENGINE, contexts),
    figure(PAGE, ["as `cycles.rs` of tidy counts them | 40 of 133 | ", " |"], ENGINE, |tree, _| {
        let (cycle, modules) = cycles::longest(tree)?;
        Some(format!("{cycle} of {modules}"))
    }),
    figure(PAGE, ["110 columns | 2,710 | ", " |"], WIDTH, |tree, at| {
        Some(sum(tree, at, |_| true).to_string())
    }),
    figure(PAGE, ["`words.txt` | 1,148 | ", " |"], WORDS, |tree, at| words_left(tree, at, PRONOUNS)),
    figure(PAGE, ["`words.txt` | 288 | ", " |"], WORDS, |tree, at| words_left(tree, at, IDIOMS)),
    figure(PAGE, ["| 39; 3 of 748 | ", " |"], ASSERTIONS, |tree, at| {
        assertions(tree, at, &["terrane-engine"])
    }),
    figure(PAGE, ["| 61; 39 of 923 | ", " |"], ASSERTIONS, |tree, at| {
        let crates = ["journal", "memtable", "table", "levels", "storage", "compaction"];
        assertions(tree, at, &crates.map(|name| format!("terrane-{name}")))
    }),
    figure(PAGE, ["| files above 400 lines | 2 | ", " |"], RATCHET, |tree, at| {
        Some(list_entries(tree, at).filter(|(_, entry)| entry.starts_with("file ")).count().to_string())
    }),
];

fn options(tree: &Tree, path: &str) -> u64 {
    rows(tree, path, "options! {", "}", is_option)
}

/// `FIELDS OF ENGINE; METHODS OF ALL CONTEXTS`.
fn contexts(tree: &Tree, engine: &str) -> Option<String> {
    let is_field = |line: &str| line.starts_with("    ") && !line.trim_start().starts_with("//");
    let fields = rows(tree, engine, "pub struct Engine {", "}", is_field);
    let methods: u64 = parts::method_counts(tree, &CONTEXTS).into_values().sum();
    (fields > 0 && methods > 0).then(|| format!("{fields}; {methods}"))
}

/// The sum of the counts of a file of `COUNT WORDS` or `NAME COUNT` whose words are counted.
fn sum(tree: &Tree, path: &str, is_counted: impl Fn(&str) -> bool) -> u64 {
    let counts = list_entries(tree, path).filter_map(|(_, entry)| {
        let (first, rest) = entry.split_once(' ')?;
        let (count, words) = match first.parse::<u64>() {
            Ok(count) => (count, rest),
            Err(_) => (rest.parse().ok()?, first),
        };
        is_counted(words).then_some(count)
    });
    counts.sum()
}

/// Nothing if one of the words is not counted any more.
fn words_left(tree: &Tree, path: &str, of: [&str; 6]) -> Option<String> {
    let are_known = of.iter().all(|word| words::WORDS.iter().any(|(known, _)| known == word));
    are_known.then(|| sum(tree, path, |words| of.contains(&words)).to_string())
}

/// `ASSERTIONS; FUNCTIONS THAT HAVE ONE of FUNCTIONS WITH STATE` of these crates.
fn assertions(tree: &Tree, path: &str, of: &[impl AsRef<str>]) -> Option<String> {
    let (mut found, mut sums) = (0, [0u64; 3]);
    for (_, entry) in list_entries(tree, path) {
        let words: Vec<&str> = entry.split_whitespace().collect();
        let [name, functions, assertions, _, asserted] = words[..] else { continue };
        if of.iter().any(|known| known.as_ref() == name) {
            found += 1;
            for (sum, count) in sums.iter_mut().zip([functions, assertions, asserted]) {
                *sum += count.parse::<u64>().ok()?;
            }
        }
    }
    let [functions, assertions, asserted] = sums;
    let text = || Some(format!("{assertions}; {} of {}", grouped(asserted)?, grouped(functions)?));
    (found == of.len()).then(text).flatten()
}
