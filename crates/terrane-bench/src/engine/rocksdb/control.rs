//! Shape steps on RocksDB, made of the functions of its C interface.
//!
//! | step | calls |
//! |---|---|
//! | flush, flush to run | `Flush` of each table into level 0; it stays there without automatic compaction |
//! | compact 0 | `CompactFiles`: all files of level 0 into the first level below with files, or the last |
//! | compact 1 | `CompactFiles`: all files of the first level below 0 into the next with files, or the next |
//! | compact all | `CompactRange` of all, the last level too |
//! | wait | `WaitForCompact`, or else RocksDB's properties, polled |
//! | pause, resume | `disable_auto_compactions`; flushes still happen when a memtable is full |
//! | filters | none: a table's filter is found when its file is opened; open with no filter bits instead |

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::engine::Control;
use crate::engine::rocksdb::counters::TableFile;
use crate::engine::rocksdb::database::Database;
use crate::engine::rocksdb::tuning::Tuning;
use crate::error::{Error, Result};

/// Levels of RocksDB's default options.
const LAST_LEVEL: u32 = 6;
const POLL: Duration = Duration::from_millis(5);

/// Does one step; `paused` remembers whether automatic compaction is off.
///
/// # Errors
/// `Unsupported`; RocksDB's.
pub(super) fn control(
    database: &Database,
    tuning: &Tuning,
    paused: &AtomicBool,
    step: Control,
) -> Result<()> {
    match step {
        Control::Flush | Control::FlushToRun => database.tables().try_for_each(|table| database.flush(table)),
        Control::Compact0 => each_table(database, |table, files| {
            let Some(0) = files.iter().map(|file| file.level).min() else { return Ok(()) };
            let below =
                files.iter().map(|file| file.level).filter(|level| *level > 0).min().unwrap_or(LAST_LEVEL);
            compact_level(database, tuning, table, &files, 0, below)
        }),
        Control::Compact1 => each_table(database, |table, files| {
            let mut levels: Vec<u32> =
                files.iter().map(|file| file.level).filter(|level| *level > 0).collect();
            levels.sort_unstable();
            levels.dedup();
            match levels[..] {
                // One level: RocksDB has nothing below to merge it with.
                [] | [_] => Ok(()),
                [from, to, ..] => compact_level(database, tuning, table, &files, from, to),
            }
        }),
        Control::CompactAll => {
            database.tables().for_each(|table| database.compact_all(table));
            Ok(())
        }
        Control::WaitUntilQuiescent => wait(database, paused.load(Ordering::Relaxed)),
        Control::PauseBackground => {
            set_auto_compaction(database, false)?;
            paused.store(true, Ordering::Relaxed);
            wait(database, true)
        }
        Control::ResumeBackground => {
            paused.store(false, Ordering::Relaxed);
            set_auto_compaction(database, true)
        }
        Control::FiltersOff | Control::FiltersOn => Err(Error::unsupported(
            "rocksdb",
            "switch for filters while it is open: run the scenario with filter_bits_per_key = 0",
        )),
    }
}

fn each_table(database: &Database, mut step: impl FnMut(u32, Vec<TableFile>) -> Result<()>) -> Result<()> {
    for table in database.tables() {
        let name = database.name(table);
        step(table, database.files().into_iter().filter(|file| file.family == name).collect())?;
    }
    Ok(())
}

fn compact_level(
    database: &Database,
    tuning: &Tuning,
    table: u32,
    files: &[TableFile],
    from: u32,
    to: u32,
) -> Result<()> {
    let names: Vec<String> =
        files.iter().filter(|file| file.level == from).map(|file| file.name.clone()).collect();
    database.compact_files(table, &names, to, tuning.file_bytes)
}

fn set_auto_compaction(database: &Database, on: bool) -> Result<()> {
    let off = if on { "false" } else { "true" };
    database.tables().try_for_each(|table| database.set_option(table, "disable_auto_compactions", off))
}

fn wait(database: &Database, paused: bool) -> Result<()> {
    if database.wait_for_compact()? {
        return Ok(());
    }
    // A table may call for compaction forever while it is switched off.
    let pending = if paused { "rocksdb.num-running-compactions" } else { "rocksdb.compaction-pending" };
    let names = [
        "rocksdb.num-running-compactions",
        "rocksdb.num-running-flushes",
        "rocksdb.mem-table-flush-pending",
        pending,
    ];
    while database.tables().any(|table| names.iter().any(|name| database.number(table, name) > 0)) {
        std::thread::park_timeout(POLL);
    }
    Ok(())
}
