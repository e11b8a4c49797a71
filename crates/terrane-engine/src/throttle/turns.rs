//! The turns of batches that are larger than their share of the write memory ([`super::large`]): one at a
//! time, in the order in which they came.

use std::collections::VecDeque;

use terrane_base::sync::Mutex;

use crate::throttle::control::WriteControl;

/// The order of batches that are larger than their share.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    newest: u64,
    /// Those that wait, after the one whose turn it is.
    waiting: VecDeque<u64>,
}

impl Turns {
    /// Goes to the end of the queue; returns the place.
    fn enter(&self) -> u64 {
        let mut queue = self.0.lock();
        queue.newest += 1;
        let place = queue.newest;
        debug_assert!(queue.waiting.back().is_none_or(|last| *last < place), "places ascend");
        queue.waiting.push_back(place);
        place
    }

    fn is_first(&self, place: u64) -> bool {
        self.0.lock().waiting.front() == Some(&place)
    }

    fn leave(&self, place: u64) {
        let mut queue = self.0.lock();
        let before = queue.waiting.len();
        queue.waiting.retain(|waiting| *waiting != place);
        assert!(queue.waiting.len() + 1 == before, "a batch that has place {place} leaves once");
    }
}

/// A place in the queue. It is left at the drop, unless a permit takes it over.
pub(super) struct Turn<'e> {
    held: HeldTurn<'e>,
    is_kept: bool,
}

impl<'e> Turn<'e> {
    pub(super) fn new(held: HeldTurn<'e>) -> Turn<'e> {
        Turn { held, is_kept: false }
    }

    /// Returns true if no batch is in front.
    pub(super) fn has_come(&self) -> bool {
        self.held.control.throttle.turns.is_first(self.held.place)
    }

    pub(super) fn is_prepared(&self) -> bool {
        self.held.is_prepared
    }

    /// Leaves it to a permit.
    pub(super) fn keep(mut self) -> HeldTurn<'e> {
        self.is_kept = true;
        self.held
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_kept && !terrane_base::planted!(KeepTurn) {
            self.held.end();
        }
    }
}

/// The turn of a batch that has a permit, which ends it.
#[derive(Clone, Copy)]
pub(super) struct HeldTurn<'e> {
    control: WriteControl<'e>,
    place: u64,
    /// Of the index over the records of the batch.
    index_bytes: u64,
    /// The batch was prepared.
    is_prepared: bool,
    is_committing: bool,
}

impl<'e> HeldTurn<'e> {
    /// Goes to the end of the queue.
    pub(super) fn enter(control: WriteControl<'e>, index_bytes: u64, is_prepared: bool) -> HeldTurn<'e> {
        let place = control.throttle.turns.enter();
        HeldTurn { control, place, index_bytes, is_prepared, is_committing: false }
    }

    pub(super) fn is_prepared(&self) -> bool {
        self.is_prepared
    }

    /// From now on the journal counts the bytes of the batch. Those of the index come little by little.
    pub(super) fn begin_commit(&mut self) {
        debug_assert!(self.control.throttle.turns.is_first(self.place), "it is the turn of another batch");
        self.control.memory.promise(self.index_bytes);
        self.is_committing = true;
    }

    /// Lets the next one go on, and all others.
    pub(super) fn end(&self) {
        let throttle = self.control.throttle;
        debug_assert!(
            !self.is_committing || throttle.turns.is_first(self.place),
            "a batch is committed in its turn"
        );
        if throttle.turns.is_first(self.place) {
            self.control.memory.promise(0);
            throttle.pressure.hold(false);
        }
        throttle.turns.leave(self.place);
        let flushes = self.is_committing && !terrane_base::planted!(LeaveLargeBatch);
        if flushes && !std::thread::panicking() && !self.control.is_closing() {
            self.control.background.flush_behind();
        }
        self.control.refresh_debt();
        throttle.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_batch_has_its_turn_and_those_that_give_up_are_passed_over() {
        let turns = Turns::default();
        let [first, second, third] = [turns.enter(), turns.enter(), turns.enter()];
        assert!(turns.is_first(first) && !turns.is_first(second) && !turns.is_first(third));
        turns.leave(second);
        assert!(turns.is_first(first) && !turns.is_first(third));
        turns.leave(first);
        assert!(turns.is_first(third));
    }
}
