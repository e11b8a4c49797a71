//! Block caches. Each database has a cache of its own, as large as the handle says when it is opened: the
//! capacity is what the engine is given beside the memory of its writers. A handle knows which open databases
//! were opened with it, and what it says of use is the sum of theirs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::generated::objects::{HyperClockCacheOptions, LruCacheOptions};

/// A handle of a cache; copies mean the same one.
#[derive(Clone, Debug)]
pub(crate) struct Cache(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    capacity_bytes: AtomicUsize,
    /// Open databases, each with what tells it from others.
    users: Mutex<Vec<(usize, User)>>,
}

/// A database whose cache stands for this one.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) db: terrane::Db,
    /// How many iterators there are.
    pub(crate) iterators: Arc<AtomicUsize>,
}

impl Cache {
    pub(crate) fn new(capacity_bytes: usize) -> Cache {
        let capacity_bytes = AtomicUsize::new(capacity_bytes);
        Cache(Arc::new(Shared { capacity_bytes, users: Mutex::default() }))
    }

    /// Bytes that it may hold.
    pub(crate) fn capacity_bytes(&self) -> usize {
        // A number by itself: nothing else is read by it.
        self.0.capacity_bytes.load(Ordering::Relaxed)
    }

    fn users(&self) -> Vec<User> {
        let users = self.0.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.iter().map(|(_, user)| user.clone()).collect()
    }

    /// Counts an open database, once.
    pub(crate) fn add_user(&self, number: usize, user: &User) {
        let mut users = self.0.users.lock().unwrap_or_else(PoisonError::into_inner);
        if users.iter().all(|(known, _)| *known != number) {
            users.push((number, user.clone()));
        }
    }

    /// Stops counting a database.
    pub(crate) fn remove_user(&self, number: usize) {
        let mut users = self.0.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|(known, _)| *known != number);
    }

    /// Bytes of the caches of its databases: what they hold and, as soon as a database is open, what they are
    /// made of.
    pub(crate) fn used_bytes(&self) -> u64 {
        Cache::used_bytes_of(std::slice::from_ref(self))
    }

    /// Bytes in the caches of the databases of several handles, each database counted once.
    pub(crate) fn used_bytes_of(caches: &[Cache]) -> u64 {
        let mut users = BTreeMap::new();
        for cache in caches {
            users.extend(cache.0.users.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        }
        users.values().map(|user| cache_bytes(&user.db)).sum()
    }

    /// Bytes that iterators have in hand: a block for each, at least.
    fn pinned_bytes(&self) -> u64 {
        let blocks = |user: &User| {
            user.iterators.load(Ordering::Relaxed) as u64 * user.db.options().block_bytes_in_memory()
        };
        self.users().iter().map(blocks).sum()
    }
}

/// Bytes that the cache of a database has of its memory: objects, and the cache itself.
pub(crate) fn cache_bytes(db: &terrane::Db) -> u64 {
    let statistics = db.statistics();
    let bytes = |name| statistics.get(name).map_or(0, |value| value.number());
    bytes("cache_bytes") + bytes("cache_accounting_bytes")
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
        boxed(options?.fields.capacity)
    }

    fn rocksdb_cache_create_hyper_clock(capacity: usize, _entry_charge: usize) -> Option<Box<Cache>> {
        boxed(capacity)
    }

    fn rocksdb_hyper_clock_cache_options_create(
        capacity: usize,
        _entry_charge: usize,
    ) -> Option<Box<HyperClockCacheOptions>> {
        let mut options = HyperClockCacheOptions::default();
        options.fields.capacity = capacity;
        Some(Box::new(options))
    }

    fn rocksdb_cache_create_hyper_clock_opts(
        options: Option<&HyperClockCacheOptions>,
    ) -> Option<Box<Cache>> {
        boxed(options?.fields.capacity)
    }

    fn rocksdb_cache_destroy(cache: Option<Box<Cache>>) {
        drop(cache);
    }

    fn rocksdb_cache_set_capacity(cache: Option<&Cache>, capacity: usize) {
        if let Some(cache) = cache {
            cache.0.capacity_bytes.store(capacity, Ordering::Relaxed);
        }
    }

    fn rocksdb_cache_get_capacity(cache: Option<&Cache>) -> usize {
        cache.map_or(0, Cache::capacity_bytes)
    }

    fn rocksdb_cache_get_usage(cache: Option<&Cache>) -> usize {
        cache.map_or(0, |cache| cache.used_bytes() as usize)
    }

    fn rocksdb_cache_get_pinned_usage(cache: Option<&Cache>) -> usize {
        cache.map_or(0, |cache| cache.pinned_bytes() as usize)
    }
}
