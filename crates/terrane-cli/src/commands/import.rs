//! `import`: records of a file or stream, batch by batch, each batch with the position that follows it.
//!
//! 1. Open the input and find out what it is. 2. Open the database and the position of an earlier import.
//! 3. Read records into a batch. 4. Add the position, commit, acknowledge. 5. At the end make all durable.
//!
//! Invariant: records and position are in one atomic batch, so that however the process ends, the next import
//! goes on right after the last record that is in the database, and no record is missing or read twice.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use terrane_base::env::Env;

use super::dry_import;
use super::importer::{Importer, Opened};
use super::position::Progress;
use super::store::{Access, close, open};
use crate::arguments::Engine;
use crate::arguments::import::{From, Import};
use crate::exit::{Code, Failure};
use crate::files;
use crate::import::{Format, Keys, Source, Syntax, rows};
use crate::input::Input;
use crate::signals::{exit_on_signal, stop_on_signals};
use crate::text::{count, parse_bytes, size};

pub(super) fn run(engine: &Engine, command: &Import, out: &mut dyn Write) -> Result<(), Failure> {
    if command.from == Some(From::Rocksdb) {
        return copied(engine, command, out);
    }
    let format = format(command)?;
    let stop = stop_on_signals()?;
    // The opening of a pipe with a name waits for its writer, and does not look at a flag.
    let waits = command.input != "-" && files::is_pipe(Path::new(&command.input));
    let opening = waits.then(|| exit_on_signal("nothing was imported".to_owned())).transpose()?;
    let mut input =
        Input::open(&command.input, &stop).map_err(|error| Failure::file(&command.input, &error))?;
    drop(opening);
    let syntax = syntax(command, format, &mut *input.source)?;
    if command.dry_run {
        return dry_import::tell(engine, command, &syntax, input, &stop, out);
    }
    let db = open(engine, &command.database, Access::Create)?;
    let clock = Env::real().clock;
    let start = clock.now();
    let mut importer = match Importer::open(&db, command, &syntax, input, stop.clone())? {
        Opened::Complete(progress) => {
            let records = count(progress.records);
            writeln!(
                out,
                "{} is imported already: {records} records; --restart imports it again",
                command.input
            )?;
            return close(engine, db);
        }
        Opened::Going(importer) => importer,
    };
    let before = importer.progress.clone();
    let done = importer.import_all();
    let after = importer.progress.clone();
    let tables = importer.tables();
    let paused = Duration::from_micros(db.stats().writes_paused_micros);
    drop(importer);
    // Whatever ended the import, what was acknowledged is made durable, and the next opening replays none of
    // it.
    db.sync()?;
    let flushed = if stop.load(Ordering::Relaxed) { Ok(()) } else { db.flush() };
    let took = clock.now().saturating_sub(start);
    writeln!(out, "{}", summary(&before, &after, &tables, took))?;
    if paused > took / 10 {
        let paused = paused.as_secs_f64();
        writeln!(
            out,
            "held back for {paused:.2} s, because flush and compaction were behind: more --memory helps"
        )?;
    }
    out.flush()?;
    close(engine, db)?;
    done?;
    // Durable records that are not flushed are replayed: a flush that failed loses nothing.
    Ok(flushed?)
}

#[cfg(feature = "rocksdb")]
fn copied(engine: &Engine, command: &Import, out: &mut dyn Write) -> Result<(), Failure> {
    super::copy::run(engine, command, out)
}

#[cfg(not(feature = "rocksdb"))]
fn copied(_engine: &Engine, _command: &Import, _out: &mut dyn Write) -> Result<(), Failure> {
    let why = "--from rocksdb: this command was built without the feature `rocksdb`, which loads its library";
    Err(Failure::new(Code::Usage, why))
}

fn summary(before: &Progress, after: &Progress, tables: &[String], took: Duration) -> String {
    let records = after.records - before.records;
    let bytes = after.position.offset - before.position.offset;
    let per_second = |amount: u64| (amount as f64 / took.as_secs_f64().max(1e-9)) as u64;
    let mut text = format!(
        "imported {} records from {} into {} in {:.2} s ({} records/s, {}/s)",
        count(records),
        size(bytes),
        tables_text(tables),
        took.as_secs_f64(),
        count(per_second(records)),
        size(per_second(bytes)),
    );
    if before.records > 0 {
        text += &format!("; with the import before {}", count(after.records));
    }
    let replaced = after.replaced - before.replaced;
    if replaced > 0 {
        text += &format!("; {} replaced a row of the same key", count(replaced));
    }
    if after.bad > 0 {
        text += &format!("; {} bad records skipped", count(after.bad));
    }
    text
}

/// The tables that records came into, as text.
pub(super) fn tables_text(tables: &[String]) -> String {
    debug_assert!(!tables.is_empty(), "records that name no table have one");
    match tables {
        [table] => format!("table {table:?}"),
        tables => {
            let names: Vec<String> = tables.iter().map(|table| format!("{table:?}")).collect();
            format!("{} tables ({})", tables.len(), names.join(", "))
        }
    }
}

/// The format that the command line or the name of the input tells.
fn format(command: &Import) -> Result<Format, Failure> {
    command.format.or_else(|| Format::of_name(&command.input)).ok_or_else(|| {
        // A file that is not there has no format.
        if command.input != "-"
            && let Err(missing) = files::require(Path::new(&command.input))
        {
            return missing;
        }
        let why = format!(
            "the format does not follow from the name {}: give --format jsonl, csv, deb or tsv",
            command.input
        );
        Failure::new(Code::Usage, why)
    })
}

/// The format of what `export` writes in this format, where no key is given and the input is of that kind.
fn rows_format(command: &Import, format: Format, source: &mut dyn Source) -> Option<Format> {
    if !command.key.is_empty() {
        return None;
    }
    match format {
        Format::Jsonl => Some(Format::JsonRows),
        Format::Csv => Some(Format::CsvRows),
        Format::Tsv => {
            // An error comes again with the first record.
            let front = source.fill_buf().unwrap_or_default();
            let is_export = front.starts_with(rows::TSV_HEAD.as_bytes());
            (is_export || command.escaped).then_some(Format::TsvRows)
        }
        format => Some(format).filter(|format| *format != Format::Deb),
    }
}

/// The syntax of the input's text, as the command line sets it.
fn syntax(command: &Import, format: Format, source: &mut dyn Source) -> Result<Syntax, Failure> {
    let usage = |why: String| Failure::new(Code::Usage, why);
    let mut fields = command.key.clone();
    let rows = rows_format(command, format, source);
    if fields.is_empty() && rows.is_none() {
        fields.push(if format == Format::Deb { "Package".to_owned() } else { "1".to_owned() });
    }
    let format = rows.unwrap_or(format);
    let separator =
        parse_bytes(&command.key_separator).map_err(|why| usage(format!("--key-separator: {why}")))?;
    let byte = |name: &str, typed: &str| match parse_bytes(typed).as_deref() {
        Ok(&[byte]) => Ok(byte),
        _ => Err(usage(format!("{name} {typed:?}: expected one character of ASCII"))),
    };
    let delimiter = byte("--delimiter", &command.delimiter)?;
    let comment = command.comment.as_deref().map(|typed| byte("--comment", typed)).transpose()?;
    Ok(Syntax { format, keys: Keys { fields, separator }, delimiter, comment })
}
