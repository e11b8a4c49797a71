//! The suites: which steps a tree has, and that a step cannot run for ever.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use xtask::sizes::Sizes;
use xtask::suites::{self, Step, Way, run_within};
use xtask::tidy::Finding;
use xtask::tree::Tree;

#[test]
fn the_suites_find_explorations_and_benches() {
    let tree = Tree::of([
        ("crates/high/benches/ring.rs", ""),
        ("crates/high/tests/shuttle.rs", ""),
        ("crates/low/tests/shuttle.rs", ""),
        ("crates/low/benches/ring.rs", ""),
        ("crates/low/benches/tree.rs", ""),
        ("crates/terrane-sim/tests/schedules.rs", ""),
    ]);
    let commands =
        |steps: &[Step]| -> Vec<String> { steps.iter().map(|step| step.arguments.join(" ")).collect() };
    let of_all = "--workspace --no-default-features --features terrane-cli/grpc,terrane-cli/rocksdb";
    let both = "terrane-sim/planted,terrane-sim/schedule";
    let shuttle = format!("test {of_all},high/shuttle,low/shuttle --test shuttle");
    assert_eq!(
        commands(&suites::test_steps(&tree)),
        [
            format!("test {of_all},{both} --tests"),
            format!("test {of_all},{both} --doc"),
            shuttle.clone(),
            "xtask planted --sample".to_owned(),
        ]
    );
    let soak = suites::soak_steps(&tree);
    assert_eq!(commands(&soak), [format!("test {of_all},{both} --tests"), shuttle], "no other build");
    assert!(soak[0].runs("terrane-sim", "schedules") && !soak[0].runs("terrane-base", "suite"));
    let quick = ["terrane-sim", "terrane-engine", "terrane-journal", "terrane-remote", "terrane-cli"];
    for package in quick.into_iter().chain(["terrane-compaction"]) {
        assert!(!Sizes::Quick(1).variables(package, false).is_empty(), "{package} has sizes");
        assert!(soak[0].runs(package, "suite"), "{package} runs whole in a soak");
    }
    assert!(soak[0].runs("terrane-sim", "values"), "so do the courses below the ceiling of space");
    assert!(soak[1].runs("high", "shuttle"), "a step without a list runs all");
    assert_eq!(
        commands(&suites::bench_steps(&tree)),
        ["test --workspace --bench ring --bench tree -- --test"]
    );
}

#[test]
fn properties_are_found_in_modules_and_test_targets() {
    let property = "proptest! {";
    let tree = Tree::of([
        ("crates/low/tests/model.rs", property),
        ("crates/low/tests/whole/part.rs", property),
        ("crates/low/src/cache/tests.rs", property),
        ("crates/low/tests/plain.rs", ""),
    ]);
    let steps = suites::case_steps(&tree, 7, 9);
    let commands: Vec<String> = steps.iter().map(|step| step.arguments.join(" ")).collect();
    assert_eq!(commands, ["test --workspace --no-fail-fast --lib --test model --test whole"]);
    let variables = [("PROPTEST_CASES", "7".to_owned()), ("PROPTEST_RNG_SEED", "9".to_owned())];
    assert_eq!(steps[0].variables, variables);
}

#[test]
fn a_step_beyond_its_limit_is_ended_with_all_that_it_started() {
    let mut command = Command::new("sh");
    // The pipe closes when the last process that holds it has gone.
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.args(["-c", "sleep 1000 & sleep 1000"]).stdout(writer).stdin(Stdio::null());
    let refused = run_within(&mut command, Duration::from_millis(100)).unwrap_err();
    assert!(refused.contains("its limit"), "{refused}");
    drop(command);
    assert_eq!(reader.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn a_step_within_its_limit_gives_its_status() {
    let status =
        |script: &str| run_within(Command::new("sh").args(["-c", script]), Duration::from_secs(600)).unwrap();
    assert!(status("exit 0").success());
    assert_eq!(status("exit 3").code(), Some(3));
}

#[test]
fn licences_are_read_as_spdx_expressions() {
    let allowed = ["MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
    let is_allowed = |expression| xtask::licences::is_allowed(expression, &allowed);
    for good in [
        "MIT",
        "GPL-3.0 OR MIT",
        "MIT/Apache-2.0",
        "(MIT OR GPL-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception",
        "GPL-3.0 AND X OR MIT",
    ] {
        assert!(is_allowed(good), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "MIT OR",
        "(MIT",
        "MIT)",
        "GPL-2.0 WITH Classpath-exception",
        "MIT MIT",
    ] {
        assert!(!is_allowed(bad), "{bad}");
    }
}

#[test]
fn fuzz_targets_are_the_files() {
    let tree = Tree::of([
        ("fuzz/fuzz_targets/block.rs", ""),
        ("fuzz/other.rs", ""),
        ("fuzz/fuzz_targets/index.rs", ""),
    ]);
    assert_eq!(xtask::tools::fuzz_targets(&tree), ["block", "index"]);
}

#[test]
fn the_sample_of_the_mutation_suite_exists() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let tree = Tree::read(root).unwrap();
    let missing = xtask::planted::missing_from_sample(&tree);
    assert!(missing.is_empty(), "{missing:?}");
}

/// With other features or fewer packages cargo would compile everything again for the sample.
#[test]
fn the_sample_of_the_mutation_suite_takes_programs_of_the_tests() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let tree = Tree::read(root).unwrap();
    let steps = suites::test_steps(&tree);
    let tests = steps[0].arguments.join(" ").replace(" --tests", "");
    let sample = steps.iter().find(|step| step.title == "planted bugs, a sample").unwrap();
    let Way::Command(build) = &sample.way else { panic!("it is a command") };
    assert_eq!(format!("test {}", build.join(" ")), format!("{tests} --test suite"));
}

#[test]
fn the_page_of_planted_bugs_has_the_rows_of_the_code() {
    let list = "bugs! {\n    Skip: \"invariant 1\", \"a sync is left out\", \"ring faults a_sync\";\n}\n";
    let findings = |page: &str| {
        let tree = Tree::of([
            ("crates/terrane-base/src/planted.rs", list),
            ("crates/ring/tests/faults.rs", "fn a_sync_poisons() {}"),
            ("docs/planted-bugs.md", page),
        ]);
        xtask::planted::check(&tree).iter().map(Finding::to_string).collect::<Vec<String>>()
    };
    let row = "| `Skip` | invariant 1 | a sync is left out | ring faults a_sync | caught | 0.3 |\n";
    assert!(findings(row).is_empty(), "{:?}", findings(row));
    let others = [String::new(), row.replace("left out", "late"), row.replace("a_sync", "a_"), row.repeat(2)];
    for other in &others {
        let [finding] = &findings(other)[..] else { panic!("{other:?}: {:?}", findings(other)) };
        assert!(finding.contains("planted --write"), "{finding}");
    }
}

/// The suite of planted bugs would run no test for a name that a test had before it moved.
#[test]
fn the_test_of_a_planted_bug_is_in_the_module_that_its_name_says() {
    let findings = |test: &str, file: &str| {
        let list = format!("bugs! {{\n    Skip: \"invariant 1\", \"a sync is left out\", \"{test}\";\n}}\n");
        let page = format!("| `Skip` | invariant 1 | a sync is left out | {test} | caught | 0.3 |\n");
        let tree = Tree::of([
            ("crates/terrane-base/src/planted.rs", &*list),
            (file, "fn a_sync_poisons() {}"),
            ("docs/planted-bugs.md", &*page),
        ]);
        xtask::planted::check(&tree).iter().map(Finding::to_string).collect::<Vec<String>>()
    };
    for file in ["src/log/ring.rs", "src/log/ring/tests.rs", "src/log/ring/mod.rs"] {
        let file = format!("crates/ring/{file}");
        assert!(findings("ring ring log::ring::tests::a_sync", &file).is_empty(), "{file}");
    }
    assert!(findings("ring suite ring::a_sync", "crates/ring/tests/suite/ring.rs").is_empty());
    let moved = findings("ring ring log::tests::a_sync", "crates/ring/src/log/ring/tests.rs");
    assert!(moved.len() == 1 && moved[0].contains("`log::tests::a_sync`"), "{moved:?}");
}

#[test]
fn planted_bugs_build_the_programs_that_they_name() {
    let bug = |test: &str| xtask::planted::Planted {
        name: String::new(),
        breaks: String::new(),
        what: String::new(),
        test: test.to_owned(),
    };
    let bugs =
        [bug("low-ring faults a_sync"), bug("low-ring low_ring in_the_library"), bug("high faults a_cut")];
    let arguments = xtask::planted::build_arguments(&bugs, "terrane-base/planted").join(" ");
    assert_eq!(arguments, "-p high -p low-ring --lib --test faults --features terrane-base/planted");
}

/// A dependency with default features would bring them in by the way, with a tenth of the whole build.
#[test]
fn the_tests_are_built_without_the_peers_of_the_bench() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let arguments = ["tree", "--locked", "--offline", "--prefix", "none", "--format", "{p}"];
    let features = format!("{},{}", suites::WORKSPACE, suites::FEATURES);
    let mut cargo = Command::new("cargo");
    let tree = cargo.args(arguments).args(features.split_whitespace()).current_dir(root).output().unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let crates = String::from_utf8(tree.stdout).unwrap();
    let built: Vec<&str> = crates.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(built.contains(&"terrane-bench"), "{crates}");
    for peer in ["bf-tree", "fjall", "heed", "redb"] {
        assert!(!built.contains(&peer), "{peer} is built with the tests");
    }
}
