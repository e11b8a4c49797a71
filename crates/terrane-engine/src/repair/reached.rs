//! How far a repair has come with each key of a table with a merge operator: a version that lies in two
//! places must not be folded twice.
//!
//! Places are copied deepest first, and the journal after them. So the versions of a key that are copied
//! already are those of the deeper places, and are looked up there, in the damaged database: that takes the
//! memory of a small cache, however many keys there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::{Result, SeqNo, TableId};
use terrane_format::extent::{ExtentMeta, Handle};
use terrane_storage::Store;
use terrane_table::{Cache, Extent};

/// Of blocks, indexes and filters: neighbours are asked for one after the other.
const CACHE_BYTES: u64 = 8 << 20;

/// See the [module](self).
pub(super) struct Reached {
    /// Of each table the extents of its places, newest place first.
    tables: BTreeMap<TableId, Vec<Vec<Arc<Extent>>>>,
    /// Of each table the extents with range deletes, which every key is looked up in.
    ranged: BTreeMap<TableId, Vec<Arc<Extent>>>,
    cache: Arc<Cache>,
}

impl Reached {
    pub(super) fn new() -> Self {
        Reached { tables: BTreeMap::new(), ranged: BTreeMap::new(), cache: Cache::new(CACHE_BYTES) }
    }

    /// An extent for this. It has no filter: a damaged one would hide rows that were copied.
    pub(super) fn opened(meta: &ExtentMeta, store: &Arc<dyn Store>) -> Arc<Extent> {
        Extent::new(ExtentMeta { filter: Handle::default(), ..meta.clone() }, store.clone())
    }

    /// Tells of the places of a table, newest first.
    pub(super) fn add(&mut self, table: TableId, places: Vec<Vec<Arc<Extent>>>) {
        let ranged = places.iter().flatten().filter(|extent| extent.is_ranged()).cloned().collect();
        self.ranged.insert(table, ranged);
        let before = self.tables.insert(table, places);
        debug_assert!(before.is_none(), "table {} was copied before", table.0);
    }

    /// The greatest number of a version of `key` that can be read in the places of a table from the
    /// `first`-th on; 0 without one.
    pub(super) fn of(&self, table: TableId, key: &[u8], first: usize) -> SeqNo {
        let places = self.tables.get(&table).into_iter().flatten().skip(first);
        // Extents that cannot be read were not copied.
        places.filter_map(|extents| self.newest(extents, key).ok().flatten()).max().unwrap_or_default()
    }

    /// Returns true if the levels have something of `key` with a greater number than `above`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`: what they have cannot be read.
    pub(super) fn is_newer(&self, table: TableId, key: &[u8], above: SeqNo) -> Result<bool> {
        for extents in self.tables.get(&table).into_iter().flatten() {
            if self.newest(extents, key)?.is_some_and(|newest| newest > above) {
                return Ok(true);
            }
        }
        for extent in self.ranged.get(&table).into_iter().flatten() {
            if extent.hidden(&self.cache, key, SeqNo::MAX)?.is_some_and(|by| by > above) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if an extent with keys of the range may have something with a greater number than
    /// `above`.
    pub(super) fn is_newer_in(&self, table: TableId, (start, end): (&[u8], &[u8]), above: SeqNo) -> bool {
        self.tables.get(&table).into_iter().flatten().flatten().any(|extent| {
            let meta = &extent.meta;
            let overlaps = meta.collation.lt(&meta.smallest, end) && meta.collation.le(start, &meta.largest);
            overlaps && meta.seq_max > above
        })
    }

    fn newest(&self, extents: &[Arc<Extent>], key: &[u8]) -> Result<Option<SeqNo>> {
        let at = extents.partition_point(|extent| extent.meta.collation.lt(&extent.meta.largest, key));
        let extent = extents.get(at).filter(|extent| extent.meta.collation.le(&extent.meta.smallest, key));
        let Some(extent) = extent else { return Ok(None) };
        let found = extent.get(&self.cache, key, SeqNo::MAX, &mut Vec::new())?;
        Ok(found.map(|seq_kind| seq_kind.seq()))
    }
}
