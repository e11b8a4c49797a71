//! The answers of an error to code.

use super::{Error, Kind, Place, WaitsFor};
use crate::SeqNo;

impl Error {
    /// The kind of the error, which says how the caller should react.
    ///
    /// ```
    /// # use terrane_base::{Error, Kind};
    /// /// The status that a server replies for an error of the database.
    /// fn status(error: &Error) -> u16 {
    ///     match error.kind() {
    ///         Kind::NotFound => 404,
    ///         Kind::Invalid => 400,
    ///         Kind::Busy | Kind::TimedOut => 503, // the client may try again
    ///         _ => 500,
    ///     }
    /// }
    /// assert_eq!(status(&Error::new(Kind::Busy, "held back")), 503);
    /// ```
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The sentence, without place and source.
    ///
    /// ```
    /// # use terrane_base::{Error, Kind};
    /// let error = Error::corrupt("wrong checksum").at("000007.log", 4096);
    /// assert_eq!(error.message(), "wrong checksum"); // `to_string` has the place, too
    /// ```
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The edges of a deadlock; empty for every other error.
    ///
    /// ```
    /// # use terrane_base::Error;
    /// fn log_deadlock(error: &Error) {
    ///     for edge in error.cycle() {
    ///         eprintln!("transaction {} waits for {} in {}", edge.waiter, edge.holder, edge.table);
    ///     }
    /// }
    /// # log_deadlock(&Error::deadlock(Vec::new()));
    /// ```
    #[must_use]
    pub fn cycle(&self) -> &[WaitsFor] {
        &self.0.cycle
    }

    /// If history is gone, the number of the oldest change that is still kept; `None` for every other error.
    ///
    /// ```
    /// # use terrane_base::{Error, SeqNo};
    /// /// Where a reader of changes goes on; it has missed what was before.
    /// fn next(error: &Error, wanted: SeqNo) -> SeqNo {
    ///     error.oldest().unwrap_or(wanted)
    /// }
    /// assert_eq!(next(&Error::gone("change 17", Some(SeqNo(100))), SeqNo(17)), SeqNo(100));
    /// ```
    #[must_use]
    pub fn oldest(&self) -> Option<SeqNo> {
        self.0.oldest
    }

    /// If a batch is too large for the memory of the database, the `memory_bytes` with which it is accepted;
    /// `None` for every other error.
    ///
    /// ```
    /// # use terrane_base::Error;
    /// let error = Error::too_large("a batch of 40 MiB", 256 << 20);
    /// if let Some(bytes) = error.memory_enough() {
    ///     println!("open the database with memory_bytes={bytes}, or write two batches");
    /// }
    /// # assert!(Error::invalid("a key").memory_enough().is_none());
    /// ```
    #[must_use]
    pub fn memory_enough(&self) -> Option<u64> {
        self.0.memory_enough
    }

    /// Returns true if it was found by comparing keys ([`Error::of_order`]).
    ///
    /// ```
    /// # use terrane_base::Error;
    /// let error = Error::corrupt("keys are out of order");
    /// assert!(!error.is_of_order() && error.of_order().is_of_order());
    /// ```
    #[must_use]
    pub fn is_of_order(&self) -> bool {
        self.0.is_of_order
    }

    /// Returns true if space is lacking ([`Error::of_space`]); other errors of [`Kind::Full`] name a limit.
    ///
    /// ```
    /// # use terrane_base::{Error, Kind};
    /// assert!(!Error::new(Kind::Full, "65,536 tables").lacks_space()); // a limit
    /// let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    /// assert!(Error::io("000007.log", full).lacks_space());
    /// ```
    #[must_use]
    pub fn lacks_space(&self) -> bool {
        self.0.kind == Kind::Full && self.0.is_of_space
    }

    /// File and offset, where the error is about stored bytes.
    ///
    /// ```
    /// # use terrane_base::{Error, Kind};
    /// let error = Error::corrupt("wrong checksum").at("000007.log", 4096);
    /// if let Some(place) = error.place() {
    ///     println!("restore {} from a backup", place.file);
    /// }
    /// # assert!(error.place().is_some() && Error::invalid("a key").place().is_none());
    /// ```
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }
}
