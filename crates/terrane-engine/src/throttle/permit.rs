//! The right to commit one batch.

use std::cell::Cell;
use std::sync::Arc;

use crate::table::Table;
use crate::throttle::Throttle;
use crate::throttle::turns::HeldTurn;

/// The right to commit one batch. If it is dropped without [`WritePermit::spend`], the batch was not written
/// and its charges are refunded. The write memory that is reserved for the batch is freed in any case, also
/// if the commit panics.
///
/// A writer that waits for locks gives the room of its batch back first ([`WritePermit::give_room_back`]):
/// the owner of a lock may need it. So a writer that has room waits for memory only, and one that waits for a
/// lock or for a commit in flight has none: no two wait for each other.
#[must_use]
pub(crate) struct WritePermit<'t> {
    throttle: &'t Throttle,
    /// Write memory that is reserved for the batch.
    reserved_bytes: Cell<u64>,
    /// The turn of a batch that is larger than its share; one with a turn has a reservation.
    turn: Cell<Option<HeldTurn<'t>>>,
    /// The room that was given back and is taken again before the commit.
    given_back: Cell<Option<GivenBack>>,
    /// The charge of the batch.
    charges: CreditCharges,
}

/// The room that a batch had before its writer waited for locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GivenBack {
    /// A reservation of write memory.
    Reservation,
    /// The turn of a batch that is larger than its share; true for one that was prepared.
    Turn(bool),
}

/// The charge of a batch on credit, in microseconds. Empty for a batch that was charged by a pause: that time
/// is over.
#[derive(Default)]
pub(super) struct CreditCharges {
    pub(super) tables: Vec<(Arc<Table>, u64)>,
    pub(super) memory: u64,
}

impl<'t> WritePermit<'t> {
    /// A permit without a reservation.
    #[inline]
    pub(super) fn new(throttle: &'t Throttle, charges: CreditCharges) -> WritePermit<'t> {
        let (reserved_bytes, turn, given_back) = (Cell::new(0), Cell::new(None), Cell::new(None));
        WritePermit { throttle, reserved_bytes, turn, given_back, charges }
    }

    /// The throttle that gave it.
    pub(crate) fn throttle(&self) -> &'t Throttle {
        self.throttle
    }

    /// Takes over `bytes` that the throttle has reserved.
    pub(super) fn take_reservation(&mut self, bytes: u64) {
        assert_eq!(self.reserved_bytes.get(), 0, "a batch has one reservation");
        self.reserved_bytes.set(bytes);
        self.given_back.set(None);
    }

    /// Takes over the turn of a batch that is larger than its share.
    pub(super) fn take_turn(&mut self, turn: HeldTurn<'t>) {
        assert!(self.has_room(), "a turn ends with the reservation that was made in it");
        self.turn.set(Some(turn));
    }

    /// Returns true if memory is reserved for the batch.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.reserved_bytes.get() > 0
    }

    /// Gives the reservation and the turn back; [`WriteControl::begin_commit`] takes them again.
    ///
    /// [`WriteControl::begin_commit`]: crate::throttle::control::WriteControl::begin_commit
    #[cold]
    pub(crate) fn give_room_back(&self) {
        debug_assert!(self.has_room(), "a permit without room has nothing to give back");
        let is_prepared = self.end_room().map(|turn| turn.is_prepared());
        self.given_back.set(Some(is_prepared.map_or(GivenBack::Reservation, GivenBack::Turn)));
        // Writers that wait for memory find the room.
        self.throttle.wake();
    }

    /// The room that was given back and not taken again.
    #[inline]
    pub(super) fn given_back(&self) -> Option<GivenBack> {
        self.given_back.get()
    }

    /// Ends the reservation and the turn; returns the turn.
    fn end_room(&self) -> Option<HeldTurn<'t>> {
        self.throttle.give_back(self.reserved_bytes.take());
        self.turn.take().inspect(HeldTurn::end)
    }

    /// The batch is committed next: from now on the journal counts its bytes.
    #[inline]
    pub(super) fn note_commit(&mut self) {
        if self.has_room() {
            self.turn.get_mut().iter_mut().for_each(HeldTurn::begin_commit);
        }
    }

    /// Charges the batch for memory, too.
    pub(super) fn note_memory_charge(&mut self, charge: u64) {
        debug_assert!(self.charges.memory == 0, "memory is charged once");
        self.charges.memory = charge;
    }

    /// Charges the batch for the backlog of a table, too.
    pub(super) fn note_table_charge(&mut self, table: Arc<Table>, charge: u64) {
        debug_assert!(
            !self.charges.tables.iter().any(|(charged, _)| Arc::ptr_eq(charged, &table)),
            "a table is charged once"
        );
        self.charges.tables.push((table, charge));
    }

    /// Ends the permit after the commit of the batch: its charges stay.
    #[inline]
    pub(crate) fn spend(mut self) {
        self.charges = CreditCharges::default();
    }
}

impl Drop for WritePermit<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.has_room() {
            self.end_room();
        }
        if self.charges.memory > 0 || !self.charges.tables.is_empty() {
            self.charges.refund(self.throttle);
        }
    }
}

impl CreditCharges {
    /// Refunds the charges. Otherwise a writer that is refused again and again would use up the rate without
    /// writing.
    #[cold]
    fn refund(&self, throttle: &Throttle) {
        debug_assert!(self.memory > 0 || !self.tables.is_empty(), "what was not charged is not refunded");
        if terrane_base::planted!(KeepRefusedCharge) {
            return;
        }
        self.tables.iter().for_each(|(table, charge)| table.pressure.pace.refund(*charge));
        throttle.pressure.memory.refund(self.memory);
    }
}
