//! A range together with the moment that it reads at.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use terrane_base::Result;

use crate::iterate::{RangeIter, Row};
use crate::readers::{Hold, Release};
use crate::scan::Bounds;
use crate::snapshot::Snapshot;
use crate::table::Table;

/// The rows of a range as a snapshot sees them, from both ends; keeps the snapshot.
///
/// After an error it ends. Where readers expire, the background can take its sources away.
pub struct PinnedRange {
    rows: Rows,
    pin: Arc<Snapshot>,
    table: Arc<Table>,
    is_over: bool,
    _hold: Hold,
}

#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for each scan")]
enum Rows {
    Own(RangeIter),
    /// Where readers expire.
    Shared(Arc<Shared>),
}

struct Shared(Mutex<Option<RangeIter>>);

impl Release for Shared {
    fn release(&self) {
        // Who is in the middle of a step finds out at the next one.
        let taken = self.0.try_lock().and_then(|mut rows| rows.take());
        drop(taken);
    }
}

impl PinnedRange {
    /// The rows of `table` within `bounds` as `pin` sees them.
    #[must_use]
    pub fn new(table: &Arc<Table>, bounds: Bounds, pin: Arc<Snapshot>) -> PinnedRange {
        let engine = pin.engine();
        let own = engine.range(table, bounds, pin.seq());
        let picture = own.picture().clone();
        let (rows, hold) = match engine.readers.age_max() {
            None => (Rows::Own(own), pin.hold(table, &picture, None)),
            Some(_) => {
                let shared = Arc::new(Shared(Mutex::new(Some(own))));
                let weak: Weak<dyn Release> = Arc::downgrade(&shared) as Weak<dyn Release>;
                let hold = pin.hold(table, &picture, Some(weak));
                (Rows::Shared(shared), hold)
            }
        };
        PinnedRange { rows, pin, table: table.clone(), is_over: false, _hold: hold }
    }

    fn step(&mut self, step: impl FnOnce(&mut RangeIter) -> Option<Result<Row>>) -> Option<Result<Row>> {
        if self.pin.engine().watches_scans() {
            let (engine, table) = (self.pin.engine().clone(), self.table.clone());
            return engine.watched_scan(&table, || self.step_unwatched(step));
        }
        self.step_unwatched(step)
    }

    #[inline]
    fn step_unwatched(
        &mut self,
        step: impl FnOnce(&mut RangeIter) -> Option<Result<Row>>,
    ) -> Option<Result<Row>> {
        let shared = match &mut self.rows {
            Rows::Own(rows) => return step(rows),
            Rows::Shared(shared) => shared.clone(),
        };
        if self.is_over {
            return None;
        }
        let row = match self.pin.check() {
            Ok(()) => match &mut *shared.0.lock() {
                Some(rows) => step(rows),
                // Taken away since the check.
                None => self.pin.check().err().map(Err),
            },
            Err(error) => Some(Err(error)),
        };
        if !matches!(row, Some(Ok(_))) {
            self.is_over = true;
            drop(shared.0.lock().take());
        }
        row
    }
}

impl Iterator for PinnedRange {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(RangeIter::next)
    }
}

impl DoubleEndedIterator for PinnedRange {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(RangeIter::next_back)
    }
}
