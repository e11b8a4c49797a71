//! `checkpoint`: a second database. `backup`: many, kept elsewhere.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use terrane::{
    BackupFinding, BackupInfo, BackupOptions, BackupProgress, Backups, Db, Kind, Options, Removed,
    RestoreOptions, VerifyReport,
};

use super::store::{Access, close, open};
use super::{consent, deployment};
use crate::arguments::backup::BackupCommand;
use crate::arguments::{Engine, backup};
use crate::exit::{Code, Failure};
use crate::files;
use crate::progress::{Meter, Unit, ticking};
use crate::signals::{stop_on_signals, stopped};
use crate::text::{count, path, size, utc};

pub(super) fn checkpoint(
    engine: &Engine,
    command: &backup::Checkpoint,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    deployment::refuse(&command.database, "checkpoint", "`terrane backup create` copies its extents")?;
    let target = path(&command.target);
    let stop = stop_on_signals()?;
    // Acquire: pairs with the store of the thread that waits for signals.
    let is_stopped = || stop.load(Ordering::Acquire);
    let mut retries = 0;
    let (db, made) = loop {
        let db = open_to_link(engine, &command.database)?;
        let (source, to, written) = (db.clone(), command.target.clone(), command.target.clone());
        let amount = move || (files::tree_bytes(&written), None);
        match ticking("checkpoint", amount, || source.checkpoint_until(&to, is_stopped))? {
            // The writer merged what was being copied: a newer state is taken.
            Err(gone) if gone.kind() == Kind::Gone && retries < RETRIES_MAX => retries += 1,
            Err(error) if error.kind() == Kind::Cancelled && is_stopped() => {
                close(engine, db)?;
                return Err(stopped(format!("nothing is left of {target}")));
            }
            made => break (db, made?),
        }
    };
    writeln!(
        out,
        "{} has every commit up to {}: {} data files linked, {} of extents copied, {} of journal written",
        path(&made.path),
        made.last_seq,
        count(made.files_linked),
        size(made.bytes_copied),
        size(made.journal_bytes),
    )?;
    close(engine, db)
}

/// Opens a database to link its files: for writing, so that no other process changes them, or for reading
/// where another process writes, where the order of keys is unknown, or where this process may not write.
fn open_to_link(engine: &Engine, database: &Path) -> Result<Db, Failure> {
    // A reader of a deployment takes nothing over.
    if files::is_read_only(database) || deployment::is_deployment(database) {
        return open(engine, database, Access::Read);
    }
    match open(engine, database, Access::Write) {
        Err(refused) if matches!(refused.code, Code::Busy | Code::Usage) => {
            open(engine, database, Access::Read)
        }
        opened => opened,
    }
}

pub(super) fn run(engine: &Engine, command: &BackupCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        BackupCommand::Create(command) => create(engine, command, out),
        BackupCommand::List(command) => list(command, out),
        BackupCommand::Verify(command) => verify(command, out),
        BackupCommand::Restore(command) => restore(command, out),
        BackupCommand::Purge(command) => purge(command, out),
        BackupCommand::Delete(command) => delete(command, out),
    }
}

/// How often a backup or a checkpoint begins again because the writer beside it merged extents that were
/// being copied.
const RETRIES_MAX: u32 = 20;

/// Shows how far a backup is, and ends it at a signal.
struct Watch {
    meter: Meter,
    stop: Arc<AtomicBool>,
    what: &'static str,
}

impl Watch {
    fn new(what: &'static str) -> Result<Watch, Failure> {
        Ok(Watch { meter: Meter::new(what, Unit::Bytes), stop: stop_on_signals()?, what })
    }

    fn show(&mut self, progress: &BackupProgress) -> ControlFlow<()> {
        self.meter.set_total(Some(progress.bytes));
        self.meter.show(progress.bytes_done, None);
        // Acquire: pairs with the store of the thread that waits for signals.
        if self.stop.load(Ordering::Acquire) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The result of the work, or that a signal stopped it.
    fn finish<T>(mut self, done: terrane::Result<T>) -> Result<T, Failure> {
        self.meter.clear();
        match done {
            Err(error) if error.kind() == Kind::Cancelled && self.stop.load(Ordering::Acquire) => {
                Err(stopped(format!("the next {} removes what this one left", self.what)))
            }
            done if self.what == "backup" => Ok(done?),
            done => done.map_err(|error| {
                Failure::of_no_database(
                    error,
                    "an older backup may be whole: `terrane backup verify PLACE --all` tells",
                )
            }),
        }
    }
}

/// Bytes per second; 0 is not a bound.
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
    files::refuse_within(&command.database, &command.place)?;
    let rate = rate(command.rate.as_ref())?;
    let options =
        BackupOptions::default().flush(command.flush).recheck(command.recheck).bytes_per_second(rate);
    let before = files::kind(&command.place.join("CURRENT")).ok().flatten();
    if before.is_some() {
        let why = format!(
            "{} is a database, not a place for backups: the order is `terrane backup create DATABASE PLACE`",
            path(&command.place)
        );
        return Err(Failure::new(Code::Usage, why));
    }
    let (db, made) = create_of(engine, command, &options)?;
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
    close(engine, db)
}

/// Makes a backup of the database as it is at one commit. A writer beside may merge extents that are being
/// copied: then a newer state is taken.
fn create_of(
    engine: &Engine,
    command: &backup::Create,
    options: &BackupOptions,
) -> Result<(Db, BackupInfo), Failure> {
    let mut retries = 0;
    loop {
        // Without a flush nothing is written, and no writer is kept out.
        let access = if command.flush { Access::Write } else { Access::Read };
        let opened = open(engine, &command.database, access);
        let db = match opened {
            Err(mut busy) if busy.code == Code::Busy && command.flush => {
                busy.message += ", or leave --flush out: a backup beside the writer flushes nothing";
                return Err(busy);
            }
            opened => opened?,
        };
        let mut watch = Watch::new("backup")?;
        let backups = Backups::open(&command.place);
        match backups.create_with(&db, options, &mut |progress| watch.show(progress)) {
            Err(gone) if gone.kind() == Kind::Gone && retries < RETRIES_MAX => {
                watch.meter.clear();
                retries += 1;
            }
            made => return Ok((db, watch.finish(made)?)),
        }
    }
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
    let (place, found) = (path(&command.place), list.damaged.len());
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
        let mut watch = Watch::new("verify")?;
        let report = backups.verify_with(id, rate, &mut |progress| watch.show(progress));
        let report = watch.finish(report)?;
        found += report.findings.len();
        if command.json {
            writeln!(out, "{}", verified(id, &report))?;
            continue;
        }
        for finding in &report.findings {
            writeln!(out, "{}: {}: {}", finding.error.kind().as_str(), finding.object, finding.error)?;
        }
        let (objects, bytes) = (count(report.objects), size(report.bytes));
        writeln!(out, "backup {id}: {objects} objects, {bytes}: {} findings", report.findings.len())?;
    }
    if found == 0 {
        return Ok(());
    }
    out.flush()?;
    let message = format!(
        "{found} objects of {} are damaged: `terrane backup create --recheck` copies those again that the database still has",
        path(&command.place)
    );
    Err(Failure::new(Code::Corrupt, message))
}

/// The result of a verification, for programs.
fn verified(id: u64, report: &VerifyReport) -> serde_json::Value {
    let finding = |finding: &BackupFinding| {
        json!({
            "kind": finding.error.kind().as_str(),
            "object": finding.object,
            "error": finding.error.to_string(),
        })
    };
    let findings: Vec<_> = report.findings.iter().map(finding).collect();
    json!({ "id": id, "objects": report.objects, "bytes": report.bytes, "findings": findings })
}

fn restore(command: &backup::Restore, out: &mut dyn Write) -> Result<(), Failure> {
    if !files::exists(&command.target) {
        // A name that ends in .toml is that of a deployment file, for every command.
        deployment::target(&command.target)?;
    }
    let options = RestoreOptions::default().bytes_per_second(rate(command.rate.as_ref())?);
    let backups = Backups::open(&command.place);
    let id = command.id.map_or_else(|| backups.newest(), Ok)?;
    let mut watch = Watch::new("restore")?;
    let restored = backups.restore_with(id, &command.target, &options, &mut |progress| watch.show(progress));
    let restored = watch.finish(restored)?;
    Ok(writeln!(
        out,
        "{} is backup {id} with every commit up to {}: {} extents, {} in all",
        path(&restored.path),
        restored.last_seq,
        count(restored.extents),
        size(restored.bytes),
    )?)
}

fn purge(command: &backup::Purge, out: &mut dyn Write) -> Result<(), Failure> {
    let backups = Backups::open(&command.place);
    let mut ids: Vec<u64> = backups.list()?.backups.iter().map(|backup| backup.id).collect();
    ids.sort_unstable();
    ids.truncate(ids.len().saturating_sub(command.keep));
    let remove = format!("remove {} backups of {}: {}", ids.len(), path(&command.place), listed(&ids));
    // Nothing to remove needs no consent; what an unfinished backup left is removed all the same.
    if ids.is_empty() && !command.consent.dry_run || consent::is_given(&command.consent, &remove, out)? {
        removed(&backups.purge(command.keep)?, out)?;
    }
    Ok(())
}

fn delete(command: &backup::Delete, out: &mut dyn Write) -> Result<(), Failure> {
    let remove = format!("remove backup {} of {}", command.id, path(&command.place));
    if consent::is_given(&command.consent, &remove, out)? {
        removed(&Backups::open(&command.place).delete(command.id)?, out)?;
    }
    Ok(())
}

fn listed(ids: &[u64]) -> String {
    let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}

fn removed(removed: &Removed, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "removed backups: {}; objects: {}", listed(&removed.backups), count(removed.objects))?;
    if let Some(id) = removed.kept_for {
        writeln!(out, "no object was removed, since backup {id} is damaged and may need them: delete it")?;
    }
    Ok(())
}
