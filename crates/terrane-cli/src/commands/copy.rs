//! `import --from rocksdb`: copies a database that RocksDB wrote, through RocksDB's own library.
//!
//! 1. Open the source for reading.
//! 2. Open the target: a new one, or one in which this copy was interrupted.
//! 3. Make a table for each column family: an invalid table name is reported before anything is copied.
//! 4. For each column family load its rows in order, without journal and memory, and store the progress after
//!    each load.
//! 5. Read all tables again and compare counts and checksums with what the source gave.
//!
//! Invariant: a table holds the front part of its column family, at least as far as the stored progress. Rows
//! that are loaded twice, because the process ended between a load and the progress, are the same.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::{Db, Table, TableOptions};
use terrane_base::env::Env;
use terrane_base::key::{check_key, check_value};
use terrane_bench::engine::rocksdb::source::{Order, Rows, Source};
use terrane_format::dump;

use super::copy_state::{State, Tally};
use super::position::TABLE;
use super::store::{Access, DEFAULT, open_setting};
use crate::arguments::Engine;
use crate::arguments::import::Import;
use crate::exit::{Code, Failure};
use crate::files;
use crate::progress::{Meter, Unit};
use crate::signals::stop_on_signals;
use crate::text::{count, size};

/// Bytes of rows in one load: what a kill costs at most.
const LOAD_BYTES: u64 = 256 << 20;
/// Rows between two updates of the progress bar.
const BAR_ROWS: u64 = 1024;

pub(super) fn run(engine: &Engine, command: &Import, out: &mut dyn Write) -> Result<(), Failure> {
    let directory = Path::new(&command.input);
    files::require(directory)?;
    let given = command.source_options.as_deref().unwrap_or_default();
    let source = Source::open(directory, command.library.as_deref(), given).map_err(|error| {
        let failure = failure(error);
        // A missing library has one code, and its error says where to get one.
        let is_missing = command.library.as_ref().is_some_and(|library| files::require(library).is_err());
        Failure { code: if is_missing { Code::NotFound } else { failure.code }, ..failure }
    })?;
    if source.families().iter().any(|family| family.name == TABLE) {
        let why =
            format!("{}: column family {TABLE}: tables of that name are kept for positions", command.input);
        return Err(Failure::new(Code::Usage, why));
    }
    let stop = stop_on_signals()?;
    let path = std::path::absolute(directory).map_err(|error| Failure::file(&command.input, &error))?;
    let state = State::new(path.display().to_string(), source.last_change(), operators(&source));
    let db = open_target(engine, &command.database, &source)?;
    let clock = Env::real().clock;
    let start = clock.now();
    let mut copy = match Copy::begin(&db, &source, state, stop, &command.database)? {
        Some(copy) => copy,
        None => {
            writeln!(out, "{} is copied and compared already", command.input)?;
            return Ok(db.close()?);
        }
    };
    let before = copy.state.rows();
    let done = copy.copy_all().and_then(|()| copy.compare());
    copy.meter.clear();
    let state = copy.state.clone();
    drop(copy);
    db.sync()?;
    let took = clock.now().saturating_sub(start).as_secs_f64();
    let rows = state.rows() - before;
    let rate = (rows as f64 / took.max(1e-9)) as u64;
    writeln!(
        out,
        "copied {} rows in {took:.2} s ({} rows/s) with {}",
        count(rows),
        count(rate),
        source.library().display()
    )?;
    if state.complete {
        report(&state, out)?;
    }
    out.flush()?;
    db.close()?;
    done
}

/// The names of the column families, and by which operators their merges are worked out.
fn operators(source: &Source) -> impl Iterator<Item = (String, Option<String>)> {
    source.families().iter().map(|family| (family.name.clone(), family.merge_operator.clone()))
}

fn report(state: &State, out: &mut dyn Write) -> Result<(), Failure> {
    for family in &state.families {
        let Tally { rows, bytes, checksum } = &family.tally;
        let (rows, bytes) = (count(*rows), size(*bytes));
        writeln!(
            out,
            "table {:?}: {rows} rows, {bytes}, checksum {checksum:08x}, as in the source",
            family.name
        )?;
    }
    Ok(())
}

fn failure(error: terrane_bench::error::Error) -> Failure {
    use terrane_bench::error::Error;
    let code = match &error {
        Error::Plan(_) => Code::Usage,
        Error::Unsupported { .. } => Code::NotFound,
        _ => Code::Other,
    };
    Failure::new(code, error.to_string())
}

/// Opens the target; its default table is made in the order that the default column family has.
fn open_target(engine: &Engine, path: &Path, source: &Source) -> Result<Db, Failure> {
    let default = source.families().iter().find(|family| family.name == DEFAULT);
    let is_reverse = default.is_some_and(|family| family.order == Order::Reverse);
    let more = is_reverse.then_some(("key_order", order_name(Order::Reverse)));
    open_setting(engine, path, Access::Create, more.as_slice())
}

fn order_name(order: Order) -> &'static str {
    match order {
        Order::Bytewise => "bytewise",
        Order::Reverse => "reverse",
    }
}

/// A copy at work.
struct Copy<'d> {
    db: &'d Db,
    source: &'d Source,
    positions: Table,
    state: State,
    stop: Arc<AtomicBool>,
    meter: Meter,
}

impl<'d> Copy<'d> {
    /// Takes up the copy that was stopped in `db`, or begins it; none if it is complete.
    fn begin(
        db: &'d Db,
        source: &'d Source,
        state: State,
        stop: Arc<AtomicBool>,
        path: &Path,
    ) -> Result<Option<Self>, Failure> {
        let path = path.display().to_string();
        let positions = match db.table(TABLE) {
            Ok(positions) => positions,
            Err(_) => {
                refuse_rows(db, &path)?;
                db.create_table(TABLE, &TableOptions::new())?
            }
        };
        let state = match State::read(&positions)? {
            Some(mut before) => {
                before.require_same(&state, &path)?;
                before.take_operators(&state)?;
                if before.complete {
                    return Ok(None);
                }
                before
            }
            None => {
                refuse_rows(db, &path)?;
                state
            }
        };
        // Before anything is merged by its operators.
        state.write(db, &positions)?;
        let expected = source.families().iter().map(|family| family.keys_estimated).sum();
        let mut meter = Meter::new("copy", Unit::Rows);
        meter.set_total(Some(expected));
        meter.begin_at(state.rows());
        Ok(Some(Copy { db, source, positions, state, stop, meter }))
    }

    fn copy_all(&mut self) -> Result<(), Failure> {
        let families = self.source.families();
        let tables = families.iter().map(|family| table(self.db, &family.name, family.order));
        let tables = tables.collect::<Result<Vec<_>, _>>()?;
        tables.iter().enumerate().try_for_each(|(index, table)| self.copy_family(index, table))
    }

    fn copy_family(&mut self, index: usize, table: &Table) -> Result<(), Failure> {
        if self.state.families[index].complete {
            return Ok(());
        }
        let last = self.state.families[index].last()?;
        let source = self.source;
        self.load_rows(index, table, &mut source.rows(index, last.as_deref()))
    }

    /// Loads the rows of a family, of which the first may be the last one that is there.
    fn load_rows(&mut self, index: usize, table: &Table, rows: &mut dyn Scan) -> Result<(), Failure> {
        loop {
            let copied = &self.state.families[index];
            let rows_before = self.state.rows() - copied.tally.rows;
            let mut load = Load {
                family: &copied.name,
                rows,
                after: copied.last()?,
                tally: copied.tally.clone(),
                last: None,
                room: LOAD_BYTES,
                ended: None,
                stop: &self.stop,
                rows_before,
                meter: &mut self.meter,
            };
            let loaded = self.db.bulk_load(table, &mut load);
            let (tally, last, ended) = (load.tally, load.last, load.ended);
            loaded?;
            let copied = &mut self.state.families[index];
            copied.tally = tally;
            if let Some(last) = last {
                copied.set_last(&last);
            }
            copied.complete = matches!(ended, Some(Ok(())));
            self.state.write(self.db, &self.positions)?;
            match ended {
                Some(Ok(())) => return Ok(()),
                Some(Err(failure)) => return Err(failure),
                None if self.stop.load(Ordering::Relaxed) => return Err(self.stopped()),
                None => {}
            }
        }
    }

    fn stopped(&self) -> Failure {
        let rows = count(self.state.rows());
        Failure::new(
            Code::Stopped,
            format!("stopped by a signal after {rows} rows; the same command goes on"),
        )
    }

    /// Reads every table and compares it with what the source gave.
    fn compare(&mut self) -> Result<(), Failure> {
        self.meter = Meter::new("compare", Unit::Rows);
        self.meter.set_total(Some(self.state.rows()));
        let mut compared = 0;
        for family in &self.state.families {
            let mut tally = Tally::default();
            for row in self.db.table(&family.name)?.iter() {
                let (key, value) = row?;
                tally.add(&key, &value);
                if tally.rows.is_multiple_of(BAR_ROWS) {
                    compared += BAR_ROWS;
                    self.meter.show(compared, None);
                    if self.stop.load(Ordering::Relaxed) {
                        return Err(self.stopped());
                    }
                }
            }
            if tally != family.tally {
                let why = format!(
                    "table {:?} is not what the source gave: {tally:?}, expected {:?}; remove the database, and copy again",
                    family.name, family.tally
                );
                return Err(Failure::new(Code::Corrupt, why));
            }
        }
        self.state.complete = true;
        self.state.write(self.db, &self.positions)
    }
}

/// Refuses a database that has anything in it but what a copy leaves that did not come to its first load.
fn refuse_rows(db: &Db, path: &str) -> Result<(), Failure> {
    let tables = db.tables();
    let other = tables.iter().find(|name| *name != DEFAULT && *name != TABLE);
    let filled = match other {
        Some(name) => Some(name.as_str()),
        None => {
            let mut found = None;
            for name in &tables {
                if db.table(name)?.iter().next().transpose()?.is_some() {
                    found = Some(name.as_str());
                }
            }
            found
        }
    };
    match filled {
        None => Ok(()),
        Some(name) => Err(Failure::new(
            Code::Usage,
            format!("{path} is not empty: it has the table {name:?}; a copy goes into a new database"),
        )),
    }
}

fn table(db: &Db, name: &str, order: Order) -> Result<Table, Failure> {
    match db.table(name) {
        Err(error) if error.kind() == terrane::Kind::NotFound => {
            let options = TableOptions::new().set("key_order", order_name(order))?;
            Ok(db.create_table(name, &options)?)
        }
        table => Ok(table?),
    }
}

/// A key and its value.
type Row = (Vec<u8>, Vec<u8>);

/// A key and its value where they lie.
type Shown<'r> = (&'r [u8], &'r [u8]);

/// Rows of a column family, one after the other.
trait Scan {
    /// The next row, or none at the end.
    fn next_row(&mut self) -> Result<Option<Shown<'_>>, Failure>;
}

impl Scan for Rows<'_> {
    fn next_row(&mut self) -> Result<Option<Shown<'_>>, Failure> {
        Rows::next_row(self).map_err(failure)
    }
}

/// The rows of one load.
struct Load<'l> {
    family: &'l str,
    rows: &'l mut dyn Scan,
    /// The key before the first row, which is not loaded again.
    after: Option<Vec<u8>>,
    tally: Tally,
    last: Option<Vec<u8>>,
    room: u64,
    /// How the family ended, if it did.
    ended: Option<Result<(), Failure>>,
    stop: &'l AtomicBool,
    /// Rows of the families before.
    rows_before: u64,
    meter: &'l mut Meter,
}

impl Iterator for Load<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Self::Item> {
        if self.room == 0 || self.ended.is_some() || self.stop.load(Ordering::Relaxed) {
            return None;
        }
        match self.row() {
            Ok(Some(row)) => Some(row),
            Ok(None) => {
                self.ended = Some(Ok(()));
                None
            }
            Err(failure) => {
                self.ended = Some(Err(failure));
                None
            }
        }
    }
}

impl Load<'_> {
    fn row(&mut self) -> Result<Option<Row>, Failure> {
        loop {
            let Some((key, value)) = self.rows.next_row()? else { return Ok(None) };
            if self.after.take().is_some_and(|after| after == key) {
                continue;
            }
            check_key(key)
                .and_then(|()| check_value(value))
                .map_err(|error| unfit(error, self.family, key))?;
            self.tally.add(key, value);
            self.room = self.room.saturating_sub((key.len() + value.len()) as u64);
            self.last = Some(key.to_vec());
            if self.tally.rows.is_multiple_of(BAR_ROWS) {
                self.meter.show(self.rows_before + self.tally.rows, None);
            }
            return Ok(Some((key.to_vec(), value.to_vec())));
        }
    }
}

/// Says where a row is that no table can have.
fn unfit(error: terrane::Error, family: &str, key: &[u8]) -> Failure {
    error.context(format!("column family {family:?}, key {} of {} bytes", dump::text(key), key.len())).into()
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
