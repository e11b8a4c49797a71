//! Scans that can go on at a later moment without being made again, and those that pass by extents which the
//! user hides.

use std::borrow::Cow;
use std::sync::Arc;

use terrane_base::{SeqNo, callback};
use terrane_levels::Level;
use terrane_table::{Extent, MergeCursor, Scope};

use crate::observe::extent_summary::ExtentSummary;
use crate::read::Reader;
use crate::read::scan::iterator::{Opener, TableScan, is_mask_of, scope_of, shown_memory};
use crate::read::scan::value_groups::ValueGroups;
use crate::read::scan::values::ScanValues;
use crate::read::scan::{Bounds, Scan};
use crate::shared::Shared;
use crate::table::Table;
use crate::table::read_view::ReadView;

/// Says whether a scan looks into an extent. What it hides is as if it were not there, range deletes
/// included: older versions of the same keys, deeper down, show then.
pub type ExtentFilter = dyn Fn(&ExtentSummary) -> bool + Send + Sync;

/// A filter of extents, and the keys within which they are of interest.
struct Filter {
    shows: Arc<ExtentFilter>,
    bounds: Bounds,
}

impl Filter {
    /// The read view without the extents that the filter hides. The filter is asked once for each extent that
    /// may have a key within the bounds; a panic hides nothing. Hiding compares no keys and so cannot fail:
    /// the scan returns the error of a key order.
    fn seen<'p>(filter: Option<&Filter>, view: &'p Arc<ReadView>) -> Cow<'p, ReadView> {
        let Some(filter) = filter else { return Cow::Borrowed(view) };
        let (lower, upper) = (filter.bounds.lower.as_ref(), filter.bounds.upper.as_ref());
        let (lower, upper) = (lower.map(Vec::as_slice), upper.map(Vec::as_slice));
        let shows = |extent: &Extent, place| {
            let summary = ExtentSummary::of(&extent.meta, place);
            callback::call(|| (filter.shows)(&summary)).unwrap_or(true)
        };
        let hidden = |place, level: &Level| -> Vec<usize> {
            level.overlapping(lower, upper).filter(|index| !shows(level.get(*index), place)).collect()
        };
        Cow::Owned(ReadView { tree: Arc::new(view.tree.without(hidden)), ..ReadView::clone(view) })
    }
}

impl Shared {
    /// Runs a step or a placement of a scan; where slow ones are logged, logs it if it is slow.
    pub fn watched_scan<R>(&self, table: &str, step: impl FnOnce() -> R) -> R {
        if self.slow_log.watches_scans() { self.slow_log.watched_scan(table, step) } else { step() }
    }

    /// A scan of `table` within `bounds` at number `seq`. Needs no lock and keeps what it reads alive.
    #[must_use]
    pub fn scan(&self, table: &Table, bounds: Bounds, seq: SeqNo) -> TableScan {
        self.renewable_scan(table, bounds, seq).scan
    }

    /// [`Shared::scan`], with what it takes to renew it.
    #[must_use]
    pub fn renewable_scan(&self, table: &Table, bounds: Bounds, seq: SeqNo) -> RenewableScan {
        self.filtered_scan(table, bounds, seq, None)
    }

    /// [`Shared::renewable_scan`] of the extents that `filter` shows.
    #[must_use]
    pub fn filtered_scan(
        &self,
        table: &Table,
        bounds: Bounds,
        seq: SeqNo,
        filter: Option<Arc<ExtentFilter>>,
    ) -> RenewableScan {
        let filter = filter.map(|shows| Filter { shows, bounds: bounds.clone() });
        let view = table.shared(&terrane_base::epoch::pin());
        let shown = shown_memory(&view, seq);
        Reader::of(self).sample_scan(table, &view, shown.count_ones());
        debug_assert!(
            is_mask_of(shown, &view),
            "a source that is not there would be left out of the next refresh"
        );
        let scope = scope_of(table, &bounds);
        let veiled = veiled_by(self, &view, seq);
        let seen = Filter::seen(filter.as_ref(), &view);
        let sources = Opener::of(self).sources(&seen, &table.passed, shown, seq, scope.as_ref());
        let sources = MergeCursor::new(sources).ordered(table.semantics.collation());
        let separated = ScanValues::of(&seen.tree, &self.cache, self.options.read_ahead_bytes);
        let mut scan = Scan::new(sources, seq, bounds, table.semantics.clone()).following(separated);
        scan.count_groups(ValueGroups::of(table, &seen.tree));
        RenewableScan { scan, view, shown, veiled, scope, filter }
    }
}

/// The facts that the veils of a scan at `seq` are made of, if they hold for later numbers, too: the number,
/// and how many range deletes there are in memory. None of those, and none in levels, is newer than the
/// number; one that comes is counted.
fn veiled_by(shared: &Shared, view: &ReadView, seq: SeqNo) -> Option<(SeqNo, u64)> {
    let count = view.range_deletes();
    let sees_memory = view.range_deletes_newest().is_none_or(|newest| newest <= seq);
    // Whatever came down into levels before the read view was taken was visible by then.
    (sees_memory && shared.journal.visible() <= seq).then_some((seq, count))
}

/// A scan that can go on at a later moment without being made again.
pub struct RenewableScan {
    /// The scan.
    pub scan: TableScan,
    /// The view that its sources were taken from.
    view: Arc<ReadView>,
    shown: u64,
    /// See [`veiled_by`].
    veiled: Option<(SeqNo, u64)>,
    scope: Option<Arc<Scope>>,
    filter: Option<Filter>,
}

impl RenewableScan {
    /// The view that its sources are taken from.
    pub(crate) fn view(&self) -> &Arc<ReadView> {
        &self.view
    }

    /// Lets go of everything that the scan holds; it has no position and no rows until it is renewed.
    pub fn release(&mut self) {
        self.view = Arc::new(ReadView::nothing());
        self.shown = 0;
        self.scan.replace(MergeCursor::new(Vec::new()), SeqNo(0), None);
    }

    /// Makes the scan see `table`, the one it was made of, at `seq`; it has no position then. Costs little
    /// where only the memtable has grown since. Returns whether it holds other sources now.
    pub fn renew(&mut self, shared: &Shared, table: &Table, seq: SeqNo) -> bool {
        debug_assert!(seq <= shared.journal.visible(), "a scan reads at a number that was visible");
        let guard = terrane_base::epoch::pin();
        let view = table.view(&guard);
        let shown = shown_memory(view, seq);
        Reader::of(shared).sample_scan(table, view, shown.count_ones());
        // A read view is never changed, and this one lives.
        let is_it = std::ptr::eq(view, &*self.view);
        let is_ranged = view.is_ranged() || (!is_it && self.view.is_ranged());
        let is_veiled_alike = !is_ranged
            || self.veiled.is_some_and(|(at, count)| {
                at <= seq && (count == view.range_deletes() || terrane_base::planted!(KeepOldVeil))
            });
        let is_same = shown == self.shown && (is_it || self.view.is_same(view)) && is_veiled_alike;
        if is_same || terrane_base::planted!(KeepOldView) {
            self.scan.renew(seq);
            return false;
        }
        // It may be another one by now.
        let view = table.shared(&guard);
        let shown = shown_memory(&view, seq);
        drop(guard);
        self.veiled = veiled_by(shared, &view, seq);
        let seen = Filter::seen(self.filter.as_ref(), &view);
        let sources = Opener::of(shared).sources(&seen, &table.passed, shown, seq, self.scope.as_ref());
        let separated = ScanValues::of(&seen.tree, &shared.cache, shared.options.read_ahead_bytes);
        self.scan.count_groups(ValueGroups::of(table, &seen.tree));
        self.shown = shown;
        drop(seen);
        self.view = view;
        let cursor = MergeCursor::new(sources).ordered(table.semantics.collation());
        self.scan.replace(cursor, seq, separated);
        true
    }
}
