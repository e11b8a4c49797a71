//! Errors as RocksDB writes them: `Kind: what`. Clients tell kinds by what stands before the first colon.

use terrane::{Error, Kind};

/// The result of what can fail at the border.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// The message of our own operators when the user's operator fails. Such errors are recognised by it.
pub(crate) const MERGE_FAILED: &str = "the merge operator of the column family failed";

/// An error, as the caller gets it.
#[derive(Clone, Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// The text without the kind.
    pub(crate) fn reason(&self) -> &str {
        self.0.split_once(": ").map_or(&self.0, |(_, reason)| reason)
    }

    #[cold]
    pub(crate) fn new(kind: &str, what: impl std::fmt::Display) -> Failure {
        Failure(format!("{kind}: {what}"))
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
        Failure::new("Aborted", "internal error: a panic was caught at the border of the library")
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
        Kind::NotFound | Kind::Gone => "NotFound",
        Kind::TooOld => "Operation failed. Try again.",
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
        Failure::new(word(error.kind()), error)
    }
}

/// A handle that must be there.
pub(crate) trait Given<T> {
    /// What it points at, or a failure for null.
    fn given(self) -> Result<T>;
}

impl<T> Given<T> for Option<T> {
    #[inline]
    fn given(self) -> Result<T> {
        self.ok_or_else(|| Failure::invalid("a handle is null"))
    }
}
