//! `ingest`, `drop-extents` and `inspect`.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

use serde_json::json;
use terrane::{ExtentFileInfo, ExtentInfo, IngestOptions, Kind, inspect_extent_file_until};
use terrane_format::external;

use super::consent;
use super::store::{Access, DEFAULT, bounds, check_range, close, end, is_new, open_table, start};
use crate::arguments::{Engine, bulk};
use crate::exit::{Code, Failure};
use crate::files;
use crate::progress::{Meter, Unit, ticking};
use crate::signals::{exit_on_signal, stop_on_signals, stopped};
use crate::text::{count, path, size};

/// The result of an ingest that a signal stopped: it cannot be divided.
const LEFT_BY_INGEST: &str = "the files are in as a whole or not at all, as `tables --long` shows; the next opening removes what else is left";

pub(super) fn ingest(engine: &Engine, command: &bulk::Ingest, out: &mut dyn Write) -> Result<(), Failure> {
    // The opening of a file may wait, as that of a pipe.
    let looking = exit_on_signal("nothing was taken in".to_owned())?;
    for file in &command.files {
        require_external(file)?;
    }
    drop(looking);
    if command.dry_run {
        return tell_of_ingest(command, out);
    }
    let is_new = is_new(engine, &command.place.database)?;
    if is_new {
        check_for_new(command)?;
    }
    let stopping = exit_on_signal(LEFT_BY_INGEST.to_owned())?;
    let (db, table) = open_table(engine, &command.place, Access::Create)?;
    let options = IngestOptions {
        copy: command.copy,
        remove: command.remove,
        verify: !command.no_verify && !is_new,
        ..IngestOptions::default()
    };
    let files: Vec<_> = command.files.iter().map(|file| (&table, file)).collect();
    let total = command.files.iter().map(|file| files::bytes(file)).sum();
    let (into, before) = (command.place.database.clone(), files::tree_bytes(&command.place.database));
    let amount = move || (files::tree_bytes(&into).saturating_sub(before).min(total), Some(total));
    let ingested = ticking("ingest", amount, || db.ingest(&files, options))?;
    drop(stopping);
    let ingested = ingested?;
    writeln!(
        out,
        "{} entries and {} range deletes in {} extents came in at {}: {} files linked, {} copied",
        count(ingested.entries),
        count(ingested.range_deletes),
        count(ingested.extents),
        ingested.seq,
        count(ingested.files_linked),
        size(ingested.bytes_copied),
    )?;
    if ingested.files_left > 0 {
        writeln!(out, "{} files could not be removed", count(ingested.files_left))?;
    }
    close(engine, db)
}

/// Says what an ingest would do, from the files alone: what a table refuses is not looked at.
fn tell_of_ingest(command: &bulk::Ingest, out: &mut dyn Write) -> Result<(), Failure> {
    let (mut entries, mut range_deletes, mut extents) = (0, 0, 0);
    for file in &command.files {
        let info = read_file(file, !command.no_verify, "nothing was taken in")?;
        entries += info.entries;
        range_deletes += info.range_deletes;
        extents += info.extents;
    }
    let files = command.files.iter().map(|file| path(file)).collect::<Vec<_>>().join(", ");
    writeln!(
        out,
        "would take {} entries and {} range deletes in {} extents into table {:?} of {}{}",
        count(entries),
        count(range_deletes),
        count(extents),
        command.place.table,
        path(&command.place.database),
        if command.remove { format!(", and then remove {files}") } else { String::new() },
    )?;
    Ok(())
}

/// Checks what a new database cannot take before it is made: nothing is left of it then.
fn check_for_new(command: &bulk::Ingest) -> Result<(), Failure> {
    let table = &command.place.table;
    if table != DEFAULT {
        let place = path(&command.place.database);
        let why = format!("{place} is not there, and a new database has no table {table:?}: make it first");
        return Err(Failure::new(Code::NotFound, why));
    }
    command
        .files
        .iter()
        .try_for_each(|file| read_file(file, !command.no_verify, "no database was made").map(drop))
}

/// Reads the description of an external file, and shows how far it is; `left` says what a signal leaves.
fn read_file(file: &Path, verify: bool, left: &str) -> Result<ExtentFileInfo, Failure> {
    let stop = stop_on_signals()?;
    let mut meter = Meter::new("verify", Unit::Bytes);
    let read = inspect_extent_file_until(file, verify, &mut |progress| {
        meter.set_total(Some(progress.bytes));
        meter.show(progress.bytes_done, Some(progress.entries_done));
        // Acquire: pairs with the store of the thread that waits for signals.
        if stop.load(Ordering::Acquire) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    drop(meter);
    match read {
        Err(error) if error.kind() == Kind::Cancelled => Err(stopped(left)),
        read => {
            read.map_err(|error| Failure::of_no_database(error, "write it again from what it was made of"))
        }
    }
}

/// Refuses a file that does not end as external files do: damage is something else.
fn require_external(file: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file(&path(file), &error);
    let mut opened = files::open(file).map_err(failed)?;
    if files::last_bytes(&mut opened).map_err(failed)? == Some(external::MAGIC) {
        return Ok(());
    }
    let why = format!(
        "{} is not an external file, or its end is missing: `terrane export --format extents` makes one",
        path(file)
    );
    Err(Failure::new(Code::Usage, why))
}

pub(super) fn drop_extents(
    engine: &Engine,
    command: &bulk::DropExtents,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let asked = consent::until_removal(engine)?;
    let (db, table) = open_table(engine, &command.place, Access::Write)?;
    let (from, to) = bounds(&command.range)?;
    check_range(&table, &from, &to)?;
    let within = |extent: &&ExtentInfo| {
        from.as_ref().is_none_or(|from| extent.smallest >= *from)
            && to.as_ref().is_none_or(|to| extent.largest < *to)
    };
    let extents = table.extents()?;
    let extents: Vec<_> = extents.iter().filter(within).collect();
    let sum = |amount: fn(&ExtentInfo) -> u64| extents.iter().map(|extent| amount(extent)).sum();
    let remove = format!(
        "drop {} of table {:?}: up to {} extents with {} versions, {}",
        if from.is_none() && to.is_none() { "every extent" } else { "the extents within the range" },
        command.place.table,
        count(extents.len() as u64),
        count(sum(|extent| extent.summary.entries)),
        size(sum(|extent| extent.summary.bytes)),
    );
    let is_given = consent::is_given(&command.consent, &remove, out)?;
    drop(asked);
    if is_given {
        let dropped = table.delete_files_in_range((start(from.as_deref()), end(to.as_deref())))?;
        let (extents, entries) = (count(dropped.extents), count(dropped.entries));
        writeln!(out, "{extents} extents dropped: {entries} versions, {}", size(dropped.bytes))?;
    }
    close(engine, db)
}

pub(super) fn inspect(command: &bulk::Inspect, out: &mut dyn Write) -> Result<(), Failure> {
    let looking = exit_on_signal("nothing was printed".to_owned())?;
    require_external(&command.file)?;
    drop(looking);
    let info = read_file(&command.file, true, "the file was not read to its end")?;
    if command.json {
        let options: serde_json::Map<_, _> =
            info.options.iter().map(|(name, value)| (name.to_string(), value.to_string().into())).collect();
        let object = json!({
            "options": options,
            "entries": info.entries,
            "deletes": info.deletes,
            "range_deletes": info.range_deletes,
            "extents": info.extents,
            "first": info.first.escape_ascii().to_string(),
            "last": info.last.escape_ascii().to_string(),
        });
        return Ok(writeln!(out, "{object}")?);
    }
    for (name, value) in &info.options {
        writeln!(out, "{name}={value}")?;
    }
    let (first, last) = (info.first.escape_ascii(), info.last.escape_ascii());
    writeln!(
        out,
        "{} entries ({} deletes) and {} range deletes in {} extents, keys \"{first}\" to \"{last}\": every checksum holds",
        count(info.entries),
        count(info.deletes),
        count(info.range_deletes),
        count(info.extents),
    )?;
    Ok(())
}
