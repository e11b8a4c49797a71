//! One error type for the whole engine. Its [`Kind`] says what the caller must do; its text names the object
//! and the remedy; its location names the file and offset, if there is one.

use std::fmt;
use std::sync::Arc;

use crate::SeqNo;

/// The result of every fallible call of the engine.
pub type Result<T> = std::result::Result<T, Error>;

/// Kinds of [`Error`]: each says how the caller should react.
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
    #[must_use]
    pub fn is_worth_another_run(self) -> bool {
        matches!(self, Kind::Conflict | Kind::Deadlock | Kind::TooOld | Kind::TimedOut)
    }

    /// The kind as one or two lower-case words, stable across versions.
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
    /// Makes an error of `kind` that reads as `message`.
    #[cold]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error(Arc::new(Inner::new(kind, message.into())))
    }

    /// The caller passed something that cannot be accepted; `message` names it and the remedy.
    #[cold]
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::new(Kind::Invalid, message)
    }

    /// Stored bytes are wrong. Add the place with [`Error::at`].
    #[cold]
    pub fn corrupt(message: impl Into<String>) -> Self {
        Error::new(Kind::Corrupt, message)
    }

    /// These transactions wait for each other: each edge ends where the next one begins.
    #[cold]
    pub fn deadlock(cycle: Vec<WaitsFor>) -> Self {
        let edges: Vec<_> = cycle.iter().map(WaitsFor::to_string).collect();
        let message = format!("deadlock: {}; run the transaction again", edges.join(", "));
        Error(Arc::new(Inner { cycle, ..Inner::new(Kind::Deadlock, message) }))
    }

    /// `what` was requested and is no longer kept; `oldest` is the first change that still is, if changes
    /// were requested.
    #[cold]
    pub fn gone(what: impl fmt::Display, oldest: Option<SeqNo>) -> Self {
        let from = oldest.map(|oldest| format!(" (oldest is {oldest})")).unwrap_or_default();
        let message = format!(
            "no longer kept: {what}{from}; go on from the present state: catch up a follower, begin with a copy where changes \
             were read, and come sooner or keep more (history_bytes)"
        );
        Error::new(Kind::Gone, message).rebuild(|inner| inner.oldest = oldest)
    }

    /// A batch takes more memory than `memory_bytes` allow; with `enough` bytes of it the batch is accepted.
    #[cold]
    pub fn too_large(message: impl Into<String>, enough: u64) -> Self {
        Error(Arc::new(Inner { memory_enough: Some(enough), ..Inner::new(Kind::Invalid, message.into()) }))
    }

    /// The operating system refused a call: `what` names the attempt and its object.
    ///
    /// A full device or quota becomes [`Kind::Full`], a missing file [`Kind::NotFound`], a file where a
    /// directory should be [`Kind::Invalid`], all else [`Kind::Io`].
    #[cold]
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        let kind = match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Kind::Full,
            std::io::ErrorKind::NotFound => Kind::NotFound,
            std::io::ErrorKind::NotADirectory => Kind::Invalid,
            _ => Kind::Io,
        };
        let is_of_space = kind == Kind::Full;
        Error(Arc::new(Inner { source: Some(source), is_of_space, ..Inner::new(kind, what.into()) }))
    }

    /// The same error with the file and byte offset at which it was seen.
    #[must_use]
    pub fn at(self, file: impl Into<String>, offset: u64) -> Self {
        let place = Some(Place { file: file.into(), offset });
        self.rebuild(|inner| inner.place = place)
    }

    /// The same error, its message led by `context` and a colon.
    #[must_use]
    pub fn context(self, context: impl fmt::Display) -> Self {
        let message = format!("{context}: {}", self.0.message);
        self.rebuild(|inner| inner.message = message)
    }

    /// The same error under another kind.
    #[must_use]
    pub fn with_kind(self, kind: Kind) -> Self {
        self.rebuild(|inner| inner.kind = kind)
    }

    /// Marks the error as found by comparing keys: if the comparator fails, it proves nothing about the
    /// stored data.
    #[must_use]
    pub fn of_order(self) -> Self {
        self.rebuild(|inner| inner.is_of_order = true)
    }

    /// Marks the error as a lack of space: on a device, in a pool, or in a service that stands for one. A
    /// flush that gives segments back may end it.
    #[must_use]
    pub fn of_space(self) -> Self {
        self.rebuild(|inner| inner.is_of_space = true)
    }

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

    /// The kind of the error, which says how the caller should react.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The sentence, without place and source.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The edges of a deadlock; empty for every other error.
    #[must_use]
    pub fn cycle(&self) -> &[WaitsFor] {
        &self.0.cycle
    }

    /// If history is gone, the number of the oldest change that is still kept; `None` for every other error.
    #[must_use]
    pub fn oldest(&self) -> Option<SeqNo> {
        self.0.oldest
    }

    /// If a batch is too large for the memory of the database, the `memory_bytes` with which it is accepted;
    /// `None` for every other error.
    #[must_use]
    pub fn memory_enough(&self) -> Option<u64> {
        self.0.memory_enough
    }

    /// Returns true if it was found by comparing keys ([`Error::of_order`]).
    #[must_use]
    pub fn is_of_order(&self) -> bool {
        self.0.is_of_order
    }

    /// Returns true if space is lacking ([`Error::of_space`]); other errors of [`Kind::Full`] name a limit.
    #[must_use]
    pub fn lacks_space(&self) -> bool {
        self.0.kind == Kind::Full && self.0.is_of_space
    }

    /// File and offset, where the error is about stored bytes.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
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
