//! Flush, compaction, sizes of ranges, verification.

use std::ops::Bound;

use super::{Database, Family, FamilyHandle, family};
use crate::border::{Bytes, List, OutList};
use crate::failure::{Failure, Given, Result};
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

    pub(crate) fn flush(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        Ok(self.db.flush()?)
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

    /// Verifies all that is stored.
    fn verify(&self) -> Result<()> {
        let report = self.db.check(&mut |_, _| {})?;
        match report.findings.first() {
            Some(finding) => Err(Failure::corrupt(&finding.error)),
            None => Ok(()),
        }
    }
}

/// Bytes of ranges, about, each with its end excluded.
fn sizes(
    family: &Family,
    count: i32,
    (starts, start_lens): (List<'_, Bytes<'_>>, List<'_, usize>),
    (limits, limit_lens): (List<'_, Bytes<'_>>, List<'_, usize>),
    places: OutList<'_, u64>,
) -> Result<()> {
    let count = usize::try_from(count).unwrap_or(0);
    let ranges = starts.with(start_lens, count).into_iter().zip(limits.with(limit_lens, count));
    for (place, (start, limit)) in places.of(count).iter_mut().zip(ranges) {
        let size = if start < limit { family.table.approximate_size(start..limit)?.value } else { 0 };
        place.write(size);
    }
    Ok(())
}

export! {
    fn rocksdb_flush(database: Option<&Database>, _options: Option<&FlushOptions>, error: ErrPtr<'_>) {
        database.given()?.flush()
    }

    fn rocksdb_flush_cf(
        database: Option<&Database>,
        _options: Option<&FlushOptions>,
        _handle: Option<&FamilyHandle>,
        error: ErrPtr<'_>,
    ) {
        database.given()?.flush()
    }

    fn rocksdb_flush_cfs(
        database: Option<&Database>,
        _options: Option<&FlushOptions>,
        _handles: List<'_, Option<&FamilyHandle>>,
        _count: i32,
        error: ErrPtr<'_>,
    ) {
        database.given()?.flush()
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
            database.flush()?;
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

    fn rocksdb_approximate_sizes(
        database: Option<&Database>,
        count: i32,
        starts: List<'_, Bytes<'_>>,
        start_lens: List<'_, usize>,
        limits: List<'_, Bytes<'_>>,
        limit_lens: List<'_, usize>,
        places: OutList<'_, u64>,
        error: ErrPtr<'_>,
    ) {
        let family = database.given()?.default_family();
        sizes(family, count, (starts, start_lens), (limits, limit_lens), places)
    }

    fn rocksdb_approximate_sizes_cf(
        _database: Option<&Database>,
        handle: Option<&FamilyHandle>,
        count: i32,
        starts: List<'_, Bytes<'_>>,
        start_lens: List<'_, usize>,
        limits: List<'_, Bytes<'_>>,
        limit_lens: List<'_, usize>,
        places: OutList<'_, u64>,
        error: ErrPtr<'_>,
    ) {
        sizes(family(handle)?, count, (starts, start_lens), (limits, limit_lens), places)
    }

    fn rocksdb_pause_background_work(database: Option<&Database>, error: ErrPtr<'_>) {
        database.given()?.db.pause_background();
        Ok(())
    }

    fn rocksdb_continue_background_work(database: Option<&Database>, error: ErrPtr<'_>) {
        database.given()?.db.resume_background();
        Ok(())
    }

    fn rocksdb_verify_checksum(database: Option<&Database>, error: ErrPtr<'_>) {
        database.given()?.verify()
    }

    fn rocksdb_cancel_all_background_work(database: Option<&Database>, _wait: u8) {
        if let Some(database) = database {
            database.db.cancel_compactions();
        }
    }
}
