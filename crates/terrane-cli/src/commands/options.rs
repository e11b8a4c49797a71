//! `options`: the list of the engine's options with those of its diagnostics, or of its experiments.

use std::io::Write;

use terrane::{Diagnostics, Experiments, Options};

use crate::arguments::OptionList;
use crate::exit::Failure;

pub(super) fn run(list: &OptionList, out: &mut dyn Write) -> Result<(), Failure> {
    let rows = match list.experiments {
        true => vec![Experiments::describe()],
        false => vec![Options::describe(), Diagnostics::describe()],
    };
    for info in rows.into_iter().flatten() {
        writeln!(out, "{} = {}", info.name, info.default)?;
        writeln!(out, "    {}", info.about)?;
        writeln!(out, "    Accepted: {}.", info.range)?;
    }
    Ok(())
}
