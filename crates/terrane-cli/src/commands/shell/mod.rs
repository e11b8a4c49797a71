//! `shell`: commands on a database that is opened once.
//!
//! * `lines`: where lines come from, a terminal with history or a pipe. `words`: a line as words.
//! * `completion`: of commands, tables and keys.
//!
//! A line is made the command line that would do the same: the path of the database and the present table are
//! put in, and the command finds the open database in its options.

mod completion;
mod lines;
mod words;

use std::io::Write;
use std::path::PathBuf;

use clap::{CommandFactory, Parser};
use terrane::Db;
use terrane_base::env::Env;

use self::lines::{Input, Line};
use super::store::{Access, open};
use super::{stats, tables};
use crate::arguments::{self, Arguments, Engine};
use crate::exit::{Code, Failure};
use crate::files;
use crate::signals::{forget_signals, stop_on_signals};
use crate::text;

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

/// Commands of the shell itself.
const OWN: [(&str, &str); 9] = [
    (".flush", "flush memory into extents"),
    (".help [COMMAND]", "this list, or the help of a command"),
    (".quit", "leave the shell; so does the end of the input"),
    (".refresh", "where another process writes: show what it has committed since"),
    (".shape", "the state of the trees"),
    (".stats", "what the engine counts, since the shell opened the database"),
    (".table [NAME]", "the table of commands that name none, or another one"),
    (".tables", "tables with versions, bytes and options"),
    (".timing [on|off]", "how long each command takes"),
];

pub(super) fn run(
    engine: &Engine,
    command: &arguments::shell::Shell,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let db = open_first(engine, command)?;
    db.table(&command.table)?;
    let stop = stop_on_signals()?;
    let mut input = Input::open(&stop)?;
    let mut shell = Shell {
        path: command.database.clone(),
        is_view: is_view(&db),
        engine: Engine { opened: Some(db), ..engine.clone() },
        table: command.table.clone(),
        has_timing: false,
    };
    if input.is_terminal() {
        writeln!(out, "{}, table {:?}; .help lists the commands", text::path(&shell.path), shell.table)?;
    }
    let done = shell.take_lines(&mut input, out);
    match shell.engine.opened.take() {
        Some(db) if !shell.is_view => {
            // The completion has a handle of its own; closing ends what all of them have.
            db.close()?;
        }
        _ => {}
    }
    done
}

/// Opens for writing, or for reading if that is asked for, another process writes or this one may not.
fn open_first(engine: &Engine, command: &arguments::shell::Shell) -> Result<Db, Failure> {
    let access = match (command.create, command.read_only) {
        (true, _) => Access::Create,
        (_, true) => Access::Read,
        _ if files::is_read_only(&command.database) => Access::Read,
        _ => Access::Write,
    };
    match open(engine, &command.database, access) {
        Err(failure) if failure.code == Code::Busy => open(engine, &command.database, Access::Read),
        Err(mut refused) if refused.code == Code::Usage && access == Access::Write => {
            // Keys in an unknown order cannot be written, and may be read.
            if open(engine, &command.database, Access::Read).is_ok() {
                refused.message += "; `terrane shell --read-only` reads what it can of the database";
            }
            Err(refused)
        }
        opened => opened,
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
    table: String,
    has_timing: bool,
}

impl Shell {
    fn db(&self) -> &Db {
        self.engine.opened.as_ref().expect("it is open from the first line to the last")
    }

    fn take_lines(&mut self, input: &mut Input, out: &mut dyn Write) -> Result<(), Failure> {
        let clock = Env::real().clock;
        loop {
            out.flush()?;
            let line = match input.next(self.db(), &self.table)? {
                Line::Text(line) => line,
                Line::Cancelled => continue,
                Line::End => return Ok(()),
            };
            let start = clock.now();
            let done = words::split(&line)
                .map_err(|why| Failure::new(Code::Usage, why))
                .and_then(|words| self.take(&words, out));
            out.flush()?;
            match done {
                Ok(Next::Line) => {}
                Ok(Next::End) => return Ok(()),
                Err(failure) if input.is_terminal() => {
                    let _ = failure.report();
                    forget_signals();
                }
                Err(mut failure) => {
                    failure.message = format!("line {}: {}", input.number(), failure.message);
                    return Err(failure);
                }
            }
            if self.has_timing {
                let took = clock.now().saturating_sub(start).as_secs_f64() * 1e3;
                writeln!(out, "took {took:.3} ms")?;
            }
        }
    }

    fn take(&mut self, words: &[String], out: &mut dyn Write) -> Result<Next, Failure> {
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
        // What stands behind -- is no option, even where it looks like one.
        let mut options = words[1..].iter().take_while(|word| *word != "--");
        let names_table =
            options.any(|word| word == "--table" || word.starts_with("--table=") || word == "--all");
        if *has_table && !names_table {
            line.push(format!("--table={}", self.table));
        }
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
        arguments.engine = self.engine.clone();
        super::run(&arguments, out)?;
        if name == "get" {
            // A value has no end of line, unless it is shown on a terminal.
            self.end_line(words, out)?;
        }
        Ok(Next::Line)
    }

    /// Ends the line of a value that is printed as it is.
    fn end_line(&self, words: &[String], out: &mut dyn Write) -> Result<(), Failure> {
        use std::io::IsTerminal as _;
        let has_end = words.iter().any(|word| word.starts_with("--format") || word == "--number");
        if !has_end && !std::io::stdout().is_terminal() {
            writeln!(out)?;
        }
        Ok(())
    }

    fn take_own(&mut self, name: &str, words: &[String], out: &mut dyn Write) -> Result<Next, Failure> {
        let first = words.first().map(String::as_str);
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
            ("flush", _) => self.db().flush()?,
            ("refresh", _) => self.refresh()?,
            ("shape", _) => return self.take(&["shape".to_owned()], out),
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
}

enum Next {
    Line,
    End,
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
