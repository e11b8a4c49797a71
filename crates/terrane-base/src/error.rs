//! One error type for the whole engine. Its [`Kind`] says what the caller must do; its text names the object
//! and the remedy; its location names the file and offset, if there is one.

mod facts;
mod make;

use std::fmt;
use std::sync::Arc;

use crate::SeqNo;

/// The result of every fallible call of the engine.
pub type Result<T> = std::result::Result<T, Error>;

/// Kinds of [`Error`]: each says how the caller should react.
///
/// ```
/// # use terrane_base::{Error, Kind};
/// fn react(error: &Error) {
///     match error.kind() {
///         kind if kind.is_worth_another_run() => println!("run the transaction again"),
///         Kind::Busy | Kind::Full => println!("writes wait: {error}"),
///         Kind::Corrupt | Kind::Poisoned => println!("call the operator: {error}"),
///         kind => println!("{}: {error}", kind.as_str()),
///     }
/// }
/// # react(&Error::invalid("a key"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Try again later: another operation holds the resource, nothing is lost.
    Busy,
    /// Fix the argument or the option that the message names.
    Invalid,
    /// Free space or raise the limit that the message names; reads continue.
    Full,
    /// Restore from a backup or a replica: stored bytes differ from what was written.
    Corrupt,
    /// Close and open again: an earlier failure made further writes unsafe; reads continue.
    Poisoned,
    /// The device or the operating system refused; the source says why.
    Io,
    /// The work was cancelled or the database is closing.
    Cancelled,
    /// The requested object does not exist.
    NotFound,
    /// Run the transaction again from its beginning: another writer changed what it reads or writes.
    Conflict,
    /// Run the transaction again from its beginning: it and others wait for each other ([`Error::cycle`]).
    Deadlock,
    /// Begin again, and finish sooner: the history that a transaction needs for its conflict check is no
    /// longer kept, or a snapshot, scan or transaction has reached the greatest age that the options allow.
    TooOld,
    /// Try again later or allow more time: another transaction held a lock for as long as the caller would
    /// wait, or a follower did not get to a commit in that time.
    TimedOut,
    /// Continue from the present state: the requested history is no longer kept. The view of a follower
    /// catches up; a reader of changes begins with a copy, or from [`Error::oldest`] on.
    Gone,
}

impl Kind {
    /// Returns true if the same transaction may well succeed when it is run again from its beginning.
    ///
    /// ```
    /// # use terrane_base::Kind;
    /// assert!(Kind::Conflict.is_worth_another_run()); // another writer was faster
    /// assert!(!Kind::Invalid.is_worth_another_run()); // it would be refused again
    /// ```
    #[must_use]
    pub fn is_worth_another_run(self) -> bool {
        matches!(self, Kind::Conflict | Kind::Deadlock | Kind::TooOld | Kind::TimedOut)
    }

    /// The kind as one or two lower-case words, stable across versions.
    ///
    /// ```
    /// # use terrane_base::Kind;
    /// assert_eq!(Kind::NotFound.as_str(), "not found");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Busy => "busy",
            Kind::Invalid => "invalid",
            Kind::Full => "full",
            Kind::Corrupt => "corrupt",
            Kind::Poisoned => "poisoned",
            Kind::Io => "io",
            Kind::Cancelled => "cancelled",
            Kind::NotFound => "not found",
            Kind::Conflict => "conflict",
            Kind::Deadlock => "deadlock",
            Kind::TooOld => "too old",
            Kind::TimedOut => "timed out",
            Kind::Gone => "gone",
        }
    }
}

/// File and offset at which an error was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Path of the file, as the engine opened it.
    pub file: String,
    /// Byte offset from the start of the file.
    pub offset: u64,
}

/// One edge of a deadlock: the waiting transaction, the one it waits for, and the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitsFor {
    /// Number of the transaction that waits.
    pub waiter: u64,
    /// Number of the transaction that holds the lock or is queued before the waiter.
    pub holder: u64,
    /// Name of the table.
    pub table: String,
    /// The key whose lock is waited for.
    pub key: Vec<u8>,
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, table) = (self.key.escape_ascii(), &self.table);
        write!(f, "{} waits for {} at key \"{key}\" of table {table:?}", self.waiter, self.holder)
    }
}

#[derive(Debug)]
struct Inner {
    kind: Kind,
    message: String,
    place: Option<Place>,
    source: Option<std::io::Error>,
    cycle: Vec<WaitsFor>,
    oldest: Option<SeqNo>,
    memory_enough: Option<u64>,
    is_of_order: bool,
    is_of_space: bool,
}

impl Inner {
    fn new(kind: Kind, message: String) -> Self {
        let (place, source, cycle, oldest, memory_enough) = (None, None, Vec::new(), None, None);
        let (is_of_order, is_of_space) = (false, false);
        Inner { kind, message, place, source, cycle, oldest, memory_enough, is_of_order, is_of_space }
    }
}

/// An error of the engine: a kind, a sentence, a place and a source. Cheap to clone and to pass on.
///
/// ```
/// use terrane_base::{Error, Kind};
/// let error = Error::invalid("key of 70000 bytes: the limit is 65536 bytes");
/// assert_eq!(error.kind(), Kind::Invalid);
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

impl Error {
    fn rebuild(self, change: impl FnOnce(&mut Inner)) -> Self {
        let source = self.0.source.as_ref().map(clone_io);
        let Inner { kind, message, place, cycle, oldest, memory_enough, is_of_order, is_of_space, .. } =
            &*self.0;
        let (kind, message, place, cycle) = (*kind, message.clone(), place.clone(), cycle.clone());
        let (oldest, memory_enough) = (*oldest, *memory_enough);
        let (is_of_order, is_of_space) = (*is_of_order, *is_of_space);
        let mut inner =
            Inner { kind, message, place, source, cycle, oldest, memory_enough, is_of_order, is_of_space };
        change(&mut inner);
        Error(Arc::new(inner))
    }
}

/// `io::Error` is not `Clone`; the code survives, or the kind with the text.
fn clone_io(error: &std::io::Error) -> std::io::Error {
    match error.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code),
        None => std::io::Error::new(error.kind(), error.to_string()),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(place) = &self.0.place {
            write!(f, " (in {} at offset {})", place.file, place.offset)?;
        }
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({}: {self})", self.0.kind.as_str())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}
