//! The C functions that open, close, destroy and repair a database.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::Path;

use crate::db::open::info_files::log_place;
use crate::db::open::{Access, Wanted, family_names, open};
use crate::db::{DEFAULT, Database, FamilyHandle};
use crate::ffi::arguments::Text;
use crate::ffi::failure::{Given, Result};
use crate::ffi::types::{Out, lasting_list, lasting_text, put};
use std::sync::Arc;

use crate::callbacks::operator_registry::{Slots, any_functions};
use crate::files;
use crate::options::database::Options;
use crate::options::to_engine::database_options;

pub(crate) fn open_default(
    options: Option<&Options>,
    path: Text<'_>,
    ttl_seconds: i32,
    access: Access,
    prepare: impl FnOnce(&mut Database),
) -> Result<Option<Box<Database>>> {
    let options = options.given()?;
    let wanted = [Wanted { name: DEFAULT, options, ttl_seconds }];
    Ok(Some(boxed(open(path.utf8()?, options, &wanted, access)?, options, prepare)?))
}

/// The column families that a caller lists, and where their handles go.
pub(crate) struct Listed<'a> {
    pub(crate) names: &'a [Text<'a>],
    pub(crate) options: &'a [Option<&'a Options>],
    /// Seconds; none for a column family without one.
    pub(crate) ttls: &'a [i32],
    pub(crate) handles: &'a mut [MaybeUninit<Option<Box<FamilyHandle>>>],
}

pub(crate) fn open_listed(
    options: Option<&Options>,
    path: Text<'_>,
    listed: Listed<'_>,
    access: Access,
    prepare: impl FnOnce(&mut Database),
) -> Result<Option<Box<Database>>> {
    open_listed_and(options, path, listed, (access, prepare), |_| Ok(()))
}

/// As [`open_listed`], and gives handles out when `work` is done; where it fails the database is closed
/// again.
pub(crate) fn open_listed_and(
    options: Option<&Options>,
    path: Text<'_>,
    listed: Listed<'_>,
    (access, prepare): (Access, impl FnOnce(&mut Database)),
    work: impl FnOnce(&Database) -> Result<()>,
) -> Result<Option<Box<Database>>> {
    let mut wanted = Vec::with_capacity(listed.names.len());
    for (at, (name, options)) in listed.names.iter().zip(listed.options).enumerate() {
        let ttl_seconds = listed.ttls.get(at).copied().unwrap_or(0);
        wanted.push(Wanted { name: name.utf8()?, options: options.given()?, ttl_seconds });
    }
    let options = options.given()?;
    let database = boxed(open(path.utf8()?, options, &wanted, access)?, options, prepare)?;
    work(&database).inspect_err(|_| close(&database))?;
    for (place, wanted) in listed.handles.iter_mut().zip(&wanted) {
        let family = database.family_named(wanted.name);
        place.write(family.map(|family| Box::new(FamilyHandle { family })));
    }
    Ok(Some(database))
}

/// As it was opened.
pub(crate) fn plain(_database: &mut Database) {}

/// Gives a database its place in memory, and when all is prepared attaches what knows it by its place.
fn boxed(
    database: Database,
    options: &Options,
    prepare: impl FnOnce(&mut Database),
) -> Result<Box<Database>> {
    let mut database = Box::new(database);
    prepare(&mut database);
    match database.attach(options) {
        Ok(()) => Ok(database),
        Err(failure) => {
            close(&database);
            Err(failure)
        }
    }
}

/// Closes a database: afterwards no listener of it is called.
pub(crate) fn close(database: &Database) {
    database.keep_statistics();
    database.detach();
    // Listeners get the jobs that were cancelled before the close as such; if waiting fails, the close
    // reports them.
    let _ = database.wait_for_listeners();
    database.listeners().iter().for_each(|listener| listener.begin_close());
    // There is no way to report a failure.
    let _ = database.db.clone().close();
}

export! {
    fn rocksdb_open(options: Option<&Options>, path: Text<'_>, error: ErrPtr<'_>) -> Option<Box<Database>> {
        open_default(options, path, 0, Access::Write, plain)
    }

    fn rocksdb_open_with_ttl(
        options: Option<&Options>,
        path: Text<'_>,
        ttl: i32,
        error: ErrPtr<'_>,
    ) -> Option<Box<Database>> {
        open_default(options, path, ttl, Access::Write, plain)
    }

    fn rocksdb_open_for_read_only(
        options: Option<&Options>,
        path: Text<'_>,
        _error_if_log_file_exists: u8,
        error: ErrPtr<'_>,
    ) -> Option<Box<Database>> {
        open_default(options, path, 0, Access::Read, plain)
    }

    fn rocksdb_open_column_families(
        options: Option<&Options>,
        path: Text<'_>,
        count: i32,
        names: List<'_, Text<'_>>[count],
        family_options: List<'_, Option<&Options>>[count],
        handles: OutList<'_, Option<Box<FamilyHandle>>>[count],
        error: ErrPtr<'_>,
    ) -> Option<Box<Database>> {
        let listed = Listed { names, options: family_options, ttls: &[], handles };
        open_listed(options, path, listed, Access::Write, plain)
    }

    fn rocksdb_open_column_families_with_ttl(
        options: Option<&Options>,
        path: Text<'_>,
        count: i32,
        names: List<'_, Text<'_>>[count],
        family_options: List<'_, Option<&Options>>[count],
        handles: OutList<'_, Option<Box<FamilyHandle>>>[count],
        ttls: List<'_, i32>[count],
        error: ErrPtr<'_>,
    ) -> Option<Box<Database>> {
        open_listed(options, path, Listed { names, options: family_options, ttls, handles }, Access::Write, plain)
    }

    fn rocksdb_open_for_read_only_column_families(
        options: Option<&Options>,
        path: Text<'_>,
        count: i32,
        names: List<'_, Text<'_>>[count],
        family_options: List<'_, Option<&Options>>[count],
        handles: OutList<'_, Option<Box<FamilyHandle>>>[count],
        _error_if_log_file_exists: u8,
        error: ErrPtr<'_>,
    ) -> Option<Box<Database>> {
        let listed = Listed { names, options: family_options, ttls: &[], handles };
        open_listed(options, path, listed, Access::Read, plain)
    }

    fn rocksdb_close(database: Option<Box<Database>>) {
        if let Some(database) = database {
            close(&database);
        }
    }

    fn rocksdb_list_column_families(
        options: Option<&Options>,
        path: Text<'_>,
        count: Out<'_, usize>,
        error: ErrPtr<'_>,
    ) -> *mut *mut c_char {
        let names = family_names(path.utf8()?, options.given()?);
        put(count, names.as_ref().map_or(0, Vec::len));
        let names: Vec<*mut c_char> = names?.iter().map(|name| lasting_text(name)).collect();
        Ok(lasting_list(&names))
    }

    fn rocksdb_list_column_families_destroy(names: ReturnedList<c_char>[count], count: usize) {
        names.free_strings();
    }

    fn rocksdb_destroy_db(options: Option<&Options>, path: Text<'_>, error: ErrPtr<'_>) {
        let path = Path::new(path.utf8()?);
        let is_there = files::is_database(path);
        files::destroy(path, any_functions())?;
        match options {
            Some(options) if is_there => log_place(path, options).remove(),
            _ => Ok(()),
        }
    }

    fn rocksdb_repair_db(options: Option<&Options>, path: Text<'_>, error: ErrPtr<'_>) {
        let options = options.given()?;
        let slots = Arc::new(Slots::default());
        slots.compare_by(options.comparator.as_ref());
        let mut engine = database_options(options, options, &slots.of("default"))?;
        // The repaired one is made beside a database that may lie below another one.
        engine.beside_others = true;
        files::repair(Path::new(path.utf8()?), &engine, slots.functions())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callbacks::listener::EventListener;

    /// A panic in an opening drops the database without a close.
    #[test]
    fn a_database_that_is_dropped_is_not_kept_open_by_its_listener() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("db");
        let path = path.to_str().expect("UTF-8");
        let mut options = Options::default();
        options.fields.create_if_missing = 1;
        options.listeners.push(Arc::new(EventListener::silent()));
        let opened = || {
            let wanted = [Wanted { name: DEFAULT, options: &options, ttl_seconds: 0 }];
            boxed(open(path, &options, &wanted, Access::Write)?, &options, plain)
        };
        let database = opened().map_err(|failure| failure.text().to_owned()).expect("opens");
        assert_eq!(database.listeners().len(), 1);
        assert!(opened().is_err(), "it is open");
        let kept = database.db.downgrade();
        drop(database);
        assert!(kept.upgrade().is_none(), "no handle is left");
        let again = opened().map_err(|failure| failure.text().to_owned()).expect("it is closed");
        close(&again);
    }
}
