//! `options`: the table of the engine's options.

use std::io::Write;

use terrane::Options;

use crate::exit::Failure;

pub(super) fn run(out: &mut dyn Write) -> Result<(), Failure> {
    for info in Options::describe() {
        writeln!(out, "{} = {}", info.name, info.default)?;
        writeln!(out, "    {}", info.about)?;
        writeln!(out, "    Accepted: {}.", info.range)?;
    }
    Ok(())
}
