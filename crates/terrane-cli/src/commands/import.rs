//! `import`: records of a file or stream, batch by batch, each batch with the position that follows it.
//!
//! 1. Open the input and find out what it is. 2. Open the database and the position of an earlier import.
//! 3. Read records into a batch. 4. Add the position, commit, acknowledge. 5. At the end make all durable.
//!
//! Invariant: records and position are in one atomic batch, so that however the process ends, the next import
//! goes on right after the last record that is in the database, and no record is missing or read twice.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use terrane::{Batch, Db, Sync, Table};
use terrane_base::env::Env;
use terrane_base::key::{check_key, check_value};

use super::position::{self, Progress};
use super::store::{Access, open};
use crate::arguments::Engine;
use crate::arguments::import::{From, Import};
use crate::exit::{Code, Failure};
use crate::files::{self, File};
use crate::import::{self, BadRow, Format, Keys, Records, Row, Step, Syntax};
use crate::input::Input;
use crate::signals::stop_on_signals;
use crate::text::{count, parse_bytes, size};

/// Bytes of records after which a batch is committed even if it holds few of them.
const BATCH_BYTES: u64 = 1 << 20;
/// Bad records that are shown; the rest are only counted.
const BAD_SHOWN_MAX: u64 = 10;

pub(super) fn run(engine: &Engine, command: &Import, out: &mut dyn Write) -> Result<(), Failure> {
    if command.from == Some(From::Rocksdb) {
        return copied(engine, command, out);
    }
    let syntax = syntax(command)?;
    let input = Input::open(&command.input).map_err(|error| Failure::file(&command.input, &error))?;
    let stop = stop_on_signals()?;
    let db = open(engine, &command.database, Access::Create)?;
    let clock = Env::real().clock;
    let start = clock.now();
    let mut importer = match Importer::open(&db, command, &syntax, input, stop)? {
        Opened::Complete(progress) => {
            let records = count(progress.records);
            writeln!(
                out,
                "{} is imported already: {records} records; --restart imports it again",
                command.input
            )?;
            return Ok(db.close()?);
        }
        Opened::Going(importer) => importer,
    };
    let before = importer.progress.clone();
    let done = importer.import_all();
    importer.bar.finish_and_clear();
    let after = importer.progress.clone();
    let paused = Duration::from_micros(db.stats().writes_paused_micros);
    drop(importer);
    // Whatever ended the import, what was acknowledged is made durable.
    db.sync()?;
    if done.is_ok() {
        // The next opening has nothing to replay. Where that fails the records stay in the journal.
        let _ = db.flush();
    }
    let took = clock.now().saturating_sub(start);
    writeln!(out, "{}", summary(&before, &after, &command.table, took))?;
    if paused > took / 10 {
        let paused = paused.as_secs_f64();
        writeln!(
            out,
            "held back for {paused:.2} s, because flush and compaction were behind: more --memory helps"
        )?;
    }
    out.flush()?;
    db.close()?;
    done
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

fn summary(before: &Progress, after: &Progress, table: &str, took: Duration) -> String {
    let records = after.records - before.records;
    let bytes = after.position.offset - before.position.offset;
    let per_second = |amount: u64| (amount as f64 / took.as_secs_f64().max(1e-9)) as u64;
    let mut text = format!(
        "imported {} records from {} into table {table:?} in {:.2} s ({} records/s, {}/s)",
        count(records),
        size(bytes),
        took.as_secs_f64(),
        count(per_second(records)),
        size(per_second(bytes)),
    );
    if before.records > 0 {
        text += &format!("; with the import before {}", count(after.records));
    }
    if after.bad > 0 {
        text += &format!("; {} bad records skipped", count(after.bad));
    }
    text
}

/// What the command line says about the input's text.
fn syntax(command: &Import) -> Result<Syntax, Failure> {
    let usage = |why: String| Failure::new(Code::Usage, why);
    let format = command.format.or_else(|| Format::of_name(&command.input)).ok_or_else(|| {
        usage(format!(
            "the name {} does not tell the format: give --format jsonl, csv, deb or tsv",
            command.input
        ))
    })?;
    let mut fields = command.key.clone();
    if fields.is_empty() {
        match format {
            Format::Deb => fields.push("Package".to_owned()),
            Format::Tsv => fields.push("1".to_owned()),
            Format::Jsonl | Format::Csv => {
                return Err(usage("no key: give the fields that make it with --key FIELD,...".to_owned()));
            }
        }
    }
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

/// An import at work.
struct Importer<'d> {
    db: &'d Db,
    table: Table,
    positions: Table,
    position_key: Vec<u8>,
    records: Box<dyn Records>,
    progress: Progress,
    batch: Batch,
    /// Records in the batch.
    batch_records: u64,
    batch_records_max: u64,
    batch_bytes_max: u64,
    sync: Sync,
    skip_bad: bool,
    acks: Option<(String, File)>,
    stop: Arc<AtomicBool>,
    bar: ProgressBar,
    /// Bytes of the input read, as stored.
    read: Arc<std::sync::atomic::AtomicU64>,
    name: String,
}

enum Opened<'d> {
    Going(Box<Importer<'d>>),
    Complete(Progress),
}

impl<'d> Importer<'d> {
    fn open(
        db: &'d Db,
        command: &Import,
        syntax: &Syntax,
        input: Input,
        stop: Arc<AtomicBool>,
    ) -> Result<Opened<'d>, Failure> {
        if command.table == position::TABLE {
            return Err(Failure::new(
                Code::Usage,
                format!("table {} is kept for positions", position::TABLE),
            ));
        }
        let table = db.table_or_create(&command.table)?;
        let positions = db.table_or_create(position::TABLE)?;
        let name = command.name.as_deref().unwrap_or(&input.identity.path);
        let position_key = Progress::key(&command.table, name);
        let mut progress = Progress::new(input.identity.clone(), syntax);
        if let Some(stored) = positions.get(&position_key)?.filter(|_| !command.restart) {
            let stored = Progress::decode(&stored)?;
            stored.require_same(&progress, &input.name)?;
            if stored.complete {
                return Ok(Opened::Complete(stored));
            }
            progress = stored;
        }
        let acks = command.ack_file.as_ref().map(|path| {
            let shown = path.display().to_string();
            let file = files::append(path).map_err(|error| Failure::file(&shown, &error))?;
            Ok::<_, Failure>((shown, file))
        });
        let acks = acks.transpose()?;
        let (bar, read) = (progress_bar(input.len), input.read);
        let records = import::open(input.source, syntax, progress.position)
            .map_err(|error| Failure::file(&input.name, &error))?;
        Ok(Opened::Going(Box::new(Importer {
            db,
            table,
            positions,
            position_key,
            records,
            progress,
            batch: Batch::new(),
            batch_records: 0,
            batch_records_max: command.batch,
            batch_bytes_max: BATCH_BYTES.min(db.options().write_memory_bytes / 16),
            sync: if command.sync { Sync::Yes } else { Sync::No },
            skip_bad: command.skip_bad,
            acks,
            stop,
            bar,
            read,
            name: input.name,
        })))
    }

    /// Reads and commits until the input ends, a record is bad, or a signal asks to stop.
    fn import_all(&mut self) -> Result<(), Failure> {
        let mut row = Row::default();
        loop {
            let step = match self.records.next(&mut row) {
                Ok(step) => step,
                Err(error) => {
                    self.commit(false)?;
                    return Err(Failure::file(&self.name, &error));
                }
            };
            match step {
                Step::Row => self.add(&row)?,
                Step::Bad(bad) => self.bad(&bad)?,
                Step::End => return self.commit(true),
            }
            let full = self.batch_records >= self.batch_records_max
                || self.batch.bytes() as u64 >= self.batch_bytes_max;
            let stop = self.stop.load(Ordering::Relaxed);
            if full || stop {
                self.commit(false)?;
            }
            if stop {
                let why = format!(
                    "stopped by a signal after {} records; the same command goes on",
                    self.progress.records
                );
                return Err(Failure::new(Code::Stopped, why));
            }
        }
    }

    fn add(&mut self, row: &Row) -> Result<(), Failure> {
        if let Err(error) = check_key(&row.key).and_then(|()| check_value(&row.value)) {
            let line = self.records.position().line;
            return self.bad(&BadRow { line, reason: error.message().to_owned() });
        }
        self.batch.put(&self.table, &row.key, &row.value)?;
        self.batch_records += 1;
        self.progress.position = self.records.position();
        Ok(())
    }

    fn bad(&mut self, bad: &BadRow) -> Result<(), Failure> {
        if !self.skip_bad {
            self.commit(false)?;
            let why = format!(
                "{} line {}: {}; correct it, or skip such records with --skip-bad",
                self.name, bad.line, bad.reason
            );
            return Err(Failure::new(Code::Usage, why));
        }
        self.progress.position = self.records.position();
        self.progress.bad += 1;
        let shown = self.progress.bad;
        if shown <= BAD_SHOWN_MAX {
            let more = if shown == BAD_SHOWN_MAX { " (further ones are only counted)" } else { "" };
            self.bar.suspend(|| {
                eprintln!("terrane: skipped {} line {}: {}{more}", self.name, bad.line, bad.reason)
            });
        }
        Ok(())
    }

    /// Commits the batch with the position that follows it, and acknowledges it.
    fn commit(&mut self, complete: bool) -> Result<(), Failure> {
        self.progress.records += self.batch_records;
        self.progress.complete = complete;
        if terrane_base::planted!(SplitImportPosition) {
            self.db.write(&std::mem::take(&mut self.batch), self.sync)?;
        }
        self.batch.put(&self.positions, &self.position_key, &self.progress.encode())?;
        self.db.write(&self.batch, self.sync)?;
        self.batch.clear();
        self.batch_records = 0;
        if let Some((name, file)) = &mut self.acks {
            let line = format!("{}\n", self.progress.records);
            file.write_all(line.as_bytes()).map_err(|error| Failure::file(name, &error))?;
        }
        self.bar.set_position(self.read.load(Ordering::Relaxed));
        Ok(())
    }
}

/// A bar if the length is known, else a count; on standard error, and only if a person watches.
fn progress_bar(len: Option<u64>) -> ProgressBar {
    let (bar, template) = match len {
        Some(len) => (
            ProgressBar::new(len),
            "{bar:30} {percent}%  {binary_bytes} of {binary_total_bytes}  {binary_bytes_per_sec}  {eta} left",
        ),
        None => (ProgressBar::new_spinner(), "{spinner} {binary_bytes}  {binary_bytes_per_sec}  {elapsed}"),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(template);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
