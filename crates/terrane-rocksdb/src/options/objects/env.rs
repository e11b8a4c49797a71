//! Environments: the files of the system, or memory.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use terrane::MemoryDevice;

use crate::ffi::failure::Given;
use crate::files;

/// Bytes that databases of one environment in memory may store: 1 GiB.
const MEMORY_BYTES: u64 = 1 << 30;

/// An environment. Databases that were opened in one hold what they need of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// Where the files are, if not in the file system.
    pub(crate) memory: Option<MemoryDevice>,
    threads: Arc<Threads>,
}

/// Threads by their priority: numbers that are kept, each by itself. What the engine has is an option of the
/// database.
#[derive(Debug, Default)]
struct Threads {
    low: AtomicI32,
    high: AtomicI32,
    bottom: AtomicI32,
}

export! {
    fn rocksdb_create_default_env() -> Option<Box<Environment>> {
        Some(Box::default())
    }

    fn rocksdb_create_mem_env() -> Option<Box<Environment>> {
        let memory = Some(MemoryDevice::new(MEMORY_BYTES));
        Some(Box::new(Environment { memory, ..Environment::default() }))
    }

    fn rocksdb_create_dir_if_missing(
        environment: Option<&Environment>,
        path: Text<'_>,
        error: ErrPtr<'_>,
    ) {
        match &environment.given()?.memory {
            // In memory a directory is made with its first file.
            Some(_) => Ok(()),
            None => files::create_directory(path.utf8()?.as_ref()),
        }
    }

    fn rocksdb_env_destroy(environment: Option<Box<Environment>>) {
        drop(environment);
    }

    fn rocksdb_env_set_background_threads(environment: Option<&Environment>, count: c_int) {
        if let Some(environment) = environment {
            environment.threads.low.store(count, Ordering::Relaxed);
        }
    }

    fn rocksdb_env_get_background_threads(environment: Option<&Environment>) -> c_int {
        environment.map_or(0, |environment| environment.threads.low.load(Ordering::Relaxed))
    }

    fn rocksdb_env_set_low_priority_background_threads(environment: Option<&Environment>, count: c_int) {
        if let Some(environment) = environment {
            environment.threads.low.store(count, Ordering::Relaxed);
        }
    }

    fn rocksdb_env_get_low_priority_background_threads(environment: Option<&Environment>) -> c_int {
        environment.map_or(0, |environment| environment.threads.low.load(Ordering::Relaxed))
    }

    fn rocksdb_env_set_high_priority_background_threads(environment: Option<&Environment>, count: c_int) {
        if let Some(environment) = environment {
            environment.threads.high.store(count, Ordering::Relaxed);
        }
    }

    fn rocksdb_env_get_high_priority_background_threads(environment: Option<&Environment>) -> c_int {
        environment.map_or(0, |environment| environment.threads.high.load(Ordering::Relaxed))
    }

    fn rocksdb_env_set_bottom_priority_background_threads(environment: Option<&Environment>, count: c_int) {
        if let Some(environment) = environment {
            environment.threads.bottom.store(count, Ordering::Relaxed);
        }
    }

    fn rocksdb_env_get_bottom_priority_background_threads(environment: Option<&Environment>) -> c_int {
        environment.map_or(0, |environment| environment.threads.bottom.load(Ordering::Relaxed))
    }
}
