//! [`Extent`]: an extent of a metasnapshot, with swips for its index block, its filter and its range deletes.
//! The swips of its data blocks are in the cached index block.
//!
//! Steps of a point read: 1. filter, 2. index block, 3. data block, each by its swip, under one epoch. At the
//! first null swip the read leaves the epoch, and starts over with its own references, loading missing parts.
//!
//! Invariants:
//! 1. No epoch is held across a read of the store.
//! 2. A hit writes nothing except reference bits that are clear.
//! 3. What a lookup needs first is in the extent's first cache line: two swips, the length of the filter, the
//!    smallest number.
//! 4. When an extent is dropped its objects leave the cache; if it is obsolete its slots are freed in the
//!    store. A reader holds the extent (or the metasnapshot that contains it), so no reader reads freed
//!    slots.

mod counts;
mod loading;
mod position;

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use terrane_base::sync::atomic::{AtomicBool, Ordering};
use terrane_base::{Result, SeqKind, SeqNo};
use terrane_format::extent::ExtentMeta;
use terrane_format::filter;
use terrane_format::range_deletes::Fragments;
use terrane_storage::Store;

use crate::cache::{Cache, ObjectRef, SwipSlot};
pub(crate) use crate::extent::counts::{count_refusal, count_search};
use crate::heat::Heat;
use crate::load_many::Need;
use crate::loader::{Loader, read_range_deletes};
use crate::swip::{self, Epoch};

/// Failed attempts to free the slots of obsolete extents, since the process started. From `std`, like every
/// static, because a replaced atomic belongs to one execution of the schedule explorer.
static FREE_FAILURES: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// Failures to free the slots of obsolete extents since the process started; the next open frees them.
#[must_use]
pub fn free_failures() -> u64 {
    FREE_FAILURES.load(Ordering::Relaxed)
}

/// See the [module](self). Shared by every metasnapshot that names the extent.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Extent {
    pub(crate) index: SwipSlot,
    pub(crate) filter: SwipSlot,
    /// From `meta`.
    seq_min: SeqNo,
    /// Bytes of the filter; 0 without a filter.
    filter_len: u32,
    /// True if the extent has range deletes.
    is_ranged: bool,
    /// The manifest's description of the extent.
    pub meta: ExtentMeta,
    pub(crate) store: Arc<dyn Store>,
    /// The cache that holds its objects; the first one through which it is read.
    cache: OnceLock<Arc<Cache>>,
    is_obsolete: AtomicBool,
    pub(crate) ranges: SwipSlot,
    /// How often it is read.
    pub heat: Heat,
}

/// The range deletes of an extent, held by a caller.
#[derive(Clone, Debug)]
pub struct RangeDeletes(ObjectRef);

impl Deref for RangeDeletes {
    type Target = Fragments;

    fn deref(&self) -> &Fragments {
        self.0.ranges()
    }
}

/// The result of a lookup that does not read from the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The version was found; its value was appended or is shown.
    Found(SeqKind),
    /// The extent holds no version of the key up to the number.
    Absent,
    /// As `Absent`, and the filter said so: nothing else was searched.
    Refused,
    /// A part is not cached; this is the first one.
    Unknown(Need),
}

impl Extent {
    /// A handle for the extent that `meta` describes. Reads nothing.
    #[must_use]
    pub fn new(meta: ExtentMeta, store: Arc<dyn Store>) -> Arc<Extent> {
        Arc::new(Extent {
            index: SwipSlot::default(),
            filter: SwipSlot::default(),
            seq_min: meta.seq_min,
            filter_len: meta.filter.len,
            is_ranged: meta.range_deletes.is_some(),
            meta,
            store,
            cache: OnceLock::new(),
            is_obsolete: AtomicBool::new(false),
            ranges: SwipSlot::default(),
            heat: Heat::default(),
        })
    }

    /// Returns true if no later metasnapshot contains the extent: only readers keep it.
    #[must_use]
    pub fn is_obsolete(&self) -> bool {
        self.is_obsolete.load(Ordering::Acquire)
    }

    /// Marks the extent as absent from all later metasnapshots: when the last one that contains it is
    /// dropped, its slots are freed. Requires: the durable manifest does not name it either.
    pub fn mark_obsolete(&self) {
        self.is_obsolete.store(true, Ordering::Release);
        let _ =
            terrane_base::planted!(FreeNamedSlots).then(|| self.store.free(self.meta.id, self.meta.slots));
    }

    /// Returns true if the extent has range deletes.
    #[inline]
    #[must_use]
    pub fn is_ranged(&self) -> bool {
        self.is_ranged
    }

    /// The range deletes, if they are in the cache.
    #[inline]
    #[must_use]
    pub fn cached_range_deletes<'e>(&self, epoch: &'e Epoch) -> Option<&'e Fragments> {
        let object = self.ranges.swip.load(epoch)?;
        debug_assert!(
            self.is_ranged,
            "readers would not ask for range deletes of an extent that says it has none"
        );
        object.touch();
        Some(object.ranges())
    }

    /// The range deletes; `None` if the extent has no range delete. Loads them through the cache.
    ///
    /// # Errors
    /// `Corrupt`, naming file and offset; `Io`.
    pub fn range_deletes(&self, cache: &Arc<Cache>) -> Result<Option<RangeDeletes>> {
        if !self.is_ranged {
            return Ok(None);
        }
        let loader = Loader { extent: self, cache: self.bind(cache), fill_cache: true };
        let ranges = loader.ranges()?;
        debug_assert!(ranges.is_some(), "a reader would see what they hide");
        Ok(ranges.map(RangeDeletes))
    }

    /// The range deletes, read without the cache; `None` if the extent has no range delete.
    ///
    /// # Errors
    /// As [`Extent::range_deletes`].
    pub fn read_range_deletes(&self) -> Result<Option<Fragments>> {
        self.is_ranged.then(|| read_range_deletes(&self.meta, &*self.store)).transpose()
    }

    /// The newest range delete that covers `key` and that a read at `seq` sees. Loads missing parts.
    ///
    /// # Errors
    /// As [`Extent::range_deletes`].
    #[inline]
    pub fn hidden(&self, cache: &Arc<Cache>, key: &[u8], seq: SeqNo) -> Result<Option<SeqNo>> {
        if !self.is_ranged {
            return Ok(None);
        }
        Ok(self.range_deletes(cache)?.and_then(|fragments| fragments.covering(key)?.newest(seq)))
    }

    /// Looks for the newest version of `key` with a number up to `seq`, and appends its value (nothing for a
    /// delete) to `value`.
    ///
    /// # Errors
    /// `Corrupt`, naming file and offset; `Io`.
    pub fn get(
        &self,
        cache: &Arc<Cache>,
        key: &[u8],
        seq: SeqNo,
        value: &mut Vec<u8>,
    ) -> Result<Option<SeqKind>> {
        self.get_hashed(cache, key, Some(filter::hash(key)), seq, value)
    }

    /// [`Extent::get`] with the [`filter::hash`] of `key`, for several extents; `None` skips the filter.
    ///
    /// # Errors
    /// As [`Extent::get`].
    #[inline]
    pub fn get_hashed(
        &self,
        cache: &Arc<Cache>,
        key: &[u8],
        hash: Option<u64>,
        seq: SeqNo,
        value: &mut Vec<u8>,
    ) -> Result<Option<SeqKind>> {
        debug_assert!(hash.is_none_or(|it| it == filter::hash(key)), "the filter is asked for another key");
        // The epoch ends with this statement, because it must not be held while the store reads.
        let probe = self.probe(&swip::enter(), key, hash, seq, value);
        match probe {
            Probe::Found(seq_kind) => Ok(Some(seq_kind)),
            Probe::Absent | Probe::Refused => Ok(None),
            Probe::Unknown(_) => self.get_loading(cache, key, hash, seq, value),
        }
    }

    /// [`Extent::get_hashed`] with cached parts only, under the caller's epoch. Never waits for a device.
    #[inline]
    #[must_use]
    pub fn probe(
        &self,
        epoch: &Epoch,
        key: &[u8],
        hash: Option<u64>,
        seq: SeqNo,
        value: &mut Vec<u8>,
    ) -> Probe {
        let (probe, bytes) = self.probe_bytes(epoch, key, hash, seq);
        debug_assert!(
            bytes.is_empty() || matches!(probe, Probe::Found(_)),
            "a value without a version would be taken for a part of the next one"
        );
        value.extend_from_slice(bytes);
        probe
    }

    /// [`Extent::probe`] that shows the value of the version where it lies: one function for all callers.
    #[inline(never)]
    #[must_use]
    pub fn probe_bytes<'e>(
        &self,
        epoch: &'e Epoch,
        key: &'e [u8],
        hash: Option<u64>,
        seq: SeqNo,
    ) -> (Probe, &'e [u8]) {
        if self.seq_min > seq {
            return (Probe::Absent, &[]);
        }
        let hash = self.asked(hash);
        if let Some(hash) = hash {
            let Some(filter) = self.filter.swip.load(epoch) else {
                return (Probe::Unknown(Need::Filter), &[]);
            };
            filter.prefetch_filter(hash, self.filter_len);
            filter.touch();
            if !filter.filter().may_contain(hash) {
                count_refusal();
                return (Probe::Refused, &[]);
            }
        }
        let mut blocks = 0;
        let (probe, value) = self.probe_blocks(epoch, key, seq, &mut blocks);
        // An unknown result is searched again and counted then.
        if !matches!(probe, Probe::Unknown(_)) {
            count_search(hash.is_some(), blocks, probe != Probe::Absent);
        }
        debug_assert!(matches!(probe, Probe::Found(_)) || value.is_empty(), "bytes are of a version");
        (probe, value)
    }

    /// The hash for the filter, if the extent has a filter.
    #[inline]
    pub(crate) fn asked(&self, hash: Option<u64>) -> Option<u64> {
        hash.filter(|_| self.filter_len > 0)
    }

    /// Returns true if every version here is newer than `seq`.
    #[inline]
    pub(crate) fn is_newer_than(&self, seq: SeqNo) -> bool {
        self.seq_min > seq
    }

    /// The search after the filter; `blocks` counts the data blocks that it read.
    #[inline]
    fn probe_blocks<'e>(
        &self,
        epoch: &'e Epoch,
        key: &'e [u8],
        seq: SeqNo,
        blocks: &mut u64,
    ) -> (Probe, &'e [u8]) {
        let Some(object) = self.index.swip.load(epoch) else { return (Probe::Unknown(Need::Index), &[]) };
        object.prefetch();
        object.touch();
        let index = object.index();
        // The line with the block's swip arrives while the heads that lead to it are compared.
        index.prefetch_slots(key);
        let mut at = index.rows.find(key);
        while let Some(slot) = index.slots.get(at) {
            debug_assert!(at < index.rows.len(), "each slot is that of a block");
            let Some(object) = slot.swip.load(epoch) else { return (Probe::Unknown(Need::Block(at)), &[]) };
            object.prefetch();
            object.touch();
            *blocks += 1;
            if let Some(entry) = object.block().find(key, seq) {
                return (Probe::Found(entry.seq_kind), entry.value);
            }
            if !index.continues(at, key) {
                break;
            }
            at += 1;
        }
        (Probe::Absent, &[])
    }

    /// Loads index block and filter, so that the first read finds them cached.
    ///
    /// # Errors
    /// As [`Extent::get`].
    pub fn warm(&self, cache: &Arc<Cache>) -> Result<()> {
        let loader = Loader { extent: self, cache: self.bind(cache), fill_cache: true };
        loader.filter()?;
        loader.index().map(drop)
    }

    /// Number of cached data blocks.
    #[must_use]
    pub fn cached_blocks(&self) -> usize {
        let epoch = swip::enter();
        let Some(object) = self.index.swip.load(&epoch) else { return 0 };
        object.index().slots.iter().filter(|slot| slot.swip.load(&epoch).is_some()).count()
    }

    /// The one cache that may hold the extent's objects.
    pub(crate) fn bind<'a>(&'a self, cache: &Arc<Cache>) -> &'a Arc<Cache> {
        let bound = self.cache.get_or_init(|| cache.clone());
        debug_assert!(Arc::ptr_eq(bound, cache), "an extent is read through one cache only");
        bound
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        if let Some(cache) = self.cache.get() {
            let epoch = swip::enter();
            cache.remove(&self.index, &epoch);
            cache.remove(&self.filter, &epoch);
            cache.remove(&self.ranges, &epoch);
        }
        let free = || self.store.free(self.meta.id, self.meta.slots);
        if *self.is_obsolete.get_mut() && free().is_err() {
            // There is no caller for this error. The slots stay unused until the next open.
            FREE_FAILURES.fetch_add(1, Ordering::Relaxed);
        }
    }
}
