//! `get`, `put`, `delete`: one key; `delete-range`: one record.

use std::io::{IsTerminal, Read, Write};

use terrane::{Batch, Sync};

use super::store::{Access, open_table};
use crate::arguments::{Delete, DeleteRange, Engine, Get, Put};
use crate::exit::{Code, Failure};
use crate::text::{self, Format, key_argument};

pub(super) fn get(engine: &Engine, command: &Get, out: &mut dyn Write) -> Result<(), Failure> {
    let key = key_argument(&command.key)?;
    let (_db, table) = open_table(engine, &command.place, Access::Read)?;
    let Some(value) = table.get(&key)? else {
        let message = format!("there is no key {:?} in table {:?}", command.key, command.place.table);
        return Err(Failure::new(Code::NotFound, message));
    };
    let mut shown = Vec::new();
    text::write_value(command.format, &value, &mut shown);
    // A person sees a prompt after it; a program gets the bytes and nothing else.
    if command.format == Format::Raw && std::io::stdout().is_terminal() {
        shown.push(b'\n');
    }
    Ok(out.write_all(&shown)?)
}

pub(super) fn put(engine: &Engine, command: &Put) -> Result<(), Failure> {
    let key = key_argument(&command.key)?;
    let value = match command.value.as_str() {
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
    batch.put(&table, &key, &value)?;
    db.write(&batch, sync(command.sync))?;
    Ok(db.close()?)
}

pub(super) fn delete(engine: &Engine, command: &Delete) -> Result<(), Failure> {
    let key = key_argument(&command.key)?;
    let (db, table) = open_table(engine, &command.place, Access::Write)?;
    let mut batch = Batch::new();
    batch.delete(&table, &key)?;
    db.write(&batch, sync(command.sync))?;
    Ok(db.close()?)
}

pub(super) fn delete_range(engine: &Engine, command: &DeleteRange) -> Result<(), Failure> {
    let (from, to) = (key_argument(&command.from)?, key_argument(&command.to)?);
    let (db, table) = open_table(engine, &command.place, Access::Write)?;
    table.delete_range_with(&from, &to, sync(command.sync))?;
    Ok(db.close()?)
}

fn sync(wanted: bool) -> Sync {
    if wanted { Sync::Yes } else { Sync::No }
}
