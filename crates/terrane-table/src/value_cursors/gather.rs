//! Values that a scan announces before it reads them, and the blocks of value tables that they lack, read in
//! batches.
//!
//! A scan announces values in the order of its rows, and their blocks are taken in that order as long as
//! there is room, so that the blocks left out are those that the scan comes to last. They are read in the
//! order of value tables and places, neighbours in one read.

use std::sync::Arc;

use terrane_base::ValuePointer;
use terrane_base::counters::{add, count};

use super::ValueCursors;
use crate::cache::ObjectRef;
use crate::cache::windows::WindowShare;
use crate::cursor::ExtentCursor;
use crate::extent::Extent;
use crate::load_many::{BATCH_READS, Loaded, Need, load_many};
use crate::loader::Part;

/// Most bytes of gathered blocks, before decompression.
const GATHERED_BYTES_MAX: u64 = 512 << 10;

/// While an index block is loaded it takes so many times its bytes on the device: these, the sectors that a
/// direct read takes them from, and the index in memory, which is up to twice as long.
const INDEX_COPIES: u64 = 4;

/// A block with values that are going to be asked for.
#[derive(Debug)]
pub(super) struct Want {
    extent: Arc<Extent>,
    place: WantPlace,
    /// Bytes that it takes, as far as that is known.
    bytes: u64,
}

/// Where a block is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WantPlace {
    /// Its number, as a pointer says it.
    Block(u32),
    /// Where the index block says that this key is.
    Key(Vec<u8>),
}

/// A gathered block.
#[derive(Debug)]
pub(super) struct Gathered {
    extent: Arc<Extent>,
    at: usize,
    block: Loaded,
}

/// The values that a scan has announced.
#[derive(Debug, Default)]
pub(super) struct Wants {
    blocks: Vec<Want>,
    bytes: u64,
    /// The key of the value that was announced last, and how many blocks were wanted before it.
    last: Option<(Vec<u8>, usize)>,
}

impl Wants {
    fn cut(&mut self, len: usize) {
        self.blocks.drain(len..).for_each(|want| self.bytes -= want.bytes);
        self.last = self.last.take().map(|(key, before)| (key, before.min(len)));
        debug_assert!(self.blocks.len() == len, "blocks that were announced last are cut");
    }

    fn push(&mut self, want: Want) {
        debug_assert!(
            !self.has(&want.extent, &want.place),
            "a block that is wanted twice would be counted twice"
        );
        self.bytes += want.bytes;
        self.blocks.push(want);
    }

    fn has(&self, extent: &Arc<Extent>, place: &WantPlace) -> bool {
        self.blocks.iter().rev().any(|want| Arc::ptr_eq(&want.extent, extent) && want.place == *place)
    }

    fn has_room(&self) -> bool {
        self.blocks.len() < BATCH_READS && self.bytes < GATHERED_BYTES_MAX
    }
}

impl ValueCursors {
    /// Forgets the values that were wanted.
    pub fn want_none(&mut self) {
        self.wants.cut(0);
        debug_assert!(self.wants.bytes == 0, "no block is wanted, so no bytes are: {}", self.wants.bytes);
        self.wants.last = None;
    }

    /// The key of the value that was wanted last.
    #[must_use]
    pub fn last_wanted(&self) -> Option<&[u8]> {
        self.wants.last.as_ref().map(|(key, _)| &**key)
    }

    /// Announces that the value of `key` behind `pointer`, in the value table `extent`, will be read; with
    /// `instead` it replaces the last one. Returns false if there is no room for another block.
    pub fn want(&mut self, extent: &Arc<Extent>, key: &[u8], pointer: ValuePointer, instead: bool) -> bool {
        let last = self.wants.last.take();
        if instead && let Some((_, before)) = &last {
            self.wants.cut(*before);
        }
        let mut last_key = last.map_or_else(Vec::new, |(key, _)| key);
        last_key.clear();
        last_key.extend_from_slice(key);
        self.wants.last = Some((last_key, self.wants.blocks.len()));
        let place =
            pointer.position.map_or_else(|| WantPlace::Key(key.to_vec()), |at| WantPlace::Block(at.block));
        if !self.is_in_block(&pointer) && !self.wants.has(extent, &place) {
            self.want_block(extent, place, u64::from(pointer.len));
        }
        debug_assert!(
            self.wants.last.as_ref().is_some_and(|(_, before)| *before <= self.wants.blocks.len()),
            "the next value that replaces this one cuts what this one added"
        );
        self.wants.has_room()
    }

    /// Adds a block with a value of so many bytes, unless it is cached.
    fn want_block(&mut self, extent: &Arc<Extent>, place: WantPlace, value_bytes: u64) {
        let loader = self.loader(extent);
        let mut bytes = value_bytes;
        if let Some(index) = loader.cached_part(&Part::Index)
            && let Some(at) = block_of(&index, &place)
        {
            if loader.cached_block(&index, at).is_some() {
                return;
            }
            bytes = u64::from(index.index().rows.row(at).raw_len);
        }
        self.wants.push(Want { extent: extent.clone(), place, bytes });
    }

    /// Reads the blocks that are wanted, in batches.
    pub fn gather(&mut self) {
        self.gathered.clear();
        let mut share = std::mem::take(&mut self.share);
        let (lacking, index_bytes) = self.indexes_lacking(&mut share);
        let mut reads = lacking.len();
        // Held until their blocks are read.
        let needs: Vec<_> = lacking.iter().map(|extent| (&**extent, Need::Index)).collect();
        let indexes = load_many(&self.cache, &needs);
        let blocks = self.blocks_lacking(&mut share, index_bytes);
        let needs: Vec<_> = blocks.iter().map(|(extent, at)| (&**extent, Need::Block(*at))).collect();
        reads += needs.len();
        let loaded = load_many(&self.cache, &needs);
        drop(indexes);
        self.share = share;
        if reads > 0 {
            count(|cells| {
                add(&cells.value_batches, 1);
                add(&cells.value_batch_reads, reads as u64);
            });
        }
        let gathered = blocks.into_iter().zip(loaded);
        self.gathered.extend(
            gathered.filter_map(|((extent, at), block)| Some(Gathered { extent, at, block: block? })),
        );
        assert!(self.gathered.len() <= BATCH_READS, "a scan holds too many gathered blocks");
    }

    /// The value tables whose index blocks the wanted blocks lack, in the order of their places, and what
    /// these index blocks take. Blocks for whose index block a scan has no room are not wanted any more, nor
    /// are those after them. There is room for the index block of the first one.
    fn indexes_lacking(&mut self, share: &mut WindowShare) -> (Vec<Arc<Extent>>, u64) {
        let (mut lacking, mut bytes): (Vec<Arc<Extent>>, u64) = (Vec::new(), 0);
        let mut reached = 0;
        for want in &self.wants.blocks {
            let is_known = |known: &Arc<Extent>| Arc::ptr_eq(known, &want.extent);
            if !lacking.iter().any(is_known) && self.loader(&want.extent).cached_part(&Part::Index).is_none()
            {
                let more = INDEX_COPIES * u64::from(want.extent.meta.index.len);
                if !share.grow(&self.cache, bytes + more) && reached > 0 {
                    break;
                }
                bytes += more;
                lacking.push(want.extent.clone());
            }
            reached += 1;
        }
        debug_assert!(reached > 0 || self.wants.blocks.is_empty(), "a scan comes to the next block it wants");
        self.wants.cut(reached);
        lacking.sort_by_key(|extent| extent.meta.id);
        (lacking, bytes)
    }

    /// The blocks that are wanted and not cached, as many of the first as a scan may hold beside `held` bytes
    /// of index blocks, in the order of extents and places.
    fn blocks_lacking(&self, share: &mut WindowShare, held: u64) -> Vec<(Arc<Extent>, usize)> {
        let mut blocks: Vec<(Arc<Extent>, usize)> = Vec::new();
        let mut bytes = 0;
        for want in &self.wants.blocks {
            // What has left the cache again is read by the placement.
            let Some(index) = self.loader(&want.extent).cached_part(&Part::Index) else { continue };
            let Some(at) = block_of(&index, &want.place) else { continue };
            let is_known =
                |(extent, known): &(Arc<Extent>, usize)| Arc::ptr_eq(extent, &want.extent) && *known == at;
            if blocks.iter().rev().any(is_known)
                || self.loader(&want.extent).cached_block(&index, at).is_some()
            {
                continue;
            }
            bytes += u64::from(index.index().rows.row(at).raw_len);
            let has_room = bytes <= GATHERED_BYTES_MAX && share.grow(&self.cache, held + bytes);
            if blocks.len() == BATCH_READS || (!has_room && !blocks.is_empty()) {
                break;
            }
            blocks.push((want.extent.clone(), at));
        }
        debug_assert!(blocks.len() <= BATCH_READS, "blocks of one scan are read in one batch");
        blocks.sort_by_key(|(extent, at)| (extent.meta.id, *at));
        blocks
    }
}

/// The number of a block, if the index block has it.
fn block_of(index: &ObjectRef, place: &WantPlace) -> Option<usize> {
    let rows = &index.index().rows;
    let at = match place {
        WantPlace::Block(at) => *at as usize,
        WantPlace::Key(key) => rows.find(key),
    };
    (at < rows.len()).then_some(at)
}

/// A gathered block, if it is among them.
pub(super) fn held(gathered: &[Gathered], extent: &Arc<Extent>, at: usize) -> Option<ObjectRef> {
    let found = gathered.iter().find(|block| block.at == at && Arc::ptr_eq(&block.extent, extent))?;
    Some(found.block.object())
}

/// Forgets the gathered block in which a cursor is: its one value is not asked for again.
pub(super) fn used_up(gathered: &mut Vec<Gathered>, cursor: &ExtentCursor) {
    let is_it = |block: &Gathered| {
        cursor.block_number() == Some(block.at) && Arc::ptr_eq(&block.extent, cursor.extent())
    };
    if let Some(at) = gathered.iter().position(is_it) {
        gathered.swap_remove(at);
    }
    debug_assert!(!gathered.iter().any(is_it), "a block is gathered once");
}
