//! A range together with the moment that it reads at.

use std::sync::{Arc, Weak};

use terrane_base::Result;
use terrane_base::sync::Mutex;

use crate::read::scan::Bounds;
use crate::read::scan::iterator::{RangeIter, Row};
use crate::read::snapshots::Hold;
use crate::read::snapshots::snapshot::Snapshot;
use crate::readers::{Held, Origin, Release};
use crate::shared::{Shared, SharedRef};
use crate::table::Table;

/// The rows of a range as a snapshot sees them, from both ends; keeps the snapshot.
///
/// After an error it ends. Where readers expire, the background can take its sources away.
pub struct PinnedRange {
    rows: Rows,
    hold: Hold,
    table: Arc<Table>,
    is_over: bool,
}

#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for each scan")]
enum Rows {
    Own(RangeIter),
    /// Where readers expire.
    Expiring(Arc<Expiring>),
}

struct Expiring(Mutex<Option<RangeIter>>);

impl Rows {
    /// The rows of a scan of `table`, and what it holds.
    fn new(shared: &Shared, table: &Table, own: RangeIter) -> (Rows, Held) {
        if shared.readers.age_max().is_none() {
            let held = Held::new(table.id, own.view(), None);
            return (Rows::Own(own), held);
        }
        let view = own.view().clone();
        let expiring = Arc::new(Expiring(Mutex::new(Some(own))));
        let weak: Weak<dyn Release> = Arc::downgrade(&expiring) as Weak<dyn Release>;
        (Rows::Expiring(expiring), Held::new(table.id, &view, Some(weak)))
    }
}

impl Release for Expiring {
    fn release(&self) {
        // A reader that is in the middle of a step learns of it at the next one.
        let taken = self.0.try_lock().and_then(|mut rows| rows.take());
        drop(taken);
    }
}

impl PinnedRange {
    /// The rows of `table` within `bounds` as `snapshot` sees them.
    #[must_use]
    pub fn new(table: &Arc<Table>, bounds: Bounds, snapshot: Arc<Snapshot>) -> PinnedRange {
        let shared = snapshot.shared();
        let (rows, held) = Rows::new(shared, table, shared.range(table, bounds, snapshot.seq()));
        PinnedRange { rows, table: table.clone(), is_over: false, hold: Hold::of(snapshot, held) }
    }

    /// The rows of `table` within `bounds` as they are now, listed as of this origin.
    #[must_use]
    pub fn own(shared: SharedRef, table: &Arc<Table>, bounds: Bounds, origin: Origin) -> PinnedRange {
        let pin = shared.pins.pin(|| shared.journal.visible());
        let (rows, held) = Rows::new(&shared, table, shared.range(table, bounds, pin.seq()));
        let snapshot = Arc::new(Snapshot::listed(shared, pin, origin, Some(held)));
        PinnedRange { rows, table: table.clone(), is_over: false, hold: Hold::first(snapshot) }
    }

    /// Sets whether the next rows have empty values: then separated ones are left where they are.
    pub fn leave_values(&mut self, leaves_values: bool) {
        match &mut self.rows {
            Rows::Own(rows) => rows.leave_values(leaves_values),
            Rows::Expiring(expiring) => {
                if let Some(rows) = &mut *expiring.0.lock() {
                    rows.leave_values(leaves_values);
                }
            }
        }
    }

    /// The key of the last row that one end gave: of the front, or of the back. None if it gave none.
    #[must_use]
    pub fn last_key(&self, of_front: bool) -> Option<Vec<u8>> {
        let key = |rows: &RangeIter| rows.last_key(of_front).map(<[u8]>::to_vec);
        match &self.rows {
            Rows::Own(rows) => key(rows),
            Rows::Expiring(expiring) => expiring.0.lock().as_ref().and_then(key),
        }
    }

    #[inline]
    fn step(&mut self, step: impl FnOnce(&mut RangeIter) -> Option<Result<Row>>) -> Option<Result<Row>> {
        match &mut self.rows {
            Rows::Own(rows) if self.hold.is_plain() => step(rows),
            _ => self.looked_at_step(step),
        }
    }

    #[inline(never)]
    fn looked_at_step(
        &mut self,
        step: impl FnOnce(&mut RangeIter) -> Option<Result<Row>>,
    ) -> Option<Result<Row>> {
        if self.hold.snapshot().shared().slow_log.watches_scans() {
            let (snapshot, table) = (self.hold.snapshot().clone(), self.table.clone());
            return snapshot.shared().watched_scan(&table.name, || self.step_unwatched(step));
        }
        self.step_unwatched(step)
    }

    #[inline]
    fn step_unwatched(
        &mut self,
        step: impl FnOnce(&mut RangeIter) -> Option<Result<Row>>,
    ) -> Option<Result<Row>> {
        let expiring = match &mut self.rows {
            Rows::Own(rows) => return step(rows),
            Rows::Expiring(expiring) => expiring.clone(),
        };
        if self.is_over {
            return None;
        }
        let row = match self.hold.snapshot().check() {
            Ok(()) => match &mut *expiring.0.lock() {
                Some(rows) => step(rows),
                // Taken away since the check.
                None => self.hold.snapshot().check().err().map(Err),
            },
            Err(error) => Some(Err(error)),
        };
        if !matches!(row, Some(Ok(_))) {
            self.is_over = true;
            drop(expiring.0.lock().take());
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
