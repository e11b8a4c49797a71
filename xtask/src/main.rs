//! `cargo xtask COMMAND`: the house rules and the test suites.

use std::path::Path;
use std::process::ExitCode;

use xtask::install;
use xtask::planted::Choice;
use xtask::stress::settings::{HELP, Settings};
use xtask::tools::Advisories;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  tidy [--write]  check the house rules (STYLE.md); --write first lowers xtask/ratchet.txt and
                  renews the crate map of ARCHITECTURE.md and docs/unsafe.md
  test [--only STEP]  every test: unit, integration and doc tests, schedule exploration, a few planted
                  bugs; programs run beside each other, and a table closes it; --only takes the steps
                  with STEP in their title
  bench-smoke     each benchmark of the crates once: that it runs, not how fast
  busy-tests [--repeat N] [--only PROGRAM] [--together]  the programs of `test`, N times (10), beside
                  four busy processes for each processor; a table of the failures closes it; --only
                  takes the programs with PROGRAM in their name; --together has the rounds run beside
                  each other in the place of processes that only compute, in a quarter of the time
  soak            simulation, fuzz smoke, loads, kills and explorations at full sizes; `test` does
                  a part, both from the commit's seed or TERRANE_EXPLORE_SEED
  cases [NUMBER]  the property tests on NUMBER other cases each (5000), from a seed that it prints;
                  `test` draws the same cases in every run
  stress [--minutes N] [--only FILTER] [OPTION]...  the property, model and thread tests in loops
                  beside each other, with random delays of threads; `stress --help` says more
  docs            build the documentation, warnings refused
  abi [--write]   RocksDB's C interface: stubs, header and page follow crates/terrane-rocksdb/abi.toml
  install-librocksdb PREFIX [--from LIBRARY | --features LIST] [--soname VERSION]...  lay RocksDB's C
                  interface out with header and pkg-config file; builds it first, with features such as
                  zstd, unless a library is given; for programs that were linked with other releases also
                  under the sonames of those (--soname 9.10)
  golden VERSION  make the golden stores of a new format version; refuses to overwrite
  proto [--check] write the code of crates/terrane-remote/proto anew, or only compare it; the first
                  time it builds a program of its own
  planted [NAME | --sample | --write]  the mutation suite: each planted bug must fail its test;
                  --sample runs six of several layers, --write renews docs/planted-bugs.md
  schedules [--planted NAME] [OPTIONS]  the whole engine with its threads under chosen schedules, every
                  answer compared; --help lists the options, --planted switches one bug on
  ci-parts        what CI runs besides `test`: format, clippy, tidy, docs
  peers           the peers of the bench (redb, fjall, LMDB, Bf-Tree): lints, documentation, and the tests
                  of the bench and the command with them; `test` and `ci-parts` leave them out

With a nightly toolchain or tools that are installed apart:
  fuzz [TARGET] [--seconds N]    libFuzzer on one target, or on each in turn (60 s)
  fuzz-corpus                    write the seeds of fuzz/corpus anew (stable toolchain)
  miri                           the modules with unsafe code, and the formats, under Miri
  sanitize address|thread        the concurrent tests under a sanitizer
  deny [--offline | --without-advisories]    cargo deny: licences, advisories, bans, sources
";

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["tidy"] => xtask::tidy::run(root, false),
        ["tidy", "--write"] => xtask::tidy::run(root, true),
        ["test"] => xtask::test::run(root, None),
        ["soak"] => xtask::test::soak(root),
        ["bench-smoke"] => xtask::test::bench_smoke(root),
        ["test", "--only", title] => xtask::test::run(root, Some(title)),
        ["busy-tests", rest @ ..] => match xtask::busy::Request::of(rest) {
            Some(request) => xtask::busy::run(root, &request),
            None => return usage(),
        },
        ["cases"] => xtask::suites::cases(root, 5000),
        ["cases", number] => match number.parse() {
            Ok(number) => xtask::suites::cases(root, number),
            Err(_) => return usage(),
        },
        ["stress", "--help"] => {
            print!("{HELP}");
            Ok(())
        }
        ["stress", rest @ ..] => match Settings::of(rest) {
            Ok(settings) => xtask::stress::run(root, &settings),
            Err(why) => {
                eprintln!("xtask: {why}; see cargo xtask stress --help");
                return ExitCode::from(2);
            }
        },
        ["docs"] => xtask::suites::docs(root),
        ["abi"] => xtask::abi::run(root, false),
        ["abi", "--write"] => xtask::abi::run(root, true),
        ["install-librocksdb", rest @ ..] => match install::Request::of(rest) {
            Some(request) => install::run(root, &request),
            None => return usage(),
        },
        ["golden", version] => xtask::golden::run(root, version),
        ["proto"] => xtask::tools::proto(root, false),
        ["proto", "--check"] => xtask::tools::proto(root, true),
        ["planted"] => xtask::planted::run(root, Choice::All, false),
        ["planted", "--write"] => xtask::planted::run(root, Choice::All, true),
        ["planted", "--sample"] => xtask::planted::run(root, Choice::Sample, false),
        ["planted", name] => xtask::planted::run(root, Choice::One(name), false),
        ["schedules", "--planted", name, rest @ ..] => xtask::schedules::run(root, Some(name), rest),
        ["schedules", rest @ ..] => xtask::schedules::run(root, None, rest),
        ["peers"] => xtask::suites::peers(root),
        ["ci-parts"] => xtask::suites::ci_parts(root),
        ["fuzz", rest @ ..] => match fuzz_arguments(rest) {
            Some((target, seconds)) => xtask::tools::fuzz(root, target, seconds),
            None => return usage(),
        },
        ["fuzz-corpus"] => xtask::tools::fuzz_corpus(root),
        ["miri"] => xtask::tools::miri(root),
        ["sanitize", sanitizer @ ("address" | "thread")] => xtask::tools::sanitize(root, sanitizer),
        ["deny"] => xtask::tools::deny(root, Advisories::Fetched),
        ["deny", "--offline"] => xtask::tools::deny(root, Advisories::Copied),
        ["deny", "--without-advisories"] => xtask::tools::deny(root, Advisories::LeftOut),
        _ => return usage(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::from(2)
}

/// `[TARGET] [--seconds N]` in either order.
fn fuzz_arguments<'a>(arguments: &[&'a str]) -> Option<(Option<&'a str>, u32)> {
    const SECONDS: u32 = 60;
    match arguments {
        [] => Some((None, SECONDS)),
        ["--seconds", number] => Some((None, number.parse().ok()?)),
        [target] if !target.starts_with('-') => Some((Some(*target), SECONDS)),
        [target, "--seconds", number] | ["--seconds", number, target] => {
            Some((Some(*target), number.parse().ok()?))
        }
        _ => None,
    }
}
