//! The `terrane` command; everything is in the library beside it, so that tests and the tour can call it.

use std::process::ExitCode;

fn main() -> ExitCode {
    terrane_cli::main()
}
