//! The first failure that makes further commits unsafe. Every later commit fails with it.

use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicBool, Ordering};
use terrane_base::{Error, Kind};

/// Refuses commits once it is set. Shared by ring, log and medium; never reset.
#[derive(Debug, Default)]
pub struct Poison {
    is_set: AtomicBool,
    cause: Mutex<Option<Error>>,
}

impl Poison {
    /// Not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets it; the first cause stays.
    pub fn set(&self, cause: Error) {
        let mut first = self.cause.lock();
        debug_assert!(
            first.is_some() || !self.is_set.load(Ordering::Relaxed),
            "a thread that sees the flag sees the cause"
        );
        first.get_or_insert(cause);
        drop(first);
        // Release: pairs with the Acquire in `check`; a thread that sees the flag sees the cause.
        self.is_set.store(true, Ordering::Release);
    }

    /// # Errors
    /// `Poisoned`, naming the cause; `Cancelled` if the cause is that the journal was closed.
    #[inline]
    pub fn check(&self) -> Result<(), Error> {
        if self.is_set.load(Ordering::Acquire) && !terrane_base::planted!(GoOnAfterFailedSync) {
            Err(self.error())
        } else {
            Ok(())
        }
    }

    #[cold]
    fn error(&self) -> Error {
        let cause = self.cause.lock().clone().expect("cause is kept before the flag is set");
        match cause.kind() {
            Kind::Cancelled => cause,
            _ => Error::new(
                Kind::Poisoned,
                format!(
                    "the journal takes no more commits after a failure; close the database and open it again ({cause})"
                ),
            ),
        }
    }
}
