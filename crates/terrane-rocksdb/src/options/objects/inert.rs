//! Managers and factories that programs make and give to options: of files, of checksums of files, of where
//! files end, of memory. Extents have a size, and every block a checksum, whatever these say; so they are
//! kept, and what would be a promise is refused.

use std::sync::{Arc, Mutex, PoisonError};

use terrane::Db;

use crate::ffi::failure::Failure;
use crate::options::objects::env::Environment;
use crate::options::objects::rate_limiter::RateLimiter;

/// A manager of files: how much space they may take, and how fast they are removed. It knows the databases
/// that are open with it. Clones are of the same one: options hold it, and are asked when a database is
/// opened.
#[derive(Clone, Debug)]
pub(crate) struct FileManager(Arc<Mutex<Numbers>>);

#[derive(Debug)]
struct Numbers {
    /// Open databases, each with what tells its handle from others.
    users: Vec<(usize, Db)>,
    space_max: u64,
    delete_rate: i64,
    trash_ratio: f64,
}

impl FileManager {
    fn with<R>(&self, body: impl FnOnce(&mut Numbers) -> R) -> R {
        body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts the files of this database, until it is removed.
    pub(crate) fn add_user(&self, handle: usize, db: &Db) {
        self.with(|numbers| numbers.users.push((handle, db.clone())));
    }

    pub(crate) fn remove_user(&self, handle: usize) {
        let removed = self.with(|numbers| {
            let at = numbers.users.iter().position(|(known, _)| *known == handle)?;
            Some(numbers.users.swap_remove(at))
        });
        drop(removed);
    }

    /// Bytes of the extents of its databases.
    fn total_bytes(&self) -> u64 {
        let users: Vec<Db> = self.with(|numbers| numbers.users.iter().map(|(_, db)| db.clone()).collect());
        let bytes = |db: &Db| db.statistics().get("store_live_bytes").map_or(0, |value| value.number());
        users.iter().map(bytes).sum()
    }

    /// Returns true if a limit of space is set.
    pub(crate) fn is_limited(&self) -> bool {
        self.with(|numbers| numbers.space_max > 0)
    }
}

/// Makes checksums of whole files.
#[derive(Debug)]
pub(crate) struct ChecksumFactory;

/// Decides where files end.
#[derive(Debug)]
pub(crate) struct PartitionerFactory;

/// An allocator of caches.
#[derive(Debug)]
pub(crate) struct Allocator;

export! {
    fn rocksdb_sst_file_manager_create(_environment: Option<&Environment>) -> Option<Box<FileManager>> {
        let numbers = Numbers { users: Vec::new(), space_max: 0, delete_rate: 0, trash_ratio: 0.25 };
        Some(Box::new(FileManager(Arc::new(Mutex::new(numbers)))))
    }

    fn rocksdb_sst_file_manager_destroy(manager: Option<Box<FileManager>>) {
        drop(manager);
    }

    fn rocksdb_sst_file_manager_set_max_allowed_space_usage(manager: Option<&FileManager>, bytes: u64) {
        if let Some(manager) = manager {
            manager.with(|numbers| numbers.space_max = bytes);
        }
    }

    fn rocksdb_sst_file_manager_get_total_size(manager: Option<&FileManager>) -> u64 {
        manager.map_or(0, FileManager::total_bytes)
    }

    fn rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(manager: Option<&FileManager>) -> i64 {
        manager.map_or(0, |manager| manager.with(|numbers| numbers.delete_rate))
    }

    fn rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(manager: Option<&FileManager>, rate: i64) {
        if let Some(manager) = manager {
            manager.with(|numbers| numbers.delete_rate = rate);
        }
    }

    fn rocksdb_sst_file_manager_get_max_trash_db_ratio(manager: Option<&FileManager>) -> f64 {
        manager.map_or(0.0, |manager| manager.with(|numbers| numbers.trash_ratio))
    }

    fn rocksdb_sst_file_manager_set_max_trash_db_ratio(manager: Option<&FileManager>, ratio: f64) {
        if let Some(manager) = manager {
            manager.with(|numbers| numbers.trash_ratio = ratio);
        }
    }

    fn rocksdb_file_checksum_gen_crc32c_factory_create() -> Option<Box<ChecksumFactory>> {
        Some(Box::new(ChecksumFactory))
    }

    fn rocksdb_file_checksum_gen_factory_destroy(factory: Option<Box<ChecksumFactory>>) {
        drop(factory);
    }

    fn rocksdb_sst_partitioner_fixed_prefix_factory_create(
        _prefix_bytes: usize,
    ) -> Option<Box<PartitionerFactory>> {
        Some(Box::new(PartitionerFactory))
    }

    fn rocksdb_sst_partitioner_factory_destroy(factory: Option<Box<PartitionerFactory>>) {
        drop(factory);
    }

    fn rocksdb_jemalloc_nodump_allocator_create(error: ErrPtr<'_>) -> Option<Box<Allocator>> {
        Err(Failure::not_implemented("Not compiled with JEMALLOC"))
    }

    fn rocksdb_memory_allocator_destroy(allocator: Option<Box<Allocator>>) {
        drop(allocator);
    }

    fn rocksdb_ratelimiter_create_with_mode(
        bytes_per_second: i64,
        _refill_micros: i64,
        _fairness: i32,
        _mode: i32,
        _auto_tuned: u8,
    ) -> Option<Box<RateLimiter>> {
        Some(Box::new(RateLimiter { bytes_per_second }))
    }
}
