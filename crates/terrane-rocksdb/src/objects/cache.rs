//! Block caches. Each database has a cache of its own, as large as the handle says when it is opened: the capacity is what
//! the engine is given beside the memory of its writers. So a handle knows its capacity, and nothing of use.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::generated::objects::{HyperClockCacheOptions, LruCacheOptions};

/// A handle of a cache; copies mean the same one.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    capacity_bytes: Arc<AtomicUsize>,
}

impl Cache {
    pub(crate) fn new(capacity_bytes: usize) -> Cache {
        Cache { capacity_bytes: Arc::new(AtomicUsize::new(capacity_bytes)) }
    }

    /// Bytes that it may hold.
    pub(crate) fn capacity_bytes(&self) -> usize {
        // A number by itself: nothing else is read by it.
        self.capacity_bytes.load(Ordering::Relaxed)
    }
}

fn boxed(capacity_bytes: usize) -> Option<Box<Cache>> {
    Some(Box::new(Cache::new(capacity_bytes)))
}

export! {
    fn rocksdb_cache_create_lru(capacity: usize) -> Option<Box<Cache>> {
        boxed(capacity)
    }

    fn rocksdb_cache_create_lru_with_strict_capacity_limit(capacity: usize) -> Option<Box<Cache>> {
        boxed(capacity)
    }

    fn rocksdb_cache_create_lru_opts(options: Option<&LruCacheOptions>) -> Option<Box<Cache>> {
        boxed(options?.knobs.capacity)
    }

    fn rocksdb_cache_create_hyper_clock(capacity: usize, _entry_charge: usize) -> Option<Box<Cache>> {
        boxed(capacity)
    }

    fn rocksdb_hyper_clock_cache_options_create(
        capacity: usize,
        _entry_charge: usize,
    ) -> Option<Box<HyperClockCacheOptions>> {
        let mut options = HyperClockCacheOptions::default();
        options.knobs.capacity = capacity;
        Some(Box::new(options))
    }

    fn rocksdb_cache_create_hyper_clock_opts(
        options: Option<&HyperClockCacheOptions>,
    ) -> Option<Box<Cache>> {
        boxed(options?.knobs.capacity)
    }

    fn rocksdb_cache_destroy(cache: Option<Box<Cache>>) {
        drop(cache);
    }

    fn rocksdb_cache_set_capacity(cache: Option<&Cache>, capacity: usize) {
        if let Some(cache) = cache {
            cache.capacity_bytes.store(capacity, Ordering::Relaxed);
        }
    }

    fn rocksdb_cache_get_capacity(cache: Option<&Cache>) -> usize {
        cache.map_or(0, Cache::capacity_bytes)
    }
}
