//! `copy`: tables of one database into another, sorted, past journal and memory of the target.
//!
//! Invariant: each load is one commit, so that what a stop or a crash leaves is a front part of each table.

use std::io::Write;

use terrane::{Db, Row, Table};

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
    let target = open(&engine.now(), &command.target, Access::Create)?;
    let mut meter = Meter::new("copy", Unit::Rows);
    let (mut all, mut tables) = (0, 0);
    for name in names {
        let into = command.into.as_ref().unwrap_or(&name);
        let place = TableArgs { database: command.source.clone(), table: name.clone() };
        let mut rows = Rows::open(&reading, &place, &command.range, false)?;
        let table = table_as(&target, into, &rows.table.kept_options())?;
        all = load(&target, &table, &mut rows, &mut meter, all)?;
        left_out.rows(&rows.table, rows.left_out);
        tables += 1;
    }
    drop(meter);
    writeln!(out, "copied {} rows of {tables} tables", count(all))?;
    close(engine, target)?;
    left_out.end()
}

/// Loads all rows of a table; `before` were copied before, and the result with these is returned.
fn load(db: &Db, table: &Table, rows: &mut Rows<'_>, meter: &mut Meter, before: u64) -> Result<u64, Failure> {
    let mut copied = before;
    loop {
        let mut load = Load { rows, meter, copied: &mut copied, room: LOAD_BYTES, ended: None };
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
    copied: &'l mut u64,
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
                *self.copied += 1;
                self.meter.show(*self.copied, None);
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
