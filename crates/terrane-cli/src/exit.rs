//! Exit codes of the process: one table of codes, and errors that carry theirs.

use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use terrane::{Error, Kind};

macro_rules! codes {
    ($( $name:ident = $number:literal, $about:literal; )*) => {
        /// Exit codes of the process.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Code { $( #[doc = $about] $name = $number, )* }

        /// The table of codes for help texts.
        #[must_use]
        pub fn table() -> String {
            let mut text = String::from("Exit codes:\n");
            $( row($number, $about, &mut text); )*
            text
        }
    };
}

/// Columns of a row of the table, as wide as the narrowest terminal.
const COLUMNS: usize = 80;

/// A code with its meaning; further lines begin below the meaning.
fn row(number: u8, about: &str, text: &mut String) {
    let mut line = format!("  {number} ");
    for word in about.split(' ') {
        if line.len() + 1 + word.len() > COLUMNS {
            let _ = writeln!(text, "{line}");
            line = "    ".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

codes! {
    Done = 0, "done; for `check`: no damage was found";
    NotFound = 1, "the key, table, file or database does not exist, or history is gone";
    Usage = 2, "an argument, option or input line cannot be accepted";
    Corrupt = 3, "stored bytes are not what was written: repair the database, or restore a backup";
    Full = 4, "no space left: free some, nothing acknowledged is lost";
    Busy = 5, "busy, try again later: another process has the database open, or writes are held back";
    Other = 6, "the operating system refused, or an earlier failure made writes unsafe";
    Stopped = 7, "stopped by a signal; acknowledged records are kept, and the same import continues";
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code as u8)
    }
}

/// Why a command did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code of the process.
    pub code: Code,
    /// One sentence; empty if there is nothing to say, such as when the reader of a pipe has gone.
    pub message: String,
}

impl Failure {
    /// A failure with a message.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    /// A file or stream of the user's could not be read or written.
    #[must_use]
    pub fn file(name: &str, error: &io::Error) -> Failure {
        let code = match error.kind() {
            io::ErrorKind::NotFound => Code::NotFound,
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput => {
                Code::Usage
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::Full,
            _ => Code::Other,
        };
        Failure::new(code, format!("{name}: {error}"))
    }

    /// An error of something that no repair takes, such as an external file or a backup.
    #[must_use]
    pub fn of_no_database(error: Error, remedy: &str) -> Failure {
        match error.kind() {
            Kind::Corrupt => Failure::new(Code::Corrupt, format!("{error}; {remedy}")),
            _ => error.into(),
        }
    }

    /// Says it on standard error, in one line, and gives the code.
    #[must_use]
    pub fn report(&self) -> ExitCode {
        if !self.message.is_empty() {
            eprintln!("terrane: error: {}", crate::text::shown(self.message.replace('\n', " ")));
        }
        self.code.into()
    }
}

/// The remedy that keeps the sound rows of a damaged database.
const REPAIR: &str = "; `terrane repair DB NEW` keeps all sound rows";

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match error.kind() {
            Kind::NotFound | Kind::Gone => Code::NotFound,
            Kind::Invalid => Code::Usage,
            Kind::Corrupt => Code::Corrupt,
            Kind::Full => Code::Full,
            Kind::Busy => Code::Busy,
            _ => Code::Other,
        };
        let remedy = match error.kind() {
            // Text of the engine that has the other remedy, too.
            Kind::Corrupt if error.to_string().contains("restore") => REPAIR,
            Kind::Corrupt => "; `terrane repair DB NEW` keeps all sound rows, or restore a backup",
            Kind::Poisoned => "; open the database again",
            _ => "",
        };
        Failure::new(code, format!("{error}{remedy}"))
    }
}

/// For standard output only. A reader of a pipe may stop reading: that is not a failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::new(Code::Done, "");
        }
        Failure::file("standard output", &error)
    }
}
