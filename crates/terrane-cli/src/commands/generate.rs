//! `completions` and `man`: texts made from the arguments.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;

use crate::arguments::Arguments;
use crate::exit::Failure;
use crate::files;

pub(super) fn completions(shell: clap_complete::Shell, out: &mut dyn Write) -> Result<(), Failure> {
    // Into memory first: the generator panics when its writer fails, as a closed pipe does.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "terrane", &mut text);
    Ok(out.write_all(&text)?)
}

pub(super) fn manual(directory: Option<&Path>, out: &mut dyn Write) -> Result<(), Failure> {
    let mut command = Arguments::command();
    command.build();
    let Some(directory) = directory else {
        return Ok(clap_mangen::Man::new(command).render(&mut &mut *out)?);
    };
    for page in std::iter::once(&command).chain(command.get_subcommands()) {
        let name = match page.get_name() {
            "terrane" => "terrane".to_owned(),
            name => format!("terrane-{name}"),
        };
        let mut text = Vec::new();
        clap_mangen::Man::new(page.clone()).render(&mut text)?;
        let path = directory.join(format!("{name}.1"));
        files::refuse_within_any(&path)?;
        files::write(&path, &text).map_err(|error| Failure::file(&path.display().to_string(), &error))?;
        writeln!(out, "{}", path.display())?;
    }
    Ok(())
}
