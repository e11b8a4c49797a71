//! Writes the seeds of every target below `fuzz/corpus`: `cargo xtask fuzz-corpus`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    for target in terrane_fuzz::TARGETS {
        match terrane_fuzz::corpus::write_seeds(root, target) {
            Ok(count) => println!("{}: {count} seeds", target.name),
            Err(why) => {
                eprintln!("{}: {why}", target.name);
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
