//! The commands of the shell itself.

use std::io::Write;

use clap::{CommandFactory as _, ValueEnum as _};

use super::lines::Input;
use super::output::Output;
use super::{COMMANDS, Next, PrintsTo, Shell};
use crate::arguments::{self, Arguments, Engine};
use crate::commands::store::{Access, open};
use crate::commands::{stats, tables};
use crate::exit::{Code, Failure};
use crate::text::{self, Format};

/// Most files that are read at once, each by a line of the one before.
const FILES_MAX: usize = 16;

/// Commands of the shell itself.
pub(super) const OWN: [(&str, &str); 12] = [
    (".flush", "flush memory into extents"),
    (".help [COMMAND]", "this list, or the help of a command"),
    (".mode [FORMAT]", "how get, scan and changes print: tsv, json, hex, raw, or default"),
    (".output [FILE]", "print into a file; without a name, here again"),
    (".quit", "leave the shell; so does the end of the input"),
    (".read FILE", "do what the lines of a file say, up to its first error"),
    (".refresh", "where another process writes: show what it has committed since"),
    (".shape", "the state of the trees"),
    (".stats", "what the engine counts, since the shell opened the database"),
    (".table [NAME]", "the table of commands that name none, or another one"),
    (".tables", "tables with versions, bytes and options"),
    (".timing [on|off]", "how long each command takes"),
];

impl Shell {
    pub(super) fn take_own(
        &mut self,
        name: &str,
        words: &[String],
        out: &mut dyn Write,
    ) -> Result<Next, Failure> {
        let first = words.first().map(String::as_str);
        if let Some(further) = words.get(1) {
            let why = format!(
                ".{name} takes one word at most, and {further:?} is another: quote words with spaces"
            );
            return Err(Failure::new(Code::Usage, why));
        }
        match (name, first) {
            ("quit" | "exit", _) => return Ok(Next::End),
            ("help", None) => help(out)?,
            ("help", Some(name)) => help_of(name, out)?,
            ("tables", _) => tables::list(self.db(), out)?,
            ("table", None) => writeln!(out, "{}", text::shown(&self.table))?,
            ("table", Some(name)) => {
                self.db().table(name)?;
                name.clone_into(&mut self.table);
            }
            ("timing", Some("on") | None) => self.has_timing = true,
            ("timing", Some("off")) => self.has_timing = false,
            ("timing", Some(word)) => {
                let why = format!(".timing takes on or off, not {word:?}");
                return Err(Failure::new(Code::Usage, why));
            }
            ("mode", None) => {
                let name = self.format.and_then(|format| format.to_possible_value());
                writeln!(out, "{}", name.as_ref().map_or("default", |name| name.get_name()))?;
            }
            ("mode", Some("default")) => self.format = None,
            ("mode", Some(name)) => self.format = Some(format_of(name)?),
            ("output", file) => self.set_output(file)?,
            ("read", Some(file)) => return self.read(file, out),
            ("read", None) => return Err(Failure::new(Code::Usage, ".read takes the name of a file")),
            ("flush", _) => {
                if self.is_beside {
                    self.become_writer()?;
                }
                self.db().flush()?;
            }
            ("refresh", _) => self.refresh()?,
            ("shape", _) => return self.take(&["shape".to_owned()], out, PrintsTo::Screen),
            ("stats", _) => {
                let command = arguments::Stats {
                    table: None,
                    database: self.path.clone(),
                    json: false,
                    prometheus: false,
                    sizes: false,
                    all: false,
                    follow: false,
                };
                stats::show(self.db(), &command, out)?;
            }
            _ => {
                let why = format!("the shell has no command .{name}: .help lists them");
                return Err(Failure::new(Code::Usage, why));
            }
        }
        Ok(Next::Line)
    }

    /// Opens a newer view of a database that another process writes.
    fn refresh(&mut self) -> Result<(), Failure> {
        if !self.is_view {
            return Ok(());
        }
        let engine = Engine { opened: None, ..self.engine.clone() };
        self.engine.opened = Some(open(&engine, &self.path, Access::Read)?);
        Ok(())
    }

    /// Prints into a file from now on, or to standard output again.
    fn set_output(&mut self, file: Option<&str>) -> Result<(), Failure> {
        // The file before stays where the new one is refused.
        let next = file.map(|file| Output::create(file.into(), &self.path)).transpose()?;
        let former = std::mem::replace(&mut self.output, next);
        former.map_or(Ok(()), |mut former| former.finish())
    }

    /// Does what the lines of a file say.
    fn read(&mut self, file: &str, out: &mut dyn Write) -> Result<Next, Failure> {
        if self.files == FILES_MAX {
            let why = format!(
                ".read {file}: {FILES_MAX} files are being read, each by a line of the one before, and no further one is"
            );
            return Err(Failure::new(Code::Usage, why));
        }
        let mut input = Input::file(file, &self.stop)?;
        self.files += 1;
        let done = self.take_lines(&mut input, out);
        debug_assert!(
            (1..=FILES_MAX).contains(&self.files),
            "each file that was read is counted until its end"
        );
        self.files -= 1;
        done
    }
}

/// The format with a name.
fn format_of(name: &str) -> Result<Format, Failure> {
    Format::from_str(name, true).map_err(|_| {
        let why = format!(".mode takes tsv, json, hex, raw or default, not {name:?}");
        Failure::new(Code::Usage, why)
    })
}

fn help(out: &mut dyn Write) -> Result<(), Failure> {
    let about = |name: &str| {
        let command = Arguments::command();
        let found = command.find_subcommand(name).and_then(clap::Command::get_about);
        found.map(ToString::to_string).unwrap_or_default()
    };
    for (name, _) in COMMANDS {
        writeln!(out, "{name:<18} {}", about(name))?;
    }
    for (name, about) in OWN {
        writeln!(out, "{name:<18} {about}")?;
    }
    Ok(())
}

fn help_of(name: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let mut command = Arguments::command();
    command.build();
    let Some(found) = command.find_subcommand_mut(name) else {
        return Err(Failure::new(Code::Usage, format!("there is no command {name:?}: .help lists them")));
    };
    writeln!(out, "{}", found.render_long_help())?;
    Ok(writeln!(out, "In the shell the database is left out, and --table where .table says it.")?)
}
