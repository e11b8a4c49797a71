//! The background together with what it works on: what all parts share, memory, and the throttle.

use std::ops::Deref;
use std::sync::Arc;

use crate::background::Background;
use crate::memory::arbiter::MemoryArbiter;
use crate::shared::{Holds, Shared};
use crate::throttle::Throttle;
use crate::throttle::control::WriteControl;

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
