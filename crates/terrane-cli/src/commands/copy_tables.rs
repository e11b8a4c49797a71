//! `copy`: tables of one database into another, sorted, past journal and memory of the target.
//!
//! Invariant: each load is one commit, so that what a stop or a crash leaves is a front part of each table.

use std::io::Write;

use terrane::{Db, Kind, Row, Table};

use super::functions::LeftOut;
use super::position;
use super::rows::Rows;
use super::store::{Access, close, open, opened_once, table_as};
use crate::arguments::export::Copy;
use crate::arguments::{Engine, TableArgs};
use crate::exit::{Code, Failure};
use crate::files;
use crate::progress::{Meter, Unit};
use crate::text::{count, path};

/// Bytes of rows in one load.
const LOAD_BYTES: u64 = 256 << 20;

pub(super) fn run(engine: &Engine, command: &Copy, out: &mut dyn Write) -> Result<(), Failure> {
    if engine.opened.is_some() {
        return Err(Failure::new(Code::Usage, "copy works on two databases: run it outside of the shell"));
    }
    if files::is_same(&command.source, &command.target) {
        let why = format!("{} is the source and the target: name another directory", path(&command.target));
        return Err(Failure::new(Code::Usage, why));
    }
    files::refuse_within(&command.source, &command.target)?;
    let source = open(engine, &command.source, Access::Read)?;
    let names = match &command.table {
        Some(name) => vec![name.clone()],
        None => source.tables().into_iter().filter(|name| name != position::TABLE).collect(),
    };
    let (names, mut left_out) = LeftOut::split(&source, names)?;
    let reading = opened_once(engine, &source);
    drop(source);
    let target = open_target(engine, command)?;
    let mut meter = Meter::new("copy", Unit::Rows);
    let (mut all, mut tables) = (Copied::default(), 0);
    for name in names {
        let into = command.into.as_ref().unwrap_or(&name);
        let place = TableArgs { database: command.source.clone(), table: name.clone() };
        let mut rows = Rows::open(&reading, &place, &command.range, false)?;
        let table = match (&target, command.dry_run) {
            (Some(target), false) => Some(table_as(target, into, &rows.table.kept_options())?),
            (Some(target), true) => target.table(into).ok(),
            (None, _) => None,
        };
        match &target {
            Some(target) if !command.dry_run => {
                let table = table.as_ref().expect("it was made where it was missing");
                all = load(target, table, &mut rows, &mut meter, all)?;
            }
            _ => all = count_only(table.as_ref(), &mut rows, &mut meter, all)?,
        }
        left_out.rows(&rows.table, rows.left_out);
        tables += 1;
    }
    drop(meter);
    let done = if command.dry_run { "would copy" } else { "copied" };
    let replaced = match (all.replaced, command.dry_run) {
        (0, _) => String::new(),
        (some, true) => format!("; {} would replace a row of the same key", count(some)),
        (some, false) => format!("; {} replaced a row of the same key", count(some)),
    };
    writeln!(out, "{done} {} rows of {tables} tables{replaced}", count(all.rows))?;
    if let Some(target) = target.filter(|_| !command.dry_run) {
        close(engine, target)?;
    }
    left_out.end()
}

/// Opens the target; for a dry run only if it is there, and for reading.
fn open_target(engine: &Engine, command: &Copy) -> Result<Option<Db>, Failure> {
    if !command.dry_run {
        return open(&engine.now(), &command.target, Access::Create).map(Some);
    }
    match open(&engine.now(), &command.target, Access::Read) {
        Err(missing) if missing.code == Code::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// The rows so far.
#[derive(Clone, Copy, Debug, Default)]
struct Copied {
    rows: u64,
    /// Of those, rows of a key that the target had.
    replaced: u64,
}

impl Copied {
    fn add(&mut self, table: Option<&Table>, key: &[u8]) -> Result<(), Failure> {
        self.rows += 1;
        let is_there = match table.map(|table| table.contains(key)).transpose() {
            // A key whose operands cannot be folded is there.
            Err(error) if error.kind() == Kind::Invalid => true,
            found => found?.unwrap_or(false),
        };
        self.replaced += u64::from(is_there);
        debug_assert!(self.replaced <= self.rows, "a row replaces one other");
        Ok(())
    }
}

/// Counts all rows of a table, and those of which `target` has the key.
fn count_only(
    target: Option<&Table>,
    rows: &mut Rows<'_>,
    meter: &mut Meter,
    before: Copied,
) -> Result<Copied, Failure> {
    let mut counted = before;
    while let Some((key, _)) = rows.next_whole()? {
        counted.add(target, &key)?;
        meter.show(counted.rows, None);
    }
    Ok(counted)
}

/// Loads all rows of a table; `before` were copied before, and the result with these is returned.
fn load(
    db: &Db,
    table: &Table,
    rows: &mut Rows<'_>,
    meter: &mut Meter,
    before: Copied,
) -> Result<Copied, Failure> {
    let mut copied = before;
    // A table without rows has none of the keys.
    let looked_up = table.iter().without_values().next().transpose()?.is_some().then_some(table);
    loop {
        let mut load = Load { rows, meter, copied: &mut copied, looked_up, room: LOAD_BYTES, ended: None };
        let loaded = db.bulk_load(table, &mut load);
        let ended = load.ended;
        loaded?;
        match ended {
            Some(Ok(())) => return Ok(copied),
            Some(Err(failure)) => return Err(failure),
            None => {}
        }
    }
}

/// The rows of one load.
struct Load<'l, 'a> {
    rows: &'l mut Rows<'a>,
    meter: &'l mut Meter,
    copied: &'l mut Copied,
    /// The table in which replaced keys are looked up, if it had any.
    looked_up: Option<&'l Table>,
    room: u64,
    /// How the table ended, if it did.
    ended: Option<Result<(), Failure>>,
}

impl Iterator for Load<'_, '_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        if self.room == 0 || self.ended.is_some() {
            return None;
        }
        match self.rows.next_whole() {
            Ok(Some((key, value))) => {
                self.room = self.room.saturating_sub((key.len() + value.len()) as u64);
                if let Err(failure) = self.copied.add(self.looked_up, &key) {
                    self.ended = Some(Err(failure));
                    return None;
                }
                self.meter.show(self.copied.rows, None);
                Some((key, value))
            }
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
