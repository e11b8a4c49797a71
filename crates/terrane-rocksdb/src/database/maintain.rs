//! Flush, compaction, pauses.

use std::ops::Bound;

use super::{Database, Family, FamilyHandle, family};
use crate::border::{Bytes, List};
use crate::failure::{Given, Result};
use crate::generated::objects::{CompactRangeOptions, FlushOptions, FlushWalOptions, WaitForCompactOptions};

/// The ends of a range, each a key or null for none.
type Ends<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

fn ends<'a>(start: Bytes<'a>, start_len: usize, end: Bytes<'a>, end_len: usize) -> Ends<'a> {
    let key = |bytes: Bytes<'a>, len| (!bytes.is_null()).then(|| bytes.of(len));
    (key(start, start_len), key(end, end_len))
}

impl Database {
    /// Merges a range, both ends included, into the deepest level. There is no way to report a failure.
    fn compact(&self, family: &Family, (start, end): Ends<'_>) {
        let bound = |key: Option<_>| key.map_or(Bound::Unbounded, Bound::Included);
        let _ = self.db.compact_range(&family.table, (bound(start), bound(end)));
    }

    pub(crate) fn flush(&self, options: Option<&FlushOptions>) -> Result<()> {
        self.refuse_if_read_only()?;
        self.db.flush()?;
        match options.is_some_and(|options| options.knobs.listener_wait != 0) {
            true => self.wait_for_listeners(),
            false => Ok(()),
        }
    }

    pub(crate) fn sync(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        Ok(self.db.sync()?)
    }

    fn drop_files(&self, family: &Family, (start, end): Ends<'_>) -> Result<()> {
        self.refuse_if_read_only()?;
        let bound = |key: Option<_>| key.map_or(Bound::Unbounded, Bound::Included);
        family.table.delete_files_in_range((bound(start), bound(end)))?;
        Ok(())
    }
}

export! {
    fn rocksdb_flush(database: Option<&Database>, options: Option<&FlushOptions>, error: ErrPtr<'_>) {
        database.given()?.flush(options)
    }

    fn rocksdb_flush_cf(
        database: Option<&Database>,
        options: Option<&FlushOptions>,
        _handle: Option<&FamilyHandle>,
        error: ErrPtr<'_>,
    ) {
        database.given()?.flush(options)
    }

    fn rocksdb_flush_cfs(
        database: Option<&Database>,
        options: Option<&FlushOptions>,
        _handles: List<'_, Option<&FamilyHandle>>,
        _count: i32,
        error: ErrPtr<'_>,
    ) {
        database.given()?.flush(options)
    }

    fn rocksdb_flush_wal(database: Option<&Database>, sync: u8, error: ErrPtr<'_>) {
        let database = database.given()?;
        if sync != 0 { database.sync() } else { Ok(()) }
    }

    fn rocksdb_flush_wal_with_options(
        database: Option<&Database>,
        options: Option<&FlushWalOptions>,
        error: ErrPtr<'_>,
    ) {
        let database = database.given()?;
        if options.is_some_and(|options| options.knobs.sync != 0) { database.sync() } else { Ok(()) }
    }

    fn rocksdb_compact_range(
        database: Option<&Database>,
        start: Bytes<'_>,
        start_len: usize,
        limit: Bytes<'_>,
        limit_len: usize,
    ) {
        if let Some(database) = database {
            database.compact(database.default_family(), ends(start, start_len, limit, limit_len));
        }
    }

    fn rocksdb_compact_range_cf(
        database: Option<&Database>,
        handle: Option<&FamilyHandle>,
        start: Bytes<'_>,
        start_len: usize,
        limit: Bytes<'_>,
        limit_len: usize,
    ) {
        if let (Some(database), Some(handle)) = (database, handle) {
            database.compact(&handle.family, ends(start, start_len, limit, limit_len));
        }
    }

    fn rocksdb_compact_range_opt(
        database: Option<&Database>,
        _options: Option<&CompactRangeOptions>,
        start: Bytes<'_>,
        start_len: usize,
        limit: Bytes<'_>,
        limit_len: usize,
    ) {
        if let Some(database) = database {
            database.compact(database.default_family(), ends(start, start_len, limit, limit_len));
        }
    }

    fn rocksdb_compact_range_cf_opt(
        database: Option<&Database>,
        handle: Option<&FamilyHandle>,
        _options: Option<&CompactRangeOptions>,
        start: Bytes<'_>,
        start_len: usize,
        limit: Bytes<'_>,
        limit_len: usize,
    ) {
        if let (Some(database), Some(handle)) = (database, handle) {
            database.compact(&handle.family, ends(start, start_len, limit, limit_len));
        }
    }

    fn rocksdb_wait_for_compact(
        database: Option<&Database>,
        options: Option<&WaitForCompactOptions>,
        error: ErrPtr<'_>,
    ) {
        let database = database.given()?;
        if options.is_some_and(|options| options.knobs.flush != 0) {
            database.flush(None)?;
        }
        Ok(database.db.wait_until_quiescent()?)
    }

    fn rocksdb_delete_file_in_range(
        database: Option<&Database>,
        start: Bytes<'_>,
        start_len: usize,
        limit: Bytes<'_>,
        limit_len: usize,
        error: ErrPtr<'_>,
    ) {
        let database = database.given()?;
        database.drop_files(database.default_family(), ends(start, start_len, limit, limit_len))
    }

    fn rocksdb_delete_file_in_range_cf(
        database: Option<&Database>,
        handle: Option<&FamilyHandle>,
        start: Bytes<'_>,
        start_len: usize,
        limit: Bytes<'_>,
        limit_len: usize,
        error: ErrPtr<'_>,
    ) {
        database.given()?.drop_files(family(handle)?, ends(start, start_len, limit, limit_len))
    }

    fn rocksdb_pause_background_work(database: Option<&Database>, error: ErrPtr<'_>) {
        database.given()?.db.pause_background();
        Ok(())
    }

    fn rocksdb_continue_background_work(database: Option<&Database>, error: ErrPtr<'_>) {
        database.given()?.db.resume_background();
        Ok(())
    }

    fn rocksdb_cancel_all_background_work(database: Option<&Database>, _wait: u8) {
        if let Some(database) = database {
            database.db.cancel_compactions();
        }
    }
}
