//! Errors as RocksDB writes them: `Kind: what`. Clients tell kinds by what stands before the first colon.

use terrane::{Error, Kind};

/// The result of an exported function that can fail.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// The message of our own operators when the user's operator fails. Such errors are recognised by it.
pub(crate) const MERGE_FAILED: &str = "the merge operator of the column family failed";

/// An error, as the caller gets it. One pointer, so that a result with one passes in registers.
#[derive(Clone, Debug)]
pub(crate) struct Failure(Box<Message>);

#[derive(Clone, Debug)]
struct Message {
    text: String,
}

impl Failure {
    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.0.text
    }

    /// The text without the kind.
    pub(crate) fn reason(&self) -> &str {
        self.text().split_once(": ").map_or(self.text(), |(_, reason)| reason)
    }

    #[cold]
    pub(crate) fn new(kind: &str, what: impl std::fmt::Display) -> Failure {
        Failure(Box::new(Message { text: format!("{kind}: {what}") }))
    }

    #[cold]
    pub(crate) fn invalid(what: impl std::fmt::Display) -> Failure {
        Failure::new("Invalid argument", what)
    }

    #[cold]
    pub(crate) fn corrupt(what: impl std::fmt::Display) -> Failure {
        Failure::new("Corruption", what)
    }

    #[cold]
    pub(crate) fn io(what: impl std::fmt::Display) -> Failure {
        Failure::new("IO error", what)
    }

    #[cold]
    pub(crate) fn not_implemented(what: impl std::fmt::Display) -> Failure {
        Failure::new("Not implemented", what)
    }

    /// A panic was caught: a defect of this library.
    #[cold]
    pub(crate) fn panicked() -> Failure {
        Failure::new("Aborted", "internal error: the library caught a panic")
    }
}

/// The word that RocksDB has for what a caller must do.
fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Busy | Kind::Conflict | Kind::Deadlock => "Resource busy",
        Kind::Invalid => "Invalid argument",
        Kind::Full => "IO error: No space left on device",
        Kind::Corrupt => "Corruption",
        Kind::Cancelled => "Shutdown in progress",
        Kind::NotFound => "NotFound",
        // Data of a view that its writer has merged away: a newer view has them.
        Kind::Gone | Kind::TooOld => "Operation failed. Try again.",
        Kind::TimedOut => "Operation timed out",
        _ => "IO error",
    }
}

impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Failure {
        if error.message().contains(MERGE_FAILED) {
            return Failure::corrupt(format_args!(
                "Merge operator failed: Could not perform merge. ({error})"
            ));
        }
        if is_of_device(&error) && error.kind() == Kind::NotFound {
            // Callers read NotFound as a key that is not there.
            return Failure::io(format_args!("No such file or directory: {error}"));
        }
        Failure::new(word(error.kind()), error)
    }
}

/// Returns true if a call of the device failed: then a kind such as `NotFound` is about a file, and about no
/// table.
pub(crate) fn is_of_device(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}

/// A handle that must be there.
pub(crate) trait Given<T> {
    /// The object that it points at, or a failure for null.
    fn given(self) -> Result<T>;
}

impl<T> Given<T> for Option<T> {
    #[inline]
    fn given(self) -> Result<T> {
        self.ok_or_else(|| Failure::invalid("a handle is null"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_not_a_missing_key() {
        let error = Error::io("making a segment", std::io::ErrorKind::NotFound.into());
        let failure = Failure::from(error);
        assert!(failure.text().starts_with("IO error: No such file or directory: "), "{}", failure.text());
        let failure = Failure::from(Error::new(Kind::NotFound, "there is no table \"x\""));
        assert!(failure.text().starts_with("NotFound: "), "{}", failure.text());
    }

    #[test]
    fn data_that_a_writer_has_merged_away_are_no_missing_key() {
        let failure = Failure::from(Error::gone("extent 1:2 of db", None));
        assert!(failure.text().starts_with("Operation failed. Try again.: "), "{}", failure.text());
    }
}
