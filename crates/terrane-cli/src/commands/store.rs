//! Opening a database as the command line says.

use std::path::Path;

use terrane::{Db, Functions, KeyOrders, Options};

use crate::arguments::{Engine, Place, Range};
use crate::exit::{Code, Failure};
use crate::text::key_argument;

/// What a command does to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Reads: beside other readers, not beside a writer; writes nothing.
    Read,
    /// Writes what exists.
    Write,
    /// Writes, and creates the database if it is missing.
    Create,
}

/// The options that the command line sets over the defaults.
pub(super) fn options(engine: &Engine, access: Access) -> Result<Options, Failure> {
    let mut options = Options::default();
    if let Some(size) = &engine.memory {
        options.set("memory_bytes", size)?;
    }
    options.create_if_missing = access == Access::Create;
    options.read_only = access == Access::Read;
    for setting in &engine.options {
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            Failure::new(
                Code::Usage,
                format!("option {setting}: expected NAME=VALUE; `terrane options` lists them"),
            )
        })?;
        options.set(name.trim(), value.trim())?;
    }
    Ok(options)
}

/// Opens the database in `path`.
pub(super) fn open(engine: &Engine, path: &Path, access: Access) -> Result<Db, Failure> {
    Ok(Db::open_with(path, &options(engine, access)?)?)
}

/// Opens the database in `path` for reading, also where tables have orders of keys that are not at hand.
pub(super) fn open_any(engine: &Engine, path: &Path) -> Result<Db, Failure> {
    let options = options(engine, Access::Read)?;
    if !options.read_only {
        // Keys in any order are not to be written.
        return Err(Failure::new(
            Code::Usage,
            "option read_only=false: this command only reads; leave it out",
        ));
    }
    Ok(Db::open_with_functions(path, &options, any_order())?)
}

/// No functions, and whatever the order of keys of a table is.
pub(super) fn any_order() -> Functions {
    Functions { orders: KeyOrders::new().with_any(), ..Functions::default() }
}

/// Opens a database and one of its tables.
pub(super) fn open_table(
    engine: &Engine,
    place: &Place,
    access: Access,
) -> Result<(Db, terrane::Table), Failure> {
    let db = open(engine, &place.database, access)?;
    let table = db.table(&place.table)?;
    Ok((db, table))
}

/// The rows of a range of a table.
pub(super) fn rows(table: &terrane::Table, range: &Range) -> Result<terrane::Iter, Failure> {
    if let Some(prefix) = &range.prefix {
        return Ok(table.prefix(&key_argument(prefix)?));
    }
    let (from, to) = bounds(range)?;
    Ok(table.range((start(from.as_deref()), end(to.as_deref()))))
}

/// A key at which a range starts or before which it ends, or none.
pub(super) type Edge = Option<Vec<u8>>;

/// The first key of a range and the first key after it.
pub(super) fn bounds(range: &Range) -> Result<(Edge, Edge), Failure> {
    if let Some(prefix) = &range.prefix {
        let prefix = key_argument(prefix)?;
        let after = after_prefix(&prefix);
        return Ok((Some(prefix), after));
    }
    let key = |typed: &Option<String>| typed.as_deref().map(key_argument).transpose();
    Ok((key(&range.from)?, key(&range.to)?))
}

pub(super) fn start(key: Option<&[u8]>) -> std::ops::Bound<&[u8]> {
    key.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Included)
}

pub(super) fn end(key: Option<&[u8]>) -> std::ops::Bound<&[u8]> {
    key.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded)
}

/// The first key that is greater than all keys with this prefix.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte < 0xff)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    Some(after)
}
