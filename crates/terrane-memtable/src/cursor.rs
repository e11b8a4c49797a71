//! The memtable's cursor: a walk that keeps its memtable alive.
#![expect(unsafe_code, reason = "owns the memtable that its walk borrows")]

use std::fmt;
use std::sync::Arc;

use terrane_base::{Cursor, Entry, Result, SeqNo};

use crate::memtable::Memtable;
use crate::walk::Walk;

/// Walks all versions of a memtable or global index in internal order, both ways, while writers continue.
///
/// It sees at least everything inserted before it was last placed; it may or may not see later insertions. It
/// never fails and never waits.
pub struct MemtableCursor {
    /// Only used while `memtable` is held: every reference in it leads into that memtable.
    walk: Walk<'static>,
    memtable: Arc<Memtable>,
}

impl MemtableCursor {
    pub(crate) fn new(memtable: Arc<Memtable>) -> Self {
        // SAFETY: what the walk reaches lives as long as the memtable, which `self` holds; neither the walk
        // nor a reference from it leaves `self` for longer than a borrow.
        let walk = unsafe { memtable.walk().unbound() };
        MemtableCursor { walk, memtable }
    }

    /// True if `holds` is true of the key here, or no key is here, or a comparator orders the keys.
    fn is_bytewise_at(&self, holds: impl Fn(&[u8]) -> bool) -> bool {
        !self.memtable.collation().is_bytes() || self.walk.at().is_none_or(|at| holds(at.view.key))
    }

    /// The memtable it walks.
    #[must_use]
    pub fn memtable(&self) -> &Arc<Memtable> {
        &self.memtable
    }
}

impl Cursor for MemtableCursor {
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        let at = self.walk.at()?;
        Some(Entry { key: at.view.key, seq_kind: at.entry.seq_kind, value: at.view.value })
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.walk.seek(key, seq);
        debug_assert!(self.is_bytewise_at(|at| key <= at), "the cursor stands before the key");
        Ok(())
    }

    fn prepare_seek(&mut self, key: &[u8]) {
        self.walk.prepare_seek(key);
    }

    /// Leaves the placement to `seek`, so that other work hides the cache miss.
    fn begin_seek(&mut self, _key: &[u8], _seq: SeqNo) -> Result<bool> {
        self.walk.begin_seek();
        debug_assert!(
            self.walk.at().is_none(),
            "a merge would take the position before for the one that is sought"
        );
        Ok(false)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.walk.seek_before(key);
        debug_assert!(self.is_bytewise_at(|at| at < key), "the cursor stands behind the key");
        Ok(())
    }

    fn seek_first(&mut self) -> Result<()> {
        self.walk.seek_first();
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
        self.walk.seek_last();
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.walk.next();
        Ok(())
    }

    /// Skips all older versions, whose entries and records lie elsewhere.
    fn next_key(&mut self) -> Result<()> {
        self.walk.next_key();
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.walk.prev();
        Ok(())
    }
}

impl fmt::Debug for MemtableCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemtableCursor").field("entry", &self.entry()).finish_non_exhaustive()
    }
}
