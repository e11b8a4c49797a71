//! `shell`: commands on a database that is opened once.
//!
//! * `lines`: where lines come from, a terminal with history, a pipe or a file. `words`: a line as words.
//! * `own`: the commands of the shell itself, which begin with a dot. `output`: the file of `.output`.
//! * `completion`: of commands, tables and keys.
//!
//! A line is made the command line that would do the same: the path of the database and the present table are
//! put in, and the command finds the open database in its options.

mod completion;
mod lines;
mod output;
mod own;
mod words;

use std::io::{IsTerminal as _, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Parser, ValueEnum as _};
use terrane::Db;
use terrane_base::env::Env;

use self::lines::{Input, Line};
use self::output::Output;
use super::store::{Access, DEFAULT, open};
use crate::arguments::{self, Arguments, Command, Engine, InShell};
use crate::exit::{Code, Failure};
use crate::files;
use crate::signals::{forget_signals, stop_on_signals};
use crate::text::{self, Format};

/// Commands whose rows `.mode` gives a format.
const IN_FORMATS: [&str; 3] = ["get", "scan", "changes"];

/// Commands that work on the open database, and whether they have a table.
const COMMANDS: [(&str, bool); 20] = [
    ("get", true),
    ("put", true),
    ("merge", true),
    ("delete", true),
    ("delete-range", true),
    ("scan", true),
    ("count", true),
    ("estimate", true),
    ("compact", true),
    ("ingest", true),
    ("drop-extents", true),
    ("import", true),
    ("export", true),
    ("tables", false),
    ("shape", false),
    ("stats", false),
    ("check", false),
    ("changes", false),
    ("checkpoint", false),
    ("options", false),
];

pub(super) fn run(
    engine: &Engine,
    command: &arguments::shell::Shell,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (db, is_beside) = open_first(engine, command)?;
    db.table(&command.table)?;
    let stop = stop_on_signals()?;
    let mut input = Input::open(&stop)?;
    let mut shell = Shell {
        path: command.database.clone(),
        is_view: is_view(&db),
        is_beside,
        engine: Engine { opened: Some(db), ..engine.clone() },
        table: command.table.clone(),
        has_timing: false,
        format: None,
        output: None,
        files: 0,
        stop,
    };
    if input.is_terminal() {
        writeln!(out, "{}, table {:?}; .help lists the commands", text::path(&shell.path), shell.table)?;
    }
    let done = shell.take_lines(&mut input, out).map(drop);
    match shell.engine.opened.take() {
        Some(db) if !shell.is_view => {
            // The completion has a handle of its own; closing ends what all of them have.
            db.close()?;
        }
        _ => {}
    }
    done
}

/// Opens for writing; for reading if the user asks for it, another process writes, or this one has no
/// permission to write. True if another process writes.
fn open_first(engine: &Engine, command: &arguments::shell::Shell) -> Result<(Db, bool), Failure> {
    let access = match (command.create, command.read_only) {
        (true, _) => Access::Create,
        (_, true) => Access::Read,
        _ if files::is_read_only(&command.database) => Access::Read,
        _ => Access::Write,
    };
    match open(engine, &command.database, access) {
        Err(failure) if failure.code == Code::Busy => {
            Ok((open(engine, &command.database, Access::Read)?, access != Access::Read))
        }
        Err(mut refused) if refused.code == Code::Usage && access == Access::Write => {
            // Keys in an unknown order cannot be written, and may be read.
            if open(engine, &command.database, Access::Read).is_ok() {
                refused.message += "; `terrane shell --read-only` reads what it can of the database";
            }
            Err(refused)
        }
        opened => opened.map(|db| (db, false)),
    }
}

/// Returns true for a command that changes the database.
fn is_change(command: &Command) -> bool {
    match command {
        Command::Put(_) | Command::Merge(_) | Command::Delete(_) | Command::Compact(_) => true,
        Command::Import(command) => !command.dry_run,
        Command::DeleteRange(command) => !command.consent.dry_run,
        Command::DropExtents(command) => !command.consent.dry_run,
        Command::Ingest(command) => !command.dry_run,
        Command::Tables(command) => {
            command.create.is_some() || command.drop.is_some() && !command.consent.dry_run
        }
        _ => false,
    }
}

/// True for a database that is only read.
fn is_view(db: &Db) -> bool {
    db.options().read_only
}

struct Shell {
    path: PathBuf,
    /// With the open database.
    engine: Engine,
    /// True if the database is only read.
    is_view: bool,
    /// True if that is because another process writes.
    is_beside: bool,
    table: String,
    has_timing: bool,
    /// The format of rows, where a command names none.
    format: Option<Format>,
    /// Where commands print, in the place of standard output.
    output: Option<Output>,
    /// Files that are read at the moment, each by a line of the one before.
    files: usize,
    stop: Arc<AtomicBool>,
}

impl Shell {
    fn db(&self) -> &Db {
        self.engine.opened.as_ref().expect("it is open from the first line to the last")
    }

    /// Opens the database for writing, now that a command is to change it.
    ///
    /// # Errors
    /// `Busy`, with the process that writes it, as outside of a shell.
    fn become_writer(&mut self) -> Result<(), Failure> {
        debug_assert!(self.is_view, "a shell that writes is beside no other writer");
        let engine = Engine { opened: None, ..self.engine.clone() };
        self.engine.opened = Some(open(&engine, &self.path, Access::Write)?);
        (self.is_view, self.is_beside) = (false, false);
        eprintln!("terrane: {}: its writer has ended: this shell writes from now on", text::path(&self.path));
        Ok(())
    }

    /// Does what the lines of an input say, to its end or to a line that ends the shell.
    fn take_lines(&mut self, input: &mut Input, out: &mut dyn Write) -> Result<Next, Failure> {
        let clock = Env::real().clock;
        loop {
            out.flush()?;
            let line = match input.next(self.db(), &self.table)? {
                Line::Text(line) => line,
                Line::Cancelled => continue,
                Line::End => return Ok(Next::Line),
            };
            let start = clock.now();
            let done = words::split(&line)
                .map_err(|why| Failure::new(Code::Usage, why))
                .and_then(|words| self.take_line(&words, out));
            out.flush()?;
            match done {
                Ok(Next::Line) => {}
                Ok(Next::End) => return Ok(Next::End),
                Err(failure) if input.is_terminal() => {
                    let _ = failure.report();
                    forget_signals();
                }
                Err(mut failure) => {
                    failure.message = format!("{}: {}", input.place(), failure.message);
                    return Err(failure);
                }
            }
            if self.has_timing {
                let took = clock.now().saturating_sub(start).as_secs_f64() * 1e3;
                writeln!(out, "took {took:.3} ms")?;
            }
        }
    }

    /// Does what a line says, and prints into the file of `.output` if there is one.
    fn take_line(&mut self, words: &[String], out: &mut dyn Write) -> Result<Next, Failure> {
        // A file that is read may change where commands print; help is shown where it is asked for.
        let changes_output =
            words.first().is_some_and(|name| matches!(name.as_str(), ".output" | ".read" | ".help" | "help"));
        debug_assert!(self.files == 0 || self.engine.opened.is_some(), "a file is read for an open database");
        match self.output.take() {
            Some(mut output) if !changes_output => {
                let done = output.take(|file| self.take(words, file, PrintsTo::File));
                self.output = Some(output);
                done
            }
            output => {
                self.output = output;
                self.take(words, out, PrintsTo::Screen)
            }
        }
    }

    fn take(&mut self, words: &[String], out: &mut dyn Write, to: PrintsTo) -> Result<Next, Failure> {
        let Some(name) = words.first() else { return Ok(Next::Line) };
        if name.starts_with('.') || matches!(name.as_str(), "help" | "quit" | "exit") {
            return self.take_own(name.trim_start_matches('.'), &words[1..], out);
        }
        let Some((_, has_table)) = COMMANDS.iter().find(|(known, _)| known == name) else {
            let why = format!("the shell has no command {name:?}: .help lists them");
            return Err(Failure::new(Code::Usage, why));
        };
        if matches!(name.as_str(), "put" | "import") && words.iter().any(|word| word == "-") {
            return Err(Failure::new(Code::Usage, "- : the shell has its standard input for itself"));
        }
        let mut line = vec!["terrane".to_owned(), name.clone()];
        if name != "options" {
            line.push(self.path.display().to_string());
        }
        // What stands behind -- is not an option, even where it looks like one.
        let mut options = words[1..].iter().take_while(|word| *word != "--");
        let names_table =
            options.any(|word| word == "--table" || word.starts_with("--table=") || word == "--all");
        // An import into the default table may be that of tables which the input names.
        let is_implied = name == "import" && self.table == DEFAULT;
        if *has_table && !names_table && !is_implied {
            line.push(format!("--table={}", self.table));
        }
        let format = self.format.filter(|_| IN_FORMATS.contains(&name.as_str()) && !has_format(words));
        let format = format.and_then(|format| format.to_possible_value());
        line.extend(format.map(|format| format!("--format={}", format.get_name())));
        line.extend_from_slice(&words[1..]);
        let mut arguments = match Arguments::try_parse_from(line) {
            Ok(arguments) => arguments,
            Err(error) if error.use_stderr() => {
                let why = error.to_string();
                let why = why.lines().next().unwrap_or_default().trim_start_matches("error: ");
                return Err(Failure::new(Code::Usage, format!("{why}; .help {name} shows more")));
            }
            Err(help) => {
                write!(out, "{help}")?;
                return Ok(Next::Line);
            }
        };
        if arguments.engine.moment().is_some() {
            let why =
                "--at and --at-commit: the shell has its database open as it is; use them outside of it";
            return Err(Failure::new(Code::Usage, why));
        }
        if self.is_beside && is_change(&arguments.command) {
            self.become_writer()?;
        }
        // A file gets the bytes of the value alone; a reader of the screen, or of a pipe in its place, sees
        // the next line below it.
        let is_file = to == PrintsTo::File;
        let ends_line = !is_file && (!has_format(words) || std::io::stdout().is_terminal());
        let shell = Some(InShell { is_file, ends_line });
        arguments.engine = Engine { shell, ..self.engine.clone() };
        super::run(&arguments, out)?;
        Ok(Next::Line)
    }
}

/// Where the commands of a line print.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PrintsTo {
    /// Standard output.
    Screen,
    /// The file of `.output`.
    File,
}

/// Returns true if a command says how it prints.
fn has_format(words: &[String]) -> bool {
    // What stands behind -- is not an option.
    let mut options = words.iter().take_while(|word| *word != "--");
    options.any(|word| word.starts_with("--format") || word == "--number")
}

/// The step behind a line.
enum Next {
    Line,
    End,
}
