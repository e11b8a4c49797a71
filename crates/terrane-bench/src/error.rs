//! Errors of a benchmark run; their texts say what the user must change.

use std::fmt;
use std::path::Path;

/// The result of the functions of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a run. Its text names the thing and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The plan, a flag or a file given by the user is wrong: nothing was run.
    Plan(String),
    /// An engine refused or failed.
    Engine {
        /// Its label in the plan.
        engine: String,
        /// The request and the engine's answer.
        message: String,
    },
    /// The engine has no such operation; the cell is left out of the report and named there.
    Unsupported {
        /// Its label in the plan.
        engine: String,
        /// The missing ability.
        what: String,
    },
    /// A file or a process of the bench itself.
    Io(String),
    /// The user interrupted the run; what was measured before is kept.
    Interrupted,
}

impl Error {
    /// An error of the plan.
    pub fn plan(message: impl Into<String>) -> Self {
        Error::Plan(message.into())
    }

    /// An error of an engine: `what` was asked of it, `why` is its answer.
    pub fn engine(engine: &str, what: &str, why: impl fmt::Display) -> Self {
        Error::Engine { engine: engine.to_owned(), message: format!("{what}: {why}") }
    }

    /// An operation that an engine does not have.
    pub fn unsupported(engine: &str, what: impl Into<String>) -> Self {
        Error::Unsupported { engine: engine.to_owned(), what: what.into() }
    }

    /// A failure at a path of the bench itself.
    pub fn io(what: &str, path: &Path, why: impl fmt::Display) -> Self {
        Error::Io(format!("cannot {what} {}: {why}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Plan(message) | Error::Io(message) => f.write_str(message),
            Error::Engine { engine, message } => write!(f, "{engine}: {message}"),
            Error::Unsupported { engine, what } => write!(f, "{engine} has no {what}"),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
