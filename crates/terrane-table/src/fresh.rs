//! Extents that a job has written and its engine has not installed yet: their handles, with filter and index
//! block in the cache, so that the first reads do not load them.
//!
//! Both are copied from the bytes of the writer, right after it has written them: nothing is read back, and
//! the copies are objects of the cache, which counts and evicts them as all others. What the cache does not
//! take ([`Cache`]: filters and index blocks together have a share of its limit) is left to the first read.
//!
//! An object lives as long as its handle and no longer. The engine takes the handles when it installs the
//! result; those of a job that fails are dropped with its slots, or with its control.

use std::sync::Arc;

use terrane_base::sync::Mutex;
use terrane_format::extent::{ExtentMeta, Handle};
use terrane_storage::Store;

use crate::cache::{Ahead, Cache, memory};
use crate::extent::Extent;
use crate::loader::{Loader, Part, copy_of};

/// Handles of extents that a job has written and its engine has not installed yet, with filter and index
/// block in the cache.
#[derive(Debug)]
pub struct FreshExtents {
    cache: Arc<Cache>,
    /// The store through which the extents will be read.
    store: Arc<dyn Store>,
    extents: Mutex<Vec<Arc<Extent>>>,
}

impl FreshExtents {
    /// None yet. Readers will use `store` and `cache`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, cache: Arc<Cache>) -> FreshExtents {
        FreshExtents { cache, store, extents: Mutex::default() }
    }

    /// Keeps an extent that was just written, with these bytes. `is_last`: nothing older lies below it, as
    /// below most extents.
    pub fn keep(&self, meta: &ExtentMeta, bytes: &[u8], is_last: bool) {
        debug_assert!(bytes.len() == meta.bytes as usize, "extent {} has other bytes", meta.id);
        let extent = Extent::new(meta.clone(), self.store.clone());
        let loader = Loader { extent: &extent, cache: extent.bind(&self.cache), fill_cache: true };
        loader.keep_ahead(bytes, is_last);
        self.extents.lock().push(extent);
    }

    /// The handles of what was kept since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<Arc<Extent>> {
        std::mem::take(&mut self.extents.lock())
    }
}

impl Loader<'_> {
    /// Caches filter and index block of an extent with these bytes, if there is room for parts that no read
    /// has asked for. The extent itself does not depend on it.
    fn keep_ahead(&self, extent: &[u8], is_last: bool) {
        let meta = &self.extent.meta;
        debug_assert!(!meta.is_numbered(), "a job writes the numbers of its entries");
        let index = if is_last { Ahead::LastIndex } else { Ahead::Index };
        let index_bytes = memory::index_bytes(meta.index.len as usize, meta.blocks as usize);
        let filter_bytes = memory::filter_bytes(meta.filter.len as usize);
        let parts = [
            (Part::Filter, meta.filter, Ahead::Filter, filter_bytes),
            (Part::Index, meta.index, index, index_bytes),
        ];
        for (part, handle, ahead, bytes) in parts {
            let Some(stored) = part_of(extent, handle) else { continue };
            let Some(charge) = self.cache.reserve_ahead(ahead, bytes) else { continue };
            let kept = self.finish(&part, copy_of(stored), Some(charge));
            // A caller's comparator may have failed meanwhile; installing the result says so.
            let is_sound = kept.is_ok() || !meta.collation.is_bytes();
            debug_assert!(is_sound, "a part of extent {} is not what was written: {kept:?}", meta.id);
        }
    }
}

/// The bytes of a part; `None` if the extent has no such part.
fn part_of(extent: &[u8], handle: Handle) -> Option<&[u8]> {
    let start = handle.offset as usize;
    extent.get(start..start + handle.len as usize).filter(|part| !part.is_empty())
}
