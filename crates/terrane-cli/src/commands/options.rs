//! `options`: the list of the engine's options, or of its experiments.

use std::io::Write;

use terrane::{Experiments, Options};

use crate::arguments::OptionList;
use crate::exit::Failure;

pub(super) fn run(list: &OptionList, out: &mut dyn Write) -> Result<(), Failure> {
    let rows = if list.experiments { Experiments::describe() } else { Options::describe() };
    for info in rows {
        writeln!(out, "{} = {}", info.name, info.default)?;
        writeln!(out, "    {}", info.about)?;
        writeln!(out, "    Accepted: {}.", info.range)?;
    }
    Ok(())
}
