//! Extents that come in without passing through memory: those of external files, and those of a bulk load.
//!
//! 1. Prepare: files are opened and compared with their tables; their extents come into the store, linked
//!    where that is possible (`files.rs`), or are written there (`load.rs`). They are durable, and neither
//!    manifest nor read view names them yet. What the one edit of the commit has no room for (`edit_room.rs`)
//!    is refused here.
//! 2. Publish (`publish.rs`, places: `place.rs`): one commit, one edit, the next read views.
//!
//! Until the edit is durable a crash leaves nothing, from then on all of it.

mod edit_room;
mod files;
mod load;
mod place;
mod publish;

use std::sync::Arc;
use std::time::Duration;

use terrane_base::{Kind, Result, SeqNo};
use terrane_format::extent::ExtentMeta;

pub use files::{IngestFile, IngestOptions};
pub use load::Loader;

use crate::table::Table;
use crate::write::WritePath;

/// The result of an ingest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ingested {
    /// Its position in the order of commits: the number of every entry.
    pub seq: SeqNo,
    /// Extents.
    pub extents: u64,
    /// Entries.
    pub entries: u64,
    /// Range deletes; of one file those that overlap or meet are one.
    pub range_deletes: u64,
    /// Files that became data files without a copy.
    pub files_linked: u64,
    /// Bytes of extents that were copied, because their file could not be linked, or was not to be.
    pub bytes_copied: u64,
    /// Files that were to be removed once they are in, and could not be.
    pub files_left: u64,
}

/// Extents for one table, which follow each other and have no numbers yet, and lie in the store.
pub(crate) struct Arrival {
    pub(crate) table: Arc<Table>,
    /// Of entries, in key order.
    pub(crate) extents: Vec<ExtentMeta>,
    /// Of range deletes, in key order. They hide versions that are older than both, so they go beneath the
    /// entries.
    pub(crate) deletes: Vec<ExtentMeta>,
}

impl Arrival {
    fn new(table: &Arc<Table>) -> Arrival {
        Arrival { table: table.clone(), extents: Vec::new(), deletes: Vec::new() }
    }

    /// All extents, those of range deletes first.
    fn all(&self) -> impl Iterator<Item = &ExtentMeta> {
        self.deletes.iter().chain(&self.extents)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut ExtentMeta> {
        self.deletes.iter_mut().chain(&mut self.extents)
    }

    /// Their first key and their last one. Requires: there is one.
    fn bounds(&self) -> (&[u8], &[u8]) {
        debug_assert!(self.all().next().is_some(), "an arrival has an extent");
        let collation = self.table.semantics.collation();
        let parts = [bounds_of(&self.deletes), bounds_of(&self.extents)].into_iter().flatten();
        let hull = |(first, last), (other_first, other_last)| {
            (collation.min(first, other_first), collation.max(last, other_last))
        };
        parts.reduce(hull).unwrap_or_default()
    }
}

/// The first key and the last one of extents that follow each other.
fn bounds_of(extents: &[ExtentMeta]) -> Option<(&[u8], &[u8])> {
    Some((&extents.first()?.smallest, &extents.last()?.largest))
}

/// Arrivals that lie in the store and are to become part of their tables.
#[derive(Clone, Copy)]
struct Incoming<'e> {
    engine: &'e WritePath,
    arrivals: &'e [Arrival],
}

impl Incoming<'_> {
    /// Makes what has arrived part of its tables, or gives it back to the store.
    fn publish_or_give_back(self, lock_timeout: Duration) -> Result<SeqNo> {
        let Self { engine, arrivals } = self;
        debug_assert!(!arrivals.is_empty(), "an ingest without extents is published");
        let refused = arrivals.iter().try_for_each(|arrival| arrival.table.refuse_if_stopped());
        refused.inspect_err(|_| self.give_back())?;
        let published = engine.store.sync().and_then(|()| self.publish(lock_timeout));
        if let Err(error) = &published
            && error.kind() != Kind::Poisoned
        {
            self.give_back();
        }
        published
    }

    /// Gives extents that no edit names back to the store.
    fn give_back(self) {
        for meta in self.arrivals.iter().flat_map(Arrival::all) {
            debug_assert!(meta.slots > 0, "slots that an extent takes stay taken");
            // Slots that cannot be given back now are free after the next open.
            let _ = self.engine.store.free(meta.id, meta.slots);
        }
    }
}
