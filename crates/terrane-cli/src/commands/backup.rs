//! `checkpoint`: a second database. `backup`: many, kept elsewhere.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use terrane::{BackupInfo, BackupOptions, BackupProgress, Backups, Options, Removed, RestoreOptions};

use super::store::{Access, open};
use crate::arguments::backup::BackupCommand;
use crate::arguments::{Engine, backup};
use crate::exit::{Code, Failure};
use crate::signals::stop_on_signals;
use crate::text::{count, size, utc};

pub(super) fn checkpoint(
    engine: &Engine,
    command: &backup::Checkpoint,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let db = open(engine, &command.database, Access::Write)?;
    let made = db.checkpoint(&command.target)?;
    writeln!(
        out,
        "{} has every commit up to {}: {} data files linked, {} of extents copied, {} of journal written",
        made.path.display(),
        made.last_seq,
        count(made.files_linked),
        size(made.bytes_copied),
        size(made.journal_bytes),
    )?;
    Ok(db.close()?)
}

pub(super) fn run(engine: &Engine, command: &BackupCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        BackupCommand::Create(command) => create(engine, command, out),
        BackupCommand::List(command) => list(command, out),
        BackupCommand::Verify(command) => verify(command, out),
        BackupCommand::Restore(command) => restore(command, out),
        BackupCommand::Purge(command) => removed(&Backups::open(&command.place).purge(command.keep)?, out),
        BackupCommand::Delete(command) => removed(&Backups::open(&command.place).delete(command.id)?, out),
    }
}

/// Shows how far it is on a terminal, and ends it at a signal.
struct Bar {
    bar: ProgressBar,
    stop: Arc<AtomicBool>,
}

impl Bar {
    fn new() -> Result<Bar, Failure> {
        let style =
            ProgressStyle::with_template("{bar:30} {percent}% {bytes} of {total_bytes}, {eta} left {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Ok(Bar { bar: ProgressBar::new(0).with_style(style), stop: stop_on_signals()? })
    }

    fn show(&self, progress: &BackupProgress) -> ControlFlow<()> {
        self.bar.set_length(progress.bytes);
        self.bar.set_position(progress.bytes_done);
        self.bar.set_message(format!("({} of {} objects)", progress.objects_done, progress.objects));
        // Acquire: what the handler did before is done.
        if self.stop.load(Ordering::Acquire) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Bytes per second; 0 is no bound.
fn rate(typed: Option<&String>) -> Result<u64, Failure> {
    let mut options = Options::default();
    match typed {
        Some(typed) => options
            .set("io_bytes_per_second", typed)
            .map_err(|error| Failure::new(Code::Usage, format!("--rate {typed}: {error}")))?,
        None => options.io_bytes_per_second = 0,
    }
    Ok(options.io_bytes_per_second)
}

fn create(engine: &Engine, command: &backup::Create, out: &mut dyn Write) -> Result<(), Failure> {
    let rate = rate(command.rate.as_ref())?;
    let options =
        BackupOptions::default().flush(command.flush).recheck(command.recheck).bytes_per_second(rate);
    let db = open(engine, &command.database, Access::Write)?;
    let bar = Bar::new()?;
    let made = Backups::open(&command.place).create_with(&db, &options, &mut |progress| bar.show(progress));
    drop(bar);
    let made = made?;
    writeln!(
        out,
        "backup {} has every commit up to {}: {} extents with {}, {} of journal; {} are new",
        made.id,
        made.last_seq,
        count(made.extents),
        size(made.extent_bytes),
        size(made.journal_bytes),
        size(made.copied_bytes),
    )?;
    Ok(db.close()?)
}

fn list(command: &backup::List, out: &mut dyn Write) -> Result<(), Failure> {
    let list = Backups::open(&command.place).list()?;
    for backup in &list.backups {
        if command.json {
            writeln!(out, "{}", object(backup))?;
            continue;
        }
        writeln!(
            out,
            "{:>6}  {}  up to {}  {} extents, {} and {} of journal, {} new  of database {}",
            backup.id,
            utc(backup.created_millis),
            backup.last_seq,
            count(backup.extents),
            size(backup.extent_bytes),
            size(backup.journal_bytes),
            size(backup.copied_bytes),
            backup.database,
        )?;
    }
    let Some((id, error)) = list.damaged.first() else { return Ok(()) };
    out.flush()?;
    let (place, found) = (command.place.display(), list.damaged.len());
    let message = format!("{found} backups of {place} are damaged, the first is {id}: {error}");
    Err(Failure::new(Code::Corrupt, message))
}

fn object(backup: &BackupInfo) -> serde_json::Value {
    json!({
        "id": backup.id,
        "created": utc(backup.created_millis),
        "database": backup.database,
        "last_seq": backup.last_seq.0,
        "extents": backup.extents,
        "extent_bytes": backup.extent_bytes,
        "journal_bytes": backup.journal_bytes,
        "copied_bytes": backup.copied_bytes,
    })
}

fn verify(command: &backup::Verify, out: &mut dyn Write) -> Result<(), Failure> {
    let rate = rate(command.rate.as_ref())?;
    let backups = Backups::open(&command.place);
    let ids = match command.id {
        Some(id) => vec![id],
        None if command.all => {
            let list = backups.list()?;
            let damaged = list.damaged.iter().map(|(id, _)| *id);
            list.backups.iter().map(|backup| backup.id).chain(damaged).collect()
        }
        None => vec![backups.newest()?],
    };
    let mut found = 0;
    for id in ids {
        let bar = Bar::new()?;
        let report = backups.verify_with(id, rate, &mut |progress| bar.show(progress));
        drop(bar);
        let report = report?;
        for finding in &report.findings {
            writeln!(out, "{}: {}: {}", finding.error.kind().as_str(), finding.object, finding.error)?;
        }
        let (objects, bytes) = (count(report.objects), size(report.bytes));
        writeln!(out, "backup {id}: {objects} objects, {bytes}: {} findings", report.findings.len())?;
        found += report.findings.len();
    }
    if found == 0 {
        return Ok(());
    }
    out.flush()?;
    let message = format!(
        "{found} objects of {} are damaged: `terrane backup create --recheck` copies anew what the database still has",
        command.place.display()
    );
    Err(Failure::new(Code::Corrupt, message))
}

fn restore(command: &backup::Restore, out: &mut dyn Write) -> Result<(), Failure> {
    let options = RestoreOptions::default().bytes_per_second(rate(command.rate.as_ref())?);
    let backups = Backups::open(&command.place);
    let id = command.id.map_or_else(|| backups.newest(), Ok)?;
    let bar = Bar::new()?;
    let restored = backups.restore_with(id, &command.target, &options, &mut |progress| bar.show(progress));
    drop(bar);
    let restored = restored?;
    Ok(writeln!(
        out,
        "{} is backup {id} with every commit up to {}: {} extents, {} in all",
        restored.path.display(),
        restored.last_seq,
        count(restored.extents),
        size(restored.bytes),
    )?)
}

fn removed(removed: &Removed, out: &mut dyn Write) -> Result<(), Failure> {
    let ids: Vec<String> = removed.backups.iter().map(u64::to_string).collect();
    let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
    writeln!(out, "removed backups: {ids}; objects: {}", count(removed.objects))?;
    if let Some(id) = removed.kept_for {
        writeln!(out, "no object was removed, since backup {id} is damaged and may need them: delete it")?;
    }
    Ok(())
}
