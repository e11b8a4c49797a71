//! Where the lines of a shell come from: a terminal, with history and completion, a pipe, or a file.

use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use terrane::Db;

use super::completion::Completion;
use crate::exit::{Code, Failure};
use crate::files;
use crate::input::{self, is_stop};

const PROMPT: &str = "terrane> ";
/// Lines that the history keeps.
const HISTORY_LINES: usize = 10_000;

/// The next line of a shell.
pub(super) enum Line {
    /// A line.
    Text(String),
    /// The line was given up with Ctrl-C.
    Cancelled,
    /// There is no further line.
    End,
}

/// Reads lines.
pub(super) enum Input {
    Terminal {
        editor: Box<Editor<Completion, FileHistory>>,
        history: Option<PathBuf>,
    },
    /// `name` is that of a file; standard input has none.
    Pipe {
        lines: Box<dyn BufRead>,
        name: Option<String>,
        number: u64,
    },
}

impl Input {
    /// Standard input.
    pub(super) fn open(stop: &Arc<AtomicBool>) -> Result<Input, Failure> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            let lines =
                input::standard_lines(stop).map_err(|error| Failure::file("standard input", &error))?;
            return Ok(Input::Pipe { lines, name: None, number: 0 });
        }
        let config = Config::builder().max_history_size(HISTORY_LINES).map_err(terminal)?;
        let config = config.auto_add_history(true).build();
        let mut editor = Box::new(Editor::with_config(config).map_err(terminal)?);
        let history = history_file();
        // A first start has no history yet.
        let _ = history.as_ref().map(|path| editor.load_history(path));
        Ok(Input::Terminal { editor, history })
    }

    /// The lines of a file.
    pub(super) fn file(name: &str, stop: &Arc<AtomicBool>) -> Result<Input, Failure> {
        let lines = input::lines_of(Path::new(name), stop).map_err(|error| Failure::file(name, &error))?;
        Ok(Input::Pipe { lines, name: Some(name.to_owned()), number: 0 })
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Input::Terminal { .. })
    }

    /// Where the last line stands, for messages.
    pub(super) fn place(&self) -> String {
        match self {
            Input::Terminal { .. } => "this line".to_owned(),
            Input::Pipe { name: None, number, .. } => format!("line {number}"),
            Input::Pipe { name: Some(name), number, .. } => format!("{name}: line {number}"),
        }
    }

    /// The next line; keys and tables of `db` complete it.
    pub(super) fn next(&mut self, db: &Db, table: &str) -> Result<Line, Failure> {
        match self {
            Input::Terminal { editor, history } => {
                editor.set_helper(Some(Completion { db: db.clone(), table: table.to_owned() }));
                let line = editor.readline(PROMPT);
                editor.set_helper(None);
                match line {
                    Ok(line) => {
                        // A history that cannot be written is not a reason to stop.
                        let _ = history.as_ref().map(|path| editor.append_history(path));
                        Ok(Line::Text(line))
                    }
                    Err(ReadlineError::Interrupted) => Ok(Line::Cancelled),
                    Err(ReadlineError::Eof) => Ok(Line::End),
                    Err(error) => Err(terminal(error)),
                }
            }
            Input::Pipe { lines, name, number } => {
                let mut line = String::new();
                *number += 1;
                match lines.read_line(&mut line) {
                    Ok(0) => Ok(Line::End),
                    Ok(_) => Ok(Line::Text(line)),
                    Err(error) if is_stop(&error) => {
                        Err(Failure::new(Code::Stopped, "stopped by a signal while it waited for a line"))
                    }
                    Err(error) => Err(Failure::file(name.as_deref().unwrap_or("standard input"), &error)),
                }
            }
        }
    }
}

fn terminal(error: ReadlineError) -> Failure {
    Failure::new(Code::Other, format!("terminal: {error}"))
}

/// The file of the history, with its directory; none where no directory is known or can be made.
fn history_file() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    let directory = state.join("terrane");
    files::make_directory(&directory).ok()?;
    Some(directory.join("history"))
}
