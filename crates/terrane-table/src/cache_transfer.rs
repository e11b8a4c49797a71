//! Cache transfer: blocks that a job wrote replace the cached blocks of its inputs before any reader misses
//! them, so that a compaction does not empty the cache.
//!
//! Steps: 1. [`CacheTransfer::of`] lists the cached blocks of the inputs by key range, and whether they are
//! established (used more than once). 2. Each new extent loads from that list ([`CacheTransfer::pass_on`]):
//! index block and filter, then the blocks that overlap most of the cached ones, at most as many bytes as the
//! inputs had; a block that replaces an established one is established at once. If less than half of the
//! inputs was cached only those blocks are loaded, and none if it was less than a quarter: the blocks evicted
//! for them would be missed as much, and loading them costs reads. An input without a cached block does not
//! count there, even if its index block is cached: those of new extents are before any read
//! ([`FreshExtents`](crate::FreshExtents)).
//!
//! Correctness does not depend on it: a block that is not loaded here is loaded by its first read.

use std::sync::Arc;

use terrane_base::{Collation, Result};

use crate::cache::Cache;
use crate::extent::Extent;
use crate::loader::Loader;
use crate::swip;

/// A cached data block of an input.
#[derive(Debug)]
struct Cached {
    first: Vec<u8>,
    last: Vec<u8>,
    /// True if it was used more than once since it was loaded.
    is_established: bool,
}

/// The cached blocks of a job's inputs.
#[derive(Debug, Default)]
pub struct CacheTransfer {
    /// Key order of the table.
    collation: Collation,
    /// By first key.
    blocks: Vec<Cached>,
    /// For each block, the greatest last key up to it: bounds the search for overlaps.
    reach: Vec<Vec<u8>>,
    /// Bytes of blocks that may still be loaded.
    bytes_left: u64,
    /// Number of data blocks of those inputs that have a cached one.
    blocks_known: usize,
}

impl CacheTransfer {
    /// Lists the cached blocks of `inputs`.
    pub fn of<'e>(inputs: impl Iterator<Item = &'e Arc<Extent>>, cache: &Cache) -> CacheTransfer {
        let mut all = CacheTransfer::default();
        for extent in inputs {
            if !extent.meta.collation.is_bytes() {
                all.collation = extent.meta.collation.clone();
            }
            all.list(extent, cache);
        }
        let collation = &all.collation;
        collation.sort_by_key(&mut all.blocks, |block| &block.first);
        let mut reach: &[u8] = &[];
        let mut reaches = Vec::with_capacity(all.blocks.len());
        for block in &all.blocks {
            reach = collation.max(reach, &block.last);
            reaches.push(reach.to_vec());
        }
        all.reach = reaches;
        all
    }

    fn list(&mut self, extent: &Extent, cache: &Cache) {
        let Some(index) = extent.index.swip.load_owned(&swip::enter()) else { return };
        let index = index.index();
        let before = self.blocks.len();
        for (row, slot) in index.rows.rows().zip(index.slots.iter()) {
            // One epoch for each block: the list is long, and other threads wait for memory.
            let Some(is_established) = cache.was_reused(slot, &swip::enter()) else { continue };
            self.bytes_left += u64::from(row.raw_len);
            self.blocks.push(Cached {
                first: row.first_key.to_vec(),
                last: row.last_key.to_vec(),
                is_established,
            });
        }
        if self.blocks.len() > before {
            self.blocks_known += index.rows.len();
        }
        debug_assert!(self.blocks.len() <= self.blocks_known, "cached blocks are among those that are known");
    }

    /// Returns true if there is nothing to load.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Loads the blocks of `extent` that replace cached blocks; returns their number. Call it before readers
    /// see the extent.
    ///
    /// # Errors
    /// As [`Extent::get`]; blocks loaded before the error stay.
    pub fn pass_on(&mut self, extent: &Extent, cache: &Arc<Cache>) -> Result<u64> {
        if self.is_empty() {
            return Ok(0);
        }
        debug_assert!(self.reach.len() == self.blocks.len(), "each cached block has its reach");
        let loader = Loader { extent, cache: extent.bind(cache), fill_cache: true };
        loader.filter()?;
        let owner = loader.index()?;
        let index = owner.index();
        let wanted = index.rows.rows().enumerate();
        let mut wanted: Vec<_> = wanted
            .filter_map(|(at, row)| {
                let claim = self.claim(row.first_key, row.last_key)?;
                let is_missing = loader.cached_block(&owner, at).is_none();
                (is_missing && self.is_worth_a_read(claim)).then_some((claim, at, row.raw_len))
            })
            .collect();
        // The strongest claims first, while bytes are left; equal ones in key order.
        wanted.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut taken = 0;
        for (claim, at, bytes) in wanted {
            if self.bytes_left < u64::from(bytes) {
                break;
            }
            self.bytes_left -= u64::from(bytes);
            if claim.established > 0 {
                cache.mark_established(&index.slots[at]);
            }
            loader.block(&owner, at)?;
            taken += 1;
        }
        Ok(taken)
    }

    /// Returns true if a block should be read for a claim.
    fn is_worth_a_read(&self, claim: Claim) -> bool {
        self.has_share(2) || (claim.established > 0 && self.has_share(4))
    }

    /// Returns true if at least one block in `parts` of the inputs was cached.
    fn has_share(&self, parts: usize) -> bool {
        self.blocks.len() * parts >= self.blocks_known
    }

    /// The cached blocks that overlap the keys from `first` to `last`.
    fn claim(&self, first: &[u8], last: &[u8]) -> Option<Claim> {
        debug_assert!(
            self.reach.len() == self.blocks.len(),
            "a search over some blocks finds the place of another"
        );
        let start = self.reach.partition_point(|reach| self.collation.lt(reach, first));
        let end = self.blocks.partition_point(|block| self.collation.le(&block.first, last));
        let blocks = self.blocks.get(start..end)?.iter();
        let overlapping = blocks.filter(|block| self.collation.le(first, &block.last));
        let mut claim = Claim::default();
        for block in overlapping {
            claim.established += u32::from(block.is_established);
            claim.blocks += 1;
        }
        (claim.blocks > 0).then_some(claim)
    }
}

/// How much a new block overlaps with cached ones; a stronger claim is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    established: u32,
    blocks: u32,
}
