//! Many misses at once: the parts that several lookups lack are read in batches and published.
//!
//! Steps: 1. find parts that were cached meanwhile, 2. read the others, with up to [`BATCH_READS`] reads and
//! [`BATCH_BYTES`] in flight, neighbours in one read, 3. check, decode and publish each.
//!
//! Invariants:
//! 1. No epoch is held across a read of the store.
//! 2. A part that cannot be loaded is left out: a later read of it alone reports the error.
//! 3. The caller gets its own references, whether the cache had room or not.

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::{Entry, SeqNo, ValuePosition};
use terrane_device::{Buffer, take_buffer};
use terrane_storage::ReadRequest;

use crate::cache::{Cache, ObjectRef};
use crate::extent::{Extent, count_search};
use crate::loader::{Loader, Part, copy_of};
use crate::swip;

/// Most reads of [`load_many`] in flight: the depth of a device's queue.
pub const BATCH_READS: usize = 64;
/// A batch takes no further part once this many bytes are read and not decoded. They do not count for the
/// cache.
const BATCH_BYTES: usize = 2 << 20;

/// The part of an extent that a lookup lacks, in the order in which a lookup needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Its range deletes.
    RangeDeletes,
    /// Its filter.
    Filter,
    /// Its index block.
    Index,
    /// A data block, by its index in the index block.
    Block(usize),
}

/// A part of an extent, held by a caller.
#[derive(Clone, Debug)]
pub struct Loaded(ObjectRef);

impl Loaded {
    /// The part, for a cursor.
    pub(crate) fn object(&self) -> ObjectRef {
        self.0.clone()
    }
}

impl Extent {
    /// The data block in which `key` is searched first; `None` if the index block is not cached, or the key
    /// lies behind the last block.
    #[must_use]
    pub fn block_need(&self, key: &[u8]) -> Option<Need> {
        let epoch = swip::enter();
        let index = self.index.swip.load(&epoch)?.index();
        let at = index.rows.find(key);
        debug_assert!(at <= index.slots.len(), "a search ends in a block or behind the last one");
        (at < index.rows.len()).then_some(Need::Block(at))
    }

    /// As [`Extent::block_need`], of the value that was written at a position.
    #[must_use]
    pub fn value_need(&self, position: ValuePosition) -> Option<Need> {
        let epoch = swip::enter();
        let blocks = self.index.swip.load(&epoch)?.index().rows.len();
        (position.block < blocks as u32).then_some(Need::Block(position.block as usize))
    }

    /// The newest version of `key` with a number up to `seq` in a data block of the extent that was loaded
    /// for [`Need::Block`]. Counts a hit as a search of the extent; `hash` tells whether its filter was
    /// checked.
    ///
    /// # Panics
    /// If it was loaded for another need.
    #[must_use]
    pub fn find_in<'l>(
        &self,
        loaded: &'l Loaded,
        key: &'l [u8],
        hash: Option<u64>,
        seq: SeqNo,
    ) -> Option<Entry<'l>> {
        let entry = loaded.0.block().find(key, seq)?;
        debug_assert!(entry.seq_kind.seq() <= seq, "a read finds no version above its number, {seq}");
        count_search(self.asked(hash).is_some(), 1, true);
        Some(entry)
    }
}

/// Loads parts of extents. All results are held at once, so ask for about [`BATCH_READS`] parts. The i-th
/// result belongs to `needs[i]`; `None` if it could not be loaded. Equal needs next to each other are read
/// once, and parts that lie one behind the other in an extent, if they are next to each other here, in one
/// read.
#[must_use]
pub fn load_many(cache: &Arc<Cache>, needs: &[(&Extent, Need)]) -> Vec<Option<Loaded>> {
    let mut loaded: Vec<Option<Loaded>> = vec![None; needs.len()];
    let mut batch = Batch::default();
    for (at, &(extent, need)) in needs.iter().enumerate() {
        if at > 0 && std::ptr::eq(needs[at - 1].0, extent) && needs[at - 1].1 == need {
            continue;
        }
        let loader = Loader { extent, cache: extent.bind(cache), fill_cache: true };
        let Some(part) = part_of(extent, need) else { continue };
        match loader.cached_part(&part) {
            Some(object) => loaded[at] = Some(Loaded(object)),
            None => batch.add(at, loader, part),
        }
        if batch.is_full() {
            batch.read(&mut loaded);
        }
    }
    batch.read(&mut loaded);
    for at in 1..needs.len() {
        if std::ptr::eq(needs[at - 1].0, needs[at].0) && needs[at - 1].1 == needs[at].1 {
            loaded[at] = loaded[at - 1].clone();
        }
    }
    loaded
}

/// `None` if the index block, which holds the location of the part, was evicted again.
fn part_of(extent: &Extent, need: Need) -> Option<Part> {
    Some(match need {
        Need::RangeDeletes => Part::Ranges,
        Need::Filter => Part::Filter,
        Need::Index => Part::Index,
        Need::Block(at) => Part::Block { owner: extent.index.swip.load_owned(&swip::enter())?, at },
    })
}

/// A part to be read for the lookup `at`.
struct Want<'e> {
    at: usize,
    loader: Loader<'e>,
    part: Part,
    offset: u32,
    len: u32,
}

impl Want<'_> {
    /// Returns true if the part of `next` follows this one in the same extent.
    fn is_before(&self, next: &Want<'_>) -> bool {
        std::ptr::eq(self.loader.extent, next.loader.extent) && self.offset + self.len == next.offset
    }
}

#[derive(Default)]
struct Batch<'e> {
    wants: Vec<Want<'e>>,
    bytes: usize,
}

impl<'e> Batch<'e> {
    fn add(&mut self, at: usize, loader: Loader<'e>, part: Part) {
        debug_assert!(
            !self.is_full(),
            "a full batch is read before the next part comes: its memory is bounded"
        );
        let Ok((offset, len)) = loader.range(&part) else { return };
        self.bytes += len as usize;
        self.wants.push(Want { at, loader, part, offset, len });
    }

    fn is_full(&self) -> bool {
        self.wants.len() >= BATCH_READS || self.bytes >= BATCH_BYTES
    }

    /// Reads the batch and empties it.
    fn read(&mut self, loaded: &mut [Option<Loaded>]) {
        debug_assert!(
            self.wants.iter().map(|want| want.len as usize).sum::<usize>() == self.bytes,
            "a batch has the bytes of its parts, not {}",
            self.bytes
        );
        let mut wants = &self.wants[..];
        while let Some(first) = wants.first() {
            // The extents of a database are in one store; extents of several stores are several batches.
            let store = &first.loader.extent.store;
            let same = wants.iter().take_while(|want| Arc::ptr_eq(&want.loader.extent.store, store)).count();
            let (mine, others) = wants.split_at(same);
            read_each(mine, loaded);
            wants = others;
        }
        self.wants.clear();
        self.bytes = 0;
    }
}

/// Reads, decodes and publishes parts of one store: each run of neighbours in one read.
fn read_each(wants: &[Want<'_>], loaded: &mut [Option<Loaded>]) {
    assert!(!wants.is_empty(), "a batch of reads has a first one");
    let store = wants[0].loader.extent.store.clone();
    let runs: Vec<&[Want<'_>]> = wants.chunk_by(Want::is_before).collect();
    let run_bytes = |run: &&[Want<'_>]| take_buffer(run.iter().map(|want| want.len as usize).sum()).into();
    let mut buffers: Vec<Buffer> = runs.iter().map(run_bytes).collect();
    let request = |(run, bytes): (&&[Want<'_>], _)| {
        ReadRequest::new(run[0].loader.extent.meta.id, run[0].offset, bytes)
    };
    let mut reads: Vec<_> =
        runs.iter().zip(buffers.iter_mut().map(|bytes| &mut bytes[..])).map(request).collect();
    store.read_batch(&mut reads);
    let is_read: Vec<bool> = reads.iter().map(|read| read.result.is_ok()).collect();
    count(|cells| add(&cells.device_reads, runs.len() as u64));
    for ((run, bytes), _) in runs.iter().zip(buffers).zip(is_read).filter(|(_, is_read)| *is_read) {
        adopt_run(run, bytes, loaded);
    }
}

/// Decodes and publishes parts that were read together, whose bytes these are.
fn adopt_run(run: &[Want<'_>], mut bytes: Buffer, loaded: &mut [Option<Loaded>]) {
    let adopt = |want: &Want<'_>, bytes| want.loader.adopt(&want.part, bytes).ok().map(Loaded);
    if let [want] = run {
        debug_assert!(loaded[want.at].is_none(), "a part is read once");
        loaded[want.at] = adopt(want, std::mem::take(&mut *bytes));
        return;
    }
    let mut rest = &bytes[..];
    for want in run {
        let (part, behind) = rest.split_at(want.len as usize);
        debug_assert!(loaded[want.at].is_none(), "a part is read once");
        loaded[want.at] = adopt(want, copy_of(part));
        rest = behind;
    }
    assert!(rest.is_empty(), "a run of parts was read beyond its last part");
}
