//! RocksDB, through its C interface, from any `librocksdb.so` that is found while the program runs.
//!
//! `library` finds it, `api` is its table of functions, `tuning` chooses options, `setup` makes them,
//! `database` and `session` call it, `like_library` is a session by other functions, `transactions` opens the
//! kinds of database that have them, `control` shapes the tree, `counters` reads what RocksDB tells. Tables
//! are column families. [`source`] reads databases that programs made, `recorded` what these wrote down of
//! their options. Unsafe code is in `api`, `setup`, `database`, `session`, `like_library`, `source`,
//! `operators` and `transactions` alone.

mod api;
mod control;
pub mod counters;
mod database;
mod library;
mod like_library;
pub mod operators;
pub mod recorded;
mod session;
mod setup;
pub mod source;
mod transactions;
mod tuning;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::engine::options::setting;
use crate::engine::{Control, Engine, EngineCounters, EngineOptions, Opened, Session, Shape};
use crate::error::Result;
use api::Api;
use database::Database;
use like_library::{Functions, SessionLikeLibrary};
use session::RocksSession;
use tuning::{Calls, Counting, Tuning};

/// An open RocksDB database.
pub struct RocksDb {
    database: Database,
    tuning: Tuning,
    /// The functions of sessions that are to do the same as those of Terrane's library.
    like_library: Option<Functions>,
    paused: AtomicBool,
    opened: Opened,
}

impl RocksDb {
    /// Finds a library and opens the database.
    ///
    /// # Errors
    /// `Unsupported` if no library is found; `Plan` if the one that was named does not load, a symbol is
    /// missing, or an option is wrong; RocksDB's.
    pub fn open(options: &EngineOptions) -> Result<Self> {
        let tuning = Tuning::new(options)?;
        let api = library::find(options.library.as_deref(), "the plan")?;
        let like_library = match tuning.calls {
            Calls::Usual => None,
            Calls::LikeLibrary => Some(Functions::of(&api)?),
        };
        let (database, tuning) = open_compressed(&api, options, tuning)?;
        let mut settings = tuning.settings(database.setup.managed, database.setup.cache_kind);
        settings.push(setting("library", api.path().display()));
        settings.push(setting(
            "durability",
            "sync off: log in the page cache, survives the process; sync on: fdatasync of the log",
        ));
        let opened = Opened { version: version(&options.directory), settings };
        Ok(RocksDb { database, tuning, like_library, paused: AtomicBool::new(false), opened })
    }
}

/// Opens; without compression in the last level if the library was built without the codec.
fn open_compressed(api: &Arc<Api>, options: &EngineOptions, tuning: Tuning) -> Result<(Database, Tuning)> {
    let open = |tuning: &Tuning| Database::open(Arc::clone(api), &options.directory, options.tables, tuning);
    match open(&tuning) {
        Err(error) if tuning.compresses() && error.to_string().contains("not linked") => {
            let tuning = tuning.without_compression();
            Ok((open(&tuning)?, tuning))
        }
        opened => Ok((opened?, tuning)),
    }
}

/// The version, which RocksDB tells nowhere but in its information log.
#[expect(clippy::disallowed_methods, reason = "RocksDB's own file, not one of Terrane")]
fn version(directory: &Path) -> String {
    const MARK: &[u8] = b"RocksDB version: ";
    let log = std::fs::read(directory.join("LOG")).unwrap_or_default();
    let at = log.windows(MARK.len()).position(|window| window == MARK).map(|at| at + MARK.len());
    let text = at.map(|at| log[at..].split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default());
    text.map_or_else(|| "unknown".to_owned(), |text| String::from_utf8_lossy(text).into_owned())
}

impl Engine for RocksDb {
    fn opened(&self) -> Opened {
        self.opened.clone()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let session = RocksSession::new(&self.database, self.tuning.counting);
        Ok(match self.like_library {
            None => Box::new(session),
            Some(functions) => Box::new(SessionLikeLibrary::new(session, functions)),
        })
    }

    fn control(&self, control: Control) -> Result<()> {
        control::control(&self.database, &self.tuning, &self.paused, control)
    }

    fn shape(&self) -> Shape {
        counters::shape(&self.database)
    }

    fn values_permille(&self) -> Option<u64> {
        counters::values_permille(&self.database)
    }

    fn counters(&self) -> EngineCounters {
        match self.tuning.counting {
            Counting::Statistics => self
                .database
                .statistics()
                .map_or_else(EngineCounters::default, |text| counters::of_statistics(&text)),
            Counting::Off | Counting::Perf => EngineCounters::default(),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.database.sync_log()
    }
}
