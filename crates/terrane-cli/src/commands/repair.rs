//! `repair`: a new database of what can be read of a damaged one.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane::{Functions, Kind, RepairReport};

use super::deployment;
use super::store::{Access, options};
use crate::arguments::{Engine, Repair};
use crate::exit::{Code, Failure};
use crate::files::{self, Occupied};
use crate::progress::ticking_records;
use crate::signals::{stop_on_signals, stopped};
use crate::text::{count, path};

pub(super) fn run(engine: &Engine, command: &Repair, out: &mut dyn Write) -> Result<(), Failure> {
    deployment::refuse(&command.database, "repair", "restore a backup, or the bucket")?;
    if !files::exists(&command.database) {
        let why = format!("there is no database in {}", path(&command.database));
        return Err(Failure::new(Code::NotFound, why));
    }
    files::refuse_within(&command.database, &command.target)?;
    let options = options(engine, Access::Create)?;
    let target = path(&command.target);
    let kind = files::kind(&command.target).map_err(|error| Failure::file(&target, &error))?;
    if kind == Some(Occupied::Filled) {
        let why = format!(
            "{target} is not empty: remove what a stopped repair or another program left there, or name another directory"
        );
        return Err(Failure::new(Code::Usage, why));
    }
    let stop = stop_on_signals()?;
    let (total, written) = (files::tree_bytes(&command.database), command.target.clone());
    let versions = Arc::new(AtomicU64::new(0));
    let seen = versions.clone();
    // Relaxed: a number that is shown.
    let amount = move || (files::tree_bytes(&written), Some(total), Some(seen.load(Ordering::Relaxed)));
    // Acquire: pairs with the store of the thread that waits for signals.
    let is_stopped = || stop.load(Ordering::Acquire);
    let any = Functions::any();
    let note = |found: u64| {
        versions.store(found, Ordering::Relaxed);
        is_stopped()
    };
    let work = || terrane::repair_until(&command.database, &command.target, &options, any, note);
    let report = match ticking_records("repair", amount, work)? {
        Err(cancelled) if cancelled.kind() == Kind::Cancelled && is_stopped() => {
            return Err(stopped(format!("remove {target}, which is not complete, and repair again")));
        }
        done => done?,
    };
    show(&report, out)?;
    if report.is_whole() {
        return Ok(());
    }
    out.flush()?;
    let message = format!("not everything of {} could be read: see the losses", path(&command.database));
    Err(Failure::new(Code::Corrupt, message))
}

fn show(report: &RepairReport, out: &mut dyn Write) -> Result<(), Failure> {
    for loss in &report.losses {
        let table = loss.table.as_ref().map_or(String::new(), |name| format!("table {name:?}: "));
        let keys = loss.keys.as_ref().map_or(String::new(), |(first, last)| {
            format!("keys \"{}\" to \"{}\": ", first.escape_ascii(), last.escape_ascii())
        });
        let entries = loss.entries.map_or(String::new(), |entries| format!("{} versions: ", count(entries)));
        writeln!(out, "lost: {table}{keys}{entries}{}", loss.error)?;
    }
    if report.losses_left_out > 0 {
        writeln!(out, "lost: and {} more", count(report.losses_left_out))?;
    }
    for doubt in &report.doubts {
        writeln!(out, "in doubt: {doubt}")?;
    }
    if report.doubts_left_out > 0 {
        writeln!(out, "in doubt: and {} more", count(report.doubts_left_out))?;
    }
    for mend in &report.mends {
        writeln!(out, "mended: {mend}")?;
    }
    if report.mends_left_out > 0 {
        writeln!(out, "mended: and {} more", count(report.mends_left_out))?;
    }
    if report.salvaged > 0 {
        writeln!(out, "salvaged: {} versions that damaged index blocks lead to", count(report.salvaged))?;
    }
    if report.foreign_extents + report.replaced > 0 {
        writeln!(
            out,
            "left out: {} extents of other databases, {} versions that extents are known to have replaced",
            count(report.foreign_extents),
            count(report.replaced)
        )?;
    }
    writeln!(
        out,
        "repaired {} tables: {} versions, {} of them perhaps out of date, from {} extents, {} of them in no readable part \
         of the manifest, and {} journaled records; {} losses",
        report.tables,
        count(report.entries),
        count(report.uncertain),
        count(report.extents),
        count(report.unlisted_extents),
        count(report.records),
        count(report.losses.len() as u64 + report.losses_left_out),
    )?;
    Ok(())
}
