//! The charge of a batch: its bytes at the rate of each table that it changes, and at that of memory for
//! tables that are charged for it.

use std::sync::Arc;
use std::time::Duration;
use terrane_base::sync::atomic::Ordering;

use terrane_base::Batch;
use terrane_base::record::Header;

use crate::observe::events::StallCause;
use crate::observe::stats::add;
use crate::pace::token_bucket::{PAUSE_MIN, TokenBucket};
use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::table::sums::Amounts;
use crate::throttle::Throttle;
use crate::throttle::control::WriteControl;
use crate::throttle::permit::WritePermit;
use crate::throttle::pressure::PAUSE_SUM_MAX;

/// A table that uses less than the mean of all tables divided by this is not charged for memory.
const LIGHT_SHARE: u64 = 2;

/// The charge of a batch: bytes at the rate of each table that slows writers, and at that of memory.
struct Charge {
    tables: Vec<(Arc<Table>, u64)>,
    memory_bytes: u64,
}

impl<'e> WriteControl<'e> {
    /// Charges a batch before its commit: pauses in proportion to the debt of its tables. Returns the length
    /// of the pause.
    pub(super) fn charge(&self, batch: &Batch) -> Duration {
        let (clock, pressure) = (&*self.env.clock, &self.throttle.pressure);
        if !pressure.is_slowing() {
            return Duration::ZERO;
        }
        let charge = Charge::of(batch, self.throttle, &self.catalog, true);
        debug_assert!(charge.is_within(batch), "a batch is charged for its own bytes, once");
        let memory_bytes = charge.memory_bytes;
        let charges_memory = memory_bytes > 0 && !pressure.memory.take_credit(memory_bytes);
        if charge.tables.is_empty() && !charges_memory {
            return Duration::ZERO;
        }
        let start = clock.now();
        let (mut now, end) = (start, start + PAUSE_SUM_MAX);
        let mut ended = |for_memory: bool| {
            let took = clock.now() - now;
            now += took;
            pressure.note_paused(took, for_memory);
            took
        };
        for (table, bytes) in &charge.tables {
            let left = end.saturating_sub(clock.now());
            table.pressure.pace.charge(*bytes, left.min(pressure.longest()), clock);
            let took = ended(false);
            self.note_held_by(table, took);
        }
        if charges_memory {
            let left = end.saturating_sub(clock.now());
            pressure.memory.charge(memory_bytes, left.min(pressure.longest()), clock);
            self.note_held_for_memory(ended(true));
        }
        now - start
    }

    /// Charges a batch on credit, waiting until `until` at most; `None` if that was not enough, and nothing
    /// is charged.
    pub(super) fn charge_by(&self, batch: &Batch, until: Duration) -> Option<WritePermit<'e>> {
        let throttle = self.throttle;
        let mut permit = WritePermit::new(throttle);
        if !throttle.is_slowing() {
            return Some(permit);
        }
        let charge = Charge::of(batch, throttle, &self.catalog, false);
        debug_assert!(charge.is_within(batch), "a batch is charged for its own bytes, once");
        for (table, bytes) in charge.tables {
            let micros = self.charge_at(&table.pressure.pace, bytes, until, Some(&table))?;
            permit.note_table_charge(table, micros);
        }
        if charge.memory_bytes > 0 {
            permit.note_memory_charge(self.charge_at(
                &throttle.pressure.memory,
                charge.memory_bytes,
                until,
                None,
            )?);
        }
        Some(permit)
    }

    /// Charges at one rate, that of a table or of memory; returns the charge in microseconds.
    fn charge_at(
        &self,
        pace: &TokenBucket,
        bytes: u64,
        until: Duration,
        table: Option<&Table>,
    ) -> Option<u64> {
        debug_assert!(bytes > 0, "a write that brings nothing waits for nothing");
        // The commit says why.
        let is_hopeless = || self.is_closing() || self.journal.check().is_err();
        let start = self.env.clock.now();
        let charged = pace.charge_by(bytes, until, &*self.env.clock, &is_hopeless);
        let took = self.env.clock.now().saturating_sub(start);
        self.throttle.pressure.note_paused(took, table.is_none());
        match table {
            Some(table) => self.note_held_by(table, took),
            None => self.note_held_for_memory(took),
        }
        charged
    }

    /// Notes how long a charge for the backlog of a table took. A time below the shortest pause is only the
    /// cost of the check.
    fn note_held_by(&self, table: &Table, took: Duration) {
        debug_assert!(table.is_of(&self.catalog), "the pause counts in another database");
        if took >= PAUSE_MIN {
            add(&table.counters.table_writes_paused_micros, took.as_micros() as u64);
            self.note_stall(took, || StallCause::Backlog(table.name.clone()));
        }
    }

    fn note_held_for_memory(&self, took: Duration) {
        if took >= PAUSE_MIN {
            self.note_stall(took, || StallCause::Memory);
        }
    }
}

impl Throttle {
    /// How long writers were held back for memory, or by the backlog of `table`, in microseconds.
    pub(crate) fn paused_micros_of(&self, table: &Table) -> u64 {
        // Relaxed: a measure.
        let by_backlog = table.counters.table_writes_paused_micros.load(Ordering::Relaxed);
        self.pressure.paused_for_memory_micros() + by_backlog
    }
}

impl Charge {
    /// Returns true if neither rate charges more than the batch has.
    fn is_within(&self, batch: &Batch) -> bool {
        let of_tables: u64 = self.tables.iter().map(|(_, bytes)| bytes).sum();
        of_tables.max(self.memory_bytes) <= batch.bytes().len() as u64
    }

    /// The charge of a batch. With `by_credit`, the credit that other writers left for its tables is taken
    /// first.
    fn of(batch: &Batch, throttle: &Throttle, catalog: &Catalog, by_credit: bool) -> Charge {
        let guard = terrane_base::epoch::pin();
        let mut due = Charge { tables: Vec::new(), memory_bytes: 0 };
        let has_memory_debt = throttle.pressure.memory.rate().is_some();
        let sums = catalog.sums().now();
        let mut charge = |id, bytes: u64| {
            // A table that was dropped meanwhile takes no record.
            let Some(table) = catalog.get(id, &guard) else { return };
            if has_memory_debt && !is_light(table.filled_bytes(), &sums) {
                due.memory_bytes += bytes;
            }
            let pace = &table.pressure.pace;
            if pace.rate().is_none() || by_credit && pace.take_credit(bytes) {
                return;
            }
            match due.tables.iter_mut().find(|(charged, _)| Arc::ptr_eq(charged, table)) {
                Some((_, charged)) => *charged += bytes,
                None => due.tables.push((table.clone(), bytes)),
            }
        };
        let (bytes, mut at, mut run) = (batch.bytes(), 0, None);
        while at < bytes.len() {
            let header = Header::decode(&bytes[at..]).expect("a batch holds whole records");
            let len = header.record_len();
            at += len;
            run = match run {
                Some((id, sum)) if id == header.table => Some((id, sum + len as u64)),
                before => {
                    before.into_iter().for_each(|(id, sum)| charge(id, sum));
                    Some((header.table, len as u64))
                }
            };
        }
        run.into_iter().for_each(|(id, sum)| charge(id, sum));
        due
    }
}

/// Returns true if a table with `bytes` in memory has so little that it is not charged for memory.
fn is_light(bytes: u64, all: &Amounts) -> bool {
    bytes.saturating_mul(all.filled_tables * LIGHT_SHARE) <= all.filled_bytes
}
