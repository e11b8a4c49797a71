//! A simulated database frees its memory independently of other threads: see [`terrane_base::epoch::alone`].
#![expect(unsafe_code, reason = "promises that no object of a database is used outside of its world")]

/// Values that may leave a world: figures and texts.
pub(crate) trait Plain {}

impl Plain for Result<crate::outcome::Outcome, crate::run::Failure> {}
impl Plain for Result<crate::prepared::Seen, String> {}
impl Plain for Result<crate::explore::Explored, crate::explore::Wrong> {}

/// Runs a world.
pub(crate) fn alone<R: Plain>(world: impl FnOnce() -> R) -> R {
    // SAFETY: a runner and all it holds live inside `world`, on this thread: a world starts no thread, and
    // what the thread's watcher holds goes with its guard. What comes out is plain.
    unsafe { terrane_base::epoch::alone(world) }
}
