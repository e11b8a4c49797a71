//! Callbacks of the user: functions that the engine calls during its own work, on the thread that does the
//! work.
//!
//! A callback that writes, or waits for the background, may wait for the work of which it is a part. So each
//! call of a key order, a comparator, a merge operator, a prefix extractor or a compaction filter goes
//! through [`call`], which marks the thread, and every change of a database calls [`refuse`] first. Reading
//! is allowed, except in comparators: no lock and no epoch is held around the other calls.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Error, Result, thread_cells};

/// The thread is in a callback, until dropped.
struct Inside;

impl Inside {
    fn begin() -> Inside {
        thread_cells::with(|cells| cells.callback_depth.update(|depth| depth + 1));
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        thread_cells::with(|cells| cells.callback_depth.update(|depth| depth - 1));
    }
}

/// Calls a function of the user's; a panic ends there, and is the error.
///
/// # Errors
/// The panic of the function.
#[inline]
pub fn call<R>(function: impl FnOnce() -> R) -> std::thread::Result<R> {
    let _inside = Inside::begin();
    catch_unwind(AssertUnwindSafe(function))
}

/// Returns true if this thread is in a callback.
#[inline]
#[must_use]
pub fn is_inside() -> bool {
    thread_cells::with(|cells| cells.callback_depth.get() > 0)
}

/// Refuses a call that is not allowed in a callback.
///
/// # Errors
/// `Invalid` in a callback.
#[inline]
pub fn refuse() -> Result<()> {
    if is_inside() { Err(refused()) } else { Ok(()) }
}

#[cold]
fn refused() -> Error {
    Error::invalid(
        "a callback (an order of keys, a merge operator, a prefix extractor or a compaction filter) cannot change a \
         database, nor wait for one: hand the work to a thread of your own",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_ends_with_the_outermost_call_also_by_a_panic() {
        assert!(!is_inside());
        let done = call(|| {
            assert!(is_inside());
            assert!(call(|| panic!("on purpose")).is_err());
            is_inside()
        });
        assert!(done.is_ok_and(|was_inside| was_inside));
        assert!(!is_inside());
        let elsewhere = call(|| std::thread::scope(|scope| scope.spawn(is_inside).join()));
        assert!(matches!(elsewhere, Ok(Ok(false))), "a mark is of a thread");
    }
}
