//! What a batch pays: at the pace of each table that it changes, and at that of memory for those that owe it.

use std::sync::Arc;
use std::time::Duration;
use terrane_base::sync::atomic::Ordering;

use terrane_base::Batch;
use terrane_base::record::Header;

use crate::engine::Engine;
use crate::observe::events::StallCause;
use crate::observe::stats::add;
use crate::table::Table;
use crate::table::read_view::ReadView;
use crate::write::throttle::PAY_MAX;
use crate::write::throttle::token_bucket::{PAUSE_MIN, TokenBucket};

/// A table that has less than one part in so many of the mean of what tables have in memory does not owe it.
const LIGHT_SHARE: u64 = 2;

/// What a batch has to pay for: bytes at the pace of each table that slows, and at that of memory.
struct Bill {
    tables: Vec<(Arc<Table>, u64)>,
    memory_bytes: u64,
}

/// What was paid by the time that follows.
pub(crate) struct Paid {
    tables: Vec<(Arc<Table>, u64)>,
    for_memory: u64,
}

impl Paid {
    /// Nothing, where nobody has to pay.
    pub(crate) const NOTHING: Paid = Paid { tables: Vec::new(), for_memory: 0 };

    /// Takes it back: the batch does not come. Or those who are refused again and again would pay for nobody.
    pub(crate) fn give_back(self, engine: &Engine) {
        if terrane_base::planted!(PayForNothing) {
            return;
        }
        self.tables.iter().for_each(|(table, price)| table.pressure.pace.give_back(*price));
        engine.pressure.memory.give_back(self.for_memory);
    }
}

impl Engine {
    /// Pays for a batch that a writer is about to bring; pauses in proportion to what its tables owe. Returns how long.
    #[inline]
    pub(crate) fn pay(&self, batch: &Batch) -> Duration {
        if self.pressure.is_slowing() { self.pay_slowly(batch) } else { Duration::ZERO }
    }

    #[cold]
    fn pay_slowly(&self, batch: &Batch) -> Duration {
        let (clock, pressure) = (&*self.env.clock, &self.pressure);
        let bill = self.bill(batch, true);
        let memory_bytes = bill.memory_bytes;
        let pays_for_memory = memory_bytes > 0 && !pressure.memory.takes_credit(memory_bytes);
        if bill.tables.is_empty() && !pays_for_memory {
            return Duration::ZERO;
        }
        let start = clock.now();
        let (mut now, end) = (start, start + PAY_MAX);
        let mut ended = |for_memory: bool| {
            let took = clock.now() - now;
            now += took;
            pressure.note_paused(took, for_memory);
            took
        };
        for (table, bytes) in &bill.tables {
            let left = end.saturating_sub(clock.now());
            table.pressure.pace.pay(*bytes, left.min(pressure.longest()), clock);
            let took = ended(false);
            self.note_held_by(table, took);
        }
        if pays_for_memory {
            let left = end.saturating_sub(clock.now());
            pressure.memory.pay(memory_bytes, left.min(pressure.longest()), clock);
            self.note_held_for_memory(ended(true));
        }
        now - start
    }

    /// As [`Engine::pay`], but waits until `until` at most; `None` if that was not enough.
    pub(crate) fn pay_within(&self, batch: &Batch, until: Duration) -> Option<Paid> {
        let mut paid = Paid::NOTHING;
        if !self.pressure.is_slowing() {
            return Some(paid);
        }
        let bill = self.bill(batch, false);
        for (table, bytes) in bill.tables {
            match self.pay_at(&table.pressure.pace, bytes, until, Some(&table)) {
                Some(price) => paid.tables.push((table, price)),
                None => {
                    paid.give_back(self);
                    return None;
                }
            }
        }
        if bill.memory_bytes > 0 {
            match self.pay_at(&self.pressure.memory, bill.memory_bytes, until, None) {
                Some(price) => paid.for_memory = price,
                None => {
                    paid.give_back(self);
                    return None;
                }
            }
        }
        Some(paid)
    }

    /// Pays at one pace, that of a table or of memory; returns the price.
    fn pay_at(&self, pace: &TokenBucket, bytes: u64, until: Duration, table: Option<&Table>) -> Option<u64> {
        // The commit says why.
        let is_hopeless = || self.is_closing() || self.journal.check().is_err();
        let start = self.env.clock.now();
        let price = pace.pay_within(bytes, until, &*self.env.clock, &is_hopeless);
        let took = self.env.clock.now().saturating_sub(start);
        self.pressure.note_paused(took, table.is_none());
        match table {
            Some(table) => self.note_held_by(table, took),
            None => self.note_held_for_memory(took),
        }
        price
    }

    /// Notes how long a payment for the backlog of a table took. What is less than the shortest pause is the look at it.
    fn note_held_by(&self, table: &Table, took: Duration) {
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

    /// What the batch has to pay for. With `by_credit`, what others have paid too much for its tables is taken first.
    fn bill(&self, batch: &Batch, by_credit: bool) -> Bill {
        let guard = terrane_base::epoch::pin();
        let mut bill = Bill { tables: Vec::new(), memory_bytes: 0 };
        let owes_memory = self.pressure.memory.rate().is_some();
        let mut charge = |id, bytes: u64| {
            // A table that was dropped meanwhile takes no record.
            let Some(table) = self.catalog.get(id, &guard) else { return };
            if owes_memory && !table.pressure.is_light.load(Ordering::Relaxed) {
                bill.memory_bytes += bytes;
            }
            let pace = &table.pressure.pace;
            if pace.rate().is_none() || by_credit && pace.takes_credit(bytes) {
                return;
            }
            match bill.tables.iter_mut().find(|(charged, _)| Arc::ptr_eq(charged, table)) {
                Some((_, charged)) => *charged += bytes,
                None => bill.tables.push((table.clone(), bytes)),
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
        bill
    }

    /// How long writers were held back for memory, or by the backlog of this table, in microseconds.
    pub(crate) fn paused_micros_of(&self, table: &Table) -> u64 {
        // Relaxed: a measure.
        let by_backlog = table.counters.table_writes_paused_micros.load(Ordering::Relaxed);
        self.pressure.paused_for_memory_micros() + by_backlog
    }

    /// Looks which tables have so little in memory that they do not owe it.
    pub(crate) fn share_memory_debt(&self, tables: &[Arc<Table>]) {
        // An index that is empty has its size, too, and would make all tables that have nothing equal.
        let bytes_of = |picture: ReadView| if picture.memory_is_empty() { 0 } else { picture.memory_bytes() };
        let bytes: Vec<u64> = tables.iter().map(|table| bytes_of(table.pinned())).collect();
        let (sum, count) =
            (bytes.iter().sum::<u64>(), bytes.iter().filter(|bytes| **bytes > 0).count() as u64);
        for (table, bytes) in tables.iter().zip(bytes) {
            table.pressure.set_light(bytes.saturating_mul(count * LIGHT_SHARE) <= sum);
        }
    }
}
