//! The `terrane` command: imports, reads, scans, inspects and maintains databases.
//!
//! * [`arguments`]: the command line. [`exit`]: exit codes. [`text`]: keys and values as text.
//! * [`commands`]: one module per command. [`import`]: parsers of the import formats.
//! * [`input`], [`packed`]: compressed and plain inputs and outputs. [`files`]: the only module that opens
//!   files.
//! * `signals`: the flag that asks a long command to stop. [`progress`]: how far it is.
//!
//! Never touches a file of a database: only the library does.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod commands;
pub mod exit;
pub mod files;
pub mod import;
pub mod input;
pub mod packed;
pub mod progress;
mod signals;
pub mod text;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;
use crate::exit::{Code, Failure};

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help goes to standard output and is a success; a closed pipe there is not an error.
            let _ = error.print();
            return if error.use_stderr() { Code::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let done = commands::run(&arguments, &mut out);
    let flushed = out.flush().map_err(Failure::from);
    match done.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
