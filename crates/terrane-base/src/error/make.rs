//! Making errors, and saying more about one.

use std::fmt;
use std::sync::Arc;

use super::{Error, Inner, Kind, Place, WaitsFor};
use crate::SeqNo;

impl Error {
    /// Makes an error of `kind` that reads as `message`.
    ///
    /// ```
    /// # use terrane_base::{Error, Kind};
    /// let error = Error::new(Kind::NotFound, "there is no user 7");
    /// assert_eq!((error.kind(), error.message()), (Kind::NotFound, "there is no user 7"));
    /// ```
    #[cold]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error(Arc::new(Inner::new(kind, message.into())))
    }

    /// The caller passed something that cannot be accepted; `message` names it and the remedy.
    ///
    /// ```
    /// # use terrane_base::{Error, Kind};
    /// /// As a merge operator refuses an operand.
    /// fn number(operand: &[u8]) -> Result<u64, Error> {
    ///     let bytes = operand.try_into().map_err(|_| Error::invalid("an operand is 8 bytes long"))?;
    ///     Ok(u64::from_le_bytes(bytes))
    /// }
    /// assert_eq!(number(b"seven").unwrap_err().kind(), Kind::Invalid);
    /// ```
    #[cold]
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::new(Kind::Invalid, message)
    }

    /// Stored bytes are wrong. Add the place with [`Error::at`].
    ///
    /// ```
    /// # use terrane_base::{Error, Kind};
    /// let error = Error::corrupt("wrong checksum").at("000007.log", 4096);
    /// assert_eq!(error.kind(), Kind::Corrupt);
    /// assert_eq!(error.to_string(), "wrong checksum (in 000007.log at offset 4096)");
    /// ```
    #[cold]
    pub fn corrupt(message: impl Into<String>) -> Self {
        Error::new(Kind::Corrupt, message)
    }

    /// These transactions wait for each other: each edge ends where the next one begins.
    ///
    /// ```
    /// # use terrane_base::Error;
    /// # use terrane_base::error::WaitsFor;
    /// let edge = |waiter, holder, key: &[u8]| {
    ///     WaitsFor { waiter, holder, table: "accounts".into(), key: key.into() }
    /// };
    /// let error = Error::deadlock(vec![edge(1, 2, b"ada"), edge(2, 1, b"grace")]);
    /// assert!(error.message().contains(r#"1 waits for 2 at key "ada" of table "accounts""#));
    /// ```
    #[cold]
    pub fn deadlock(cycle: Vec<WaitsFor>) -> Self {
        let edges: Vec<_> = cycle.iter().map(WaitsFor::to_string).collect();
        let message = format!("deadlock: {}; run the transaction again", edges.join(", "));
        Error(Arc::new(Inner { cycle, ..Inner::new(Kind::Deadlock, message) }))
    }

    /// `what` was requested and is no longer kept; `oldest` is the first change that still is, if changes
    /// were requested.
    ///
    /// ```
    /// # use terrane_base::{Error, SeqNo};
    /// let error = Error::gone("change 17", Some(SeqNo(100)));
    /// assert_eq!(error.oldest(), Some(SeqNo(100)));
    /// ```
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
    ///
    /// ```
    /// # use terrane_base::{Error, Kind};
    /// let error = Error::too_large("a batch of 40 MiB", 256 << 20);
    /// assert_eq!((error.kind(), error.memory_enough()), (Kind::Invalid, Some(256 << 20)));
    /// ```
    #[cold]
    pub fn too_large(message: impl Into<String>, enough: u64) -> Self {
        Error(Arc::new(Inner { memory_enough: Some(enough), ..Inner::new(Kind::Invalid, message.into()) }))
    }

    /// The operating system refused a call: `what` names the attempt and its object.
    ///
    /// A full device or quota becomes [`Kind::Full`], a missing file [`Kind::NotFound`], a file where a
    /// directory should be [`Kind::Invalid`], all else [`Kind::Io`].
    ///
    /// ```
    /// # use terrane_base::{Error, Kind};
    /// let path = "/no such directory/file";
    /// let error = std::fs::File::open(path).map_err(|source| Error::io(path, source)).unwrap_err();
    /// assert_eq!(error.kind(), Kind::NotFound);
    /// ```
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
    ///
    /// ```
    /// # use terrane_base::{Error, Kind};
    /// let error = Error::corrupt("wrong checksum").at("000007.log", 4096);
    /// assert_eq!(error.place().expect("it was given").offset, 4096);
    /// ```
    #[must_use]
    pub fn at(self, file: impl Into<String>, offset: u64) -> Self {
        let place = Some(Place { file: file.into(), offset });
        self.rebuild(|inner| inner.place = place)
    }

    /// The same error, its message led by `context` and a colon.
    ///
    /// ```
    /// # use terrane_base::{Error, Kind};
    /// let error = Error::invalid("the value is empty").context("row 12 of users.csv");
    /// assert_eq!(error.message(), "row 12 of users.csv: the value is empty");
    /// ```
    #[must_use]
    pub fn context(self, context: impl fmt::Display) -> Self {
        let message = format!("{context}: {}", self.0.message);
        self.rebuild(|inner| inner.message = message)
    }

    /// The same error under another kind.
    ///
    /// ```
    /// # use terrane_base::{Error, Kind};
    /// let unreadable = Error::invalid("no number").with_kind(Kind::Corrupt); // it was stored so
    /// assert_eq!((unreadable.kind(), unreadable.message()), (Kind::Corrupt, "no number"));
    /// ```
    #[must_use]
    pub fn with_kind(self, kind: Kind) -> Self {
        self.rebuild(|inner| inner.kind = kind)
    }

    /// Marks the error as found by comparing keys: if the comparator fails, it proves nothing about the
    /// stored data.
    ///
    /// ```
    /// # use terrane_base::{Error, Kind};
    /// assert!(Error::corrupt("keys are out of order").of_order().is_of_order());
    /// ```
    #[must_use]
    pub fn of_order(self) -> Self {
        self.rebuild(|inner| inner.is_of_order = true)
    }

    /// Marks the error as a lack of space: on a device, in a pool, or in a service that stands for one. A
    /// flush that gives segments back may end it.
    ///
    /// ```
    /// # use terrane_base::{Error, Kind};
    /// assert!(Error::new(Kind::Full, "the pool has no chunk left").of_space().lacks_space());
    /// ```
    #[must_use]
    pub fn of_space(self) -> Self {
        self.rebuild(|inner| inner.is_of_space = true)
    }
}
