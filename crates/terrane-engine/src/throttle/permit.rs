//! The right to commit one batch.

use std::sync::Arc;

use crate::table::Table;
use crate::throttle::Throttle;
use crate::throttle::large::HeldTurn;

/// The right to commit one batch. If it is dropped without [`WritePermit::spend`], the batch was not written
/// and its charges are refunded. The write memory that is reserved for the batch is freed in any case, also
/// if the commit panics.
#[must_use]
pub(crate) struct WritePermit<'t> {
    throttle: &'t Throttle,
    /// Write memory that is reserved for the batch.
    reserved_bytes: u64,
    /// The turn of a batch that is larger than its share; one with a turn has a reservation.
    turn: Option<HeldTurn<'t>>,
    /// The charge of the batch.
    prices: Prices,
}

/// The charge of a batch on credit, in microseconds. Empty for a batch that was charged by a pause: that time
/// is over.
#[derive(Default)]
pub(super) struct Prices {
    pub(super) tables: Vec<(Arc<Table>, u64)>,
    pub(super) memory: u64,
}

impl<'t> WritePermit<'t> {
    /// A permit without a reservation.
    #[inline]
    pub(super) fn new(throttle: &'t Throttle, prices: Prices) -> WritePermit<'t> {
        WritePermit { throttle, reserved_bytes: 0, turn: None, prices }
    }

    /// Takes over `bytes` that the throttle has reserved.
    pub(super) fn take_reservation(&mut self, bytes: u64) {
        assert_eq!(self.reserved_bytes, 0, "a batch has one reservation");
        self.reserved_bytes = bytes;
    }

    /// Takes over the turn of a batch that is larger than its share.
    pub(super) fn take_turn(&mut self, turn: HeldTurn<'t>) {
        assert!(self.reserved_bytes > 0, "a turn ends with the reservation that was made in it");
        self.turn = Some(turn);
    }

    /// The batch is committed next: from now on the journal counts its bytes.
    #[inline]
    pub(crate) fn begin_commit(&mut self) {
        if self.reserved_bytes > 0 {
            self.turn.iter_mut().for_each(HeldTurn::begin_commit);
        }
    }

    /// Charges the batch for memory, too.
    pub(super) fn note_memory_price(&mut self, price: u64) {
        debug_assert!(self.prices.memory == 0, "memory is paid once");
        self.prices.memory = price;
    }

    /// Charges the batch for the backlog of a table, too.
    pub(super) fn note_table_price(&mut self, table: Arc<Table>, price: u64) {
        debug_assert!(
            !self.prices.tables.iter().any(|(paid, _)| Arc::ptr_eq(paid, &table)),
            "a table is paid once"
        );
        self.prices.tables.push((table, price));
    }

    /// Ends the permit after the commit of the batch: its charges stay.
    #[inline]
    pub(crate) fn spend(mut self) {
        self.prices = Prices::default();
    }
}

impl Drop for WritePermit<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.reserved_bytes > 0 {
            self.throttle.give_back(self.reserved_bytes);
            self.turn.iter().for_each(HeldTurn::end);
        }
        if self.prices.memory > 0 || !self.prices.tables.is_empty() {
            self.prices.refund(self.throttle);
        }
    }
}

impl Prices {
    /// Refunds the charges. Otherwise a writer that is refused again and again would use up the rate without
    /// writing.
    #[cold]
    fn refund(&self, throttle: &Throttle) {
        debug_assert!(self.memory > 0 || !self.tables.is_empty(), "what was not charged is not refunded");
        if terrane_base::planted!(PayForNothing) {
            return;
        }
        self.tables.iter().for_each(|(table, price)| table.pressure.pace.refund(*price));
        throttle.pressure.memory.refund(self.memory);
    }
}
