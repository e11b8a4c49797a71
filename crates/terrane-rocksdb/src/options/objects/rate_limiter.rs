//! Rate limiters, and paths for files.

/// Most bytes that flush and compaction of a database write in a second.
#[derive(Clone, Debug)]
pub(crate) struct RateLimiter {
    pub(crate) bytes_per_second: i64,
}

/// A place for files, and how much of it: nothing is stored elsewhere than in the directory of the database.
#[derive(Debug)]
pub(crate) struct DbPath;

fn limiter(bytes_per_second: i64) -> Option<Box<RateLimiter>> {
    Some(Box::new(RateLimiter { bytes_per_second }))
}

export! {
    fn rocksdb_ratelimiter_create(
        bytes_per_second: i64,
        _refill_micros: i64,
        _fairness: i32,
    ) -> Option<Box<RateLimiter>> {
        limiter(bytes_per_second)
    }

    fn rocksdb_ratelimiter_create_auto_tuned(
        bytes_per_second: i64,
        _refill_micros: i64,
        _fairness: i32,
    ) -> Option<Box<RateLimiter>> {
        limiter(bytes_per_second)
    }

    fn rocksdb_ratelimiter_destroy(limiter: Option<Box<RateLimiter>>) {
        drop(limiter);
    }

    fn rocksdb_dbpath_create(_path: Text<'_>, _bytes: u64) -> Option<Box<DbPath>> {
        Some(Box::new(DbPath))
    }

    fn rocksdb_dbpath_destroy(path: Option<Box<DbPath>>) {
        drop(path);
    }
}
