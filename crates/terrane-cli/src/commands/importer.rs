//! An import at work: records into batches, each batch with the position that follows it.
//!
//! Invariant: records and position are in one atomic batch, and the counts are those of committed rows.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane::{Batch, Db, Durability, Error, Kind, Table};
use terrane_base::key::{check_key, check_value};

use super::position::{self, Earlier, Progress};
use super::store::{self, table_as};
use crate::arguments::import::Import;
use crate::exit::{Code, Failure};
use crate::files::{self, File};
use crate::import::{self, BadRow, Records, Row, Step, Syntax};
use crate::input::Input;
use crate::progress::{Meter, Unit};
use crate::text::count;

/// Bytes of records after which a batch is committed even if it holds few of them.
const BATCH_BYTES: u64 = 1 << 20;
/// Bad records that are shown; the rest are only counted.
const BAD_SHOWN_MAX: u64 = 10;

/// An import at work.
pub(super) struct Importer<'d> {
    db: &'d Db,
    table: Table,
    /// The table that the command line names, if it names one.
    given: Option<String>,
    /// Tables that the input names.
    named: BTreeMap<String, Table>,
    /// True if some record named no table.
    has_unnamed: bool,
    positions: Table,
    position_key: Vec<u8>,
    records: Box<dyn Records>,
    /// The committed part of the input.
    pub(super) progress: Progress,
    pending: Pending,
    batch_records_max: u64,
    batch_bytes_max: u64,
    sync: Durability,
    skip_bad: bool,
    /// True if keys are looked up, so that those that are replaced are counted.
    counts_replaced: bool,
    acks: Option<(String, File)>,
    stop: Arc<AtomicBool>,
    meter: Meter,
    /// Records when this run began.
    records_before: u64,
    /// Bytes of the input read, as stored.
    read: Arc<AtomicU64>,
    name: String,
    is_pipe: bool,
    /// True if the same command goes on after a stop.
    goes_on: bool,
}

/// The rows in the batch, which are not committed yet.
#[derive(Default)]
struct Pending {
    batch: Batch,
    records: u64,
    bad: u64,
    replaced: u64,
    /// Number of the table and key of each record.
    keys: BTreeSet<(u32, Vec<u8>)>,
    /// The end of the last record in it; `None` for an empty batch.
    position: Option<import::Position>,
}

pub(super) enum Opened<'d> {
    Going(Box<Importer<'d>>),
    Complete(Progress),
}

impl<'d> Importer<'d> {
    pub(super) fn open(
        db: &'d Db,
        command: &Import,
        syntax: &Syntax,
        input: Input,
        stop: Arc<AtomicBool>,
    ) -> Result<Opened<'d>, Failure> {
        refuse_positions(command.table())?;
        let table = db.table_or_create(command.table())?;
        let positions = db.table_or_create(position::TABLE)?;
        let given = command.name.as_deref();
        let position_key = Progress::key(command.table(), given.unwrap_or(&input.identity.path));
        let mut progress = Progress::new(input.identity.clone(), syntax);
        if let Some(stored) = positions.get(&position_key)?.filter(|_| !command.restart) {
            let stored = Progress::decode(&stored)?;
            match stored.earlier(&progress, &input, given)? {
                Earlier::Another => {}
                Earlier::Complete => return Ok(Opened::Complete(stored)),
                Earlier::Unfinished => {
                    progress = Progress { identity: progress.identity, complete: false, ..stored };
                }
            }
        }
        let acks = command.ack_file.as_ref().map(|path| {
            let shown = path.display().to_string();
            files::refuse_within_any(path)?;
            let file = files::append(path).map_err(|error| Failure::file(&shown, &error))?;
            Ok::<_, Failure>((shown, file))
        });
        let acks = acks.transpose()?;
        let is_pipe = input.len.is_none();
        let (read, goes_on) = (input.read, input.len.is_some() || given.is_some());
        let mut meter = Meter::new("import", Unit::Bytes);
        meter.set_total(input.len);
        let records = import::open(input.source, syntax, progress.position)
            .map_err(|error| Failure::file(&input.name, &error))?;
        // What a resume skips counts for no rate.
        meter.begin_at(read.load(Ordering::Relaxed));
        Ok(Opened::Going(Box::new(Importer {
            db,
            table,
            given: command.table.clone(),
            named: BTreeMap::new(),
            has_unnamed: false,
            positions,
            position_key,
            records,
            records_before: progress.records,
            progress,
            pending: Pending::default(),
            batch_records_max: command.batch,
            batch_bytes_max: BATCH_BYTES.min(db.options().write_memory_bytes / 16),
            sync: if command.sync { Durability::Synced } else { Durability::Buffered },
            skip_bad: command.skip_bad,
            counts_replaced: !command.blind,
            acks,
            stop,
            meter,
            read,
            name: input.name,
            is_pipe,
            goes_on,
        })))
    }

    /// Reads and commits until the input ends, a record is bad, or a signal asks to stop.
    pub(super) fn import_all(&mut self) -> Result<(), Failure> {
        let mut row = Row::default();
        loop {
            let step = match self.records.next(&mut row) {
                Ok(step) => step,
                // A read that waited for a pipe ends by the flag, whatever the layers above make of its
                // error.
                Err(_) if self.is_stopped() => return self.stopped(),
                Err(error) => {
                    self.commit(false)?;
                    return Err(Failure::file(&self.name, &error));
                }
            };
            match step {
                Step::Row => self.add(&row)?,
                Step::Table(name, options) => {
                    if let Err(failure) = self.make_table(name, &options) {
                        return Err(self.ended_by(failure));
                    }
                }
                Step::Bad(bad) => self.bad(&bad)?,
                Step::End => return self.commit(true),
            }
            if self.pending.records >= self.batch_records_max
                || self.pending.batch.bytes() as u64 >= self.batch_bytes_max
            {
                self.commit(false)?;
            }
            // A pipe ends by itself, behind what was read of it: nothing that came is lost.
            if !self.is_pipe && self.is_stopped() {
                return self.stopped();
            }
        }
    }

    /// Names of the tables into which this run imported.
    pub(super) fn tables(&self) -> Vec<String> {
        let unnamed = (self.has_unnamed || self.named.is_empty()).then(|| self.table.name().to_owned());
        let names: BTreeSet<String> = unnamed.into_iter().chain(self.named.keys().cloned()).collect();
        names.into_iter().collect()
    }

    fn is_stopped(&self) -> bool {
        // Acquire: pairs with the store of the thread that waits for signals.
        self.stop.load(Ordering::Acquire)
    }

    fn stopped(&mut self) -> Result<(), Failure> {
        self.commit(false)?;
        let how =
            if self.goes_on { "the same command goes on" } else { "what the pipe had left is not read" };
        let records = count(self.progress.records);
        Err(Failure::new(Code::Stopped, format!("stopped by a signal after {records} records; {how}")))
    }

    fn add(&mut self, row: &Row) -> Result<(), Failure> {
        if let Err(error) = check_key(&row.key).and_then(|()| check_value(&row.value)) {
            let line = self.records.position().line;
            return self.bad(&BadRow { line, reason: error.message().to_owned() });
        }
        let bytes = (row.key.len() + row.value.len()) as u64;
        if self.pending.records > 0 && self.pending.batch.bytes() as u64 + bytes > self.batch_bytes_max {
            // A row that is too large for the memory of the engine takes no other one with it.
            self.commit(false)?;
        }
        let table = match &row.table {
            None => {
                self.has_unnamed = true;
                self.table.clone()
            }
            Some(name) => match self.named(name) {
                Ok(table) => table,
                Err(failure) => return Err(self.ended_by(failure)),
            },
        };
        // Before the row is in the batch, which is committed if this fails.
        let is_replaced = match self.counts_replaced.then(|| self.is_there(&table, &row.key)).transpose() {
            Ok(is_replaced) => is_replaced,
            Err(error) => return Err(self.ended_by(error.into())),
        };
        match self.pending.batch.put(&table, &row.key, &row.value) {
            Ok(()) => {}
            Err(error) if is_of_row(&error, &table, row) => {
                let line = self.records.position().line;
                return self.bad(&BadRow { line, reason: error.message().to_owned() });
            }
            Err(error) => return Err(self.ended_by(error.into())),
        }
        let pending = &mut self.pending;
        if let Some(is_replaced) = is_replaced {
            pending.keys.insert((table.number(), row.key.clone()));
            pending.replaced += u64::from(is_replaced);
        }
        pending.records += 1;
        pending.position = Some(self.records.position());
        Ok(())
    }

    /// Returns true if the table, or a row before, has the key.
    fn is_there(&self, table: &Table, key: &[u8]) -> terrane::Result<bool> {
        debug_assert!(self.counts_replaced, "a read for each row, for a count that no user asked for");
        if self.pending.keys.contains(&(table.number(), key.to_vec())) {
            return Ok(true);
        }
        match table.contains(key) {
            // A key whose operands cannot be folded is there, and a put mends it.
            Err(error) if error.kind() == Kind::Invalid => Ok(true),
            found => found,
        }
    }

    /// The error that ends an import which skips bad records, too, because it is not one of the record. What
    /// stands before its line is committed.
    fn ended_by(&mut self, mut failure: Failure) -> Failure {
        let line = self.records.position().line;
        if let Err(worse) = self.commit(false) {
            return worse;
        }
        failure.message = format!("{} line {line}: {}", self.name, failure.message);
        failure
    }

    /// The table that the input names.
    fn named(&mut self, name: &str) -> Result<Table, Failure> {
        if let Some(table) = self.named.get(name) {
            return Ok(table.clone());
        }
        refuse_positions(name)?;
        refuse_given(self.given.as_deref())?;
        let table = self.db.table_or_create(name)?;
        self.named.insert(name.to_owned(), table.clone());
        Ok(table)
    }

    /// Makes a table as the input says, or finds that there is one like it.
    fn make_table(&mut self, name: String, options: &[(String, String)]) -> Result<(), Failure> {
        refuse_positions(&name)?;
        refuse_given(self.given.as_deref())?;
        let table = table_as(self.db, &name, options)?;
        self.named.insert(name, table);
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
        self.pending.position = Some(self.records.position());
        self.pending.bad += 1;
        let shown = self.progress.bad + self.pending.bad;
        if shown <= BAD_SHOWN_MAX {
            let more = if shown == BAD_SHOWN_MAX { " (further ones are only counted)" } else { "" };
            self.meter
                .say(&format!("terrane: skipped {} line {}: {}{more}", self.name, bad.line, bad.reason));
        }
        Ok(())
    }

    /// Commits the batch with the position that follows it, and acknowledges it. What fails is counted
    /// nowhere.
    fn commit(&mut self, complete: bool) -> Result<(), Failure> {
        let Pending { mut batch, records, bad, replaced, position, .. } = std::mem::take(&mut self.pending);
        let mut next = self.progress.clone();
        next.records += records;
        next.bad += bad;
        next.replaced += replaced;
        next.position = position.unwrap_or(next.position);
        next.complete = complete;
        if terrane_base::planted!(SplitImportPosition) {
            self.db.write(&std::mem::take(&mut batch), self.sync)?;
        }
        batch.put(&self.positions, &self.position_key, next.encode())?;
        store::write(self.db, &batch, self.sync)?;
        self.progress = next;
        batch.clear();
        self.pending.batch = batch;
        if let Some((name, file)) = &mut self.acks {
            let line = format!("{}\n", self.progress.records);
            file.write_all(line.as_bytes()).map_err(|error| Failure::file(name, &error))?;
        }
        let records = self.progress.records - self.records_before;
        self.meter.show(self.read.load(Ordering::Relaxed), Some(records));
        Ok(())
    }
}

/// Returns true if a put was refused for its key or value, as by the limits or by the table's merge operator.
/// A batch that holds nothing else refuses it, too; an error of database or batch does not show
/// there.
fn is_of_row(error: &Error, table: &Table, row: &Row) -> bool {
    error.kind() == Kind::Invalid
        && matches!(Batch::new().put(table, &row.key, &row.value), Err(alone) if alone.kind() == Kind::Invalid)
}

/// Refuses records that name their table where the command line names another one.
pub(super) fn refuse_given(given: Option<&str>) -> Result<(), Failure> {
    given.map_or(Ok(()), |given| {
        let why = format!(
            "--table {given}: the input names its tables, as an export of all tables does: leave it out"
        );
        Err(Failure::new(Code::Usage, why))
    })
}

fn refuse_positions(table: &str) -> Result<(), Failure> {
    if table == position::TABLE {
        return Err(Failure::new(Code::Usage, format!("table {table} is kept for positions")));
    }
    Ok(())
}
