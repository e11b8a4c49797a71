//! `ingest`, `drop-extents` and `inspect`.

use std::io::Write;

use terrane::{IngestOptions, inspect_extent_file};

use super::store::{Access, bounds, end, open_table, start};
use crate::arguments::{Engine, bulk};
use crate::exit::Failure;
use crate::text::{count, size};

pub(super) fn ingest(engine: &Engine, command: &bulk::Ingest, out: &mut dyn Write) -> Result<(), Failure> {
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
    Ok(db.close()?)
}

pub(super) fn drop_extents(
    engine: &Engine,
    command: &bulk::DropExtents,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (db, table) = open_table(engine, &command.place, Access::Write)?;
    let (from, to) = bounds(&command.range)?;
    let dropped = table.delete_files_in_range((start(from.as_deref()), end(to.as_deref())))?;
    let (extents, entries) = (count(dropped.extents), count(dropped.entries));
    writeln!(out, "{extents} extents dropped: {entries} versions, {}", size(dropped.bytes))?;
    Ok(db.close()?)
}

pub(super) fn inspect(command: &bulk::Inspect, out: &mut dyn Write) -> Result<(), Failure> {
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
