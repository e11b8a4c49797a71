//! Commands that need more than a stable toolchain and this workspace: fuzzing, sanitizers, Miri, cargo-deny,
//! the code of the protocol. Before it starts, each names the missing tools and how to get them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tree::Tree;

/// Where a target's binary for libFuzzer lies.
const TARGETS: &str = "fuzz/fuzz_targets/";
/// Longest time for one input, in seconds: slower is a finding.
const INPUT_SECONDS: u32 = 20;
/// Most memory of a fuzzing process and of one allocation, in MiB.
const MEMORY_MIB: (u32, u32) = (3000, 1500);
const HOST: &str = "x86_64-unknown-linux-gnu";

/// Tests that Miri runs: modules with unsafe code, in tests that end within minutes at its speed. What maps
/// files or spins on many threads is for the sanitizers. Package, then arguments of `cargo test`.
const MIRI: &[(&str, &str)] = &[
    ("terrane", "--lib cores::lane"),
    ("terrane-memtable", "--test suite global::"),
    ("terrane-table", "--test suite a_meta_that_does_not_fit_is_an_error"),
    ("terrane-base", "--lib epoch"),
];

/// Tests that the sanitizers run.
const SANITIZED: &[(&str, &str)] = &[
    ("terrane", "--lib cores::lane"),
    ("terrane-journal", "--test suite conformance:: -- --skip pm::"),
    ("terrane-memtable", "--test suite stress::"),
    ("terrane-table", "--lib --test cache"),
    ("terrane-table", "--test suite swip::"),
    ("terrane-engine", "--test suite concurrent::"),
];

/// Runs one target, or all in turn, for `seconds` each; new findings are kept below the target directory of
/// cargo, and the committed corpus stays as it is.
///
/// # Errors
/// Names the missing tool, or the target that failed.
pub fn fuzz(root: &Path, target: Option<&str>, seconds: u32) -> Result<(), String> {
    let tree = Tree::read(root).map_err(|why| format!("cannot read the tree: {why}"))?;
    let all: Vec<String> = fuzz_targets(&tree);
    let chosen: Vec<String> = match target {
        Some(name) if all.iter().any(|known| known == name) => vec![name.to_owned()],
        Some(name) => return Err(format!("there is no fuzz target {name}; there are {}", all.join(", "))),
        None => all,
    };
    require_nightly(&[])?;
    require("fuzz", "cargo-fuzz")?;
    for name in &chosen {
        let kept = target_dir(root).join("fuzz-corpus").join(name);
        std::fs::create_dir_all(&kept).map_err(|why| format!("cannot make {}: {why}", kept.display()))?;
        let mut command = cargo(root, "+nightly");
        command.args(["fuzz", "run", "--fuzz-dir", "fuzz", name]).arg(&kept);
        command.arg(root.join("fuzz/corpus").join(name)).arg("--").args(libfuzzer_arguments(seconds));
        run(&mut command, &format!("fuzz target {name}"))?;
    }
    println!("xtask: {} fuzz targets ran {seconds} s each, no finding", chosen.len());
    Ok(())
}

/// The names of the fuzz targets.
#[must_use]
pub fn fuzz_targets(tree: &Tree) -> Vec<String> {
    let names = tree.rust_files().filter_map(|(path, _)| path.strip_prefix(TARGETS)?.strip_suffix(".rs"));
    names.map(str::to_owned).collect()
}

fn libfuzzer_arguments(seconds: u32) -> Vec<String> {
    let (process, allocation) = MEMORY_MIB;
    vec![
        format!("-max_total_time={seconds}"),
        format!("-timeout={INPUT_SECONDS}"),
        format!("-rss_limit_mb={process}"),
        format!("-malloc_limit_mb={allocation}"),
        "-max_len=65536".to_owned(),
        "-print_final_stats=1".to_owned(),
    ]
}

/// Writes the seeds of the corpora again.
///
/// # Errors
/// Says that the command failed.
pub fn fuzz_corpus(root: &Path) -> Result<(), String> {
    let mut command = Command::new(cargo_program());
    command.args(["run", "--package", "terrane-fuzz", "--example", "corpus"]).current_dir(root);
    run(&mut command, "writing the corpora")
}

/// The protocol of the storage service, and its code.
const PROTOCOL: (&str, &str) =
    ("crates/terrane-remote/proto/storage.proto", "crates/terrane-remote/proto/storage.rs.in");

/// Writes the code of the protocol again, or compares it. The program that does it is not a member of the
/// workspace, so that no other build waits for it.
///
/// # Errors
/// Says that the command failed, or that the code is not that of the protocol.
pub fn proto(root: &Path, is_check: bool) -> Result<(), String> {
    let out = target_dir(root).join("proto");
    std::fs::create_dir_all(&out).map_err(|why| format!("cannot make {}: {why}", out.display()))?;
    let (made, kept) = (out.join("storage.rs.in"), root.join(PROTOCOL.1));
    let mut command = Command::new(cargo_program());
    command
        .args(["run", "--locked", "--manifest-path", "xtask/proto/Cargo.toml", "--", PROTOCOL.0])
        .arg(&made);
    run(command.current_dir(root).env("CARGO_TARGET_DIR", &out), "the code of the protocol")?;
    let read = |path: &Path| std::fs::read(path).map_err(|why| format!("{}: {why}", path.display()));
    let text = read(&made)?;
    if !is_check {
        return std::fs::write(&kept, text).map_err(|why| format!("{}: {why}", kept.display()));
    }
    if read(&kept)? != text {
        return Err(format!("{} is not the code of {}: run `cargo xtask proto`", PROTOCOL.1, PROTOCOL.0));
    }
    println!("xtask: {} is the code of {}", PROTOCOL.1, PROTOCOL.0);
    Ok(())
}

/// Runs the tests of `MIRI`.
///
/// # Errors
/// Names the missing tool, or the package that failed.
pub fn miri(root: &Path) -> Result<(), String> {
    require_nightly(&["miri", "rust-src"])?;
    for (package, arguments) in MIRI {
        let mut command = cargo(root, "+nightly");
        command.args(["miri", "test", "--package", package]).args(arguments.split_whitespace());
        // Isolation would hide the clock from the tests. Tree borrows, casts and leaks: crossbeam-epoch finds
        // its list of threads through pointers made of numbers, and keeps retired memory at the end of a
        // process. Few cases: Miri is some hundred times slower.
        command.env(
            "MIRIFLAGS",
            "-Zmiri-disable-isolation -Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks",
        );
        command.env("PROPTEST_CASES", "2");
        run(&mut command, &format!("Miri on {package}"))?;
    }
    println!("xtask: Miri found nothing in {} packages", MIRI.len());
    Ok(())
}

/// Runs the tests of `SANITIZED` under a sanitizer: `address` or `thread`.
///
/// # Errors
/// Names the missing tool, or the package that failed.
pub fn sanitize(root: &Path, sanitizer: &str) -> Result<(), String> {
    require_nightly(&["rust-src"])?;
    for (package, arguments) in SANITIZED {
        let mut command = cargo(root, "+nightly");
        // The standard library too: uninstrumented, its synchronisation is invisible and every lock a race.
        command.args(["test", "-Zbuild-std", "--target", HOST, "--package", package]);
        // Behind all of cargo's: they may end with arguments of the test program.
        command.args(arguments.split_whitespace());
        // System calls through the C library: the sanitizer must see that an address is mapped again, or it
        // takes the new owner's stores for a race with the old one's.
        command.env("RUSTFLAGS", format!("-Zsanitizer={sanitizer} --cfg=rustix_use_libc"));
        command.env("PROPTEST_CASES", "16").env("TERRANE_CONCURRENT_BATCHES", "300");
        let suppressions = format!("suppressions={}", root.join("xtask/tsan.txt").display());
        command.env("TSAN_OPTIONS", suppressions);
        command.env("CARGO_TARGET_DIR", target_dir(root).join(format!("sanitize-{sanitizer}")));
        run(&mut command, &format!("the {sanitizer} sanitizer on {package}"))?;
    }
    println!("xtask: the {sanitizer} sanitizer found nothing in {} packages", SANITIZED.len());
    Ok(())
}

/// Where the advisories come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advisories {
    /// Over the net.
    Fetched,
    /// From the copy that lies where cargo-deny looks: `docs/reliability.md` says how to get it.
    Copied,
    /// They are not looked at.
    LeftOut,
}

/// Checks licences, banned crates and sources, and advisories.
///
/// # Errors
/// Names the missing tool, or says that something was found.
pub fn deny(root: &Path, advisories: Advisories) -> Result<(), String> {
    require("deny", "cargo-deny")?;
    let mut command = Command::new(cargo_program());
    command.args(["deny", "--locked"]).current_dir(root);
    if advisories == Advisories::Copied {
        command.arg("--offline");
    }
    command.arg("check");
    if advisories == Advisories::LeftOut {
        command.args(["licenses", "bans", "sources"]);
    }
    run(&mut command, "cargo deny")
}

fn cargo_program() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// `cargo` through rustup, so that a toolchain can be chosen.
fn cargo(root: &Path, toolchain: &str) -> Command {
    let mut command = Command::new("cargo");
    command.arg(toolchain).current_dir(root);
    // Set by the cargo that runs this program, for its own toolchain.
    for name in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTDOC"] {
        command.env_remove(name);
    }
    command
}

fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn require_nightly(components: &[&str]) -> Result<(), String> {
    let list =
        Command::new("rustup").args(["component", "list", "--installed", "--toolchain", "nightly"]).output();
    let installed = list.ok().filter(|list| list.status.success()).map(|list| list.stdout);
    let Some(installed) = installed else {
        return Err(
            "needs a nightly toolchain: rustup toolchain install nightly --profile minimal".to_owned()
        );
    };
    let installed = String::from_utf8_lossy(&installed).into_owned();
    let missing: Vec<&str> = components
        .iter()
        .copied()
        .filter(|name| !installed.lines().any(|line| line.starts_with(name)))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("needs components: rustup component add --toolchain nightly {}", missing.join(" ")))
}

fn require(subcommand: &str, package: &str) -> Result<(), String> {
    let mut version = Command::new("cargo");
    let found = version.args([subcommand, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("needs {package}: cargo install {package} --locked")),
    }
}

fn run(command: &mut Command, what: &str) -> Result<(), String> {
    println!("xtask: {what}: {command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what} failed ({status})")),
        Err(why) => Err(format!("{what} cannot be run: {why}")),
    }
}
