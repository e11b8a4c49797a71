//! `tables`: list, create, drop.

use std::io::Write;

use terrane::TableOptions;

use super::store::{Access, open};
use crate::arguments::{Engine, Tables};
use crate::exit::{Code, Failure};

pub(super) fn run(engine: &Engine, command: &Tables, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(name) = &command.create {
        let options = table_options(&command.set)?;
        let db = open(engine, &command.database, Access::Create)?;
        db.create_table(name, &options)?;
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

fn table_options(settings: &[String]) -> Result<TableOptions, Failure> {
    settings.iter().try_fold(TableOptions::new(), |options, setting| {
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            Failure::new(
                Code::Usage,
                format!("--set {setting}: expected NAME=VALUE; `terrane options` lists them"),
            )
        })?;
        Ok(options.set(name.trim(), value.trim())?)
    })
}
