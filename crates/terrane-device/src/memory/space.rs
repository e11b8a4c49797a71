//! Space accounting of a device in memory, and the set of pages of a file that take space.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::mapping::PAGE_BYTES;

/// Bytes used against a limit.
#[derive(Debug)]
pub(super) struct Space {
    capacity: AtomicU64,
    used: AtomicU64,
}

impl Space {
    pub(super) fn new() -> Self {
        Space { capacity: AtomicU64::new(u64::MAX), used: AtomicU64::new(0) }
    }

    pub(super) fn set_capacity(&self, bytes: u64) {
        self.capacity.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn free(&self) -> u64 {
        self.capacity().saturating_sub(self.used())
    }

    /// Takes space for `pages`; returns false if there is not enough.
    pub(super) fn take(&self, pages: u64) -> bool {
        let bytes = pages * PAGE_BYTES as u64;
        let capacity = self.capacity();
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|&sum| bytes == 0 || sum <= capacity)
            })
            .is_ok()
    }

    pub(super) fn give_back(&self, pages: u64) {
        self.used.fetch_sub(pages * PAGE_BYTES as u64, Ordering::Relaxed);
    }
}

/// The pages of a file that take space.
#[derive(Clone, Debug, Default)]
pub(super) struct PageSet {
    words: Vec<u64>,
    count: u64,
}

impl PageSet {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Number of pages of the range that are not in the set.
    pub(super) fn missing(&self, pages: Range<u64>) -> u64 {
        pages.filter(|&page| !self.contains(page)).count() as u64
    }

    pub(super) fn contains(&self, page: u64) -> bool {
        self.words.get((page / 64) as usize).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    pub(super) fn insert(&mut self, pages: Range<u64>) {
        let words = pages.end.div_ceil(64) as usize;
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
        self.count += self.missing(pages.clone());
        for page in pages {
            self.words[(page / 64) as usize] |= 1 << (page % 64);
        }
    }

    /// Removes the pages; returns how many were in the set.
    pub(super) fn remove(&mut self, pages: Range<u64>) -> u64 {
        let end = pages.end.min(self.words.len() as u64 * 64);
        let mut removed = 0;
        for page in pages.start..end {
            if self.contains(page) {
                self.words[(page / 64) as usize] &= !(1 << (page % 64));
                removed += 1;
            }
        }
        self.count -= removed;
        removed
    }
}
