//! Opening a database as the command line says, and writing to it.

use std::path::Path;

use terrane::{Batch, Db, Durability, Follower, Kind, Options, Table, TableOptions};

use super::deployment::{self, Target};
use super::functions;
use crate::arguments::{Engine, Range, TableArgs};
use crate::exit::{Code, Failure};
use crate::files;
use crate::text::{self, key_argument};

/// The table that every database has.
pub(super) const DEFAULT: &str = "default";

/// How a command uses the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Reads: a view, beside other readers and a writer that is there or comes; writes nothing.
    Read,
    /// Writes what exists.
    Write,
    /// Writes, and creates the database if it is missing.
    Create,
}

/// The options that the command line sets over the defaults.
pub(super) fn options(engine: &Engine, access: Access) -> Result<Options, Failure> {
    options_over(Options::default(), engine, access)
}

/// The options that the command line sets over `options`.
pub(super) fn options_over(
    mut options: Options,
    engine: &Engine,
    access: Access,
) -> Result<Options, Failure> {
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
        functions::check_named(name.trim(), value.trim())?;
    }
    Ok(options)
}

/// Opens the database in `path`. For reading it is a follower's view, which keeps no writer out.
pub(super) fn open(engine: &Engine, path: &Path, access: Access) -> Result<Db, Failure> {
    open_setting(engine, path, access, &[])
}

/// [`open`], with options over those of the command line.
pub(super) fn open_setting(
    engine: &Engine,
    path: &Path,
    access: Access,
    more: &[(&str, &str)],
) -> Result<Db, Failure> {
    if let Some(db) = &engine.opened {
        return Ok(db.clone());
    }
    if engine.moment().is_some() && access != Access::Read {
        let why = "--at and --at-commit: an earlier state is only read; leave them out to write";
        return Err(Failure::new(Code::Usage, why));
    }
    match deployment::target(path)? {
        Target::Deployment(parts) => deployment::open(engine, path, &parts, access, more),
        Target::Directory if engine.moment().is_some() => {
            let shown = text::path(path);
            let why = format!(
                "{shown}: --at and --at-commit need a deployment: a directory keeps no earlier states; restore a backup \
                 of then"
            );
            Err(Failure::new(Code::Usage, why))
        }
        Target::Directory => {
            let mut options = options(engine, access)?;
            more.iter().try_for_each(|(name, value)| options.set(name, value))?;
            match options.read_only {
                true => open_view(path, &options, !engine.is_opened_again).map(|(view, _)| view),
                false => open_to_write(path, &options),
            }
        }
    }
}

/// The engine for the rest of a command that opened `db`: lines about the database come once, and an
/// earlier moment is opened once. A time of which the object store has nothing later yet would be another
/// state at each opening.
pub(super) fn opened_once(engine: &Engine, db: &Db) -> Engine {
    let held = engine.moment().map(|_| db.clone());
    Engine { opened: held.or_else(|| engine.opened.clone()), is_opened_again: true, ..engine.clone() }
}

/// Opens the database in `path`, never for writing; with the follower of which it is a view, if it lies in a
/// directory.
pub(super) fn open_to_check(engine: &Engine, path: &Path) -> Result<(Db, Option<Follower>), Failure> {
    let options = options(engine, Access::Read)?;
    if !options.read_only {
        return Err(Failure::new(
            Code::Usage,
            "option read_only=false: this command only reads; leave it out",
        ));
    }
    let is_directory = engine.opened.is_none() && engine.moment().is_none();
    match is_directory && matches!(deployment::target(path)?, Target::Directory) {
        true => open_view(path, &options, true),
        false => Ok((open(engine, path, Access::Read)?, None)),
    }
}

fn open_to_write(path: &Path, options: &Options) -> Result<Db, Failure> {
    debug_assert!(!options.read_only, "a view is opened without the lock");
    let opened = Db::open_with_functions(path, options, functions::writing());
    let db = opened.map_err(|error| refused(error, options))?;
    report_break(&db, path, false);
    Ok(db)
}

/// Opens a view, which keeps no writer out, and its follower; says of which commit it is beside a writer.
/// Only a journal in persistent memory is read with the lock: a reader maps the pool, which its writer must
/// have to itself.
fn open_view(path: &Path, options: &Options, says: bool) -> Result<(Db, Option<Follower>), Failure> {
    if options.pmem_path.get().is_some() {
        let opened = Db::open_with_functions(path, options, functions::reading());
        let db = opened.map_err(|error| refused(error, options))?;
        report_break(&db, path, true);
        return Ok((db, None));
    }
    let opened = Db::open_follower_with(path, options, functions::reading());
    let follower = opened.map_err(|error| refused(error, options))?;
    let view = follower.view();
    debug_assert!(view.options().read_only, "a view is never written to");
    match follower.writer() {
        _ if !says => {}
        Some(writer) => {
            let (why, seq) = (text::shown(&writer), follower.stats().seq);
            eprintln!("terrane: {why}: reading it as beside a writer, as it is at commit {seq}");
        }
        None => report_break(&view, path, true),
    }
    Ok((view, Some(follower)))
}

/// The failure of an opening.
fn refused(error: terrane::Error, options: &Options) -> Failure {
    let is_missing = error.kind() == Kind::NotFound && !options.create_if_missing;
    let mut failure = Failure::from(error);
    if is_missing {
        // The remedy of the error is an option that the command sets itself.
        failure.message = failure.message.replace(
            "set create_if_missing to make one",
            "put, import, copy and `terrane shell --create` make one",
        );
    }
    failure
}

/// Prints that the opening found sound records that it did not bring back.
fn report_break(db: &Db, path: &Path, is_read_only: bool) {
    let stats = db.stats();
    let (found, lost) = (stats.records_behind_break, stats.records_behind_break_lost);
    let shown = text::path(path);
    let report = |records: u64, what: &str| {
        if records > 0 {
            eprintln!(
                "terrane: {shown}: the journal breaks, and {records} sound records behind the break are {what}"
            );
        }
    };
    if is_read_only {
        report(found, "not shown: `terrane check` names the place; repair it before anything writes to it");
        return;
    }
    report(
        found.saturating_sub(lost),
        "set aside: `terrane check` names the files; `terrane repair` reads them",
    );
    report(lost, "lost: there was no room to set them aside");
}

/// Closes a database that [`open`] gave, unless it is that of a shell.
pub(super) fn close(engine: &Engine, db: Db) -> Result<(), Failure> {
    match engine.opened {
        Some(_) => Ok(()),
        None => Ok(db.close()?),
    }
}

/// Opens a database and one of its tables.
pub(super) fn open_table(engine: &Engine, place: &TableArgs, access: Access) -> Result<(Db, Table), Failure> {
    let db = open(engine, &place.database, access)?;
    let table = db.table(&place.table)?;
    functions::check_order(&table)?;
    Ok((db, table))
}

/// Returns true if a command that makes a database would make one at `path`, in a directory of this machine.
pub(super) fn is_new(engine: &Engine, path: &Path) -> Result<bool, Failure> {
    let is_directory = engine.opened.is_none() && matches!(deployment::target(path)?, Target::Directory);
    Ok(is_directory && matches!(files::kind(path), Ok(None | Some(files::Occupied::Empty))))
}

/// The table `name` with these options; made if it is missing.
pub(super) fn table_as(db: &Db, name: &str, options: &[(String, String)]) -> Result<Table, Failure> {
    match db.table(name) {
        Ok(table) => {
            let found = table.kept_options();
            if found.iter().all(|option| options.contains(option)) && found.len() == options.len() {
                return Ok(table);
            }
            let shown = |options: &[(String, String)]| match options {
                [] => "no options".to_owned(),
                some => {
                    some.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
                }
            };
            let remedy = match name {
                "default" => "give them with -o when the database is made",
                _ => "take another database, or drop that table",
            };
            let (found, wanted) = (shown(&found), shown(options));
            let why =
                format!("table {name:?} has {found} here, and {wanted} where the rows come from: {remedy}");
            Err(Failure::new(Code::Usage, why))
        }
        Err(error) if error.kind() == Kind::NotFound => {
            let set = |made: TableOptions, (name, value): &(String, String)| made.set(name, value);
            Ok(db.create_table(name, &options.iter().try_fold(TableOptions::new(), set)?)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes a batch; where it is too large for the memory that the command gives the engine, the error says how
/// much memory is enough.
pub(super) fn write(db: &Db, batch: &Batch, sync: Durability) -> Result<(), Failure> {
    let Err(error) = db.write(batch, sync) else { return Ok(()) };
    let Some(enough) = error.memory_enough() else { return Err(error.into()) };
    let enough = enough.div_ceil(1 << 20);
    let (bytes, memory) = (text::size(batch.bytes() as u64), text::size(db.options().memory_bytes));
    let why = format!(
        "{bytes} are to be written at once, more than {memory} of memory allow: give --memory {enough}MiB"
    );
    Err(Failure::new(Code::Usage, why))
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

/// Refuses a range of a table whose end is before its start: nothing is in it, and the two were most likely
/// typed in the wrong order. What another order than that of bytes says of them is left to the engine.
pub(super) fn check_range(table: &Table, from: &Edge, to: &Edge) -> Result<(), Failure> {
    match (from, to) {
        (Some(from), Some(to)) if from > to && table.key_order() == "bytewise" => {
            let (from, to) = (from.escape_ascii(), to.escape_ascii());
            let why = format!("the range from \"{from}\" to before \"{to}\" ends before it begins");
            Err(Failure::new(Code::Usage, why))
        }
        _ => Ok(()),
    }
}

/// The first key that is greater than all keys with this prefix.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte < 0xff)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    Some(after)
}
