//! Handles a miss: reserve, read, check, decode, publish. Returns references of the caller's own, so no epoch
//! is held while the store reads.

#![expect(unsafe_code, reason = "promises to the cache that slots are removed before they are freed")]

mod stored;

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::{Error, Result};
use terrane_device::{Buffer, keep_buffer, take_buffer};
use terrane_format::block::Block;
use terrane_format::extent::{ExtentMeta, Handle, Origin, origin_of_end};
use terrane_format::filter::Filter;
use terrane_format::index::{IndexBlock, IndexRow};
use terrane_format::range_deletes::Fragments;
use terrane_storage::{SLOT_BYTES, Store};

use crate::cache::{Cache, Charge, Object, ObjectKind, ObjectRef, SwipSlot, memory};
use crate::extent::Extent;
use crate::swip;

pub(crate) use stored::{copy_of, open_stored};

/// Loads parts of one extent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loader<'a> {
    pub(crate) extent: &'a Extent,
    pub(crate) cache: &'a Arc<Cache>,
    /// True if data blocks that are read enter the cache. Index blocks, filters and range deletes always do.
    pub(crate) fill_cache: bool,
}

/// A part that is loaded in one piece.
#[derive(Debug)]
pub(crate) enum Part {
    Filter,
    Index,
    Ranges,
    /// Data block `at` of the index block `owner`.
    Block {
        owner: ObjectRef,
        at: usize,
    },
}

impl Loader<'_> {
    /// The filter; `None` if the extent has none.
    pub(crate) fn filter(&self) -> Result<Option<ObjectRef>> {
        if self.extent.meta.filter.is_empty() {
            return Ok(None);
        }
        match cached(&self.extent.filter) {
            Some(filter) => Ok(Some(filter)),
            None => self.load(&Part::Filter).map(Some),
        }
    }

    /// The index block.
    pub(crate) fn index(&self) -> Result<ObjectRef> {
        match cached(&self.extent.index) {
            Some(index) => Ok(index),
            None => self.load(&Part::Index),
        }
    }

    /// The range deletes; `None` if the extent has none.
    pub(crate) fn ranges(&self) -> Result<Option<ObjectRef>> {
        if !self.extent.is_ranged() {
            return Ok(None);
        }
        match cached(&self.extent.ranges) {
            Some(ranges) => Ok(Some(ranges)),
            None => self.load(&Part::Ranges).map(Some),
        }
    }

    /// Data block `at` of the index block `owner`.
    pub(crate) fn block(&self, owner: &ObjectRef, at: usize) -> Result<ObjectRef> {
        match self.cached_block(owner, at) {
            Some(block) => Ok(block),
            None => self.load(&Part::Block { owner: owner.clone(), at }),
        }
    }

    /// The cached object of a part, if there is one.
    pub(crate) fn cached_part(&self, part: &Part) -> Option<ObjectRef> {
        match part {
            Part::Filter => cached(&self.extent.filter),
            Part::Index => cached(&self.extent.index),
            Part::Ranges => cached(&self.extent.ranges),
            Part::Block { owner, at } => self.cached_block(owner, *at),
        }
    }

    fn load(&self, part: &Part) -> Result<ObjectRef> {
        let (offset, len) = self.range(part)?;
        // Room is made before the read, so that the object has a place.
        let charge = self.reserve(part);
        count_miss(1, u64::from(len), part);
        let mut bytes = take_buffer(len as usize);
        debug_assert!(bytes.len() == len as usize, "the read would be longer or shorter than the part");
        self.extent.store.read(self.extent.meta.id, offset, &mut bytes)?;
        self.finish(part, bytes, charge)
    }

    /// Offset and length of a part in the extent.
    pub(crate) fn range(&self, part: &Part) -> Result<(u32, u32)> {
        let meta = &self.extent.meta;
        let (offset, len) = match part {
            Part::Filter => (meta.filter.offset, meta.filter.len),
            Part::Index => (meta.index.offset, meta.index.len),
            Part::Ranges => {
                let part = meta.range_deletes.as_ref().map_or_else(Handle::default, |section| section.part);
                (part.offset, part.len)
            }
            Part::Block { owner, at } => {
                debug_assert!(*at < owner.index().slots.len(), "a block that the index block does not have");
                let row = owner.index().rows.row(*at);
                (row.offset, row.stored_len)
            }
        };
        check_range(meta, &*self.extent.store, offset, len)?;
        Ok((offset, len))
    }

    /// Checks, decodes and publishes a part whose bytes were read elsewhere, where that read was counted.
    pub(crate) fn adopt(&self, part: &Part, bytes: Vec<u8>) -> Result<ObjectRef> {
        debug_assert!(
            self.range(part).is_ok_and(|(_, len)| len as usize == bytes.len()),
            "bytes of another part"
        );
        let charge = self.reserve(part);
        count_miss(0, bytes.len() as u64, part);
        self.finish(part, bytes, charge)
    }

    fn reserve(&self, part: &Part) -> Option<Charge> {
        let meta = &self.extent.meta;
        match part {
            Part::Filter => {
                self.cache.reserve(ObjectKind::Filter, memory::filter_bytes(meta.filter.len as usize))
            }
            Part::Index => {
                let bytes = memory::index_bytes(meta.index.len as usize, meta.blocks as usize);
                self.cache.reserve(ObjectKind::Index, bytes)
            }
            Part::Ranges => {
                let section = meta.range_deletes.as_ref()?;
                let bytes = memory::ranges_bytes(section.part.len as usize, section.fragments as usize);
                self.cache.reserve(ObjectKind::Ranges, bytes)
            }
            Part::Block { owner, at } => {
                let bytes = memory::block_bytes(owner.index().rows.row(*at).raw_len as usize);
                let may_publish = self.fill_cache && owner.accepts_children();
                may_publish.then(|| self.cache.reserve(ObjectKind::Data, bytes)).flatten()
            }
        }
    }

    /// Checks, decodes and publishes a part for which memory was reserved.
    pub(crate) fn finish(&self, part: &Part, bytes: Vec<u8>, charge: Option<Charge>) -> Result<ObjectRef> {
        debug_assert!(
            self.range(part).is_ok_and(|(_, len)| len as usize == bytes.len()),
            "{} bytes, which are not those of the part",
            bytes.len()
        );
        let (extent, store) = (self.extent, &*self.extent.store);
        Ok(match part {
            Part::Filter => {
                let bytes = Buffer::from(bytes);
                let filter = open_filter(&extent.meta, store, &bytes)?;
                self.publish(&extent.filter, None, memory::filter(&filter, charge))
            }
            Part::Index => {
                let rows = open_index(&extent.meta, store, bytes)?;
                let object = memory::index(&rows, charge);
                keep_buffer(rows.into_bytes());
                self.publish(&extent.index, None, object)
            }
            Part::Ranges => {
                let fragments = open_range_deletes(&extent.meta, store, &Buffer::from(bytes))?;
                self.publish(&extent.ranges, None, memory::ranges(fragments, charge))
            }
            Part::Block { owner, at } => {
                let index = owner.index();
                let object = self.placed_block(&index.rows.row(*at), bytes, charge)?;
                self.publish(&index.slots[*at], Some(owner), object)
            }
        })
    }

    /// Data block `at` of the index block `owner`, whose bytes have been read. Blocks of a long scan enter
    /// the cache only if there is free room: they must not evict others.
    pub(crate) fn fetched_block(
        &self,
        owner: &Object,
        at: usize,
        stored: &[u8],
        is_scan: bool,
    ) -> Result<ObjectRef> {
        let index = owner.index();
        let row = index.rows.row(at);
        debug_assert!(stored.len() == row.stored_len as usize, "block {at} has {} bytes", row.stored_len);
        let may_publish = self.fill_cache && owner.accepts_children();
        let bytes = memory::block_bytes(row.raw_len as usize);
        let charge = match may_publish {
            true if is_scan => self.cache.reserve_spare(ObjectKind::Data, bytes),
            true => self.cache.reserve(ObjectKind::Data, bytes),
            false => None,
        };
        count(|cells| {
            add(&cells.blocks_missed, 1);
            add(&cells.blocks_decoded, 1);
        });
        let object = self.placed_block(&row, copy_of(stored), charge)?;
        Ok(self.publish(&index.slots[at], Some(owner), object))
    }

    /// Checks and decodes the bytes of a block; a copy of it as an object.
    fn placed_block(&self, row: &IndexRow<'_>, stored: Vec<u8>, charge: Option<Charge>) -> Result<ObjectRef> {
        debug_assert!(stored.len() == row.stored_len as usize, "the bytes of one block, all of them");
        let block = open_block(&self.extent.meta, &*self.extent.store, row, stored)?;
        let object = memory::block(&block, charge);
        keep_buffer(block.into_bytes());
        Ok(object)
    }

    /// Data block `at` of the index block `owner`, if it is in the cache.
    pub(crate) fn cached_block(&self, owner: &Object, at: usize) -> Option<ObjectRef> {
        cached(&owner.index().slots[at])
    }

    fn publish(&self, slot: &SwipSlot, owner: Option<&Object>, object: ObjectRef) -> ObjectRef {
        debug_assert!(
            owner.is_none_or(|owner| owner.index().slots.as_ptr_range().contains(&std::ptr::from_ref(slot))),
            "the slot of a block lies in the index block that counts it as a child"
        );
        // SAFETY: `Extent::drop` removes the slots in the extent, and those in its index block through it.
        // Both lie where they are until then: behind an `Arc`, and in an index block, which is never moved.
        if unsafe { self.cache.publish(slot, owner, &object) } {
            return object;
        }
        // If another thread was faster, its object is used: ours has no second user.
        cached(slot).unwrap_or(object)
    }
}

/// Counts a miss that reads `bytes` from the store, in so many reads.
fn count_miss(reads: u64, bytes: u64, part: &Part) {
    count(|cells| {
        add(&cells.blocks_missed, 1);
        add(&cells.device_reads, reads);
        add(&cells.device_bytes_read, bytes);
        add(&cells.blocks_decoded, u64::from(matches!(part, Part::Block { .. })));
    });
}

fn cached(slot: &SwipSlot) -> Option<ObjectRef> {
    let epoch = swip::enter();
    // Prefetches all lines at once, because the reference count is not among the lines that a search reads.
    slot.swip.load(&epoch)?.prefetch_whole();
    let object = slot.swip.load_owned(&epoch)?;
    object.touch();
    Some(object)
}

/// Reads and checks an extent's filter. Requires: it has one.
pub(crate) fn read_filter(meta: &ExtentMeta, store: &dyn Store) -> Result<Filter> {
    let bytes = read(meta, store, meta.filter.offset, meta.filter.len)?;
    Ok(open_filter(meta, store, &bytes)?.place(<[u8]>::to_vec))
}

/// Reads an extent's index block, and checks that it belongs to this extent.
pub(crate) fn read_index(meta: &ExtentMeta, store: &dyn Store) -> Result<IndexBlock> {
    open_index(meta, store, read(meta, store, meta.index.offset, meta.index.len)?)
}

/// Reads an extent's index block as [`read_index`], and by the same read what it says of where it comes from,
/// which lies behind: in a bucket each read is a request. What cannot be read of that matters to repair
/// alone, and is not an error.
pub(crate) fn read_index_and_origin(
    meta: &ExtentMeta,
    store: &dyn Store,
) -> Result<(IndexBlock, Option<Origin>)> {
    let Handle { offset: start, len, .. } = meta.index;
    let behind = meta.bytes.checked_sub(start).filter(|bytes| meta.has_origin() && len <= *bytes);
    let end = behind.and_then(|bytes| read(meta, store, start, bytes).ok());
    match end {
        // A copy: the filter lies between both, and its memory goes.
        Some(end) => {
            let rows = open_index(meta, store, end[..len as usize].to_vec())?;
            Ok((rows, origin_of_end(&end, start)))
        }
        None => Ok((read_index(meta, store)?, None)),
    }
}

/// Reads an extent's range deletes, and checks them against its meta. Requires: it has some.
pub(crate) fn read_range_deletes(meta: &ExtentMeta, store: &dyn Store) -> Result<Fragments> {
    let Some(section) = &meta.range_deletes else { return Ok(Fragments::default()) };
    open_range_deletes(meta, store, &read(meta, store, section.part.offset, section.part.len)?)
}

fn open_range_deletes(meta: &ExtentMeta, store: &dyn Store, bytes: &[u8]) -> Result<Fragments> {
    let Some(section) = &meta.range_deletes else { return Ok(Fragments::default()) };
    let at = section.part.offset;
    check_handle(meta, store, section.part, bytes)?;
    let fragments = Fragments::decode_ordered(bytes, &meta.collation);
    let mut fragments = fragments.map_err(|error| placed(meta, store, at, error))?;
    if meta.is_numbered() && !terrane_base::planted!(UnnumberedRangeDelete) {
        fragments.number(meta.seq_min).map_err(|error| placed(meta, store, at, error))?;
    }
    let (first, last) = (fragments.all().first(), fragments.all().last());
    let ends = first.zip(last).map(|(first, last)| (&first.start, &last.end));
    if ends != Some((&section.start, &section.end)) || fragments.all().len() != section.fragments as usize {
        let error = Error::corrupt("range deletes differ from those in the manifest");
        return Err(placed(meta, store, at, error));
    }
    Ok(fragments)
}

fn open_filter<'b>(meta: &ExtentMeta, store: &dyn Store, bytes: &'b [u8]) -> Result<Filter<&'b [u8]>> {
    check_handle(meta, store, meta.filter, bytes)?;
    Filter::check(bytes).map_err(|error| placed(meta, store, meta.filter.offset, error))
}

fn open_index(meta: &ExtentMeta, store: &dyn Store, bytes: Vec<u8>) -> Result<IndexBlock> {
    check_handle(meta, store, meta.index, &bytes)?;
    let rows = IndexBlock::decode_ordered(bytes, &meta.collation);
    let mut rows = rows.map_err(|error| placed(meta, store, meta.index.offset, error))?;
    if meta.is_numbered() {
        rows.number(meta.seq_min).map_err(|error| placed(meta, store, meta.index.offset, error))?;
    }
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

/// Checks and decodes a block that was read for `row`. It lies in a buffer to be kept ([`keep_buffer`]).
pub(crate) fn open_block(
    meta: &ExtentMeta,
    store: &dyn Store,
    row: &IndexRow<'_>,
    stored: Vec<u8>,
) -> Result<Block> {
    let block = open_stored(row, stored, meta.is_numbered());
    let block = block.map_err(|error| placed(meta, store, row.offset, error))?;
    Ok(block.ordered(&meta.collation))
}

/// Checks bytes against the checksum in the manifest, which detects a whole, but older, extent in the same
/// slots.
fn check_handle(meta: &ExtentMeta, store: &dyn Store, handle: Handle, bytes: &[u8]) -> Result<()> {
    handle.check(bytes).map_err(|error| placed(meta, store, handle.offset, error))
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

/// Reads a range of an extent, after checking that it can exist, because memory of that length is allocated.
pub(crate) fn read(meta: &ExtentMeta, store: &dyn Store, offset: u32, len: u32) -> Result<Vec<u8>> {
    check_range(meta, store, offset, len)?;
    let mut bytes = vec![0; len as usize];
    store.read(meta.id, offset, &mut bytes)?;
    Ok(bytes)
}

impl Extent {
    /// Adds the extent, and its file and offset, to an error about it.
    #[cold]
    #[must_use]
    pub fn placed(&self, error: Error) -> Error {
        placed(&self.meta, &*self.store, 0, error)
    }
}

/// Adds the file and offset to an error.
#[cold]
pub(crate) fn placed(meta: &ExtentMeta, store: &dyn Store, offset: u32, error: Error) -> Error {
    let (file, offset) = store.place(meta.id, offset);
    store.explain(meta.id, error.context(format!("extent {}", meta.id)).at(file, offset))
}
