//! Live readers as others see them.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::{SeqNo, TableId};

use crate::readers::{Entry, Origin, Since};
use crate::shared::Shared;
use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::table::read_view::ReadView;

/// A live reader and what it keeps.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LiveReader {
    /// Its number; no other reader of the opened database has or had it.
    pub id: u64,
    /// Its kind, the label of its maker, and the call that made it.
    pub origin: Origin,
    /// How long ago it was made or refreshed. Without the option `reader_age_max_ms` that of a scan counts
    /// from the last turn of the background before, as a rule a tenth of a second at most.
    pub age: Duration,
    /// It sees every record up to this number. Versions that are the newest at it stay in the tables, unless
    /// it has expired.
    pub seq: SeqNo,
    /// Records that were committed since; exact. It bounds the older versions that the reader keeps, whose
    /// bytes are not known: each was overwritten or deleted by one of these records.
    pub records_since: u64,
    /// Names of the tables that its scans read now, each scan for itself; without those that were dropped.
    pub tables: Vec<String>,
    /// Stored bytes of extents that its scans hold and that their tables do not need any more: exact. What
    /// several readers hold counts for each.
    pub extent_bytes: u64,
    /// Bytes of records and their indexes that its scans hold in memory though they are in the levels by now.
    /// Exact for what they refer to; segments come back whole, so it may be up to a segment more.
    pub memory_bytes: u64,
    /// True if it is older than the option `reader_age_max_ms` allows: its reads fail.
    pub is_expired: bool,
}

/// The content of an entry, apart from the list.
struct Copy {
    id: u64,
    origin: Origin,
    since: Since,
    is_expired: bool,
    held: Vec<(TableId, Option<Arc<ReadView>>)>,
}

impl Copy {
    fn of(entry: &Entry) -> Copy {
        Copy {
            id: entry.id,
            origin: entry.origin.clone(),
            since: entry.since,
            is_expired: entry.is_expired,
            held: entry.held.iter().map(|held| (held.table, held.view.upgrade())).collect(),
        }
    }

    fn show(self, catalog: &Catalog, now: Duration, visible: SeqNo) -> LiveReader {
        debug_assert!(self.since.seq <= visible, "a reader sees records that are not visible");
        let guard = terrane_base::epoch::pin();
        let find = |id: &TableId| catalog.get(*id, &guard);
        let views = || self.held.iter().filter_map(|(table, view)| Some((table, view.as_ref()?)));
        LiveReader {
            age: now.saturating_sub(self.since.time),
            seq: self.since.seq,
            records_since: visible.0.saturating_sub(self.since.seq.0),
            tables: self.held.iter().filter_map(|(table, _)| Some(find(table)?.name.clone())).collect(),
            extent_bytes: views().map(|(_, view)| obsolete_bytes(view)).sum(),
            memory_bytes: views().map(|(table, view)| flushed_bytes(find(table), view)).sum(),
            id: self.id,
            is_expired: self.is_expired,
            origin: self.origin,
        }
    }
}

/// Stored bytes of the extents of a read view that its table does not need any more.
fn obsolete_bytes(view: &ReadView) -> u64 {
    let extents = view.tree.extents().map(|(_, extent)| extent);
    extents.filter(|extent| extent.is_obsolete()).map(|extent| u64::from(extent.meta.bytes)).sum()
}

/// Bytes of what a read view has in memory and its table, if it is still there, has not.
fn flushed_bytes(table: Option<&Arc<Table>>, view: &ReadView) -> u64 {
    let now = table.map_or_else(ReadView::nothing, |table| table.pinned());
    let memtables = || std::iter::once(&now.active).chain(&now.frozen);
    let held = std::iter::once(&view.active).chain(&view.frozen);
    let held = held.filter(|held| !memtables().any(|memtable| Arc::ptr_eq(held, memtable)));
    let memtable_bytes: u64 = held.map(|held| held.record_bytes() + held.index_bytes()).sum();
    let is_there = |held: &&Arc<_>| now.generations.iter().any(|one| Arc::ptr_eq(held, one));
    let held = view.generations.iter().filter(|held| !is_there(held));
    memtable_bytes + held.map(|held| held.record_bytes() + held.index_bytes()).sum::<u64>()
}

impl Shared {
    /// Readers that read at a moment of the past now, oldest first.
    #[must_use]
    pub fn live_readers(&self) -> Vec<LiveReader> {
        self.oldest_readers(usize::MAX)
    }

    /// The `count` oldest of these readers.
    pub(crate) fn oldest_readers(&self, count: usize) -> Vec<LiveReader> {
        let mut readers = self.readers.copy_live(Copy::of);
        readers.sort_by_key(|reader| (reader.since.time, reader.id));
        readers.truncate(count);
        let (now, visible) = (self.env.clock.now(), self.journal.visible());
        self.readers.tick(now);
        let mut readers: Vec<_> =
            readers.into_iter().map(|reader| reader.show(&self.catalog, now, visible)).collect();
        readers.sort_by_key(|reader| (std::cmp::Reverse(reader.age), reader.id));
        readers
    }
}
