//! `tables`: list, create, drop.

use std::io::Write;

use serde_json::json;
use terrane::{Db, TableOptions, TableShape, ValuesShape};

use super::store::{Access, close, open};
use super::{consent, position};
use super::{follow, functions};
use crate::arguments::{Engine, Tables};
use crate::exit::{Code, Failure};
use crate::text::{count, shown, size};

pub(super) fn run(engine: &Engine, command: &Tables, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(name) = &command.create {
        let options = table_options(&command.set)?;
        let db =
            open(engine, &command.database, Access::Create).map_err(|refused| with_set(engine, refused))?;
        db.create_table(name, &options)?;
        return close(engine, db);
    }
    if let Some(name) = &command.drop {
        let db = open(engine, &command.database, Access::Write)?;
        db.table(name)?;
        let shape = db.shape();
        let table = shape.tables.iter().find(|table| table.name == *name);
        let (entries, bytes) = table.map_or((0, 0), amounts);
        let remove = format!("drop table {name:?}: {} versions, {}", count(entries), size(bytes));
        if consent::is_given(&command.consent, &remove, out)? {
            db.drop_table(name)?;
        }
        return close(engine, db);
    }
    if command.json {
        let db = open(engine, &command.database, Access::Read)?;
        return list_json(&db, out);
    }
    if !command.long {
        let db = open(engine, &command.database, Access::Read)?;
        return db.tables().into_iter().try_for_each(|name| Ok(writeln!(out, "{}", shown(name))?));
    }
    follow::each_second(engine, &command.database, command.follow, out, &mut |db, out| list(db, out))
}

/// A refusal with the argument for options of a table, if such an option was given as one of the database.
fn with_set(engine: &Engine, mut refused: Failure) -> Failure {
    let is_of_table = |setting: &&String| {
        let setting = setting.split_once('=');
        setting.is_some_and(|(name, value)| TableOptions::new().set(name.trim(), value.trim()).is_ok())
    };
    if let Some(setting) = engine.options.iter().find(is_of_table).filter(|_| refused.code == Code::Usage) {
        refused.message += &format!("; an option of the new table is given as --set {setting}");
    }
    refused
}

/// Name, versions, bytes, value tables and options of each table.
pub(super) fn list(db: &Db, out: &mut dyn Write) -> Result<(), Failure> {
    let shape = db.shape();
    let names = db.tables();
    let width = names.iter().map(|name| shown(name).chars().count()).max().unwrap_or(0).max("table".len());
    writeln!(
        out,
        "{:<width$}  {:>14}  {:>10}  {:>10}  {:>6}  options",
        "table", "versions", "bytes", "values", "dead"
    )?;
    for name in names {
        let table = shape.tables.iter().find(|table| table.name == name);
        let (entries, bytes) = table.map_or((0, 0), amounts);
        let values = table.map_or_else(ValuesShape::default, |table| table.values);
        let options = db.table(&name)?.kept_options();
        let mut options: Vec<_> = options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if name == position::TABLE {
            options.push("(positions of imports)".to_owned());
        }
        let line = format!(
            "{:<width$}  {:>14}  {:>10}  {:>10}  {:>6}  {}",
            shown(&name),
            count(entries),
            size(bytes),
            if values.tables > 0 { size(values.bytes) } else { "-".to_owned() },
            if values.tables > 0 { share(values.dead_permille()) } else { "-".to_owned() },
            shown(options.join(" "))
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// As [`list`], for programs.
fn list_json(db: &Db, out: &mut dyn Write) -> Result<(), Failure> {
    let shape = db.shape();
    for name in db.tables() {
        let table = shape.tables.iter().find(|table| table.name == name);
        let (entries, bytes) = table.map_or((0, 0), amounts);
        let values = table.map_or_else(ValuesShape::default, |table| table.values);
        let options: serde_json::Map<_, _> =
            db.table(&name)?.kept_options().into_iter().map(|(name, value)| (name, value.into())).collect();
        let object = json!({
            "table": name,
            "versions": entries,
            "bytes": bytes,
            "value_bytes": values.bytes,
            "value_dead_permille": values.dead_permille(),
            "options": options,
        });
        writeln!(out, "{object}")?;
    }
    Ok(())
}

/// A share in percent.
pub(super) fn share(permille: u64) -> String {
    format!("{}.{}%", permille / 10, permille % 10)
}

/// Versions and bytes of a table, in memory and in extents, value tables included.
fn amounts(table: &TableShape) -> (u64, u64) {
    let levels = || table.runs.iter().chain(&table.levels);
    let entries = table.memtable_entries + table.frozen_entries + table.generation_entries;
    let bytes = table.memtable_bytes + table.frozen_bytes + table.generation_bytes;
    (
        entries + levels().map(|level| level.entries).sum::<u64>(),
        bytes + levels().map(|level| level.bytes).sum::<u64>() + table.values.bytes,
    )
}

fn table_options(settings: &[String]) -> Result<TableOptions, Failure> {
    settings.iter().try_fold(TableOptions::new(), |options, setting| {
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            Failure::new(
                Code::Usage,
                format!("--set {setting}: expected NAME=VALUE; `terrane options` lists them"),
            )
        })?;
        functions::check_named(name.trim(), value.trim())?;
        Ok(options.set(name.trim(), value.trim())?)
    })
}
