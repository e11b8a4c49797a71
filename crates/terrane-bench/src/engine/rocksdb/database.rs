//! An open RocksDB database: column families as tables, and all calls except the operations of a run.
//!
//! Unsafe code: calls of the C interface. Pointers given to it are of objects that `Database` owns, or of
//! buffers alive for the call; strings it returns are copied and freed at once. Field order is drop order:
//! column families before the database, the database before its options and caches.
#![expect(unsafe_code, reason = "calls of a C interface")]

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use crate::engine::rocksdb::api::{
    Api, ColumnFamily, Db, LiveFiles, Options, Owned, ReadOptions, WriteOptions, checked, text,
};
use crate::engine::rocksdb::counters::TableFile;
use crate::engine::rocksdb::setup::{Setup, options};
use crate::engine::rocksdb::transactions::{Opening, Transacting};
use crate::engine::rocksdb::tuning::Tuning;
use crate::error::{Error, Result};

/// `BottommostLevelCompaction::kForceOptimized`.
const FORCE_OPTIMIZED: u8 = 3;

/// An open database.
pub(super) struct Database {
    families: Vec<Owned<ColumnFamily>>,
    names: Vec<String>,
    db: Owned<Db>,
    /// The database with transactions that `db` is a view of, if it has them.
    pub(super) transacting: Transacting,
    pub(super) read: Owned<ReadOptions>,
    pub(super) read_all: Owned<ReadOptions>,
    pub(super) write: Owned<WriteOptions>,
    pub(super) write_sync: Owned<WriteOptions>,
    pub(super) setup: Setup,
    pub(super) api: Arc<Api>,
}

// SAFETY: RocksDB's database and column family handles may be used by many threads at once, and the option
// objects are not changed after opening.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Database {
    /// Opens or creates it with at least `tables` column families.
    ///
    /// # Errors
    /// RocksDB's.
    pub(super) fn open(api: Arc<Api>, directory: &Path, tables: u32, tuning: &Tuning) -> Result<Self> {
        let setup = Setup::new(&api, tuning)?;
        let path = path_text(directory)?;
        let names = family_names(&api, &path, directory, tables)?;
        let (db, transacting, families) = open_families(&api, &setup.options, &path, &names, tuning)?;
        let read = read_options(&api, 0);
        let read_all = read_options(&api, usize::try_from(tuning.readahead_bytes).unwrap_or(usize::MAX));
        let (write, write_sync) = (write_options(&api, false), write_options(&api, true));
        Ok(Database { families, names, db, transacting, read, read_all, write, write_sync, setup, api })
    }

    /// The database handle.
    pub(super) fn raw(&self) -> *mut Db {
        self.db.as_ptr()
    }

    /// The handle of a table.
    pub(super) fn family(&self, table: u32) -> *mut ColumnFamily {
        self.families[table as usize].as_ptr()
    }

    /// The numbers of all tables.
    pub(super) fn tables(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.families.len()).expect("a plan's tables are counted in 32 bits")
    }

    /// The column family's name of a table.
    pub(super) fn name(&self, table: u32) -> &str {
        &self.names[table as usize]
    }

    /// Writes a table's memtables to level 0 and waits for it.
    ///
    /// # Errors
    /// RocksDB's.
    pub(super) fn flush(&self, table: u32) -> Result<()> {
        // SAFETY: the constructor and its destructor; the default waits.
        let options =
            unsafe { Owned::new(&self.api, (self.api.flushoptions_create)(), self.api.flushoptions_destroy) };
        checked(&self.api, "flush", |error| {
            // SAFETY: all handles are alive.
            unsafe { (self.api.flush_cf)(self.raw(), options.as_ptr(), self.family(table), error) }
        })
    }

    /// Makes the log durable.
    ///
    /// # Errors
    /// RocksDB's.
    pub(super) fn sync_log(&self) -> Result<()> {
        // SAFETY: the handle is alive.
        checked(&self.api, "sync its log", |error| unsafe { (self.api.flush_wal)(self.raw(), 1, error) })
    }

    /// Compacts a whole table into its last level, the last level itself too.
    pub(super) fn compact_all(&self, table: u32) {
        // SAFETY: the constructor and its destructor; null bounds are the whole table.
        unsafe {
            let options =
                Owned::new(&self.api, (self.api.compactoptions_create)(), self.api.compactoptions_destroy);
            (self.api.compactoptions_set_bottommost_level_compaction)(options.as_ptr(), FORCE_OPTIMIZED);
            (self.api.compact_range_cf_opt)(
                self.raw(),
                self.family(table),
                options.as_ptr(),
                null(),
                0,
                null(),
                0,
            );
        }
    }

    /// Compacts the files named, and what overlaps them in `level`, into `level`.
    ///
    /// # Errors
    /// `Unsupported` if the library is too old; RocksDB's.
    pub(super) fn compact_files(
        &self,
        table: u32,
        files: &[String],
        level: u32,
        file_bytes: u64,
    ) -> Result<()> {
        let api = &self.api;
        let (Some(compact), Some(create), Some(destroy), Some(limit)) = (
            api.compact_files_cf,
            api.compaction_options_create,
            api.compaction_options_destroy,
            api.compaction_options_set_output_file_size_limit,
        ) else {
            return Err(Error::unsupported(
                "rocksdb",
                "compaction of one level in the C interface of this library (rocksdb_compact_files_cf, RocksDB 11.8)",
            ));
        };
        let names: Vec<CString> = files.iter().map(|name| c_text(name)).collect::<Result<_>>()?;
        let names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let level = i32::try_from(level).expect("RocksDB has few levels");
        // SAFETY: the constructor and its destructor.
        let options = unsafe { Owned::new(api, create(), destroy) };
        checked(api, "compact files", |error| {
            // SAFETY: all handles and the names are alive; null means that outputs are not asked for; -1
            // leaves the path to RocksDB.
            unsafe {
                limit(options.as_ptr(), file_bytes);
                compact(
                    self.raw(),
                    self.family(table),
                    options.as_ptr(),
                    names.as_ptr(),
                    names.len(),
                    level,
                    -1,
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    error,
                );
            }
        })
    }

    /// Sets an option of a table while it is open.
    ///
    /// # Errors
    /// RocksDB's.
    pub(super) fn set_option(&self, table: u32, name: &str, value: &str) -> Result<()> {
        let (name, value) = (c_text(name)?, c_text(value)?);
        let (names, values) = ([name.as_ptr()], [value.as_ptr()]);
        checked(&self.api, "set an option", |error| {
            // SAFETY: handles and both one-element arrays are alive.
            unsafe {
                (self.api.set_options_cf)(
                    self.raw(),
                    self.family(table),
                    1,
                    names.as_ptr(),
                    values.as_ptr(),
                    error,
                );
            }
        })
    }

    /// Waits by RocksDB's own call until no flush or compaction is due; `false` if the library has none.
    ///
    /// # Errors
    /// RocksDB's.
    pub(super) fn wait_for_compact(&self) -> Result<bool> {
        let api = &self.api;
        let (Some(wait), Some(create), Some(destroy)) =
            (api.wait_for_compact, api.wait_for_compact_options_create, api.wait_for_compact_options_destroy)
        else {
            return Ok(false);
        };
        // SAFETY: the constructor and its destructor.
        let options = unsafe { Owned::new(api, create(), destroy) };
        // SAFETY: both handles are alive.
        checked(api, "wait for compactions", |error| unsafe { wait(self.raw(), options.as_ptr(), error) })?;
        Ok(true)
    }

    /// A property of a table, if RocksDB knows it.
    pub(super) fn property(&self, table: u32, name: &str) -> Option<String> {
        let name = CString::new(name).ok()?;
        // SAFETY: handles and name are alive; the answer is null or ours to free.
        unsafe {
            let raw = (self.api.property_value_cf)(self.raw(), self.family(table), name.as_ptr());
            text(&self.api, raw)
        }
    }

    /// A property that is a number; 0 if RocksDB does not know it.
    pub(super) fn number(&self, table: u32, name: &str) -> u64 {
        self.property(table, name).and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// All counters of `Statistics` as text; `None` if they are off.
    pub(super) fn statistics(&self) -> Option<String> {
        // SAFETY: the options are alive; the answer is null or ours to free.
        unsafe { text(&self.api, (self.api.options_statistics_get_string)(self.setup.options.as_ptr())) }
    }

    /// Every table file.
    pub(super) fn files(&self) -> Vec<TableFile> {
        let api = &self.api;
        // SAFETY: the constructor and its destructor; indexes stay below the count, and names are copied
        // while the list is alive.
        unsafe {
            let list: Owned<LiveFiles> = Owned::new(api, (api.livefiles)(self.raw()), api.livefiles_destroy);
            let list = list.as_ptr();
            let copy = |raw: *const c_char| CStr::from_ptr(raw).to_string_lossy().into_owned();
            (0..(api.livefiles_count)(list))
                .map(|index| TableFile {
                    family: copy((api.livefiles_column_family_name)(list, index)),
                    name: copy((api.livefiles_name)(list, index)),
                    level: u32::try_from((api.livefiles_level)(list, index)).unwrap_or(0),
                    bytes: (api.livefiles_size)(list, index) as u64,
                    entries: (api.livefiles_entries)(list, index),
                })
                .collect()
        }
    }
}

pub(super) fn path_text(directory: &Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(directory.as_os_str().as_bytes())
        .map_err(|_| Error::plan(format!("the path {} holds a zero byte", directory.display())))
}

pub(super) fn c_text(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::plan(format!("{name:?} holds a zero byte")))
}

fn read_options(api: &Arc<Api>, readahead: usize) -> Owned<ReadOptions> {
    // SAFETY: the constructor and its destructor; set before anybody else sees it.
    unsafe {
        let options = Owned::new(api, (api.readoptions_create)(), api.readoptions_destroy);
        (api.readoptions_set_readahead_size)(options.as_ptr(), readahead);
        options
    }
}

fn write_options(api: &Arc<Api>, sync: bool) -> Owned<WriteOptions> {
    // SAFETY: the constructor and its destructor; set before anybody else sees it.
    unsafe {
        let options = Owned::new(api, (api.writeoptions_create)(), api.writeoptions_destroy);
        (api.writeoptions_set_sync)(options.as_ptr(), u8::from(sync));
        options
    }
}

/// The column families to open: table 0 is `default`, then `table1`...; all that exist, because RocksDB
/// demands it.
fn family_names(api: &Arc<Api>, path: &CString, directory: &Path, tables: u32) -> Result<Vec<String>> {
    let mut names: Vec<String> = (0..tables.max(1))
        .map(|table| if table == 0 { "default".to_owned() } else { format!("table{table}") })
        .collect();
    if !directory.join("CURRENT").exists() {
        return Ok(names);
    }
    for name in listed_families(api, path)? {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// The column families of the database at `path`.
pub(super) fn listed_families(api: &Arc<Api>, path: &CStr) -> Result<Vec<String>> {
    let options = options(api);
    let mut count = 0;
    let list = checked(api, "list its column families", |error| {
        // SAFETY: options and path are alive.
        unsafe { (api.list_column_families)(options.as_ptr(), path.as_ptr(), &raw mut count, error) }
    })?;
    // SAFETY: without an error the list holds `count` terminated strings; copied, then freed once.
    unsafe {
        let found =
            (0..count).map(|index| CStr::from_ptr(*list.add(index)).to_string_lossy().into_owned()).collect();
        (api.list_column_families_destroy)(list, count);
        Ok(found)
    }
}

fn open_families(
    api: &Arc<Api>,
    options: &Owned<Options>,
    path: &CString,
    names: &[String],
    tuning: &Tuning,
) -> Result<(Owned<Db>, Transacting, Vec<Owned<ColumnFamily>>)> {
    let texts: Vec<CString> = names.iter().map(|name| c_text(name)).collect::<Result<_>>()?;
    let texts: Vec<*const c_char> = texts.iter().map(|name| name.as_ptr()).collect();
    let each: Vec<*const Options> = vec![options.as_ptr().cast_const(); names.len()];
    let mut handles: Vec<*mut ColumnFamily> = vec![null_mut(); names.len()];
    let opening = Opening {
        options: options.as_ptr(),
        path: path.as_ptr(),
        count: i32::try_from(names.len()).expect("a plan has few tables"),
        names: texts.as_ptr(),
        each: each.as_ptr(),
        handles: handles.as_mut_ptr(),
    };
    // SAFETY: names, options and handles are arrays of `count`, alive for the call.
    let (db, transacting) = unsafe { opening.open(api, tuning)? };
    let own = |handle| {
        // SAFETY: without an error every handle was made, and is ours to destroy.
        unsafe { Owned::new(api, handle, api.column_family_handle_destroy) }
    };
    Ok((db, transacting, handles.into_iter().map(own).collect()))
}
