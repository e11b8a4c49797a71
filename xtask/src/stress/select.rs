//! Which test targets take part.
//!
//! A target takes part if it has properties, starts threads, is named for what it tries on a component, or
//! belongs to a crate whose every database has a background of real threads. What would take part and does
//! not is in `LEFT_OUT` with its reason; what a target needs to end within seconds is in `SETTINGS`.

use std::collections::BTreeSet;

use self::Value::{Drawn, Fixed};
use crate::tree::Tree;

/// Texts that mark a target with properties or threads.
const MARKS: [&str; 4] = ["proptest! {", "thread::scope(", "thread::spawn(", "spawn.spawn("];
/// Names of targets that try a component as a whole.
const NAMES: [&str; 7] = ["conformance", "crash", "faults", "model", "power", "stress", "threads"];
/// Crates whose tests open databases, with the threads of their background.
const WITH_BACKGROUND: [&str; 2] = ["terrane", "terrane-engine"];
/// Crates that are left out whole.
const CRATES_LEFT_OUT: [(&str, &str); 5] = [
    ("terrane-bench", "loads and reports; its threads are those of the load"),
    ("terrane-cli", "processes and texts; what they run is tried by the crates below"),
    ("terrane-fuzz", "one thread"),
    ("terrane-rocksdb", "programs in C, compiled by the test; what they run is tried by the crates below"),
    ("terrane-sim", "one thread that steps the background; `terrane sim` is its long run"),
];
/// Targets that are left out: why, and package and target.
const LEFT_OUT: [(&str, &[(&str, &str)]); 4] = [
    (
        "stored bytes that are damaged or of another version, opened with nothing beside them",
        &[
            ("terrane", "golden"),
            ("terrane-engine", "forged"),
            ("terrane-engine", "hostile"),
            ("terrane-engine", "limits"),
            ("terrane-engine", "lost"),
            ("terrane-engine", "rot"),
        ],
    ),
    (
        "what single calls refuse or cost, or take in space at a rate that is kept",
        &[("terrane", "limits"), ("terrane", "misuse"), ("terrane", "permissions"), ("terrane", "promises")],
    ),
    (
        "a program of its own, which runs itself as the child that is killed, and knows no names of tests",
        &[("terrane", "real")],
    ),
    ("one thread and the same seeds each time, and a minute long", &[("terrane-compaction", "model")]),
];

/// Settings of some targets. Measured on two cores with eight loops beside two other builds: no run should
/// take much more than half a minute there. Alone that is two to four seconds, which [`CASES`] cases keep to
/// in most targets.
const SETTINGS: &[Setting] = &[
    Setting::of("terrane", "auto_compaction").in_parts(),
    Setting::of("terrane", "ceiling").in_parts(),
    Setting::of("terrane", "cursors").in_parts(),
    Setting::of("terrane", "ingest").with_cases(12),
    Setting::of("terrane", "key_orders").with_cases(5),
    Setting::of("terrane", "memory_budget").in_parts(),
    Setting::of("terrane", "prefixes").with_cases(32),
    Setting::of("terrane", "range_deletes").with_cases(12),
    Setting::of("terrane", "transactions")
        .with(&[("TERRANE_TRANSACTIONS", Fixed(100)), ("TERRANE_TRANSACTIONS_SEED", Drawn)]),
    Setting::of("terrane-engine", "backup").in_parts(),
    Setting::of("terrane-engine", "checkpoint").in_parts(),
    Setting::of("terrane-engine", "concurrent").in_parts(),
    Setting::of("terrane-engine", "faults").in_parts(),
    Setting::of("terrane-engine", "follow").with(&[("TERRANE_FOLLOW_SEED", Drawn)]),
    Setting::of("terrane-engine", "power")
        .in_parts()
        .with(&[("TERRANE_POWER_HISTORIES", Fixed(10)), ("TERRANE_POWER_SEED", Drawn)]),
    Setting::of("terrane-engine", "rest").in_parts(),
    Setting::of("terrane-journal", "hostile").with_cases(16),
];
/// Cases of each property where the target says nothing else.
const CASES: u32 = 64;

/// The settings of a target.
#[derive(Clone, Copy, Debug)]
struct Setting {
    package: &'static str,
    target: &'static str,
    cases: u32,
    is_in_parts: bool,
    variables: Variables,
}

impl Setting {
    const fn of(package: &'static str, target: &'static str) -> Setting {
        Setting { package, target, cases: CASES, is_in_parts: false, variables: &[] }
    }

    /// So many cases of each property.
    const fn with_cases(self, cases: u32) -> Setting {
        Setting { cases, ..self }
    }

    /// Each run does one of its tests.
    const fn in_parts(self) -> Setting {
        Setting { is_in_parts: true, ..self }
    }

    /// Variables for it.
    const fn with(self, variables: Variables) -> Setting {
        Setting { variables, ..self }
    }
}

/// Names and values.
pub type Variables = &'static [(&'static str, Value)];

/// The value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Always this.
    Fixed(u64),
    /// Another in each run: a seed.
    Drawn,
}

/// The test target whose modules take part one by one: a crate's tests in one program.
const SUITE: &str = "suite";

/// A test target that takes part, or a module of `SUITE`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The package, which is the name of its folder too.
    pub package: String,
    /// Name of the file in `tests` or `tests/suite`; none for the tests within the library.
    pub test: Option<String>,
    /// True if it is a module of `tests/suite`.
    pub is_in_suite: bool,
}

impl Target {
    /// Its name: as the file of its tests, or as cargo names the library.
    #[must_use]
    pub fn name(&self) -> String {
        self.test.clone().unwrap_or_else(|| self.package.replace('-', "_"))
    }

    /// As cargo names the target with its tests.
    #[must_use]
    pub fn cargo_name(&self) -> String {
        if self.is_in_suite { SUITE.to_owned() } else { self.name() }
    }

    /// The beginning of the names of its tests, if its program has others as well.
    #[must_use]
    pub fn prefix(&self) -> Option<String> {
        self.is_in_suite.then(|| format!("{}::", self.name()))
    }

    /// Cases of each property in one run.
    #[must_use]
    pub fn cases(&self) -> u32 {
        self.setting().map_or(CASES, |setting| setting.cases)
    }

    /// Returns true if each run does one of its tests only.
    #[must_use]
    pub fn is_in_parts(&self) -> bool {
        self.setting().is_some_and(|setting| setting.is_in_parts)
    }

    /// Other variables of a run.
    #[must_use]
    pub fn variables(&self) -> Variables {
        self.setting().map_or(&[], |setting| setting.variables)
    }

    fn setting(&self) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| self.is(setting.package, setting.target))
    }

    fn is(&self, package: &str, target: &str) -> bool {
        self.package == package && self.name() == target
    }
}

/// The targets of a tree that take part, in order; with a filter, those that have it in `package target`.
#[must_use]
pub fn targets(tree: &Tree, only: Option<&str>) -> Vec<Target> {
    let found: BTreeSet<Target> = tree
        .rust_files()
        .filter_map(|(path, text)| {
            let target = target_of(tree, path)?;
            (takes_part(&target) && (is_marked(path, text) || is_named(&target))).then_some(target)
        })
        .collect();
    let is_meant = |target: &Target| {
        only.is_none_or(|only| format!("{} {}", target.package, target.name()).contains(only))
    };
    found.into_iter().filter(is_meant).collect()
}

/// Rows of the lists that no target of the tree has.
#[must_use]
pub fn unknown_rows(tree: &Tree) -> Vec<String> {
    let all: BTreeSet<Target> = tree.rust_files().filter_map(|(path, _)| target_of(tree, path)).collect();
    let rows = left_out().chain(SETTINGS.iter().map(|setting| (setting.package, setting.target)));
    let targets = rows.filter(|(package, target)| all.iter().all(|known| !known.is(package, target)));
    let crates = CRATES_LEFT_OUT.iter().map(|(package, _)| *package).chain(WITH_BACKGROUND);
    let crates = crates.filter(|package| !tree.has(&format!("crates/{package}")));
    targets.map(|(package, target)| format!("{package} {target}")).chain(crates.map(str::to_owned)).collect()
}

/// The target that a file belongs to.
fn target_of(tree: &Tree, path: &str) -> Option<Target> {
    let target = |package: &str, test: Option<&str>, is_in_suite| {
        Some(Target { package: package.to_owned(), test: test.map(str::to_owned), is_in_suite })
    };
    let has = |tests: &str| {
        [".rs", "/main.rs"].iter().any(|end| tree.get(&format!("crates/{tests}{end}")).is_some())
    };
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["crates", _, "tests", SUITE, "main.rs"] => None,
        ["crates", package, "tests", SUITE, file] => target(package, Some(file.strip_suffix(".rs")?), true),
        // A folder of a target or module, or of what several share.
        ["crates", package, "tests", SUITE, folder, ..] => {
            if has(&format!("{package}/tests/{SUITE}/{folder}")) {
                target(package, Some(folder), true)
            } else {
                None
            }
        }
        ["crates", package, "tests", file] => target(package, Some(file.strip_suffix(".rs")?), false),
        ["crates", package, "tests", folder, ..] => {
            if has(&format!("{package}/tests/{folder}")) {
                target(package, Some(folder), false)
            } else {
                None
            }
        }
        ["crates", package, "src", ..] => target(package, None, false),
        _ => None,
    }
}

/// In the library only tests count.
fn is_marked(path: &str, text: &str) -> bool {
    let tests = if path.contains("/tests/") || path.ends_with("tests.rs") {
        text
    } else {
        text.split_once("#[cfg(test)]").map_or("", |(_, tests)| tests)
    };
    MARKS.iter().any(|mark| tests.contains(mark))
}

fn is_named(target: &Target) -> bool {
    let Some(test) = &target.test else { return false };
    NAMES.contains(&test.as_str()) || WITH_BACKGROUND.contains(&target.package.as_str())
}

fn takes_part(target: &Target) -> bool {
    // Schedules of an explorer: without its feature there is nothing in it.
    target.test.as_deref() != Some("shuttle")
        && CRATES_LEFT_OUT.iter().all(|(package, _)| *package != target.package)
        && left_out().all(|(package, test)| !target.is(package, test))
}

fn left_out() -> impl Iterator<Item = (&'static str, &'static str)> {
    LEFT_OUT.iter().flat_map(|(_, targets)| targets.iter().copied())
}
