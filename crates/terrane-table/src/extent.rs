//! [`Extent`]: what a metasnapshot names, with swips for its index block, its filter and its range deletes. The swips of
//! its data blocks lie in the cached index block.
//!
//! Steps of a point read: 1. filter, 2. index block, 3. data block, each by its swip, under one epoch. At the first
//! null swip the epoch is left; the read starts over with references of its own, loading what is missing.
//!
//! Invariants:
//! 1. No epoch is held across a read of the store.
//! 2. Nothing on the hit path writes, but reference bits that are clear.
//! 3. What a lookup needs first lies in the extent's first cache line: two swips, how long the filter is, the
//!    smallest number.
//! 4. When an extent is dropped its objects leave the cache; if it is obsolete its slots go back to the store.
//!    Whoever reads holds it (or the metasnapshot it is in), so nobody reads slots that were given back.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use terrane_base::sync::atomic::{AtomicBool, Ordering};

use terrane_base::counters::{add, count};
use terrane_base::{Result, SeqKind, SeqNo};
use terrane_format::extent::ExtentMeta;
use terrane_format::filter;
use terrane_format::range_deletes::Fragments;
use terrane_storage::Store;

use crate::cache::{Cache, Home, ObjectRef};
use crate::heat::Heat;
use crate::load_many::Need;
use crate::loader::{Loader, read_range_deletes};
use crate::swip::{self, Epoch};

/// Failed attempts to give the slots of obsolete extents back, since the process started. Of `std`, as every static: what
/// the seam gives belongs to one execution of an explorer.
static FREE_FAILURES: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// How often the slots of an obsolete extent could not be given back since the process started. Such slots are
/// free again after the next open.
#[must_use]
pub fn free_failures() -> u64 {
    FREE_FAILURES.load(Ordering::Relaxed)
}

/// See the [module](self). Shared by every metasnapshot that names the extent.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Extent {
    pub(crate) index: Home,
    pub(crate) filter: Home,
    /// Of `meta`.
    seq_min: SeqNo,
    /// Bytes of the filter that `meta` names; 0 if there is none.
    filter_len: u32,
    /// Whether `meta` names range deletes.
    is_ranged: bool,
    /// What the manifest says about the extent.
    pub meta: ExtentMeta,
    pub(crate) store: Arc<dyn Store>,
    /// The cache that its objects are in; the first one it is read through.
    cache: OnceLock<Arc<Cache>>,
    is_obsolete: AtomicBool,
    pub(crate) ranges: Home,
    /// How often it is read.
    pub heat: Heat,
}

/// The range deletes of an extent, held by whoever asked for them.
#[derive(Clone, Debug)]
pub struct RangeDeletes(ObjectRef);

impl Deref for RangeDeletes {
    type Target = Fragments;

    fn deref(&self) -> &Fragments {
        self.0.ranges()
    }
}

/// What can be said without reading from the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The version looked for; its value was appended.
    Found(SeqKind),
    /// The extent holds no version of the key up to the number.
    Absent,
    /// The same, and the filter said so: nothing else was looked at.
    Refused,
    /// Something needed is not in the cache: this, to begin with.
    Unknown(Need),
}

impl Extent {
    /// A handle for the extent that `meta` describes. Reads nothing.
    #[must_use]
    pub fn new(meta: ExtentMeta, store: Arc<dyn Store>) -> Arc<Extent> {
        Arc::new(Extent {
            index: Home::default(),
            filter: Home::default(),
            seq_min: meta.seq_min,
            filter_len: meta.filter.len,
            is_ranged: meta.range_deletes.is_some(),
            meta,
            store,
            cache: OnceLock::new(),
            is_obsolete: AtomicBool::new(false),
            ranges: Home::default(),
            heat: Heat::default(),
        })
    }

    /// Whether no later metasnapshot names the extent: only readers keep it.
    #[must_use]
    pub fn is_obsolete(&self) -> bool {
        self.is_obsolete.load(Ordering::Acquire)
    }

    /// Notes that no later metasnapshot names the extent: when the last one that does is gone, its slots go back
    /// to the store. Requires: the durable manifest does not name it either.
    pub fn mark_obsolete(&self) {
        self.is_obsolete.store(true, Ordering::Release);
        let _ =
            terrane_base::planted!(FreeNamedSlots).then(|| self.store.free(self.meta.id, self.meta.slots));
    }

    /// Whether the extent has range deletes.
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
        object.touch();
        Some(object.ranges())
    }

    /// The range deletes; none if there are none. Loads them through the cache.
    ///
    /// # Errors
    /// `Corrupt`, naming file and offset; `Io`.
    pub fn range_deletes(&self, cache: &Arc<Cache>) -> Result<Option<RangeDeletes>> {
        if !self.is_ranged {
            return Ok(None);
        }
        let loader = Loader { extent: self, cache: self.bind(cache), fill_cache: true };
        Ok(loader.ranges()?.map(RangeDeletes))
    }

    /// The range deletes, read past the cache; none if there are none.
    ///
    /// # Errors
    /// As [`Extent::range_deletes`].
    pub fn read_range_deletes(&self) -> Result<Option<Fragments>> {
        self.is_ranged.then(|| read_range_deletes(&self.meta, &*self.store)).transpose()
    }

    /// The number of the newest range delete over `key` that a read at `seq` sees. Loads what is missing.
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

    /// [`Extent::get`] for callers that ask several extents: `hash` is [`terrane_format::filter::hash`] of `key`, or
    /// `None` to look into the blocks without asking the filter.
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
        // The epoch ends with this statement: it must not be held while the store is asked.
        let probe = self.probe(&swip::enter(), key, hash, seq, value);
        match probe {
            Probe::Found(seq_kind) => Ok(Some(seq_kind)),
            Probe::Absent | Probe::Refused => Ok(None),
            Probe::Unknown(_) => self.get_loading(cache, key, hash, seq, value),
        }
    }

    /// [`Extent::get_hashed`] as far as the cache knows, under the caller's epoch. Never waits for a device.
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
        if self.seq_min > seq {
            return Probe::Absent;
        }
        let hash = self.asked(hash);
        if let Some(hash) = hash {
            let Some(filter) = self.filter.swip.load(epoch) else { return Probe::Unknown(Need::Filter) };
            filter.prefetch_filter(hash, self.filter_len);
            filter.touch();
            if !filter.filter().may_contain(hash) {
                count_refusal();
                return Probe::Refused;
            }
        }
        let mut blocks = 0;
        let probe = self.probe_blocks(epoch, key, seq, value, &mut blocks);
        // What is not known yet is searched again, and counted then.
        if !matches!(probe, Probe::Unknown(_)) {
            count_search(hash.is_some(), blocks, probe != Probe::Absent);
        }
        probe
    }

    /// The hash to ask the filter with, if there is one.
    #[inline]
    pub(crate) fn asked(&self, hash: Option<u64>) -> Option<u64> {
        hash.filter(|_| self.filter_len > 0)
    }

    /// Whether every version here is newer than `seq`.
    #[inline]
    pub(crate) fn is_newer_than(&self, seq: SeqNo) -> bool {
        self.seq_min > seq
    }

    /// The search behind the filter; `blocks` is how many data blocks it took.
    #[inline]
    fn probe_blocks(
        &self,
        epoch: &Epoch,
        key: &[u8],
        seq: SeqNo,
        value: &mut Vec<u8>,
        blocks: &mut u64,
    ) -> Probe {
        let Some(object) = self.index.swip.load(epoch) else { return Probe::Unknown(Need::Index) };
        object.prefetch();
        object.touch();
        let index = object.index();
        // The line with the block's swip comes while the heads that lead to it are compared.
        index.prefetch_homes(key);
        let mut at = index.rows.find(key);
        while let Some(home) = index.homes.get(at) {
            let Some(object) = home.swip.load(epoch) else { return Probe::Unknown(Need::Block(at)) };
            object.prefetch();
            object.touch();
            *blocks += 1;
            if let Some(entry) = object.block().find(key, seq) {
                value.extend_from_slice(entry.value);
                return Probe::Found(entry.seq_kind);
            }
            if !index.continues(at, key) {
                break;
            }
            at += 1;
        }
        Probe::Absent
    }

    #[cold]
    fn get_loading(
        &self,
        cache: &Arc<Cache>,
        key: &[u8],
        hash: Option<u64>,
        seq: SeqNo,
        value: &mut Vec<u8>,
    ) -> Result<Option<SeqKind>> {
        let loader = Loader { extent: self, cache: self.bind(cache), fill_cache: true };
        let mut is_filtered = false;
        if let Some(hash) = hash
            && let Some(filter) = loader.filter()?
        {
            if !filter.filter().may_contain(hash) {
                count_refusal();
                return Ok(None);
            }
            is_filtered = true;
        }
        let mut blocks = 0;
        let found = get_from_blocks(&loader, key, seq, value, &mut blocks)?;
        count_search(is_filtered, blocks, found.is_some());
        Ok(found)
    }

    /// Loads index block and filter, so that the first read finds them.
    ///
    /// # Errors
    /// As [`Extent::get`].
    pub fn warm(&self, cache: &Arc<Cache>) -> Result<()> {
        let loader = Loader { extent: self, cache: self.bind(cache), fill_cache: true };
        loader.filter()?;
        loader.index().map(drop)
    }

    /// How many data blocks are in the cache.
    #[must_use]
    pub fn cached_blocks(&self) -> usize {
        let epoch = swip::enter();
        let Some(object) = self.index.swip.load(&epoch) else { return 0 };
        object.index().homes.iter().filter(|home| home.swip.load(&epoch).is_some()).count()
    }

    /// The one cache that the extent's objects may be in.
    pub(crate) fn bind<'a>(&'a self, cache: &Arc<Cache>) -> &'a Arc<Cache> {
        let bound = self.cache.get_or_init(|| cache.clone());
        debug_assert!(Arc::ptr_eq(bound, cache), "an extent is read through one cache only");
        bound
    }
}

/// The search behind the filter, loading what is missing; `blocks` is how many data blocks it took.
fn get_from_blocks(
    loader: &Loader<'_>,
    key: &[u8],
    seq: SeqNo,
    value: &mut Vec<u8>,
    blocks: &mut u64,
) -> Result<Option<SeqKind>> {
    let owner = loader.index()?;
    let index = owner.index();
    let mut at = index.rows.find(key);
    while at < index.rows.len() {
        let object = loader.block(&owner, at)?;
        *blocks += 1;
        if let Some(entry) = object.block().find(key, seq) {
            value.extend_from_slice(entry.value);
            return Ok(Some(entry.seq_kind));
        }
        if !index.continues(at, key) {
            break;
        }
        at += 1;
    }
    Ok(None)
}

/// Counts a filter that said no.
#[inline]
pub(crate) fn count_refusal() {
    count(|cells| add(&cells.filter_negatives, 1));
}

/// Counts a search in an index block and `blocks` data blocks, behind a filter or not.
#[inline]
pub(crate) fn count_search(is_filtered: bool, blocks: u64, is_found: bool) {
    count(|cells| {
        add(&cells.filter_probes, u64::from(is_filtered));
        add(&cells.filter_positives_false, u64::from(is_filtered && !is_found));
        add(&cells.index_blocks_searched, 1);
        add(&cells.data_blocks_searched, blocks);
    });
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
            // Nobody is left to return the error to. The slots stay unused until the next open.
            FREE_FAILURES.fetch_add(1, Ordering::Relaxed);
        }
    }
}
