//! `compact`: merges a range of a table into its deepest level.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::{ExtentInfo, SeqNo, Table};

use super::store::{Access, bounds, check_range, close, end, open_table, start};
use crate::arguments::{Compact, Engine};
use crate::exit::Failure;
use crate::progress::ticking;
use crate::signals::{act_on_signal, stopped};
use crate::text::{path, size};

/// Names an extent. Not its place alone: that may be taken again by one that was written meanwhile.
type ExtentName = (PathBuf, u64, u64, SeqNo, SeqNo);

/// The extents of a table.
fn extents(table: &Table) -> Result<BTreeSet<ExtentName>, Failure> {
    let name = |extent: ExtentInfo| {
        let summary = extent.summary;
        (extent.file, extent.offset, summary.bytes, summary.seq_min, summary.seq_max)
    };
    Ok(table.extents()?.into_iter().map(name).collect())
}

pub(super) fn run(engine: &Engine, command: &Compact, out: &mut dyn Write) -> Result<(), Failure> {
    let (from, to) = bounds(&command.range)?;
    let (db, table) = open_table(engine, &command.place, Access::Write)?;
    check_range(&table, &from, &to)?;
    let is_stopped = Arc::new(AtomicBool::new(false));
    let (seen, cancelled) = (is_stopped.clone(), db.clone());
    let acting = act_on_signal(move || {
        // Release: pairs with the load behind the compaction.
        seen.store(true, Ordering::Release);
        // What waits for the compaction gets an error, and nothing begins it again.
        cancelled.hold_range_compactions();
        cancelled.cancel_compactions();
    })?;
    let (watched, total) =
        (db.clone(), table.approximate_size((start(from.as_deref()), end(to.as_deref())))?);
    let present = extents(&table)?;
    let before = db.stats().compaction_bytes_read;
    let amount = move || {
        let under_way: u64 = watched.progress().iter().map(|job| job.bytes_in).sum();
        (watched.stats().compaction_bytes_read - before + under_way, Some(total.value))
    };
    let work = || db.compact_range(&table, (start(from.as_deref()), end(to.as_deref())));
    let done = ticking("compact", amount, work)?;
    drop(acting);
    if is_stopped.load(Ordering::Acquire) && done.is_err() {
        db.allow_range_compactions();
        close(engine, db)?;
        return Err(stopped("the table is sound, and partly compacted"));
    }
    done?;
    let stats = db.stats();
    // Not a sum over the jobs: these move one extent from level to level.
    let kept_bytes: u64 = extents(&table)?.intersection(&present).map(|(_, _, bytes, ..)| bytes).sum();
    writeln!(
        out,
        "compacted {} in table {:?}: read {}, wrote {}, kept extents of {} as they were",
        path(&command.place.database),
        table.name(),
        size(stats.compaction_bytes_read),
        size(stats.compaction_bytes_written),
        size(kept_bytes),
    )?;
    close(engine, db)
}
