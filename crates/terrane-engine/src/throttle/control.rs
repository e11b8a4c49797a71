//! The throttle together with what it looks at: memory, tables and journal, and the background.

use std::ops::Deref;

use terrane_base::Error;

use crate::memory::arbiter::MemoryArbiter;
use crate::shared::Shared;
use crate::throttle::Throttle;

/// Requests of writers to the background while they are held back.
pub(crate) trait Relief {
    /// Stops a job that only reads gain by, if writers came while it runs.
    fn stop_for_writers(&self);

    /// Stops a job that only reads gain by.
    fn give_up_adapting(&self);

    /// Has everything in memory flushed, and the segments that the journal gives up for it trimmed: as much
    /// memory as possible comes back. Waits for no flush.
    fn make_room(&self);

    /// Has everything in memory flushed after a batch that is larger than its share.
    fn flush_behind(&self);

    /// Returns true if flushes are paused.
    fn is_paused(&self) -> bool;

    /// The number of the newest piece of work.
    fn newest_piece(&self) -> u64;

    /// Returns true if no job runs, is due or waits to be tried again, but for compactions that keep failing:
    /// those free no memory.
    fn frees_nothing(&self) -> bool;

    /// Returns true if a job that brings memory back runs, is due, or is tried again: no compaction is one.
    fn frees_memory(&self) -> bool;

    /// Why memory does not come back: the error of such work that lasts, or failed later than `seen`.
    fn memory_failure(&self, seen: u64) -> Option<Error>;
}

/// See the head of the file. Made for each call, it costs nothing: its steps on the way of a write are
/// inlined, and those that are not take it by value.
#[derive(Clone, Copy)]
pub(crate) struct WriteControl<'e> {
    pub(crate) shared: &'e Shared,
    pub(crate) memory: &'e MemoryArbiter,
    pub(crate) throttle: &'e Throttle,
    pub(crate) background: &'e dyn Relief,
}

/// The shared parts are found here, as in the engine.
impl Deref for WriteControl<'_> {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        self.shared
    }
}
