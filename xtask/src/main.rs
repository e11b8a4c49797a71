//! `cargo xtask COMMAND`: the house rules and the test suites.

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  tidy [--write]  check the house rules (STYLE.md); --write first lowers xtask/ratchet.txt and
                  renews the crate map of ARCHITECTURE.md
  test            every test: unit, integration and doc tests, schedule exploration, benches once each
  docs            build the documentation, warnings refused
  golden VERSION  make the golden stores of a new format version; refuses to overwrite
  ci-parts        what CI runs besides `test`: format, clippy, tidy, docs
";

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["tidy"] => xtask::tidy::run(root, false),
        ["tidy", "--write"] => xtask::tidy::run(root, true),
        ["test"] => xtask::suites::test(root),
        ["docs"] => xtask::suites::docs(root),
        ["golden", version] => xtask::golden::run(root, version),
        ["ci-parts"] => xtask::suites::ci_parts(root),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
