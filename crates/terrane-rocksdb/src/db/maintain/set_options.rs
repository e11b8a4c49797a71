//! Options that are changed while a database is open. Names are checked first, all of them; then what has an
//! effect here is set.

use crate::db::{Database, Family};
use crate::ffi::arguments::Text;
use crate::ffi::failure::{Failure, Given, Result};
use crate::options::to_engine::table_changes;

/// Options of a database that RocksDB can change while it is open. None has an effect here.
const OF_DATABASES: [&str; 19] = [
    "allow_os_buffer",
    "avoid_flush_during_shutdown",
    "bytes_per_sync",
    "compaction_readahead_size",
    "daily_offpeak_time_utc",
    "delayed_write_rate",
    "delete_obsolete_files_period_micros",
    "max_background_compactions",
    "max_background_flushes",
    "max_background_jobs",
    "max_open_files",
    "max_subcompactions",
    "max_total_wal_size",
    "stats_dump_period_sec",
    "stats_history_buffer_size",
    "stats_persist_period_sec",
    "strict_bytes_per_sync",
    "wal_bytes_per_sync",
    "writable_file_max_buffer_size",
];

/// Options of column families that RocksDB cannot change while it is open.
const FIXED: [&str; 13] = [
    "bloom_locality",
    "cf_paths",
    "compaction_style",
    "comparator",
    "force_consistency_checks",
    "inplace_update_support",
    "max_write_buffer_number_to_maintain",
    "max_write_buffer_size_to_maintain",
    "merge_operator",
    "min_write_buffer_number_to_merge",
    "num_levels",
    "optimize_filters_for_hits",
    "persist_user_defined_timestamps",
];

/// Names and values.
fn pairs<'a>(names: &[Text<'a>], values: &[Text<'a>]) -> Result<Vec<(&'a str, &'a str)>> {
    if names.is_empty() {
        return Err(Failure::invalid("empty input: no option is named"));
    }
    names.iter().zip(values).map(|(name, value)| Ok((name.utf8()?, value.utf8()?))).collect()
}

fn not_changeable(name: &str) -> Failure {
    Failure::invalid(format_args!("Option not changeable: {name}"))
}

/// Restores the options that this call changed.
fn take_back(
    database: &Database,
    family: &Family,
    done: &[(&'static str, String)],
    before: &[(&'static str, String)],
) {
    for (name, value) in before.iter().filter(|(name, _)| done.iter().any(|(known, _)| known == name)) {
        if let Err(error) = family.table.set_option(name, value) {
            database.warn(&format!("[{}] {name} could not be set back: {error}", family.table.name()));
        }
    }
}

/// Applies the options that can change while the table is open.
fn change_family(database: &Database, family: &Family, pairs: &[(&str, &str)]) -> Result<()> {
    database.refuse_if_read_only()?;
    let _changing = database.lock_changes();
    let mut options = family.options();
    let before = options.clone();
    for (name, value) in pairs {
        if OF_DATABASES.contains(name) {
            return Err(Failure::invalid(format_args!("Could not find option: {name}")));
        }
        options.set_pair(name, value)?;
        if FIXED.contains(name) {
            return Err(not_changeable(name));
        }
    }
    let changes = table_changes(&before, &options, &family.slot)?;
    for (done, (name, value)) in changes.iter().enumerate() {
        if let Err(error) = family.table.set_option(name, value) {
            take_back(database, family, &changes[..done], &table_changes(&options, &before, &family.slot)?);
            return Err(error.into());
        }
    }
    family.set_options(options);
    database.store_options()
}

fn change_database(database: &Database, pairs: &[(&str, &str)]) -> Result<()> {
    database.refuse_if_read_only()?;
    let _changing = database.lock_changes();
    let mut options = database.lock_options().clone();
    for (name, value) in pairs {
        options.set_pair(name, value)?;
        if !OF_DATABASES.contains(name) {
            return Err(not_changeable(name));
        }
    }
    *database.lock_options() = options;
    database.store_options()
}

cf_variants! {
    fn rocksdb_set_options | rocksdb_set_options_cf(
        database: Option<&Database>;
        count: i32,
        names: List<'_, Text<'_>>[count],
        values: List<'_, Text<'_>>[count],
        error: ErrPtr<'_>,
    ) as target {
        change_family(database.given()?, target.family(database)?, &pairs(names, values)?)
    }
}

export! {
    fn rocksdb_set_db_options(
        database: Option<&Database>,
        count: i32,
        names: List<'_, Text<'_>>[count],
        values: List<'_, Text<'_>>[count],
        error: ErrPtr<'_>,
    ) {
        change_database(database.given()?, &pairs(names, values)?)
    }
}
