//! `import --dry-run`: reads the input from its start, and says what an import would do. Writes nothing.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::{Db, Kind, Table};
use terrane_base::key::{check_key, check_value};

use super::import::tables_text;
use super::importer::refuse_given;
use super::store::{Access, open};
use crate::arguments::Engine;
use crate::arguments::import::Import;
use crate::exit::{Code, Failure};
use crate::import::{self, BadRow, Position, Row, Step, Syntax};
use crate::input::Input;
use crate::progress::{Meter, Unit};
use crate::signals::stopped;
use crate::text::{count, size};

/// Records between two looks at the progress and at signals.
const METER_RECORDS: u64 = 1024;

/// The counts of an import that writes nothing.
#[derive(Default)]
struct Counted {
    records: u64,
    bad: u64,
    /// Records of a key that the database has. A key that comes twice in the input would need all of them in
    /// memory.
    replaced: u64,
    /// Each table of the records, if it is there.
    tables: BTreeMap<String, Option<Table>>,
}

pub(super) fn tell(
    engine: &Engine,
    command: &Import,
    syntax: &Syntax,
    input: Input,
    stop: &AtomicBool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let db = match open(engine, &command.database, Access::Read) {
        Err(missing) if missing.code == Code::NotFound => None,
        opened => Some(opened?),
    };
    let mut meter = Meter::new("read", Unit::Bytes);
    meter.set_total(input.len);
    let failed = |error: std::io::Error| Failure::file(&input.name, &error);
    let mut records = import::open(input.source, syntax, Position::default()).map_err(failed)?;
    let (mut counted, mut row) = (Counted::default(), Row::default());
    loop {
        let step = records.next(&mut row);
        // Acquire: pairs with the store of the thread that waits for signals.
        if stop.load(Ordering::Acquire) {
            return Err(stopped("the input was not read to its end; nothing was imported"));
        }
        let line = records.position().line;
        match step.map_err(failed)? {
            Step::End => break,
            Step::Table(name, _) => {
                refuse_given(command.table.as_deref())?;
                counted.table(db.as_ref(), &name);
            }
            Step::Row => match check_key(&row.key).and_then(|()| check_value(&row.value)) {
                Ok(()) => counted.add(command, db.as_ref(), &row)?,
                Err(error) => {
                    let bad = BadRow { line, reason: error.message().to_owned() };
                    counted.bad(command, &input.name, &bad)?;
                }
            },
            Step::Bad(bad) => counted.bad(command, &input.name, &bad)?,
        }
        if counted.records % METER_RECORDS == 1 {
            meter.show(input.read.load(Ordering::Relaxed), Some(counted.records));
        }
    }
    drop(meter);
    let names = match counted.tables.is_empty() {
        true => vec![command.table().to_owned()],
        false => counted.tables.keys().cloned().collect(),
    };
    let (records, bytes) = (count(counted.records), size(records.position().offset));
    let mut text = format!("would import {records} records from {bytes} into {}", tables_text(&names));
    if counted.replaced > 0 {
        text += &format!("; {} would replace a row of the same key", count(counted.replaced));
    }
    if counted.bad > 0 {
        text += &format!("; {} bad records skipped", count(counted.bad));
    }
    Ok(writeln!(out, "{text}")?)
}

impl Counted {
    fn table(&mut self, db: Option<&Db>, name: &str) -> Option<Table> {
        if let Some(known) = self.tables.get(name) {
            return known.clone();
        }
        let table = db.and_then(|db| db.table(name).ok());
        self.tables.insert(name.to_owned(), table.clone());
        table
    }

    fn add(&mut self, command: &Import, db: Option<&Db>, row: &Row) -> Result<(), Failure> {
        if row.table.is_some() {
            refuse_given(command.table.as_deref())?;
        }
        let name = row.table.as_deref().unwrap_or(command.table());
        let table = self.table(db, name);
        self.records += 1;
        if command.blind {
            return Ok(());
        }
        let is_there = match table.map(|table| table.contains(&row.key)).transpose() {
            // A key whose operands cannot be folded is there, and a put mends it.
            Err(error) if error.kind() == Kind::Invalid => true,
            found => found?.unwrap_or(false),
        };
        self.replaced += u64::from(is_there);
        debug_assert!(self.replaced <= self.records, "a record replaces one row");
        Ok(())
    }

    fn bad(&mut self, command: &Import, name: &str, bad: &BadRow) -> Result<(), Failure> {
        self.bad += 1;
        if command.skip_bad {
            return Ok(());
        }
        let why =
            format!("{name} line {}: {}; an import stops here without --skip-bad", bad.line, bad.reason);
        Err(Failure::new(Code::Usage, why))
    }
}
