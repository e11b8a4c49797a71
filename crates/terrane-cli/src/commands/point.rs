//! `get`, `put`, `merge`, `delete`: one key; `delete-range`: one record.

use std::io::{Read, Write};

use std::time::Duration;

use terrane::{Batch, Durability, Error, Kind, Options, Table, counter};

use super::store::{self, Access, close, end, open_table, start};
use super::{consent, functions};
use crate::arguments::{Delete, DeleteRange, Engine, Get, Merge, Put};
use crate::exit::{Code, Failure};
use crate::text::{self, Format, key_argument};

/// How often a follower is opened again because the writer merged extents that were being read.
const RETRIES_MAX: u32 = 20;

pub(super) fn get(engine: &Engine, command: &Get, out: &mut dyn Write) -> Result<(), Failure> {
    let key = key_argument(&command.key)?;
    let mut retries = 0;
    let (found, is_counter) = loop {
        let (_db, table) = open_table(engine, &command.place, Access::Read)?;
        match table.get(&key) {
            Err(gone) if gone.kind() == Kind::Gone && retries < RETRIES_MAX => retries += 1,
            found => break (found?, functions::is_counter(&table)),
        }
    };
    let Some(value) = found else {
        let message = format!("there is no key {:?} in table {:?}", command.key, command.place.table);
        return Err(Failure::new(Code::NotFound, message));
    };
    let operands = functions::operands(&value);
    if command.number && operands.is_none() {
        return Ok(writeln!(out, "{}", counter::decode(&value)?)?);
    }
    // A person wants the number, a program the bytes; bytes that are no number are shown as they are.
    let is_number = is_counter && command.format.is_none() && operands.is_none() && engine.is_shown();
    if is_number && let Ok(number) = counter::decode(&value) {
        return Ok(writeln!(out, "{number}")?);
    }
    let format = command.format.unwrap_or(Format::Raw);
    let mut shown = Vec::new();
    let value = operands.unwrap_or(&value);
    match format {
        Format::Json => text::write_row(format, &key, value, &mut shown),
        Format::Tsv | Format::Hex | Format::Raw => text::write_alone(format, "value", value, &mut shown),
    }
    // A person sees a prompt after it; a program gets the bytes and nothing else. In the place of a number
    // stands a line, as a number is one.
    let ends_line = engine.shell.map_or_else(|| engine.is_shown(), |shell| shell.ends_line);
    if command.number || format == Format::Raw && ends_line {
        shown.push(b'\n');
    }
    Ok(out.write_all(&shown)?)
}

pub(super) fn put(engine: &Engine, command: &Put) -> Result<(), Failure> {
    let key = key_argument(&command.key)?;
    let value = match command.value.as_str() {
        typed if command.number => number(typed, "value")?,
        typed if command.text => typed.as_bytes().to_vec(),
        "-" => {
            let mut value = Vec::new();
            // One byte beyond the limit is enough to be refused with the engine's own message.
            let most = terrane_base::key::VALUE_BYTES_MAX as u64 + 1;
            let read = std::io::stdin().lock().take(most).read_to_end(&mut value);
            read.map_err(|error| Failure::file("standard input", &error))?;
            value
        }
        typed => {
            text::parse_bytes(typed).map_err(|why| Failure::new(Code::Usage, format!("value: {why}")))?
        }
    };
    let (db, table) = open_table(engine, &command.place, Access::Create)?;
    let mut batch = Batch::new();
    let added = match &command.ttl {
        Some(ttl) => batch.put_with_ttl(&table, &key, &value, time(ttl)?),
        None => batch.put(&table, &key, &value),
    };
    added.map_err(|error| with_hint(error, &table, command.number, "value"))?;
    store::write(&db, &batch, sync(command.sync))?;
    close(engine, db)
}

pub(super) fn merge(engine: &Engine, command: &Merge) -> Result<(), Failure> {
    let key = key_argument(&command.key)?;
    let operand = if command.number {
        number(&command.operand, "operand")?
    } else {
        let usage = |why: String| Failure::new(Code::Usage, format!("operand: {why}"));
        text::parse_bytes(&command.operand).map_err(usage)?
    };
    let (db, table) = open_table(engine, &command.place, Access::Create)?;
    let mut batch = Batch::new();
    let added = batch.merge(&table, &key, &operand);
    added.map_err(|error| {
        let mut failure = with_hint(error, &table, command.number, "operand");
        if !functions::has_merges(&table) {
            let place = text::path(&command.place.database);
            failure.message += &format!(
                "; `terrane tables {place} --create NAME --set merge_operator=counter` makes one, and --table NAME names it"
            );
        }
        failure
    })?;
    store::write(&db, &batch, sync(command.sync))?;
    close(engine, db)
}

/// A whole number as a counter has it.
fn number(typed: &str, what: &str) -> Result<Vec<u8>, Failure> {
    let refused = || Failure::new(Code::Usage, format!("{what}: {typed:?} is not a whole number of 64 bits"));
    typed.parse().map(|number| counter::encode(number).to_vec()).map_err(|_| refused())
}

/// An error of a change, with the option that a table of counters asks for.
fn with_hint(error: Error, table: &Table, is_number: bool, what: &str) -> Failure {
    let is_refused = error.kind() == Kind::Invalid;
    let mut failure = Failure::from(error);
    let counts = table.kept_options().iter().any(|(_, value)| value == "counter");
    if is_refused && counts && !is_number {
        failure.message += &format!("; with --number the {what} is a number");
    }
    failure
}

/// A time as the option `time_to_live` takes it.
fn time(typed: &str) -> Result<Duration, Failure> {
    let mut options = Options::default();
    options.set("time_to_live", typed)?;
    let millis = options.time_to_live.millis();
    millis
        .map(Duration::from_millis)
        .ok_or_else(|| Failure::new(Code::Usage, "--ttl: leave it out for no time to live"))
}

pub(super) fn delete(engine: &Engine, command: &Delete) -> Result<(), Failure> {
    let key = key_argument(&command.key)?;
    let (db, table) = open_table(engine, &command.place, Access::Write)?;
    let mut batch = Batch::new();
    batch.delete(&table, &key)?;
    store::write(&db, &batch, sync(command.sync))?;
    close(engine, db)
}

pub(super) fn delete_range(
    engine: &Engine,
    command: &DeleteRange,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (first, behind) = command.bounds();
    let (from, to) = (key_argument(first)?, key_argument(behind)?);
    let asked = consent::until_removal(engine)?;
    let (db, table) = open_table(engine, &command.place, Access::Write)?;
    let rows = table.approximate_count((start(Some(&from)), end(Some(&to))))?;
    let remove = format!(
        "delete every key from {first:?} to before {behind:?} of table {:?}, about {} versions",
        command.place.table,
        text::count(rows.value)
    );
    let is_given = consent::is_given(&command.consent, &remove, out)?;
    drop(asked);
    if is_given {
        table.delete_range_with(&from, &to, sync(command.sync))?;
    }
    close(engine, db)
}

fn sync(wanted: bool) -> Durability {
    if wanted { Durability::Synced } else { Durability::Buffered }
}
