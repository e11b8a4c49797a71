//! Flush, compaction, pauses.

use std::borrow::Cow;
use std::ops::Bound;

use terrane::Table;

use crate::db::timestamps::timestamp_gc::sweep;
use crate::db::{Database, Family, FamilyHandle, families};
use crate::ffi::failure::{Given, Result};
use crate::generated::objects::{FlushOptions, FlushWalOptions, WaitForCompactOptions};
use crate::options::compact_range::CompactRangeOptions;

/// The ends of a range, each a key or null for none.
type Ends<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// Ends of a range as they are kept.
fn with_timestamps<'a>(family: &Family, (start, end): Ends<'a>) -> [Option<Cow<'a, [u8]>>; 2] {
    match &family.history {
        None => [start.map(Cow::Borrowed), end.map(Cow::Borrowed)],
        Some(history) => history.kept_ends(start, end).map(|key| key.map(Cow::Owned)),
    }
}

fn bounds<'a>([start, end]: &'a [Option<Cow<'_, [u8]>>; 2]) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    let bound = |key: &'a Option<Cow<'_, [u8]>>| key.as_deref().map_or(Bound::Unbounded, Bound::Included);
    (bound(start), bound(end))
}

impl Database {
    /// Merges a range, both ends included, into the deepest level. There is no way to report a failure, and
    /// none to report that manual compactions are held back.
    fn compact(&self, family: &Family, options: Option<&CompactRangeOptions>, (start, end): Ends<'_>) {
        if self.refuse_if_manual_disabled().is_err() {
            return;
        }
        if let Err(refused) = self.note_options(options) {
            return self.warn(refused.text());
        }
        if let Some(low) = options.and_then(|options| options.history_low.as_deref()) {
            // As in RocksDB it is for the whole column family, and nothing is done where it is refused.
            if start.is_some() || end.is_some() || family.raise_low(low).is_err() {
                return;
            }
        }
        let asked = family.asked.compaction();
        let _ = sweep(self, family, (start, end));
        let _ = self.compact_range(&family.table, bounds(&with_timestamps(family, (start, end))));
        // As in RocksDB listeners are called before the call returns. A listener that compacts cannot wait
        // for itself.
        let _ = self.wait_for_listeners();
        drop(asked);
    }

    /// Marks the families that have something to flush, for listeners.
    fn mark_flush(&self, families: &[&Family]) {
        if self.listeners().is_empty() {
            return;
        }
        for table in self.db.shape().tables {
            let entries = table.memtable_entries + table.frozen_entries + table.generation_entries;
            let family = families.iter().find(|family| family.table.name() == table.name);
            if let Some(family) = family.filter(|_| entries > 0) {
                family.asked.flush();
            }
        }
    }

    /// Flushes the families, all of them where they are to be flushed together; waits unless the options say
    /// not to.
    pub(crate) fn flush(&self, families: &[&Family], options: Option<&FlushOptions>) -> Result<()> {
        self.refuse_if_read_only()?;
        self.mark_flush(families);
        let tables: Vec<&Table> = families.iter().map(|family| &family.table).collect();
        if options.is_some_and(|options| options.fields.wait == 0) {
            return Ok(self.db.begin_flush(&tables)?);
        }
        self.db.flush_tables(&tables)?;
        match options.is_some_and(|options| options.fields.listener_wait != 0) {
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
        family.table.delete_files_in_range(bounds(&with_timestamps(family, (start, end))))?;
        Ok(())
    }
}

cf_variants! {
    fn rocksdb_flush | rocksdb_flush_cf(
        database: Option<&Database>,
        options: Option<&FlushOptions>;
        error: ErrPtr<'_>,
    ) as target {
        database.given()?.flush(&[target.family(database)?], options)
    }

    fn rocksdb_compact_range | rocksdb_compact_range_cf(
        database: Option<&Database>;
        start: BytesOrNull<'_>,
        start_len: usize,
        limit: BytesOrNull<'_>,
        limit_len: usize,
    ) as target {
        if let (Some(open), Ok(family)) = (database, target.family(database)) {
            open.compact(family, None, (start, limit));
        }
    }

    fn rocksdb_compact_range_opt | rocksdb_compact_range_cf_opt(
        database: Option<&Database>;
        options: Option<&CompactRangeOptions>,
        start: BytesOrNull<'_>,
        start_len: usize,
        limit: BytesOrNull<'_>,
        limit_len: usize,
    ) as target {
        if let (Some(open), Ok(family)) = (database, target.family(database)) {
            open.compact(family, options, (start, limit));
        }
    }

    fn rocksdb_delete_file_in_range | rocksdb_delete_file_in_range_cf(
        database: Option<&Database>;
        start: BytesOrNull<'_>,
        start_len: usize,
        limit: BytesOrNull<'_>,
        limit_len: usize,
        error: ErrPtr<'_>,
    ) as target {
        database.given()?.drop_files(target.family(database)?, (start, limit))
    }
}

export! {
    fn rocksdb_flush_cfs(
        database: Option<&Database>,
        options: Option<&FlushOptions>,
        handles: List<'_, Option<&FamilyHandle>>[count],
        count: i32,
        error: ErrPtr<'_>,
    ) {
        database.given()?.flush(&families(handles)?, options)
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
        if options.is_some_and(|options| options.fields.sync != 0) { database.sync() } else { Ok(()) }
    }

    fn rocksdb_wait_for_compact(
        database: Option<&Database>,
        options: Option<&WaitForCompactOptions>,
        error: ErrPtr<'_>,
    ) {
        let database = database.given()?;
        database.note_options(options)?;
        if options.is_some_and(|options| options.fields.flush != 0) {
            database.db.flush()?;
        }
        Ok(database.db.wait_until_quiescent()?)
    }

    fn rocksdb_pause_background_work(database: Option<&Database>, error: ErrPtr<'_>) {
        database.given()?.db.pause_background();
        Ok(())
    }

    fn rocksdb_continue_background_work(database: Option<&Database>, error: ErrPtr<'_>) {
        database.given()?.db.resume_background();
        Ok(())
    }

    fn rocksdb_disable_manual_compaction(database: Option<&Database>) {
        if let Some(database) = database {
            database.switch_manual(true);
        }
    }

    fn rocksdb_enable_manual_compaction(database: Option<&Database>) {
        if let Some(database) = database {
            database.switch_manual(false);
        }
    }

    fn rocksdb_cancel_all_background_work(database: Option<&Database>, _wait: u8) {
        if let Some(database) = database {
            database.db.cancel_compactions();
        }
    }
}
