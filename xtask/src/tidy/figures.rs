//! Figures in pages that follow from the code: each stands between two fixed texts of its page, and must be
//! equal to its source. `cargo xtask tidy --write` renews them.
//!
//! A figure that is not found is a finding too: a page is not reworded past its check. To drop a figure, drop
//! its row here.

mod house;

use super::Finding;
use crate::planted::planted;
use crate::tree::Tree;

/// The most bytes of a figure: a longer text between its two texts is another sentence.
const FIGURE_BYTES_MAX: usize = 24;

/// One figure of a page.
struct Figure {
    page: &'static str,
    /// The text in front of it, once in the page.
    before: &'static str,
    /// The text behind it.
    after: &'static str,
    /// The file or folder that decides it.
    source: &'static str,
    /// The figure as the page writes it; nothing if the source does not have it.
    says: fn(&Tree, &str) -> Option<String>,
}

const KEY: &str = "crates/terrane-base/src/key.rs";
const SIM: &str = "crates/terrane-sim/src";
const ENGINE: &str = "crates/terrane-engine/src";
const JOURNAL: &str = "crates/terrane-journal/src";
const OPTIONS: &str = "crates/terrane-base/src/options.rs";
const FUZZ: &str = "crates/terrane-fuzz/src/lib.rs";
const BUGS: &str = "crates/terrane-base/src/planted.rs";
const CAUGHT: &str = "docs/planted-bugs.md";

const fn figure(
    page: &'static str,
    [before, after]: [&'static str; 2],
    source: &'static str,
    says: fn(&Tree, &str) -> Option<String>,
) -> Figure {
    Figure { page, before, after, source, says }
}

const FIGURES: &[Figure] = &[
    figure("README.md", ["| key | ", ","], KEY, |tree, at| size(constant(tree, at, "KEY_BYTES_MAX")?)),
    figure("README.md", ["| value | ", ","], KEY, |tree, at| size(constant(tree, at, "VALUE_BYTES_MAX")?)),
    figure("README.md", [" by default), at most ", " |"], KEY, |tree, at| {
        size(constant(tree, at, "BATCH_BYTES_MAX")?)
    }),
    figure("README.md", ["| tables | ", " |"], ENGINE, |tree, at| grouped(constant(tree, at, "TABLES_MAX")?)),
    figure("SECURITY.md", ["| key, value | ", ","], KEY, |tree, at| {
        size(constant(tree, at, "KEY_BYTES_MAX")?)
    }),
    figure("SECURITY.md", ["| tables, table numbers | ", " at a time"], ENGINE, |tree, at| {
        grouped(constant(tree, at, "TABLES_MAX")?)
    }),
    figure("docs/tuning.md", ["The ", " options of a database"], OPTIONS, |tree, at| {
        grouped(rows(tree, at, "options! {", "}", is_option))
    }),
    figure("docs/reliability.md", ["| planted bugs | ", " of "], CAUGHT, |tree, at| {
        grouped(rows(tree, at, "|---|---|---|---|---|---|", "", |line| line.contains(" | caught | ")))
    }),
    figure("docs/reliability.md", [" of ", " caught"], BUGS, |tree, _| grouped(planted(tree).len() as u64)),
    figure("docs/reliability.md", ["today ", " kinds of operation"], SIM, |tree, at| {
        grouped(kinds(tree, at)?)
    }),
    figure("docs/reliability.md", ["kinds of operation, ", " pairs"], SIM, |tree, at| {
        grouped(kinds(tree, at)?.pow(2))
    }),
    figure("docs/reliability.md", ["There are ", " fuzz targets"], FUZZ, |tree, at| {
        grouped(rows(tree, at, "pub const TARGETS", "];", |line| line.contains("name: \"")))
    }),
    figure("docs/design/0001-mapped-append.md", ["(up to ", " turns of"], JOURNAL, |tree, at| {
        grouped(constant(tree, at, "GATHER_TURNS")?)
    }),
];

fn all() -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().chain(house::FIGURES)
}

/// Checks every figure whose page or source is there.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    all().filter_map(|figure| check_one(tree, figure)).collect()
}

fn check_one(tree: &Tree, figure: &Figure) -> Option<Finding> {
    let Figure { page, before, after, source, says } = figure;
    // A list of tidy alone needs no page; the same page has figures of code, which need it.
    if tree.get(page).is_none() && (!tree.has(source) || source.starts_with("xtask/")) {
        return None;
    }
    let text = tree.get(page).unwrap_or_default();
    let why = match (place(text, before, after), says(tree, source)) {
        (Some(range), Some(said)) if text[range.clone()] == said => return None,
        (Some(range), Some(said)) => {
            format!("says {} where {source} has {said}: run `cargo xtask tidy --write`", &text[range])
        }
        (None, _) => format!("lacks the figure between `{before}` and `{after}`, which tidy checks"),
        (_, None) => format!("the figure behind `{before}` is not found in {source}"),
    };
    Some(Finding::new(page, 0, why))
}

/// The pages with every figure as the code has it, where that changes them.
#[must_use]
pub fn renewed(tree: &Tree) -> Vec<(&'static str, String)> {
    let mut pages: Vec<(&'static str, String)> = Vec::new();
    for Figure { page, before, after, source, says } in all() {
        let known = pages.iter().position(|(path, _)| path == page);
        let Some(text) = known.map(|at| pages[at].1.clone()).or_else(|| tree.get(page).map(str::to_owned))
        else {
            continue;
        };
        let (Some(range), Some(said)) = (place(&text, before, after), says(tree, source)) else { continue };
        let renewed = [&text[..range.start], &said, &text[range.end..]].concat();
        match known {
            Some(at) => pages[at].1 = renewed,
            None => pages.push((page, renewed)),
        }
    }
    pages.retain(|(path, text)| tree.get(path) != Some(text));
    pages
}

/// Where a figure stands: between the first pair of its texts with a short text without a line break in
/// between.
fn place(text: &str, before: &str, after: &str) -> Option<std::ops::Range<usize>> {
    text.match_indices(before).find_map(|(at, _)| {
        let start = at + before.len();
        let bytes = text[start..].find(after)?;
        let is_figure = (1..=FIGURE_BYTES_MAX).contains(&bytes)
            && text[start..].starts_with(|first: char| first.is_ascii_digit());
        (is_figure && !text[start..start + bytes].contains('\n')).then_some(start..start + bytes)
    })
}

/// The value of the one constant of this name in the files at or under `at`.
fn constant(tree: &Tree, at: &str, name: &str) -> Option<u64> {
    let mark = format!("const {name}: ");
    let inside = format!("{at}/");
    let files = tree.rust_files().filter(|(path, _)| *path == at || path.starts_with(&inside));
    let mut values = files.flat_map(|(_, text)| text.split(&mark).skip(1)).filter_map(|rest| {
        let value = rest.split_once(" = ")?.1.split_once(';')?.0;
        number(value.rsplit_once("else {").map_or(value, |(_, value)| value.trim_end_matches([' ', '}'])))
    });
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

/// A product or a shift of plain numbers.
fn number(text: &str) -> Option<u64> {
    let plain = |text: &str| text.trim().replace('_', "").parse::<u64>().ok();
    match text.split_once("<<") {
        Some((value, bits)) => plain(value)?.checked_shl(u32::try_from(plain(bits)?).ok()?),
        None => text.split('*').map(plain).try_fold(1u64, |product, factor| product.checked_mul(factor?)),
    }
}

/// Kinds of operation of the crash explorer.
fn kinds(tree: &Tree, at: &str) -> Option<u64> {
    let inside = format!("{at}/");
    let files = tree.rust_files().filter(|(path, _)| path.starts_with(&inside));
    let mut counts =
        files.filter_map(|(_, text)| number(text.split_once("const KINDS: [Kind; ")?.1.split_once(']')?.0));
    counts.next()
}

/// Lines between the line that begins with `first` and the one that is `last` (or the end) for which `is_row`
/// holds.
fn rows(tree: &Tree, path: &str, first: &str, last: &str, is_row: fn(&str) -> bool) -> u64 {
    let lines = tree.get(path).unwrap_or_default().lines();
    let inside = lines.skip_while(|line| !line.starts_with(first)).skip(1);
    inside.take_while(|line| last.is_empty() || *line != last).filter(|line| is_row(line)).count() as u64
}

/// Returns true if a line of the table of options begins one: a name and its type, at the first indentation.
fn is_option(line: &str) -> bool {
    let name = line.strip_prefix("    ").and_then(|line| line.split_once(": ")).map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// With commas between thousands.
fn grouped(value: u64) -> Option<String> {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    (value > 0).then_some(text)
}

/// As whole KiB, MiB or GiB.
fn size(bytes: u64) -> Option<String> {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let (bits, unit) = units.into_iter().find(|(bits, _)| bytes.is_multiple_of(1 << bits))?;
    Some(format!("{} {unit}", bytes >> bits))
}
