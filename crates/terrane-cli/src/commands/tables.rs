//! `tables`: list, create, drop.

use std::io::Write;

use terrane::TableOptions;

use super::store::{Access, open};
use crate::arguments::{Engine, Tables};
use crate::exit::Failure;

pub(super) fn run(engine: &Engine, command: &Tables, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(name) = &command.create {
        let db = open(engine, &command.database, Access::Create)?;
        db.create_table(name, &TableOptions::new())?;
        return Ok(db.close()?);
    }
    if let Some(name) = &command.drop {
        let db = open(engine, &command.database, Access::Write)?;
        db.drop_table(name)?;
        return Ok(db.close()?);
    }
    let db = open(engine, &command.database, Access::Read)?;
    for name in db.tables() {
        writeln!(out, "{name}")?;
    }
    Ok(())
}
