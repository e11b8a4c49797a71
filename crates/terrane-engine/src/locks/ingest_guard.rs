//! An ingest as transactions and writers see it: like a delete of its ranges that also excludes other deletes
//! there.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::{Result, SeqNo};

use crate::locks::Transactions;
use crate::locks::conflict_window::Footprint;
use crate::locks::gate::InFlight;
use crate::locks::key_range::KeyRange;
use crate::locks::range_locks::{LockTarget, RangeLock};
use crate::read::scan::Bounds;
use crate::shared::Shared;
use crate::table::Table;

/// Keys from a first to a last one, both inclusive.
#[derive(Clone, Debug)]
pub(crate) struct Span(KeyRange);

impl Span {
    pub(crate) fn new(table: &Table, (first, last): (&[u8], &[u8])) -> Span {
        let (lower, upper) = (Bound::Included(first.to_vec()), Bound::Included(last.to_vec()));
        let bounds = Bounds { lower, upper, collation: table.semantics.collation().clone() };
        Span(KeyRange { table: table.id, bounds })
    }
}

/// Every write is seen, until dropped.
pub(crate) struct Watched<'e>(&'e Transactions);

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.0.watch.end();
    }
}

/// No writer writes into some ranges, until dropped.
pub(crate) struct SpanLock<'e> {
    spans: Vec<Span>,
    flight: InFlight<'e>,
    _range_lock: RangeLock<'e>,
}

impl<'e> SpanLock<'e> {
    /// Releases the ranges: writers go on.
    pub(crate) fn release(self) -> Vec<Span> {
        self.spans
    }

    /// Releases the ranges, and notes that all of them have changed with `seq`, which is visible.
    pub(crate) fn land(self, seq: SeqNo) {
        self.flight.land(seq);
    }
}

impl Transactions {
    /// Has every write seen from now on; on return none that was not seen is under way.
    pub(crate) fn watch_writes(&self) -> Watched<'_> {
        self.watch.begin();
        Watched(self)
    }

    /// Keeps writers out of some ranges; writes that were under way there are visible on return. Requires:
    /// writes are watched.
    ///
    /// # Errors
    /// `TimedOut` if another owner keeps a lock there for longer, `Cancelled` when the database closes.
    pub(crate) fn lock_spans<'e>(
        &'e self,
        shared: &'e Shared,
        spans: Vec<Span>,
        timeout: Duration,
    ) -> Result<SpanLock<'e>> {
        debug_assert!(self.watch.live() > 0, "every write is seen while ranges are locked for an ingest");
        let ranges: Arc<[KeyRange]> = spans.iter().map(|Span(range)| range.clone()).collect();
        let lock_wait = shared.lock_wait(timeout);
        let target = LockTarget { ranges: ranges.clone(), is_exclusive: true, ..LockTarget::default() };
        let range_lock = self.locks.lock_ranges(self.new_owner(), &target, &lock_wait);
        let range_lock = range_lock
            .map_err(|refusal| shared.refused(refusal, ranges.first().map(KeyRange::first).as_ref()))?;
        let footprint = Footprint { deletes: ranges, ..Footprint::default() };
        let flight = self.enter_window(shared, &footprint, false, &lock_wait)?;
        Ok(SpanLock { spans, flight, _range_lock: range_lock })
    }
}
