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
///
/// Most writers are neither charged nor take room: their permit is two words, so that handing it on costs
/// nothing.
#[must_use]
pub(crate) struct WritePermit<'t> {
    throttle: &'t Throttle,
    /// The charges and the room of the batch, if it has any.
    held: Option<Box<Held<'t>>>,
}

/// The charges and the room of a batch.
#[derive(Default)]
struct Held<'t> {
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
struct CreditCharges {
    tables: Vec<(Arc<Table>, u64)>,
    memory: u64,
}

impl<'t> WritePermit<'t> {
    /// A permit without a reservation and without a charge.
    #[inline]
    pub(super) fn new(throttle: &'t Throttle) -> WritePermit<'t> {
        WritePermit { throttle, held: None }
    }

    /// The charges and the room of the batch, from now on.
    fn held_mut(&mut self) -> &mut Held<'t> {
        self.held.get_or_insert_default()
    }

    /// The throttle that gave it.
    pub(crate) fn throttle(&self) -> &'t Throttle {
        self.throttle
    }

    /// Takes over `bytes` that the throttle has reserved.
    pub(super) fn take_reservation(&mut self, bytes: u64) {
        let held = self.held_mut();
        assert_eq!(held.reserved_bytes.get(), 0, "a batch has one reservation");
        held.reserved_bytes.set(bytes);
        held.given_back.set(None);
    }

    /// Takes over the turn of a batch that is larger than its share.
    pub(super) fn take_turn(&mut self, turn: HeldTurn<'t>) {
        assert!(self.has_room(), "a turn ends with the reservation that was made in it");
        self.held_mut().turn.set(Some(turn));
    }

    /// Returns true if memory is reserved for the batch.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.has_room())
    }

    /// Gives the reservation and the turn back; [`WriteControl::begin_commit`] takes them again.
    ///
    /// [`WriteControl::begin_commit`]: crate::throttle::control::WriteControl::begin_commit
    #[cold]
    pub(crate) fn give_room_back(&self) {
        debug_assert!(self.has_room(), "a permit without room has nothing to give back");
        let Some(held) = &self.held else { return };
        let is_prepared = held.end_room(self.throttle).map(|turn| turn.is_prepared());
        held.given_back.set(Some(is_prepared.map_or(GivenBack::Reservation, GivenBack::Turn)));
        // Writers that wait for memory find the room.
        self.throttle.wake();
    }

    /// The room that was given back and not taken again.
    #[inline]
    pub(super) fn given_back(&self) -> Option<GivenBack> {
        self.held.as_ref()?.given_back.get()
    }

    /// The batch is committed next: from now on the journal counts its bytes.
    #[inline]
    pub(super) fn note_commit(&mut self) {
        if let Some(held) = &mut self.held
            && held.has_room()
        {
            held.turn.get_mut().iter_mut().for_each(HeldTurn::begin_commit);
        }
    }

    /// Charges the batch for memory, too.
    pub(super) fn note_memory_charge(&mut self, charge: u64) {
        let charges = &mut self.held_mut().charges;
        debug_assert!(charges.memory == 0, "memory is charged once");
        charges.memory = charge;
    }

    /// Charges the batch for the backlog of a table, too.
    pub(super) fn note_table_charge(&mut self, table: Arc<Table>, charge: u64) {
        let charges = &mut self.held_mut().charges;
        debug_assert!(
            !charges.tables.iter().any(|(charged, _)| Arc::ptr_eq(charged, &table)),
            "a table is charged once"
        );
        charges.tables.push((table, charge));
    }

    /// Ends the permit after the commit of the batch: its charges stay.
    #[inline]
    pub(crate) fn spend(mut self) {
        if let Some(held) = &mut self.held {
            debug_assert!(held.given_back.get().is_none(), "a batch was committed without its room");
            held.charges = CreditCharges::default();
        }
    }
}

impl Drop for WritePermit<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            held.end(self.throttle);
        }
    }
}

impl<'t> Held<'t> {
    /// Returns true if memory is reserved for the batch.
    fn has_room(&self) -> bool {
        self.reserved_bytes.get() > 0
    }

    /// Ends the reservation and the turn; returns the turn.
    fn end_room(&self, throttle: &Throttle) -> Option<HeldTurn<'t>> {
        debug_assert!(
            self.turn.get().is_none() || self.reserved_bytes.get() > 0,
            "a turn ends with the reservation that was made in it"
        );
        throttle.give_back(self.reserved_bytes.take());
        self.turn.take().inspect(HeldTurn::end)
    }

    /// Ends the room, and refunds the charges that are left.
    #[cold]
    fn end(&self, throttle: &Throttle) {
        if self.has_room() {
            self.end_room(throttle);
        }
        debug_assert!(!self.has_room(), "the write memory would stay reserved for ever");
        if self.charges.memory > 0 || !self.charges.tables.is_empty() {
            self.charges.refund(throttle);
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
