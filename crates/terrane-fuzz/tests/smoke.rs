//! Every target over its whole corpus and over seeded changes of it: what libFuzzer does for hours, for
//! seconds, on any toolchain.
//!
//! `TERRANE_FUZZ_CASES` multiplies the changes; `TERRANE_FUZZ_SEED` starts elsewhere. A failure names the
//! input's seed, with which `mutated` makes it again.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic, and reads its corpus")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use terrane_fuzz::elsewhere::{object_seeds, read_chained};
use terrane_fuzz::mutate::mutated;
use terrane_fuzz::{corpus, find};

fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a whole number"))
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn smoke(name: &str) {
    let target = find(name).expect("the name of a target");
    let inputs = corpus::read(root(), target).unwrap();
    assert!(!inputs.is_empty(), "{name} has no corpus: run `cargo xtask fuzz-corpus`");
    let attempt = |input: &[u8], what: &dyn Fn() -> String| {
        if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
            panic!("{name}: {} fails: {}", what(), input.escape_ascii());
        }
    };
    for (file, input) in &inputs {
        attempt(input, &|| format!("fuzz/corpus/{name}/{file}"));
    }
    let inputs: Vec<Vec<u8>> = inputs.into_values().collect();
    let first = number_from_env("TERRANE_FUZZ_SEED", 1);
    for seed in first..first + target.smoke * number_from_env("TERRANE_FUZZ_CASES", 1) {
        attempt(&mutated(&inputs, seed), &|| format!("the input of seed {seed}"));
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                smoke(stringify!($name));
            }
        )*
    };
}

targets! {
    block index filter range_deletes codec meta extent external segment replay edit manifest directory prepared backup metrics_page store options text
    import_jsonl import_csv import_tsv import_deb objects deployment jobs data_table object_log job_object clone_object service_request service_answer database engine
}

/// Every target has its test here, its binary for libFuzzer, and the seeds that its code makes.
#[test]
fn every_target_is_complete() {
    let names: Vec<&str> = terrane_fuzz::TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names, TESTED);
    for target in terrane_fuzz::TARGETS {
        let binary = root().join(format!("fuzz/fuzz_targets/{}.rs", target.name));
        assert!(binary.exists(), "{} is missing", binary.display());
        let found = corpus::read(root(), target).unwrap();
        for (name, bytes) in (target.seeds)() {
            let file = format!("{}{name}", corpus::SEED_PREFIX);
            assert_eq!(
                found.get(&file),
                Some(&bytes),
                "{}: {file}: run `cargo xtask fuzz-corpus`",
                target.name
            );
        }
    }
}

/// A seed that is refused at its first edit leads a fuzzer nowhere.
#[test]
fn seeds_of_objects_are_manifests_that_are_read() {
    // "raw" has whole objects, and not payloads.
    for (name, seed) in object_seeds().into_iter().filter(|(name, _)| name != "raw") {
        let state = read_chained(&seed).unwrap_or_else(|why| panic!("the seed {name:?} is refused: {why}"));
        assert!(state.is_some(), "the seed {name:?} has a state");
    }
}
