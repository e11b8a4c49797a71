//! The presence of a worker: signs that it is there, while it waits and while it runs a job.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Clock;
use terrane_base::sync::Mutex;

use crate::jobs::Presence;

/// Between two signs.
const EVERY: Duration = Duration::from_secs(30);

/// Signs of one worker, which any of its threads gives.
#[derive(Debug)]
pub(super) struct Present {
    clock: Arc<dyn Clock>,
    /// None while a thread gives a sign: the lock is not held over a request.
    presence: Mutex<Option<Presence>>,
    next: Mutex<Duration>,
}

impl Present {
    pub(super) fn new(presence: Presence, clock: Arc<dyn Clock>) -> Present {
        Present { clock, presence: Mutex::new(Some(presence)), next: Mutex::default() }
    }

    /// Gives a sign if it is time for one. A failure is not an error: only the report of `terrane doctor`
    /// depends on it.
    pub(super) fn renew(&self) {
        let now = self.clock.now();
        if now < *self.next.lock() {
            return;
        }
        let Some(mut presence) = self.presence.lock().take() else { return };
        let _ = presence.beat();
        *self.next.lock() = now + EVERY;
        *self.presence.lock() = Some(presence);
    }

    /// Takes the signs away: the worker ends.
    pub(super) fn end(&self) {
        let taken = self.presence.lock().take();
        if let Some(presence) = taken {
            let _ = presence.end();
        }
    }
}
