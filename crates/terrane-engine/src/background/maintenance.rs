//! The background together with what it works on: what all parts share, memory, and the throttle.

use std::ops::Deref;
use std::sync::Arc;

use terrane_base::Error;

use crate::background::Background;
use crate::background::job::Look;
use crate::background::scheduler::Schedule;
use crate::background::space::SHORT_SEGMENT_BYTES;
use crate::memory::arbiter::MemoryArbiter;
use crate::observe::job_kind::JobKinds;
use crate::shared::{Holds, Shared};
use crate::table::settings::long_segment_bytes;
use crate::throttle::Throttle;
use crate::throttle::control::{Relief, WriteControl};

/// Flushes, compactions and all other background work with what they work on. It lies inline in the engine,
/// and the shared parts lie inline in it: a part above reaches either without one more pointer.
///
/// It knows no transaction and no writer: those stand above it.
pub struct Maintenance {
    /// State that all parts use.
    pub(crate) shared: Shared,
    /// The memory ceiling, and how it is divided.
    pub(crate) memory: MemoryArbiter,
    /// The write throttle.
    pub(crate) throttle: Throttle,
    /// Flushes, compactions, and all other background work.
    pub(crate) background: Background,
}

/// Keeps an open database in memory and gives its maintenance: for workers, which cannot name the engine.
pub(crate) type MaintenanceRef = Arc<dyn Holds<Maintenance>>;

/// The methods of `Shared` are found here, as in the engine.
impl Deref for Maintenance {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Maintenance {
    /// How far the background is behind: 0 is not at all, at 1 writers wait for memory; below, they are
    /// slowed from about half on.
    #[must_use]
    pub fn debt(&self) -> f64 {
        self.throttle.debt()
    }

    /// The throttle with what it looks at.
    #[inline]
    pub(crate) fn write_control(&self) -> WriteControl<'_> {
        WriteControl {
            shared: &self.shared,
            memory: &self.memory,
            throttle: &self.throttle,
            background: self,
        }
    }

    /// Computes the debt again and sets the rates of writers.
    pub(crate) fn refresh_debt(&self) {
        self.write_control().refresh_debt();
    }
}

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
