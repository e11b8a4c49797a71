//! `export`: rows as text that `import` reads back byte for byte, or as external files for `ingest`.
//!
//! A file is written under the name `NAME.part`, and gets its own when it is complete and on the device.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use terrane::{ExtentFileWriter, Options};

use super::functions::LeftOut;
use super::position;
use super::rows::Rows;
use crate::arguments::export::{Export, Format};
use crate::arguments::{Engine, TableArgs};
use crate::exit::{Code, Failure};
use crate::files::{self, File};
use crate::import::rows::{CSV_HEAD, TSV_HEAD};
use crate::packed::Packed;
use crate::progress::{Meter, Unit};
use crate::text::{self, count, hex};

/// Bytes from which on rows go to a further external file; one holds 1 GiB, and a row may have 64 MiB.
const FILE_BYTES: u64 = 900 << 20;

pub(super) fn run(engine: &Engine, command: &Export, out: &mut dyn Write) -> Result<(), Failure> {
    let format = format(command)?;
    if command.all && format != Format::Jsonl {
        return Err(Failure::new(
            Code::Usage,
            "--all: only JSON Lines hold more than one table; give --format jsonl",
        ));
    }
    if command.output != "-" {
        files::refuse_within(&command.place.database, Path::new(&command.output))?;
        files::refuse_within_any(Path::new(&command.output))?;
    }
    if format == Format::Extents {
        if command.output.ends_with(".gz") || command.output.ends_with(".zst") {
            let why = format!(
                "{}: external files are not compressed as a whole, their blocks are: give a name without .gz or .zst",
                command.output
            );
            return Err(Failure::new(Code::Usage, why));
        }
        return extents(engine, command, out);
    }
    if command.output == "-" {
        let mut sink = Sink { out: &mut *out, name: None, left_out: LeftOut::default() };
        write_rows(engine, command, format, &mut sink)?;
        return sink.left_out.end();
    }
    let target = PathBuf::from(&command.output);
    if files::is_neither(&target) {
        return to_device(engine, command, format, &target);
    }
    let (file, part) = begin(&target)?;
    let mut packed = Packed::new(BufWriter::new(file), &command.output);
    let mut sink = Sink { out: &mut packed, name: Some(&command.output), left_out: LeftOut::default() };
    let written = write_rows(engine, command, format, &mut sink);
    let left_out = sink.left_out;
    let done = written.and_then(|rows| {
        let end = || packed.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all();
        end()
            .and_then(|()| files::rename(&part, &target))
            .map_err(|error| Failure::file(&command.output, &error))?;
        Ok(rows)
    });
    match done {
        Ok(rows) => {
            writeln!(out, "exported {} rows to {}", count(rows), text::path(&target))?;
            left_out.end()
        }
        Err(failure) => {
            // What cannot be removed is named by the next export.
            let _ = files::remove(&part);
            Err(failure)
        }
    }
}

/// Writes rows into a device or a pipe, which has its name already and keeps it.
fn to_device(engine: &Engine, command: &Export, format: Format, target: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::file(&command.output, &error);
    let file = BufWriter::new(files::write_to(target).map_err(failed)?);
    let mut packed = Packed::new(file, &command.output);
    let mut sink = Sink { out: &mut packed, name: Some(&command.output), left_out: LeftOut::default() };
    let written = write_rows(engine, command, format, &mut sink);
    let left_out = sink.left_out;
    let rows = written?;
    packed.finish().and_then(|mut file| file.flush()).map_err(failed)?;
    // Not on standard output: the device may be that.
    eprintln!("terrane: exported {} rows to {}", count(rows), text::path(target));
    left_out.end()
}

/// The format that the command line or the name of the output tells.
fn format(command: &Export) -> Result<Format, Failure> {
    if let Some(format) = command.format {
        return Ok(format);
    }
    if command.output == "-" || files::is_neither(Path::new(&command.output)) {
        return Ok(Format::Jsonl);
    }
    let name = command.output.trim_end_matches(".gz").trim_end_matches(".zst");
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("jsonl" | "ndjson" | "json") => Ok(Format::Jsonl),
        Some("csv") => Ok(Format::Csv),
        Some("tsv" | "tab") => Ok(Format::Tsv),
        Some("extents") => Ok(Format::Extents),
        _ => {
            let why = format!(
                "the format does not follow from the name {}: give --format jsonl, csv, tsv or extents",
                command.output
            );
            Err(Failure::new(Code::Usage, why))
        }
    }
}

/// A file under the name that it has until it is complete.
fn begin(target: &Path) -> Result<(File, PathBuf), Failure> {
    let shown = text::path(target);
    if files::exists(target) {
        return Err(Failure::new(Code::Usage, format!("{shown} exists: remove it, or name another file")));
    }
    let mut part = target.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    match files::create_new(&part) {
        Ok(file) => Ok((file, part)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let part = text::path(&part);
            Err(Failure::new(
                Code::Usage,
                format!("{part} exists: another export writes it, or left it; remove it then"),
            ))
        }
        Err(error) => Err(Failure::file(&shown, &error)),
    }
}

/// Where text goes, and what its errors name.
struct Sink<'s> {
    out: &'s mut dyn Write,
    /// None for standard output.
    name: Option<&'s str>,
    left_out: LeftOut,
}

impl Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes).map_err(|error| match self.name {
            Some(name) => Failure::file(name, &error),
            None => Failure::from(error),
        })
    }
}

/// Writes the exported rows, and returns their number.
fn write_rows(
    engine: &Engine,
    command: &Export,
    format: Format,
    sink: &mut Sink<'_>,
) -> Result<u64, Failure> {
    let mut meter = Meter::new("export", Unit::Rows);
    if command.all {
        return write_all_tables(engine, command, &mut meter, sink);
    }
    let mut rows = open_whole(engine, command)?;
    meter.set_total(None);
    match format {
        Format::Csv => sink.write(format!("{CSV_HEAD}\n").as_bytes())?,
        Format::Tsv => sink.write(format!("{TSV_HEAD}\n").as_bytes())?,
        Format::Jsonl | Format::Extents => {}
    }
    let mut line = Vec::new();
    write_table(&mut rows, &mut meter, 0, sink, &mut |key, value| {
        line.clear();
        match format {
            Format::Csv => csv_row(key, value, &mut line),
            Format::Tsv => text::write_row(text::Format::Tsv, key, value, &mut line),
            Format::Jsonl | Format::Extents => text::write_row(text::Format::Json, key, value, &mut line),
        }
        line.clone()
    })
}

fn write_all_tables(
    engine: &Engine,
    command: &Export,
    meter: &mut Meter,
    sink: &mut Sink<'_>,
) -> Result<u64, Failure> {
    let db = super::store::open(engine, &command.place.database, super::store::Access::Read)?;
    let names = db.tables().into_iter().filter(|name| name != position::TABLE).collect();
    let (names, left_out) = LeftOut::split(&db, names)?;
    let reading = super::store::opened_once(engine, &db);
    drop(db);
    sink.left_out = left_out;
    let mut all = 0;
    for name in names {
        let place = TableArgs { database: command.place.database.clone(), table: name.clone() };
        let mut rows = Rows::open(&reading, &place, &command.range, false)?;
        let options: serde_json::Map<_, _> =
            rows.table.kept_options().into_iter().map(|(name, value)| (name, value.into())).collect();
        sink.write(format!("{}\n", json!({ "table": name, "options": options })).as_bytes())?;
        let front = format!("{{\"table\":{},", json!(name));
        let mut row = Vec::new();
        all += write_table(&mut rows, meter, all, sink, &mut |key, value| {
            row.clear();
            text::write_row(text::Format::Json, key, value, &mut row);
            [front.as_bytes(), &row[1..]].concat()
        })?;
    }
    Ok(all)
}

/// The line of a row.
type WriteRow<'w> = dyn FnMut(&[u8], &[u8]) -> Vec<u8> + 'w;

fn write_table(
    rows: &mut Rows<'_>,
    meter: &mut Meter,
    before: u64,
    sink: &mut Sink<'_>,
    line: &mut WriteRow<'_>,
) -> Result<u64, Failure> {
    let mut written = 0;
    while let Some((key, value)) = rows.next_whole()? {
        sink.write(&line(&key, &value))?;
        written += 1;
        meter.show(before + written, None);
    }
    sink.left_out.rows(&rows.table, rows.left_out);
    Ok(written)
}

/// The rows of one table, if it can be exported.
fn open_whole<'a>(engine: &'a Engine, command: &'a Export) -> Result<Rows<'a>, Failure> {
    let rows = Rows::open(engine, &command.place, &command.range, false)?;
    let (_, left_out) = LeftOut::split(&rows.db, vec![command.place.table.clone()])?;
    left_out.end().map(|()| rows)
}

/// Appends a row as RFC 4180 (2005) has it, with a third column that names the fields in hexadecimal digits.
fn csv_row(key: &[u8], value: &[u8], line: &mut Vec<u8>) {
    let mut marks = String::new();
    for (mark, bytes) in [('k', key), ('v', value)] {
        match std::str::from_utf8(bytes) {
            Ok(text) if text.contains(['"', ',', '\n', '\r']) => {
                line.extend_from_slice(format!("\"{}\"", text.replace('"', "\"\"")).as_bytes());
            }
            Ok(text) => line.extend_from_slice(text.as_bytes()),
            Err(_) => {
                let mut digits = String::new();
                hex(bytes, &mut digits);
                line.extend_from_slice(digits.as_bytes());
                marks.push(mark);
            }
        }
        line.push(b',');
    }
    line.extend_from_slice(marks.as_bytes());
    line.push(b'\n');
}

/// External files of the rows.
fn extents(engine: &Engine, command: &Export, out: &mut dyn Write) -> Result<(), Failure> {
    if command.output == "-" {
        return Err(Failure::new(
            Code::Usage,
            "external files cannot be written to standard output: name a file",
        ));
    }
    if files::is_neither(Path::new(&command.output)) {
        let why = format!(
            "{}: external files cannot be written to a device or a pipe: name a file",
            command.output
        );
        return Err(Failure::new(Code::Usage, why));
    }
    let mut rows = open_whole(engine, command)?;
    let mut options = Options::default();
    for (name, value) in rows.table.kept_options().iter().filter(|(name, _)| name == "key_order") {
        options.set(name, value)?;
    }
    let mut meter = Meter::new("export", Unit::Rows);
    let mut written = 0;
    let mut files = Vec::new();
    let mut writer: Option<ExtentFileWriter> = None;
    while let Some((key, value)) = rows.next_whole()? {
        if writer.as_ref().is_some_and(|writer| writer.bytes() >= FILE_BYTES) {
            writer.take().map(ExtentFileWriter::finish).transpose()?;
        }
        if writer.is_none() {
            files.push(numbered(&command.output, files.len() + 1));
        }
        let open = match &mut writer {
            Some(open) => open,
            none => none.insert(ExtentFileWriter::create(&files[files.len() - 1], &options)?),
        };
        open.put(&key, &value)?;
        written += 1;
        meter.show(written, None);
    }
    drop(meter);
    if writer.is_none() {
        return Err(Failure::new(
            Code::NotFound,
            "there is no row in the range, and no external file without one",
        ));
    }
    writer.map(ExtentFileWriter::finish).transpose()?;
    let names: Vec<_> = files.iter().map(text::shown).collect();
    writeln!(out, "exported {} rows to {}", count(written), names.join(" "))?;
    let mut left_out = LeftOut::default();
    left_out.rows(&rows.table, rows.left_out);
    left_out.end()
}

/// The name of a further file: `a.extents`, `a-2.extents`.
fn numbered(name: &str, number: usize) -> String {
    match (number, name.rsplit_once('.')) {
        (1, _) => name.to_owned(),
        (_, Some((front, end))) if !end.contains('/') => format!("{front}-{number}.{end}"),
        _ => format!("{name}-{number}"),
    }
}
