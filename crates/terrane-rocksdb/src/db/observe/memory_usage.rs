//! Memory that databases use.

use crate::db::Database;
use crate::ffi::failure::Given;
use crate::options::objects::cache::Cache;

/// Databases and caches to ask.
#[derive(Default)]
pub(crate) struct Consumers {
    databases: Vec<terrane::Db>,
    caches: Vec<Cache>,
}

/// The memory of the databases at the time of the call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    unflushed_bytes: u64,
    cache_bytes: u64,
}

impl Usage {
    fn of(consumers: &Consumers) -> Usage {
        let mut usage = Usage::default();
        for db in &consumers.databases {
            let tables = db.shape().tables;
            usage.unflushed_bytes += tables
                .iter()
                .map(|table| {
                    table.memtable_bytes + table.frozen_bytes + table.generation_bytes + table.index_bytes
                })
                .sum::<u64>();
        }
        usage.cache_bytes = Cache::used_bytes_of(&consumers.caches);
        usage
    }
}

export! {
    fn rocksdb_memory_consumers_create() -> Option<Box<Consumers>> {
        Some(Box::default())
    }

    fn rocksdb_memory_consumers_add_db(consumers: Option<&mut Consumers>, database: Option<&Database>) {
        if let (Some(consumers), Some(database)) = (consumers, database) {
            consumers.databases.push(database.db.clone());
        }
    }

    fn rocksdb_memory_consumers_add_cache(consumers: Option<&mut Consumers>, cache: Option<&Cache>) {
        if let (Some(consumers), Some(cache)) = (consumers, cache) {
            consumers.caches.push(cache.clone());
        }
    }

    fn rocksdb_memory_consumers_destroy(consumers: Option<Box<Consumers>>) {
        drop(consumers);
    }

    fn rocksdb_approximate_memory_usage_create(
        consumers: Option<&Consumers>,
        error: ErrPtr<'_>,
    ) -> Option<Box<Usage>> {
        Ok(Some(Box::new(Usage::of(consumers.given()?))))
    }

    fn rocksdb_approximate_memory_usage_get_mem_table_total(usage: Option<&Usage>) -> u64 {
        usage.map_or(0, |usage| usage.unflushed_bytes)
    }

    fn rocksdb_approximate_memory_usage_get_mem_table_unflushed(usage: Option<&Usage>) -> u64 {
        usage.map_or(0, |usage| usage.unflushed_bytes)
    }

    fn rocksdb_approximate_memory_usage_get_mem_table_readers_total(_usage: Option<&Usage>) -> u64 {
        0
    }

    fn rocksdb_approximate_memory_usage_get_cache_total(usage: Option<&Usage>) -> u64 {
        usage.map_or(0, |usage| usage.cache_bytes)
    }

    fn rocksdb_approximate_memory_usage_destroy(usage: Option<Box<Usage>>) {
        drop(usage);
    }
}
