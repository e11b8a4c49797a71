//! The way of a miss: reserve, read, check, decode, publish. Gives out references of the caller's own, so no epoch
//! is held while the store is read.

#![expect(unsafe_code, reason = "promises to the cache that homes are removed before they go")]

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::{Error, Result};
use terrane_format::block::Block;
use terrane_format::extent::{ExtentMeta, Handle};
use terrane_format::filter::Filter;
use terrane_format::index::{IndexBlock, IndexRow};
use terrane_storage::{SLOT_BYTES, Store};

use crate::cache::{Cache, Home, Object, ObjectKind, ObjectRef, memory};
use crate::extent::Extent;
use crate::swip;

/// Loads parts of one extent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loader<'a> {
    pub(crate) extent: &'a Extent,
    pub(crate) cache: &'a Arc<Cache>,
    /// Whether data blocks that are read enter the cache. Index blocks and filters always do.
    pub(crate) fill_cache: bool,
}

impl Loader<'_> {
    /// The filter; `None` if the extent has none.
    pub(crate) fn filter(&self) -> Result<Option<ObjectRef>> {
        let handle = self.extent.meta.filter;
        if handle.is_empty() {
            return Ok(None);
        }
        if let Some(filter) = cached(&self.extent.filter) {
            return Ok(Some(filter));
        }
        let charge = self.cache.reserve(ObjectKind::Filter, memory::filter_bytes(handle.len as usize));
        count_miss(u64::from(handle.len), 0);
        let filter = read_filter(&self.extent.meta, &*self.extent.store)?;
        Ok(Some(self.publish(&self.extent.filter, None, memory::filter(&filter, charge))))
    }

    /// The index block.
    pub(crate) fn index(&self) -> Result<ObjectRef> {
        if let Some(index) = cached(&self.extent.index) {
            return Ok(index);
        }
        let meta = &self.extent.meta;
        let bytes = memory::index_bytes(meta.index.len as usize, meta.blocks as usize);
        let charge = self.cache.reserve(ObjectKind::Index, bytes);
        count_miss(u64::from(meta.index.len), 0);
        let rows = read_index(meta, &*self.extent.store)?;
        Ok(self.publish(&self.extent.index, None, memory::index(&rows, charge)))
    }

    /// Data block `at` of the index block `owner`.
    pub(crate) fn block(&self, owner: &Object, at: usize) -> Result<ObjectRef> {
        if let Some(block) = self.cached_block(owner, at) {
            return Ok(block);
        }
        let index = owner.index();
        let home = &index.homes[at];
        let row = index.rows.row(at);
        let may_publish = self.fill_cache && owner.accepts_tenants();
        let bytes = memory::block_bytes(row.raw_len as usize);
        let charge = if may_publish { self.cache.reserve(ObjectKind::Data, bytes) } else { None };
        count_miss(u64::from(row.stored_len), 1);
        let stored = read(&self.extent.meta, &*self.extent.store, row.offset, row.stored_len)?;
        let block = open_block(&self.extent.meta, &*self.extent.store, &row, stored)?;
        Ok(self.publish(home, Some(owner), memory::block(&block, charge)))
    }

    /// Data block `at` of the index block `owner`, whose bytes have been read. What a long scan reads enters the cache
    /// only where there is room to spare: it is not worth the blocks of others.
    pub(crate) fn fetched_block(
        &self,
        owner: &Object,
        at: usize,
        stored: &[u8],
        is_scan: bool,
    ) -> Result<ObjectRef> {
        let index = owner.index();
        let row = index.rows.row(at);
        let may_publish = self.fill_cache && owner.accepts_tenants();
        let bytes = memory::block_bytes(row.raw_len as usize);
        let charge = match may_publish {
            true if is_scan => self.cache.reserve_spare(ObjectKind::Data, bytes),
            true => self.cache.reserve(ObjectKind::Data, bytes),
            false => None,
        };
        count(|cells| {
            add(&cells.cache_misses, 1);
            add(&cells.blocks_decoded, 1);
        });
        let block = open_block(&self.extent.meta, &*self.extent.store, &row, stored.to_vec())?;
        Ok(self.publish(&index.homes[at], Some(owner), memory::block(&block, charge)))
    }

    /// Data block `at` of the index block `owner`, if it is in the cache.
    pub(crate) fn cached_block(&self, owner: &Object, at: usize) -> Option<ObjectRef> {
        cached(&owner.index().homes[at])
    }

    fn publish(&self, home: &Home, owner: Option<&Object>, object: ObjectRef) -> ObjectRef {
        // SAFETY: `Extent::drop` removes the homes in the extent, and those in its index block through it. Both lie
        // where they are until then: behind an `Arc`, and in an index block, which is never moved.
        if unsafe { self.cache.publish(home, owner, &object) } {
            return object;
        }
        // If another thread was faster, its object is the one to hold on to: ours has no second user.
        cached(home).unwrap_or(object)
    }
}

/// Counts a miss that reads `bytes` from the store and decodes `blocks` of them.
fn count_miss(bytes: u64, blocks: u64) {
    count(|cells| {
        add(&cells.cache_misses, 1);
        add(&cells.device_reads, 1);
        add(&cells.device_bytes_read, bytes);
        add(&cells.blocks_decoded, blocks);
    });
}

fn cached(home: &Home) -> Option<ObjectRef> {
    let epoch = swip::enter();
    // All lines at once: the count of references stands apart from what is searched.
    home.swip.load(&epoch)?.prefetch_whole();
    let object = home.swip.load_owned(&epoch)?;
    object.touch();
    Some(object)
}

/// Reads and checks an extent's filter. Requires: it has one.
pub(crate) fn read_filter(meta: &ExtentMeta, store: &dyn Store) -> Result<Filter> {
    let bytes = read_handle(meta, store, meta.filter)?;
    Filter::decode(&bytes).map_err(|error| placed(meta, store, meta.filter.offset, error))
}

/// Reads and checks an extent's index block, and that it is of this extent.
pub(crate) fn read_index(meta: &ExtentMeta, store: &dyn Store) -> Result<IndexBlock> {
    let bytes = read_handle(meta, store, meta.index)?;
    let rows = IndexBlock::decode(bytes).map_err(|error| placed(meta, store, meta.index.offset, error))?;
    if rows.len() != meta.blocks as usize || rows.data_bytes() > u64::from(meta.bytes) {
        let error = Error::corrupt(format!(
            "index block of {} blocks and {} bytes: expected {} blocks within {} bytes",
            rows.len(),
            rows.data_bytes(),
            meta.blocks,
            meta.bytes
        ));
        return Err(placed(meta, store, meta.index.offset, error));
    }
    Ok(rows)
}

/// Checks and decodes a block that was read for `row`.
pub(crate) fn open_block(
    meta: &ExtentMeta,
    store: &dyn Store,
    row: &IndexRow<'_>,
    stored: Vec<u8>,
) -> Result<Block> {
    row.open_block(stored).map_err(|error| placed(meta, store, row.offset, error))
}

fn read_handle(meta: &ExtentMeta, store: &dyn Store, handle: Handle) -> Result<Vec<u8>> {
    let bytes = read(meta, store, handle.offset, handle.len)?;
    // The manifest's own copy of the checksum: a whole, but older, extent in the same place is found out.
    handle.check(&bytes).map_err(|error| placed(meta, store, handle.offset, error))?;
    Ok(bytes)
}

/// Checks that a range of an extent can exist.
pub(crate) fn check_range(meta: &ExtentMeta, store: &dyn Store, offset: u32, len: u32) -> Result<()> {
    let end = u64::from(offset) + u64::from(len);
    let bytes_max = u64::from(meta.bytes).min(u64::from(meta.slots) * SLOT_BYTES as u64);
    if end <= bytes_max {
        return Ok(());
    }
    let error = Error::corrupt(format!("range {offset}..{end} lies outside an extent of {bytes_max} bytes"));
    Err(placed(meta, store, offset, error))
}

/// Reads a range of an extent, after checking that it can exist: its length is what is allocated.
pub(crate) fn read(meta: &ExtentMeta, store: &dyn Store, offset: u32, len: u32) -> Result<Vec<u8>> {
    check_range(meta, store, offset, len)?;
    let mut bytes = vec![0; len as usize];
    store.read(meta.id, offset, &mut bytes)?;
    Ok(bytes)
}

/// The error with the file and offset that it is about.
#[cold]
pub(crate) fn placed(meta: &ExtentMeta, store: &dyn Store, offset: u32, error: Error) -> Error {
    let (file, offset) = store.place(meta.id, offset);
    error.context(format!("extent {}", meta.id)).at(file, offset)
}
