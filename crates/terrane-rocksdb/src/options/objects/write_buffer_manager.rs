//! Write buffer managers: memory of writers. Each database that is opened with one has as much for its
//! writers as the handle says then; nothing is shared between databases.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::options::database::Options;
use crate::options::objects::cache::Cache;

/// A handle of a manager; copies mean the same one.
#[derive(Clone, Debug)]
pub(crate) struct WriteBuffers {
    bytes: Arc<AtomicUsize>,
    /// True if what writers have is taken from the cache.
    pub(crate) is_part_of_cache: bool,
}

impl WriteBuffers {
    fn new(bytes: usize, is_part_of_cache: bool) -> Option<Box<WriteBuffers>> {
        Some(Box::new(WriteBuffers { bytes: Arc::new(AtomicUsize::new(bytes)), is_part_of_cache }))
    }

    /// Bytes that writers may have; 0 for no limit.
    pub(crate) fn bytes(&self) -> usize {
        // A number by itself: nothing else is read by it.
        self.bytes.load(Ordering::Relaxed)
    }
}

export! {
    fn rocksdb_write_buffer_manager_create(bytes: usize, _allow_stall: u8) -> Option<Box<WriteBuffers>> {
        WriteBuffers::new(bytes, false)
    }

    fn rocksdb_write_buffer_manager_create_with_cache(
        bytes: usize,
        _cache: Option<&Cache>,
        _allow_stall: u8,
    ) -> Option<Box<WriteBuffers>> {
        WriteBuffers::new(bytes, true)
    }

    fn rocksdb_write_buffer_manager_destroy(manager: Option<Box<WriteBuffers>>) {
        drop(manager);
    }

    fn rocksdb_write_buffer_manager_enabled(manager: Option<&WriteBuffers>) -> u8 {
        u8::from(manager.is_some_and(|manager| manager.bytes() > 0))
    }

    fn rocksdb_write_buffer_manager_cost_to_cache(manager: Option<&WriteBuffers>) -> u8 {
        u8::from(manager.is_some_and(|manager| manager.is_part_of_cache))
    }

    fn rocksdb_write_buffer_manager_buffer_size(manager: Option<&WriteBuffers>) -> usize {
        manager.map_or(0, WriteBuffers::bytes)
    }

    fn rocksdb_write_buffer_manager_set_buffer_size(manager: Option<&WriteBuffers>, bytes: usize) {
        if let Some(manager) = manager {
            manager.bytes.store(bytes, Ordering::Relaxed);
        }
    }

    fn rocksdb_options_set_write_buffer_manager(
        options: Option<&mut Options>,
        manager: Option<&WriteBuffers>,
    ) {
        if let Some(options) = options {
            options.write_buffers = manager.cloned();
        }
    }
}
