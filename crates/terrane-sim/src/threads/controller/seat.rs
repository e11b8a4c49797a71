//! One explored thread: what it tells the controller at each point.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use terrane_base::sync::points::{CallSite, Explorer, Point};

use super::{Controller, Doing, bit, wake};

/// The weight of a point: most points are loads, and few loads matter.
const LOAD_WEIGHT: u64 = 1;
const WEIGHT: u64 = 8;
/// The address for which sleeps wait: no thread wakes it.
const SLEEP: usize = 1;

/// One explored thread.
pub(crate) struct Seat {
    pub(super) controller: Arc<Controller>,
    pub(super) id: usize,
}

impl Seat {
    /// The first call of the thread: waits until it is chosen.
    pub(crate) fn sit(&self) {
        self.controller.wait_for_turn(self.id);
    }

    /// The last call of the thread.
    pub(crate) fn leave(&self) {
        let controller = &self.controller;
        let mut state = controller.state.lock();
        state.members[self.id].doing = Doing::Ended;
        wake(&mut state, self.end_address(), true);
        if state.members.iter().all(|member| member.doing == Doing::Ended) {
            state.outcome.get_or_insert(Ok(()));
            controller.ended.notify_all();
            return;
        }
        controller.choose(state, self.id, true);
    }

    /// Waits for the end of the thread of another seat.
    #[track_caller]
    pub(crate) fn join(&self, other: &Seat) {
        loop {
            {
                let state = self.controller.state.lock();
                if state.members[other.id].doing == Doing::Ended {
                    return;
                }
            }
            self.block(other.end_address(), None, CallSite::of_caller("end of a thread"));
        }
    }

    #[track_caller]
    pub(crate) fn sleep(&self, duration: Duration) {
        self.block(SLEEP, Some(duration), CallSite::of_caller("time"));
    }

    pub(crate) fn controller(&self) -> &Arc<Controller> {
        &self.controller
    }

    /// The address for which threads wait that join this thread.
    fn end_address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }
}

impl Explorer for Seat {
    fn number(&self) -> usize {
        self.id % self.controller.numbers
    }

    fn point(&self, point: Point) {
        let controller = &*self.controller;
        let weight = if point == Point::Load { LOAD_WEIGHT } else { WEIGHT };
        // Relaxed: only the thread that runs counts.
        let left = controller.left.load(Ordering::Relaxed);
        if left > weight {
            controller.left.store(left - weight, Ordering::Relaxed);
            return;
        }
        controller.left.store(0, Ordering::Relaxed);
        controller.choose(controller.state.lock(), self.id, false);
    }

    fn give_way(&self, place: CallSite) {
        let mut state = self.controller.state.lock();
        state.members[self.id].place = Some(place);
        self.controller.choose(state, self.id, true);
    }

    fn block(&self, on: usize, timeout: Option<Duration>, place: CallSite) -> bool {
        let controller = &*self.controller;
        let mut state = controller.state.lock();
        let now = controller.nanos.load(Ordering::Relaxed);
        let until = timeout.map(|timeout| now.saturating_add(timeout.as_nanos().min(u64::MAX.into()) as u64));
        state.members[self.id].doing = Doing::Blocked { on, until };
        state.members[self.id].is_woken = false;
        state.members[self.id].place = Some(place);
        controller.waited.fetch_or(bit(on), Ordering::Relaxed);
        controller.choose(state, self.id, true);
        self.controller.state.lock().members[self.id].is_woken
    }

    fn wake(&self, on: usize, all: bool) {
        let controller = &*self.controller;
        if controller.waited.load(Ordering::Relaxed) & bit(on) == 0 {
            return;
        }
        let mut state = controller.state.lock();
        wake(&mut state, on, all);
        let blocked = state.members.iter().filter_map(|member| match member.doing {
            Doing::Blocked { on, .. } => Some(bit(on)),
            _ => None,
        });
        let waited = blocked.fold(0, |bits, bit| bits | bit);
        controller.waited.store(waited, Ordering::Relaxed);
    }
}
