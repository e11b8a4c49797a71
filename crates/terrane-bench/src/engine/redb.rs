//! redb: a copy-on-write B+tree in one file, in Rust. Tables are tables.
//!
//! A read is one read transaction per operation, a batch one write transaction. Without `sync` a commit has
//! `Durability::None`, which is weaker than what the log-structured engines promise: it lives in the process
//! until the next durable commit. The report says so. Waiting until it is quiescent makes that commit if
//! something waits for it, so that what such writes cost the device and the disk is counted with the run that
//! wrote them.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, TableDefinition};

use crate::engine::options::{Named, locked_version, setting};
use crate::engine::{Control, Direction, Engine, EngineOptions, Opened, Session, ShowRow, Visit, Write};
use crate::error::{Error, Result};

const KNOWN: [&str; 0] = [];

/// An open redb database.
pub struct Redb {
    database: Database,
    names: Vec<String>,
    /// True if a commit was made that no durable one has followed yet.
    unsaved: AtomicBool,
    opened: Opened,
}

impl Redb {
    /// Opens or creates it.
    ///
    /// # Errors
    /// `Plan` for an option: it has none; redb's.
    pub fn open(options: &EngineOptions) -> Result<Self> {
        Named::new("redb", &options.options, &KNOWN)?;
        let cache = usize::try_from(options.memory_bytes).unwrap_or(usize::MAX);
        let database = Database::builder()
            .set_cache_size(cache)
            .create(options.directory.join("data.redb"))
            .map_err(|error| said("open", error))?;
        let names = (0..options.tables.max(1)).map(|table| format!("table{table}")).collect();
        let mut settings = vec![
            setting("cache_size", format!("{cache} bytes, reads and uncommitted pages together")),
            setting(
                "durability",
                "sync off: Durability::None, survives NOTHING before the next durable commit, not the process either; sync \
                 on: Durability::Immediate, fdatasync at each commit",
            ),
        ];
        if options.direct_io {
            settings.push(setting("direct_io", "none: redb reads through the page cache"));
        }
        let opened = Opened { version: locked_version("redb"), settings };
        let redb = Redb { database, names, unsaved: AtomicBool::new(false), opened };
        redb.create_tables()?;
        Ok(redb)
    }

    fn definition(&self, table: u32) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
        TableDefinition::new(&self.names[table as usize])
    }

    fn create_tables(&self) -> Result<()> {
        let transaction = self.database.begin_write().map_err(|error| said("begin a write", error))?;
        for table in (0..).take(self.names.len()) {
            transaction.open_table(self.definition(table)).map_err(|error| said("create a table", error))?;
        }
        transaction.commit().map_err(|error| said("commit", error))
    }

    /// A durable commit, which takes every earlier one along.
    fn persist(&self) -> Result<()> {
        // Before it: a commit of another thread that comes in between is still taken for unsaved.
        self.unsaved.store(false, Ordering::Relaxed);
        let transaction = self.database.begin_write().map_err(|error| said("begin a write", error))?;
        transaction.commit().map_err(|error| said("commit", error))
    }
}

fn said(what: &str, error: impl std::fmt::Display) -> Error {
    Error::engine("redb", what, error)
}

impl Engine for Redb {
    fn opened(&self) -> Opened {
        self.opened.clone()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(RedbSession { redb: self }))
    }

    fn control(&self, control: Control) -> Result<()> {
        match control {
            Control::Flush => self.persist(),
            // A run that only read must not be charged for a commit.
            Control::WaitUntilQuiescent if !self.unsaved.load(Ordering::Relaxed) => Ok(()),
            Control::WaitUntilQuiescent => self.persist(),
            other => {
                Err(Error::unsupported("redb", format!("{other:?}: it is a B+tree without background work")))
            }
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.persist()?;
        self.database.close().map_err(|error| said("close", error))
    }
}

struct RedbSession<'r> {
    redb: &'r Redb,
}

type Reader = ReadOnlyTable<&'static [u8], &'static [u8]>;

impl RedbSession<'_> {
    fn reader(&self, table: u32) -> Result<Reader> {
        let transaction = self.redb.database.begin_read().map_err(|error| said("begin a read", error))?;
        transaction.open_table(self.redb.definition(table)).map_err(|error| said("open a table", error))
    }
}

fn read(reader: &Reader, key: &[u8], visit: &mut Visit<'_>) -> Result<bool> {
    let value = reader.get(key).map_err(|error| said("get", error))?;
    Ok(value.inspect(|value| visit(key, value.value())).is_some())
}

impl Session for RedbSession<'_> {
    fn get(&mut self, table: u32, key: &[u8], visit: &mut Visit<'_>) -> Result<bool> {
        read(&self.reader(table)?, key, visit)
    }

    fn multi_get(&mut self, table: u32, keys: &[&[u8]], visit: &mut Visit<'_>) -> Result<u64> {
        let reader = self.reader(table)?;
        let mut found = 0;
        for key in keys {
            found += u64::from(read(&reader, key, visit)?);
        }
        Ok(found)
    }

    fn write(&mut self, table: u32, writes: &[Write<'_>], sync: bool) -> Result<()> {
        let mut transaction =
            self.redb.database.begin_write().map_err(|error| said("begin a write", error))?;
        let durability = if sync { Durability::Immediate } else { Durability::None };
        transaction.set_durability(durability).map_err(|error| said("set durability", error))?;
        {
            let definition = self.redb.definition(table);
            let mut table =
                transaction.open_table(definition).map_err(|error| said("open a table", error))?;
            for write in writes {
                match write {
                    Write::Put(key, value) => {
                        drop(table.insert(*key, *value).map_err(|error| said("put", error))?)
                    }
                    Write::Delete(key) => drop(table.remove(*key).map_err(|error| said("delete", error))?),
                }
            }
        }
        transaction.commit().map_err(|error| said("commit", error))?;
        if !sync {
            self.redb.unsaved.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn iterate(
        &mut self,
        table: u32,
        start: Option<&[u8]>,
        rows: u64,
        direction: Direction,
        row: &mut ShowRow<'_>,
    ) -> Result<u64> {
        let reader = self.reader(table)?;
        let bound = start.map_or(Bound::Unbounded, Bound::Included);
        let range: (Bound<&[u8]>, Bound<&[u8]>) = match direction {
            Direction::Forward => (bound, Bound::Unbounded),
            Direction::Backward => (Bound::Unbounded, bound),
        };
        let mut found = reader.range::<&[u8]>(range).map_err(|error| said("scan", error))?;
        let mut seen = 0;
        while seen < rows {
            let next = if direction == Direction::Forward { found.next() } else { found.next_back() };
            let Some(item) = next else { break };
            let (key, value) = item.map_err(|error| said("scan", error))?;
            seen += 1;
            if !row(key.value(), value.value()) {
                break;
            }
        }
        Ok(seen)
    }
}
