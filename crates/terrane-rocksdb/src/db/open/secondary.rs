//! Opening a database that another process writes, and catching up with it; opening without the history of
//! timestamps.

use std::ffi::c_char;

use crate::db::open::Access;
use crate::db::open::handles::{Listed, open_default, open_listed, open_listed_and, plain};
use crate::db::timestamps::timestamp_gc::trim;
use crate::db::{Database, FamilyHandle};
use crate::ffi::arguments::Text;
use crate::ffi::failure::{Given, Result};
use crate::ffi::types::{Out, lasting_text, put};
use crate::options::database::Options;

/// Takes out all versions newer than a timestamp, of all column families or of none.
fn trim_all(database: &Database, timestamp: &[u8]) -> Result<()> {
    let families = database.families();
    let stamped = || families.iter().filter(|family| family.history.is_some());
    stamped().try_for_each(|family| family.history_for(timestamp).map(drop))?;
    stamped().try_for_each(|family| trim(database, family, timestamp))
}

export! {
    fn rocksdb_open_as_secondary(
        options: Option<&Options>,
        path: Text<'_>,
        _secondary_path: Text<'_>,
        error: ErrPtr<'_>,
    ) -> Option<Box<Database>> {
        open_default(options, path, 0, Access::Follow, plain)
    }

    fn rocksdb_open_as_secondary_column_families(
        options: Option<&Options>,
        path: Text<'_>,
        _secondary_path: Text<'_>,
        count: i32,
        names: List<'_, Text<'_>>[count],
        family_options: List<'_, Option<&Options>>[count],
        handles: OutList<'_, Option<Box<FamilyHandle>>>[count],
        error: ErrPtr<'_>,
    ) -> Option<Box<Database>> {
        let listed = Listed { names, options: family_options, ttls: &[], handles };
        open_listed(options, path, listed, Access::Follow, plain)
    }

    fn rocksdb_try_catch_up_with_primary(database: Option<&Database>, error: ErrPtr<'_>) {
        database.given()?.catch_up()
    }

    fn rocksdb_open_and_trim_history(
        options: Option<&Options>,
        path: Text<'_>,
        count: i32,
        names: List<'_, Text<'_>>[count],
        family_options: List<'_, Option<&Options>>[count],
        handles: OutList<'_, Option<Box<FamilyHandle>>>[count],
        timestamp: Bytes<'_>,
        timestamp_len: usize,
        error: ErrPtr<'_>,
    ) -> Option<Box<Database>> {
        let listed = Listed { names, options: family_options, ttls: &[], handles };
        let timestamp = timestamp;
        open_listed_and(options, path, listed, (Access::Write, plain), |database| trim_all(database, timestamp))
    }

    fn rocksdb_get_db_identity(database: Option<&Database>, len: Out<'_, usize>) -> *mut c_char {
        let identity = database.and_then(|database| database.identity().ok());
        put(len, identity.as_ref().map_or(0, String::len));
        identity.map_or(std::ptr::null_mut(), |identity| lasting_text(&identity))
    }
}
