//! Incremental replacement: blocks that a job wrote take the place of cached blocks of its inputs before any reader
//! meets them, so that a compaction does not empty the cache.
//!
//! Steps: 1. [`Inheritance::of`] lists the cached blocks of the inputs by key range, with their standing; 2. each new
//! extent takes from it ([`Inheritance::pass_on`]): index block and filter, then the blocks that overlap most of what
//! was cached, no more bytes than the inputs had; a block that replaces an established one is established at once.
//! Where less than half of the inputs was cached only such blocks are taken over, and none where it was less than a
//! quarter: what is evicted for them would be missed as much, and the device has them to read.
//!
//! Nothing is right or wrong by it: what is not taken over is loaded by the first read.

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
    /// Used more than once since it came.
    is_established: bool,
}

/// What was cached of the inputs of a job.
#[derive(Debug, Default)]
pub struct Inheritance {
    /// How the keys are ordered.
    collation: Collation,
    /// By first key.
    blocks: Vec<Cached>,
    /// Greatest last key of the blocks up to each one: bounds the search for overlaps.
    reach: Vec<Vec<u8>>,
    /// Bytes of the blocks that may still be taken over.
    bytes_left: u64,
    /// Blocks of the inputs whose index block is cached, cached or not.
    blocks_known: usize,
    /// Whether the index block of any input was cached.
    has_index: bool,
}

impl Inheritance {
    /// What is cached of `inputs` now.
    pub fn of<'e>(inputs: impl Iterator<Item = &'e Arc<Extent>>, cache: &Cache) -> Inheritance {
        let mut all = Inheritance::default();
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
        self.has_index = true;
        let index = index.index();
        self.blocks_known += index.rows.len();
        for (row, home) in index.rows.rows().zip(index.homes.iter()) {
            // An epoch for each: the list is long, and others wait for memory.
            let Some(is_established) = cache.standing(home, &swip::enter()) else { continue };
            self.bytes_left += u64::from(row.raw_len);
            self.blocks.push(Cached {
                first: row.first_key.to_vec(),
                last: row.last_key.to_vec(),
                is_established,
            });
        }
    }

    /// Whether there is nothing to take over.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_index
    }

    /// Loads what of `extent` takes the place of cached blocks and is not cached yet; returns how many blocks. Best before
    /// any reader knows of it.
    ///
    /// # Errors
    /// As [`Extent::get`]; what was loaded before stays.
    pub fn pass_on(&mut self, extent: &Extent, cache: &Arc<Cache>) -> Result<u64> {
        if self.is_empty() {
            return Ok(0);
        }
        let loader = Loader { extent, cache: extent.bind(cache), fill_cache: true };
        loader.filter()?;
        let owner = loader.index()?;
        let index = owner.index();
        let heirs = index.rows.rows().enumerate();
        let mut heirs: Vec<_> = heirs
            .filter_map(|(at, row)| {
                let claim = self.claim(row.first_key, row.last_key)?;
                let is_missing = loader.cached_block(&owner, at).is_none();
                (is_missing && self.is_worth_a_read(claim)).then_some((claim, at, row.raw_len))
            })
            .collect();
        // The strongest claims first, while there are bytes; those of equal strength in key order.
        heirs.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut taken = 0;
        for (claim, at, bytes) in heirs {
            if self.bytes_left < u64::from(bytes) {
                break;
            }
            self.bytes_left -= u64::from(bytes);
            if claim.established > 0 {
                cache.vouch(&index.homes[at]);
            }
            loader.block(&owner, at)?;
            taken += 1;
        }
        Ok(taken)
    }

    /// Whether a block is read for a claim.
    fn is_worth_a_read(&self, claim: Claim) -> bool {
        self.has_share(2) || (claim.established > 0 && self.has_share(4))
    }

    /// Whether one block in `parts` of the inputs was cached, or more.
    fn has_share(&self, parts: usize) -> bool {
        self.blocks.len() * parts >= self.blocks_known
    }

    /// What was cached of the keys from `first` to `last`.
    fn claim(&self, first: &[u8], last: &[u8]) -> Option<Claim> {
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

/// How much a new block has to do with what was cached, the stronger the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    established: u32,
    blocks: u32,
}
