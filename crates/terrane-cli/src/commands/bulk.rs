//! `ingest`, `drop-extents` and `inspect`.

use std::io::Write;

use terrane::{ExtentInfo, IngestOptions, inspect_extent_file};

use super::consent;
use super::store::{Access, bounds, close, end, open_table, start};
use crate::arguments::{Engine, bulk};
use crate::exit::Failure;
use crate::files;
use crate::text::{count, path, size};

pub(super) fn ingest(engine: &Engine, command: &bulk::Ingest, out: &mut dyn Write) -> Result<(), Failure> {
    for file in &command.files {
        files::open(file).map_err(|error| Failure::file(&path(file), &error))?;
    }
    let (db, table) = open_table(engine, &command.place, Access::Write)?;
    let options = IngestOptions {
        copy: command.copy,
        remove: command.remove,
        verify: command.verify,
        ..IngestOptions::default()
    };
    let files: Vec<_> = command.files.iter().map(|file| (&table, file)).collect();
    let ingested = db.ingest(&files, options)?;
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

pub(super) fn drop_extents(
    engine: &Engine,
    command: &bulk::DropExtents,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (db, table) = open_table(engine, &command.place, Access::Write)?;
    let (from, to) = bounds(&command.range)?;
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
    if consent::is_given(&command.consent, &remove, out)? {
        let dropped = table.delete_files_in_range((start(from.as_deref()), end(to.as_deref())))?;
        let (extents, entries) = (count(dropped.extents), count(dropped.entries));
        writeln!(out, "{extents} extents dropped: {entries} versions, {}", size(dropped.bytes))?;
    }
    close(engine, db)
}

pub(super) fn inspect(command: &bulk::Inspect, out: &mut dyn Write) -> Result<(), Failure> {
    files::open(&command.file).map_err(|error| Failure::file(&path(&command.file), &error))?;
    let info = inspect_extent_file(&command.file, true)?;
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
