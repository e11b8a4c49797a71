//! Column families that are made and dropped while the database is open, and their handles.

use std::ffi::c_char;
use std::sync::Arc;

use crate::db::open::{Access, Wanted, opened_family, refuse_ttl_of_timestamps};
use crate::db::{DEFAULT, Database, Family, FamilyHandle};
use crate::ffi::arguments::Text;
use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::{Out, lasting, lasting_list, put};
use crate::options::database::Options;
use crate::options::ignored::{refuse_if_strict, warnings};
use crate::options::to_engine::table_options;

impl Database {
    /// Makes the column family `name`.
    pub(crate) fn create(&self, name: &str, options: &Options, ttl_seconds: i32) -> Result<Arc<Family>> {
        self.refuse_if_read_only()?;
        if self.family_named(name).is_some() {
            return Err(Failure::invalid(format_args!("Column family already exists: {name}")));
        }
        let wanted = Wanted { name, options, ttl_seconds };
        refuse_ttl_of_timestamps(&wanted)?;
        refuse_if_strict(&[options])?;
        let slot = self.slots.of(name);
        slot.set(options.merge_operator.clone());
        self.slots.compare_by(options.comparator.as_ref());
        let table = self.db.create_table(name, &table_options(options, &slot)?)?;
        let opened = opened_family(table, &wanted, &self.slots, Access::Write, &self.attached);
        let family = opened.inspect_err(|_| {
            // No caller has a handle of it: it must not stay for the next opening.
            if let Err(error) = self.db.drop_table(name) {
                self.warn(&format!("[{name}] could not be dropped again: {error}"));
            }
        })?;
        let family = self.add_family(family);
        for line in warnings(&[options]) {
            self.warn(&format!("[{name}] {line}"));
        }
        self.use_cache(&family);
        self.store_options_or_warn();
        Ok(family)
    }

    pub(crate) fn drop_family(&self, family: &Family) -> Result<()> {
        self.refuse_if_read_only()?;
        if family.table.name() == DEFAULT {
            return Err(Failure::invalid("Can't drop default column family"));
        }
        if self.family(family.id()).is_none() {
            return Err(Failure::invalid("Column family already dropped!"));
        }
        self.db.drop_table(family.table.name())?;
        self.remove_family(family.id());
        self.store_options_or_warn();
        Ok(())
    }
}

fn handle(family: Arc<Family>) -> Option<Box<FamilyHandle>> {
    Some(Box::new(FamilyHandle { family }))
}

export! {
    fn rocksdb_create_column_family(
        database: Option<&Database>,
        options: Option<&Options>,
        name: Text<'_>,
        error: ErrPtr<'_>,
    ) -> Option<Box<FamilyHandle>> {
        Ok(handle(database.given()?.create(name.utf8()?, options.given()?, 0)?))
    }

    fn rocksdb_create_column_family_with_ttl(
        database: Option<&Database>,
        options: Option<&Options>,
        name: Text<'_>,
        ttl: i32,
        error: ErrPtr<'_>,
    ) -> Option<Box<FamilyHandle>> {
        Ok(handle(database.given()?.create(name.utf8()?, options.given()?, ttl)?))
    }

    fn rocksdb_create_column_families(
        database: Option<&Database>,
        options: Option<&Options>,
        count: i32,
        names: List<'_, Text<'_>>[count],
        made: Out<'_, usize>,
        error: ErrPtr<'_>,
    ) -> *mut *mut FamilyHandle {
        let (database, options) = (database.given()?, options.given()?);
        let mut handles: Vec<*mut FamilyHandle> = Vec::new();
        let mut failure = None;
        for name in names {
            match name.utf8().and_then(|name| database.create(name, options, 0)) {
                Ok(family) => handles.push(Box::into_raw(Box::new(FamilyHandle { family }))),
                Err(why) => {
                    failure = Some(why);
                    break;
                }
            }
        }
        put(made, handles.len());
        match failure {
            // Families that were made exist. A caller gets handles of them by opening the database with them.
            Some(failure) => Err(failure),
            None => Ok(lasting_list(&handles)),
        }
    }

    fn rocksdb_create_column_families_destroy(list: Returned<*mut FamilyHandle>) {
        list.free();
    }

    fn rocksdb_drop_column_family(
        database: Option<&Database>,
        handle: Option<&FamilyHandle>,
        error: ErrPtr<'_>,
    ) {
        database.given()?.drop_family(&handle.given()?.family)
    }

    fn rocksdb_get_default_column_family_handle(database: Option<&Database>) -> Option<Box<FamilyHandle>> {
        handle(database?.default_family().clone())
    }

    fn rocksdb_column_family_handle_destroy(handle: Option<Box<FamilyHandle>>) {
        drop(handle);
    }

    fn rocksdb_column_family_handle_get_id(handle: Option<&FamilyHandle>) -> u32 {
        handle.map_or(0, |handle| handle.family.id())
    }

    fn rocksdb_column_family_handle_get_name(
        handle: Option<&FamilyHandle>,
        len: Out<'_, usize>,
    ) -> *mut c_char {
        let Some(handle) = handle else { return std::ptr::null_mut() };
        let name = handle.family.name.as_bytes();
        put(len, name.len());
        lasting(name)
    }
}
