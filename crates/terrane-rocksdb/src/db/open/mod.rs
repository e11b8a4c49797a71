//! Opens a database from a path and options.

pub(crate) mod attachments;
pub(crate) mod handles;
pub(crate) mod info_files;
pub(crate) mod secondary;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use std::ffi::CString;

use terrane::{Db, Env, Follower, Functions, Kind, OperatorName, Table};

use crate::batch::wal_filter::{Filtering, LogFilter};
use crate::callbacks::comparator::BYTEWISE;
use crate::callbacks::operator_registry::{Slots, any_functions};
use crate::callbacks::order::Order;
use crate::db::asked::Asked;
use crate::db::open::attachments::Attached;
use crate::db::secondary_views::Views;
use crate::db::timestamps::History;
use crate::db::timestamps::timestamp_gc::Collapsing;
use crate::db::{DEFAULT, Database, Family};
use crate::ffi::failure::{Failure, Result};
use crate::files;
use crate::options::blobs::value_options;
use crate::options::database::Options;
use crate::options::ignored::{refuse_if_strict, warnings};
use crate::options::to_engine::{AUTO_COMPACTION, database_options, extractor, order_of, table_options};

/// A column family to open, by name.
pub(crate) struct Wanted<'a> {
    pub(crate) name: &'a str,
    pub(crate) options: &'a Options,
    /// Seconds that written rows live; for ever if it is not above 0.
    pub(crate) ttl_seconds: i32,
}

/// How a database is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Write,
    Read,
    /// Of a database that another process has open: its state now, and later states on request.
    Follow,
}

/// Opens the database at `path` with all these column families.
pub(crate) fn open(path: &str, options: &Options, wanted: &[Wanted<'_>], access: Access) -> Result<Database> {
    let default = wanted.iter().find(|wanted| wanted.name == DEFAULT);
    let default = default.ok_or_else(|| Failure::invalid("Default column family not specified"))?;
    let all_options: Vec<&Options> =
        std::iter::once(options).chain(wanted.iter().map(|wanted| wanted.options)).collect();
    refuse_if_strict(&all_options)?;
    let slots = Arc::new(Slots::default());
    for wanted in wanted {
        slots.of(wanted.name).set(wanted.options.merge_operator.clone());
        slots.compare_by(wanted.options.comparator.as_ref());
    }
    let mut engine_options = database_options(options, default.options, &slots.of(DEFAULT))?;
    engine_options.create_if_missing = access == Access::Write && options.fields.create_if_missing != 0;
    // As RocksDB, which looks for its own names only.
    engine_options.beside_others = true;
    engine_options.error_if_exists = access == Access::Write && options.fields.error_if_exists != 0;
    engine_options.read_only = access != Access::Write;
    let is_in_memory = options.environment.as_ref().is_some_and(|environment| environment.memory.is_some());
    if is_in_memory && engine_options.direct_io {
        return Err(Failure::invalid("use_direct_reads: an environment in memory has no device"));
    }
    if !is_in_memory {
        refuse_by_presence(path, &engine_options)?;
        if files::is_database(Path::new(path)) {
            // The default table keeps what it was made with, and need not have been made here.
            engine_options.merge_operator = OperatorName::none();
        }
    }
    let (db, follower) = match access {
        Access::Follow => {
            let follower = follow_engine(path, options, &engine_options, slots.functions())?;
            (follower.view(), Some(follower))
        }
        _ => {
            let opened = match filter_of(options, wanted, access)? {
                None => open_engine(path, options, &engine_options, slots.functions()),
                Some(filter) => {
                    let filtering = Filtering::new(filter, ttls(wanted));
                    open_filtered(path, options, &engine_options, slots.functions(), &filtering)
                }
            };
            (opened.map_err(|failure| of_comparator(failure, wanted))?, None)
        }
    };
    let attached = Attached::of(options, follower);
    let create = access == Access::Write && options.fields.create_missing_column_families != 0;
    let opened = check_names(&db, wanted, create, access)
        .and_then(|()| open_families((db.clone(), attached), wanted, &slots, access));
    let opened = opened.and_then(|database| {
        database.begin_info(options, path)?;
        warnings(&all_options).iter().for_each(|line| database.warn(line));
        Ok(database)
    });
    // The caller gets this failure; the opened database has no change that the close could lose.
    opened.inspect_err(|_| drop(db.close()))
}

/// RocksDB's error for a database that is missing, or that exists against the wish.
fn refuse_by_presence(path: &str, options: &terrane::Options) -> Result<()> {
    let is_there = files::is_database(Path::new(path));
    if !is_there && options.read_only {
        return Err(Failure::io(format_args!(
            "No such file or directory: While opening a file for sequentially reading: {path}/CURRENT: No such file or directory"
        )));
    }
    if !is_there && !options.create_if_missing {
        return Err(Failure::invalid(format_args!(
            "{path}/CURRENT: does not exist (create_if_missing is false)"
        )));
    }
    if is_there && options.error_if_exists {
        return Err(Failure::invalid(format_args!("{path}: exists (error_if_exists is true)")));
    }
    Ok(())
}

/// The filter of the log, where there is one and it can be asked.
fn filter_of(options: &Options, wanted: &[Wanted<'_>], access: Access) -> Result<Option<Arc<LogFilter>>> {
    let Some(filter) = options.objects.wal_filter.clone() else { return Ok(None) };
    if access != Access::Write {
        return Err(Failure::not_implemented(
            "WAL filter: it changes the log, and the database is opened read-only; open it for writing",
        ));
    }
    let has_timestamps = |wanted: &Wanted<'_>| {
        wanted.options.comparator.as_ref().is_some_and(|comparator| comparator.timestamp_bytes() > 0)
    };
    if wanted.iter().any(has_timestamps) {
        return Err(Failure::not_implemented("WAL filter: a column family has timestamps"));
    }
    Ok(Some(filter))
}

/// Seconds that written rows live, by the names of the column families where it does not for ever.
fn ttls(wanted: &[Wanted<'_>]) -> BTreeMap<String, u32> {
    let seconds = |wanted: &Wanted<'_>| u32::try_from(wanted.ttl_seconds).ok().filter(|seconds| *seconds > 0);
    wanted.iter().filter_map(|wanted| Some((wanted.name.to_owned(), seconds(wanted)?))).collect()
}

/// Opens with a filter of the log.
fn open_filtered(
    path: &str,
    options: &Options,
    engine: &terrane::Options,
    functions: Functions,
    filtering: &Filtering,
) -> Result<Db> {
    let memory = options.environment.as_ref().and_then(|environment| environment.memory.as_ref());
    let opened = match memory {
        Some(memory) => {
            let disk = memory.disk();
            Db::open_with_replay_filter_on(disk, path, engine, Env::real(), functions, filtering)
        }
        None => Db::open_with_replay_filter(path, engine, functions, filtering),
    };
    opened.map_err(|error| filtering.failure(of_opening(error, path)))
}

fn of_opening(error: terrane::Error, path: &str) -> Failure {
    match error.kind() {
        Kind::Busy => Failure::io(format_args!(
            "While lock file: {path}/LOCK: Resource temporarily unavailable ({error})"
        )),
        _ => error.into(),
    }
}

/// Opens for writing, or for reading without a lock: a reader keeps no writer from opening, as in RocksDB. It
/// sees the state of its opening; rows that only its extents held, and that a writer has merged since, fail
/// with an error, they are never wrong.
fn open_engine(path: &str, options: &Options, engine: &terrane::Options, functions: Functions) -> Result<Db> {
    if engine.read_only {
        return Ok(follow_engine(path, options, engine, functions)?.view());
    }
    if let Some(memory) = options.environment.as_ref().and_then(|environment| environment.memory.as_ref()) {
        return Ok(Db::open_with_functions_on(memory.disk(), path, engine, Env::real(), functions)?);
    }
    Db::open_with_functions(path, engine, functions).map_err(|error| of_opening(error, path))
}

/// RocksDB's error where a column family is opened without the comparator that it was made with, which the
/// engine does not know then.
fn of_comparator(failure: Failure, wanted: &[Wanted<'_>]) -> Failure {
    let parts: Vec<&str> = failure.text().split('"').collect();
    match parts[..] {
        [_, table, ": there is no key order ", order, ..] => {
            let family = wanted.iter().find(|wanted| wanted.name == table);
            match family {
                Some(family) => other_comparator(order_of(family.options), order),
                None => failure,
            }
        }
        _ => failure,
    }
}

fn other_comparator(wanted: &str, found: &str) -> Failure {
    let shown = |name: &str| if name == "bytewise" { BYTEWISE } else { name }.to_owned();
    Failure::invalid(format_args!("{}: does not match existing comparator {}", shown(wanted), shown(found)))
}

/// Follows a database that another process may write.
fn follow_engine(
    path: &str,
    options: &Options,
    engine: &terrane::Options,
    functions: Functions,
) -> Result<Follower> {
    let memory = options.environment.as_ref().and_then(|environment| environment.memory.as_ref());
    Ok(match memory {
        Some(memory) => Follower::open(memory.disk(), path, engine, functions, Env::real())?,
        None => Db::open_follower_with(path, engine, functions)?,
    })
}

/// The names of all column families of the database at `path`, in the order of their numbers.
pub(crate) fn family_names(path: &str, options: &Options) -> Result<Vec<String>> {
    let engine = terrane::Options { read_only: true, create_if_missing: false, ..Default::default() };
    if options.environment.as_ref().is_none_or(|environment| environment.memory.is_none()) {
        refuse_by_presence(path, &engine)?;
    }
    let db = open_engine(path, options, &engine, any_functions())?;
    let mut tables =
        db.tables().iter().map(|name| db.table(name)).collect::<terrane::Result<Vec<Table>>>()?;
    tables.sort_by_key(Table::number);
    Ok(tables.iter().map(|table| table.name().to_owned()).collect())
}

/// RocksDB's error for names of column families that do not fit the stored ones.
fn check_names(db: &Db, wanted: &[Wanted<'_>], create: bool, access: Access) -> Result<()> {
    let tables = db.tables();
    if let Some(missing) =
        wanted.iter().find(|wanted| !create && !tables.iter().any(|name| name == wanted.name))
    {
        return Err(Failure::invalid(format_args!("Column family not found: {}", missing.name)));
    }
    let left = tables.iter().filter(|name| !wanted.iter().any(|wanted| wanted.name == **name));
    let left: Vec<&str> = left.map(String::as_str).collect();
    if access == Access::Write && !left.is_empty() {
        return Err(Failure::invalid(format_args!("Column families not opened: {}", left.join(", "))));
    }
    Ok(())
}

fn open_families(
    (db, attached): (Db, Attached),
    wanted: &[Wanted<'_>],
    slots: &Arc<Slots>,
    access: Access,
) -> Result<Database> {
    let views = attached.follower.is_some().then(|| Arc::new(Views::new(db.clone())));
    let mut families = Vec::new();
    for wanted in wanted {
        let slot = slots.of(wanted.name);
        let table = match db.table(wanted.name) {
            Err(error) if error.kind() == Kind::NotFound => {
                db.create_table(wanted.name, &table_options(wanted.options, &slot)?)?
            }
            table => table?,
        };
        let mut family = opened_family(table, wanted, slots, access, &attached)?;
        family.see_by(views.clone());
        families.push(family);
    }
    let at = wanted.iter().position(|wanted| wanted.name == DEFAULT).expect("looked for above");
    let default = Arc::new(families.swap_remove(at));
    let database = Database {
        db,
        is_read_only: access != Access::Write,
        default,
        families: Default::default(),
        slots: slots.clone(),
        transactions: Default::default(),
        attached: Arc::new(attached),
    };
    for family in families {
        database.add_family(family);
    }
    Ok(database)
}

/// Refuses what two options mean together.
pub(crate) fn refuse_ttl_of_timestamps(wanted: &Wanted<'_>) -> Result<()> {
    let has_timestamps =
        wanted.options.comparator.as_ref().is_some_and(|comparator| comparator.timestamp_bytes() > 0);
    if has_timestamps && wanted.ttl_seconds > 0 {
        return Err(Failure::not_implemented("a time to live and timestamps in one column family"));
    }
    Ok(())
}

/// Gives a table what its options say of blob files. Without these only the length counts: ceiling and codec
/// still hold for the values that were separated before.
fn set_value_options(table: &Table, family: &Options) -> Result<()> {
    let is_on = family.fields.enable_blob_files != 0;
    for (name, value) in value_options(family)?.into_iter().take(if is_on { 3 } else { 1 }) {
        table.set_option(name, &value)?;
    }
    Ok(())
}

/// Gives a table what its options say at each opening.
pub(crate) fn opened_family(
    table: Table,
    wanted: &Wanted<'_>,
    slots: &Slots,
    access: Access,
    attached: &Attached,
) -> Result<Family> {
    let (found, wanted_order) = (table.key_order().to_owned(), order_of(wanted.options));
    if found != wanted_order {
        return Err(other_comparator(wanted_order, &found));
    }
    refuse_ttl_of_timestamps(wanted)?;
    if access == Access::Write {
        table.set_option("prefix_extractor", &extractor(wanted.options))?;
        let is_automatic = wanted.options.fields.disable_auto_compactions == 0;
        table.set_option(AUTO_COMPACTION, if is_automatic { "true" } else { "false" })?;
        let ttl = match wanted.ttl_seconds {
            1.. => format!("{}s", wanted.ttl_seconds),
            _ => "none".to_owned(),
        };
        table.set_option("time_to_live", &ttl)?;
        set_value_options(&table, wanted.options)?;
    }
    let comparator = wanted.options.comparator.as_deref();
    let history = History::of(&table, comparator, access == Access::Write)?.map(Arc::new);
    if access == Access::Write {
        let filter = wanted.options.compaction_filter();
        table.set_compaction_filter(match &history {
            None => filter,
            Some(history) => Some(Arc::new(Collapsing::new(history, filter))),
        });
    }
    let name = CString::new(table.name()).map_err(|_| Failure::invalid("a name with a zero byte"))?;
    let transform = wanted.options.transform.clone();
    let options = Mutex::new(wanted.options.clone());
    let statistics = attached.statistics.clone();
    let iterators = wanted.options.table.cache.as_ref().map(|_| attached.iterators.clone());
    let order = Order::of(wanted.options.comparator.as_ref());
    // Others have keys in another form, or values with the moment at which they expire, and that is counted
    // from the write.
    let is_plain = history.is_none() && wanted.ttl_seconds <= 0 && found == terrane_base::key_order::BYTEWISE;
    Ok(Family {
        takes_records: is_plain && access == Access::Write,
        reads_specially: statistics.is_some() || history.is_some(),
        slot: slots.of(table.name()),
        transform,
        order,
        history,
        name,
        table,
        options,
        statistics,
        iterators,
        asked: Asked::default(),
        views: None,
        notices: attached.notices.clone(),
    })
}
