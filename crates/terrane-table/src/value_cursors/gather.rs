//! Values that a scan tells before it asks for them, and the parts of value tables that they lack, read in
//! batches.

use std::sync::Arc;

use terrane_base::counters::{add, count};

use super::ValueCursors;
use crate::cache::ObjectRef;
use crate::cache::windows::WindowShare;
use crate::extent::Extent;
use crate::load_many::{BATCH_READS, Loaded, Need, load_many};
use crate::loader::Part;

/// Most bytes of gathered blocks, before decompression.
const GATHERED_BYTES_MAX: u64 = 512 << 10;

/// A value that is going to be asked for.
#[derive(Debug)]
pub(super) struct Want {
    extent: Arc<Extent>,
    /// Where its key lies in `keys`.
    key: std::ops::Range<usize>,
}

/// A gathered block.
#[derive(Debug)]
pub(super) struct Gathered {
    extent: Arc<Extent>,
    at: usize,
    block: Loaded,
}

impl ValueCursors {
    /// Forgets the values that were wanted.
    pub fn want_none(&mut self) {
        self.wants.clear();
        self.keys.clear();
    }

    /// The key of the value that was wanted last.
    #[must_use]
    pub fn last_wanted(&self) -> Option<&[u8]> {
        self.wants.last().map(|want| &self.keys[want.key.clone()])
    }

    /// Tells that the value of `key` in the value table `extent` will be asked for; in the place of the last
    /// one with `instead`.
    pub fn want(&mut self, extent: &Arc<Extent>, key: &[u8], instead: bool) {
        if instead && let Some(last) = self.wants.pop() {
            self.keys.truncate(last.key.start);
        }
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        self.wants.push(Want { extent: extent.clone(), key: start..self.keys.len() });
    }

    /// Reads the parts that the values that are wanted lack, in batches.
    pub fn gather(&mut self) {
        self.gathered.clear();
        let keys = &self.keys;
        // In key order within an extent, so that equal parts are neighbours.
        self.wants.sort_by(|a, b| {
            let order = a.extent.meta.id.cmp(&b.extent.meta.id);
            order.then_with(|| a.extent.meta.collation.cmp(&keys[a.key.clone()], &keys[b.key.clone()]))
        });
        let lacks_index = |want: &&Want| self.loader(&want.extent).cached_part(&Part::Index).is_none();
        let mut needs: Vec<_> =
            self.wants.iter().filter(lacks_index).map(|want| (&*want.extent, Need::Index)).collect();
        needs.dedup_by(|a, b| std::ptr::eq(a.0, b.0));
        let mut reads = needs.len();
        // Held until their blocks are read.
        let indexes: Vec<_> =
            needs.chunks(BATCH_READS).flat_map(|part| load_many(&self.cache, part)).collect();
        let mut share = std::mem::take(&mut self.share);
        let blocks = self.blocks_lacking(&mut share);
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

    /// The blocks of the values that are wanted and that are not cached, as many as a scan may hold.
    fn blocks_lacking(&self, share: &mut WindowShare) -> Vec<(Arc<Extent>, usize)> {
        let mut blocks: Vec<(Arc<Extent>, usize)> = Vec::new();
        let mut bytes = 0;
        for want in &self.wants {
            // What has left the cache again is read by the placement.
            let Some(index) = self.loader(&want.extent).cached_part(&Part::Index) else { continue };
            let rows = &index.index().rows;
            let at = rows.find(&self.keys[want.key.clone()]);
            let is_known =
                |(extent, known): &(Arc<Extent>, usize)| Arc::ptr_eq(extent, &want.extent) && *known == at;
            if at >= rows.len() || blocks.last().is_some_and(is_known) {
                continue;
            }
            if self.loader(&want.extent).cached_block(&index, at).is_some() {
                continue;
            }
            bytes += u64::from(rows.row(at).raw_len);
            let has_room = bytes <= GATHERED_BYTES_MAX && share.grow(&self.cache, bytes);
            if blocks.len() == BATCH_READS || (!has_room && !blocks.is_empty()) {
                break;
            }
            blocks.push((want.extent.clone(), at));
        }
        blocks
    }
}

/// A gathered block, if it is among them.
pub(super) fn held(gathered: &[Gathered], extent: &Arc<Extent>, at: usize) -> Option<ObjectRef> {
    let found = gathered.iter().find(|block| block.at == at && Arc::ptr_eq(&block.extent, extent))?;
    Some(found.block.object())
}
