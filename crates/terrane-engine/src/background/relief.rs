//! The requests of writers to the background: make room, stop what only reads gain by, say which work is due.

use terrane_base::Error;

use crate::background::job::Look;
use crate::background::maintenance::Maintenance;
use crate::background::scheduler::Schedule;
use crate::background::space::SHORT_SEGMENT_BYTES;
use crate::observe::job_kind::JobKinds;
use crate::table::settings::long_segment_bytes;
use crate::throttle::control::Relief;

/// Has everything flushed that is in memory. Writers call it, so it looks at tables with records there only.
fn flush_filled(engine: &Maintenance) {
    debug_assert!(!engine.options.read_only, "a reader admits no batch");
    engine.request_flush(&engine.catalog.filled());
}

impl Relief for Maintenance {
    fn stop_for_writers(&self) {
        Maintenance::stop_for_writers(self);
    }

    fn give_up_adapting(&self) {
        Maintenance::give_up_adapting(self);
    }

    /// Has the journal go on in short segments, too, so that a trim takes the others as soon as their records
    /// are flushed.
    fn make_room(&self) {
        debug_assert!(!self.options.read_only, "a batch waits for room where none is committed");
        // What fails here makes no room; the commit that needs it says why.
        let _ = self.journal.remove_spares();
        let _ = self.journal.seal_longer_than(SHORT_SEGMENT_BYTES);
        flush_filled(self);
    }

    /// Has its segment sealed, too: nothing else fits there, so it would stay until the next commit, however
    /// long that takes.
    fn flush_behind(&self) {
        debug_assert!(!self.options.read_only, "a large batch was committed where none can be");
        let _ = self.journal.seal_longer_than(long_segment_bytes(&self.options));
        flush_filled(self);
    }

    fn is_paused(&self) -> bool {
        self.background.scheduler.inspect(Schedule::is_paused)
    }

    fn newest_piece(&self) -> u64 {
        self.background.scheduler.inspect(Schedule::newest_piece)
    }

    fn frees_nothing(&self) -> bool {
        Look { engine: self, schedule: &self.background.scheduler.copy_for([]) }.frees_no_memory()
    }

    fn frees_memory(&self) -> bool {
        Look { engine: self, schedule: &self.background.scheduler.copy_for([]) }.frees_memory_next()
    }

    fn memory_failure(&self, seen: u64) -> Option<Error> {
        let look = Look { engine: self, schedule: &self.background.scheduler.copy_for([]) };
        look.lasting_failure(JobKinds::MEMORY, None, seen)
    }
}
