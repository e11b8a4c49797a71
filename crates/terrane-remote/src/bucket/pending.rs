//! An operation that was started and is waited for later.

use std::fmt;

use terrane_base::Result;

/// An operation on a bucket that was started. Dropping it does not undo it.
pub struct Pending<T>(Box<dyn FnOnce() -> Result<T> + Send>);

impl<T> Pending<T> {
    /// An operation whose outcome `wait` returns.
    pub fn new(wait: impl FnOnce() -> Result<T> + Send + 'static) -> Self {
        Pending(Box::new(wait))
    }

    /// An operation that has ended.
    pub fn ready(outcome: Result<T>) -> Self
    where
        T: Send + 'static,
    {
        Pending::new(move || outcome)
    }

    /// Waits for the outcome.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn wait(self) -> Result<T> {
        (self.0)()
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending")
    }
}
