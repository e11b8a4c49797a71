//! LMDB, through the crate `heed`. Tables are named databases of one environment.
//!
//! A read is one read-only transaction per operation, a batch one write transaction, as its documentation has
//! it. LMDB has no cache and no background work: its memory is the page cache, so `memory_bytes` binds it
//! only if the process is held down from outside.
//!
//! Whether a commit waits for the disk is a flag of the environment, not of the transaction. The flag follows
//! the `sync` of the writes: it is changed under the write side of a lock whose read side every writer holds,
//! so that no commit is under way. That, and opening the map, is the unsafe code here.
#![expect(unsafe_code, reason = "opens a memory map and changes its flags")]

use std::ops::Bound;
use std::sync::{PoisonError, RwLock};

use heed::types::Bytes;
use heed::{CommitOrAbort, Env, EnvFlags, EnvOpenOptions, FlagSetMode, WithTls};

use crate::engine::options::{Named, setting};
use crate::engine::{Control, Direction, Engine, EngineOptions, Opened, Session, ShowRow, Visit, Write};
use crate::error::{Error, Result};

const KNOWN: [&str; 3] = ["map_bytes", "write_map", "read_ahead"];
const PAGE: u64 = 4096;

type Table = heed::Database<'static, Bytes, Bytes>;

/// An open LMDB environment.
pub struct Lmdb {
    tables: Vec<Table>,
    /// True if commits wait for the disk now.
    synced: RwLock<bool>,
    env: Env<WithTls>,
    opened: Opened,
}

impl Lmdb {
    /// Opens or creates it.
    ///
    /// # Errors
    /// `Plan` for a wrong option; LMDB's.
    pub fn open(options: &EngineOptions) -> Result<Self> {
        let named = Named::new("lmdb", &options.options, &KNOWN)?;
        let map_bytes = named.number("map_bytes", map_bytes(options))?.next_multiple_of(PAGE);
        // Both help while the data is in memory and hurt when it is not.
        let fits = options.memory_bytes >= options.data_bytes;
        let write_map = named.flag("write_map", fits)?;
        let read_ahead = named.flag("read_ahead", fits)?;
        let mut flags = EnvFlags::NO_SYNC;
        flags.set(EnvFlags::WRITE_MAP, write_map);
        flags.set(EnvFlags::NO_READ_AHEAD, !read_ahead);
        let mut builder = EnvOpenOptions::new();
        builder.map_size(usize::try_from(map_bytes).unwrap_or(usize::MAX)).max_dbs(options.tables.max(1));
        // SAFETY: the flags weaken durability only, as the report says; locking stays on. No other program
        // changes the file: the bench makes the directory for this database.
        let env = unsafe { builder.flags(flags).open(&options.directory) };
        let env = env.map_err(|error| said("open", &error))?;
        let tables = (0..options.tables.max(1)).map(|table| create(&env, table)).collect::<Result<_>>()?;
        let mut settings = vec![
            setting("map_size", map_bytes),
            setting("MDB_WRITEMAP", write_map),
            setting("MDB_NORDAHEAD", !read_ahead),
            setting("memory", "the page cache: not bounded by memory_bytes"),
            setting("durability", durability(write_map)),
        ];
        if options.direct_io {
            settings.push(setting("direct_io", "none: LMDB reads through its map"));
        }
        let opened = Opened { version: heed::lmdb_version().string.to_owned(), settings };
        Ok(Lmdb { tables, synced: RwLock::new(false), env, opened })
    }

    /// Runs `commit` while commits wait for the disk, or do not.
    fn with_sync(&self, sync: bool, commit: impl FnOnce() -> Result<()>) -> Result<()> {
        loop {
            let synced = self.synced.read().unwrap_or_else(PoisonError::into_inner);
            if *synced == sync {
                return commit();
            }
            drop(synced);
            let mut synced = self.synced.write().unwrap_or_else(PoisonError::into_inner);
            let mode = if sync { FlagSetMode::Disable } else { FlagSetMode::Enable };
            // SAFETY: one thread at a time, by the lock, and no write transaction is open; readers do not
            // look at the flag. Not syncing is what the caller asked for.
            let set = unsafe { self.env.set_flags(EnvFlags::NO_SYNC, mode) };
            set.map_err(|error| said("change MDB_NOSYNC", &error))?;
            if sync {
                // What was committed before without waiting must not be newer on disk than what follows.
                self.env.force_sync().map_err(|error| said("sync", &error))?;
            }
            *synced = sync;
        }
    }
}

fn durability(write_map: bool) -> &'static str {
    if write_map {
        "sync off: MDB_NOSYNC with MDB_WRITEMAP, pages in the shared map survive the process, after loss of power the file \
         may be broken; sync on: msync at each commit"
    } else {
        "sync off: MDB_NOSYNC, pages written to the page cache survive the process, after loss of power the file may be \
         broken; sync on: fdatasync at each commit"
    }
}

/// Room for copies on write and half-full pages; the file is sparse.
fn map_bytes(options: &EngineOptions) -> u64 {
    let data = options.data_bytes + 64 * options.records;
    (8 * data).max(1 << 30)
}

fn create(env: &Env<WithTls>, table: u32) -> Result<Table> {
    let name = format!("table{table}");
    let make = || -> std::result::Result<Table, heed::Error> {
        let transaction = env.write_txn()?;
        let created = env.create_databases_and_commit(transaction, |opener, transaction| {
            let created = opener.create_database::<Bytes, Bytes>(transaction, Some(&name))?;
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(created))
        })?;
        Ok(created.commit().expect("the closure commits"))
    };
    make().map_err(|error| said("create a table", &error))
}

fn said(what: &str, error: &heed::Error) -> Error {
    match error {
        heed::Error::Mdb(heed::MdbError::MapFull) => {
            Error::engine("lmdb", what, "the map is full: raise its option map_bytes")
        }
        heed::Error::Mdb(heed::MdbError::BadValSize) => {
            Error::engine("lmdb", what, "a key is empty or longer than the 511 bytes that LMDB takes")
        }
        other => Error::engine("lmdb", what, other),
    }
}

impl Engine for Lmdb {
    fn opened(&self) -> Opened {
        self.opened.clone()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(LmdbSession { lmdb: self }))
    }

    fn control(&self, control: Control) -> Result<()> {
        match control {
            // It has no background work, but pages that the kernel has yet to write are part of what a run
            // cost.
            Control::Flush | Control::WaitUntilQuiescent => {
                self.env.force_sync().map_err(|error| said("sync", &error))
            }
            other => {
                Err(Error::unsupported("lmdb", format!("{other:?}: it is a B+tree without background work")))
            }
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.env.force_sync().map_err(|error| said("sync", &error))?;
        let Lmdb { env, .. } = *self;
        // A process must not open an environment twice: wait until it is gone.
        env.prepare_for_closing().wait();
        Ok(())
    }
}

struct LmdbSession<'l> {
    lmdb: &'l Lmdb,
}

impl LmdbSession<'_> {
    fn table(&self, table: u32) -> &Table {
        &self.lmdb.tables[table as usize]
    }
}

fn walk<'t>(
    rows: heed::Result<impl Iterator<Item = heed::Result<(&'t [u8], &'t [u8])>>>,
    rows_max: u64,
    row: &mut ShowRow<'_>,
) -> Result<u64> {
    let mut seen = 0;
    for item in rows.map_err(|error| said("scan", &error))? {
        let (key, value) = item.map_err(|error| said("scan", &error))?;
        seen += 1;
        if !row(key, value) || seen == rows_max {
            break;
        }
    }
    Ok(seen)
}

impl Session for LmdbSession<'_> {
    fn get(&mut self, table: u32, key: &[u8], visit: &mut Visit<'_>) -> Result<bool> {
        let transaction = self.lmdb.env.read_txn().map_err(|error| said("begin a read", &error))?;
        let value = self.table(table).get(&transaction, key).map_err(|error| said("get", &error))?;
        value.inspect(|value| visit(key, value));
        Ok(value.is_some())
    }

    fn multi_get(&mut self, table: u32, keys: &[&[u8]], visit: &mut Visit<'_>) -> Result<u64> {
        let transaction = self.lmdb.env.read_txn().map_err(|error| said("begin a read", &error))?;
        let mut found = 0;
        for key in keys {
            if let Some(value) =
                self.table(table).get(&transaction, key).map_err(|error| said("get", &error))?
            {
                visit(key, value);
                found += 1;
            }
        }
        Ok(found)
    }

    fn write(&mut self, table: u32, writes: &[Write<'_>], sync: bool) -> Result<()> {
        let table = *self.table(table);
        let commit = || -> std::result::Result<(), heed::Error> {
            let mut transaction = self.lmdb.env.write_txn()?;
            for write in writes {
                match write {
                    Write::Put(key, value) => table.put(&mut transaction, key, value)?,
                    Write::Delete(key) => drop(table.delete(&mut transaction, key)?),
                }
            }
            transaction.commit()
        };
        self.lmdb.with_sync(sync, || commit().map_err(|error| said("write", &error)))
    }

    fn iterate(
        &mut self,
        table: u32,
        start: Option<&[u8]>,
        rows: u64,
        direction: Direction,
        row: &mut ShowRow<'_>,
    ) -> Result<u64> {
        let transaction = self.lmdb.env.read_txn().map_err(|error| said("begin a read", &error))?;
        let bound = start.map_or(Bound::Unbounded, Bound::Included);
        match direction {
            Direction::Forward => {
                let range = (bound, Bound::Unbounded);
                walk(self.table(table).range(&transaction, &range), rows, row)
            }
            Direction::Backward => {
                let range = (Bound::Unbounded, bound);
                walk(self.table(table).rev_range(&transaction, &range), rows, row)
            }
        }
    }
}
