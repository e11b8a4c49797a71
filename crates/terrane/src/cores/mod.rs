//! Per-core ownership: an optional mode in which tables, or ranges of their keys, belong to cores, for a
//! server that embeds Terrane.
//!
//! Experimental: on two processors [`multi_get`](crate::Table::multi_get_into) was faster in every
//! measurement; machines with many were not measured. This interface may change or go in any version.
//!
//! ```text
//! thread of the server ── Session ──lane──► core 0: owner thread, partitions 0, 2, ..
//!                            │                │ gets of a round: one multi_get for each table
//!                            └──────lane──► core 1: partitions 1, 3, ..
//!                                             │ writes of a round: one commit
//! ```
//!
//! A [`Session`] belongs to one thread: it *submits* requests, each of which gets a [`Ticket`], and
//! *collects* answers, many at a time. Requests go through rings, one for each session and core, without a
//! lock or an allocation; the core that owns a key answers in the slot of the request. All requests that have
//! arrived when a core checks are done together: reads as one interleaved
//! [`multi_get`](crate::Table::multi_get_into), writes as one commit. So the mode is for servers with many
//! concurrent requests (`docs/design/0014-cores.md` has measurements, and says where it loses: a caller that
//! waits for each answer should use the [`Table`] itself).
//!
//! ```
//! # fn main() -> terrane::Result<()> {
//! # let dir = tempfile::tempdir().expect("temporary directory");
//! # let db = terrane::Db::open(dir.path().join("data"))?;
//! use terrane::cores::{Answer, Cores};
//!
//! let users = db.table_or_create("users")?;
//! let cores = Cores::builder(&db).cores(2).table(db.default_table()).ranges(&users, &[b"m"]).build()?;
//! let mut session = cores.session()?; // one for each thread
//! session.put(&users, "ada", "1815", terrane::Durability::Buffered)?;
//! let asked = session.get(&users, "ada")?; // sees the put: one session, one partition
//! session.finish(&mut |ticket, answer| match answer {
//!     Ok(Answer::Value(value)) if ticket == asked => assert_eq!(value, Some(&b"1815"[..])),
//!     Ok(_) => {}
//!     Err(error) => panic!("{error}"),
//! });
//! cores.close(); // every request that was accepted is answered
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//! * Requests of one session about the same key take effect in the order in which they were submitted: a read
//!   sees the session's earlier writes of the key, and none of its later ones. Reads among themselves have no
//!   order until an answer was collected.
//! * Requests to different partitions, and those of different sessions, are unordered until an answer was
//!   collected: a request submitted after that comes later.
//! * A batch whose keys belong to one core is a request like others ([`Session::write`]).
//!   [`Session::write_across`] takes any batch: it waits until the session's earlier requests are answered
//!   and commits in the calling thread. In both cases it is atomic, as [`Db::write`] is.
//! * The database can be used directly as well. Direct calls are ordered with a request as those of another
//!   session are.
//!
//! # Hot partitions
//! Sessions count a sample of their requests. A partition with more of them than a core's share is *spread*:
//! a session sends reads of it to the core from which it awaits fewest answers, once its earlier writes of
//! the partition are answered; and its later writes wait for such reads ([`Cores::is_spread`]).
//!
//! # Ends
//! An answer may be an error of that request, as [`Table`] returns it. Further errors are [`Kind::Busy`] for
//! a full ring (collect, then submit again), [`Kind::Cancelled`] after [`Cores::close`], and
//! [`Kind::Poisoned`] once a core has panicked: then it is unknown whether its unanswered requests were done.

mod builder;
mod lane;
mod load;
mod owner;
mod ownership;
mod request;
mod session;
mod submit;

use std::sync::Arc;

use terrane_base::env::Joiner;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, Result};

use crate::{Db, Table};
use lane::{Bell, Desk};
use load::Load;
use owner::Owner;
use ownership::Ownership;

pub use builder::CoresBuilder;
pub use request::{Answer, Rows, SCAN_BYTES_MAX};
pub use session::{Session, Ticket};

/// State shared by all sessions.
struct Shared {
    db: Db,
    ownership: Arc<Ownership>,
    load: Load,
    /// One for each core.
    desks: Vec<Arc<Desk<Owner>>>,
    /// Slots of a lane.
    slots: usize,
    /// True if a session that waits serves cores whose owner sleeps.
    helps: bool,
}

impl Shared {
    fn close(&self) {
        self.desks.iter().for_each(|desk| desk.close());
    }
}

/// Cores with their partitions and owner threads, over an open database. See the [module](self).
///
/// ```
/// # let db = terrane::Db::open_in_memory()?;
/// # let table = db.default_table();
/// let cores = terrane::cores::Cores::builder(&db).cores(2).table(table).build()?;
/// println!("core {} has the key", cores.core_of(table, "k")?);
/// cores.close();
/// # Ok::<(), terrane::Error>(())
/// ```
pub struct Cores {
    shared: Arc<Shared>,
    owners: Mutex<Vec<Box<dyn Joiner>>>,
}

impl Cores {
    /// The mode over `db`, to be set up.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// assert_eq!(cores.len(), 2);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn builder(db: &Db) -> CoresBuilder {
        CoresBuilder::new(db)
    }

    /// A way in for one thread.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// session.put(table, "k", "v", terrane::Durability::Buffered)?;
    /// session.finish(&mut |_, answer| assert!(answer.is_ok()));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Cancelled` after [`Cores::close`].
    pub fn session(&self) -> Result<Session> {
        let bell = terrane_base::sync::Arc::new(Bell::new());
        let enter = |desk: &Arc<Desk<Owner>>| desk.enter(self.shared.slots, bell.clone()).ok_or_else(closed);
        let clients = self.shared.desks.iter().map(enter).collect::<Result<Vec<_>>>()?;
        Ok(Session::new(self.shared.clone(), bell.clone(), clients))
    }

    /// Number of cores.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// assert_eq!(cores.len(), 2);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.desks.len()
    }

    /// Never: there is at least one core.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// assert!(!cores.is_empty());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shared.desks.is_empty()
    }

    /// The core that owns `key` of `table`, from 0.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// assert_eq!(cores.core_of(table, "k")?, 0); // the first of the two has the whole table
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a table that was not named to the builder.
    pub fn core_of(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<usize> {
        table.encoding(key.as_ref(), |key| Ok(self.shared.ownership.home(table, key)?.core))
    }

    /// Returns true if the partition of `key` is hot, so that every core serves its reads.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// assert!(!cores.is_spread(table, "k")?); // nothing was asked for yet
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cores::core_of`].
    pub fn is_spread(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<bool> {
        let home = table.encoding(key.as_ref(), |key| self.shared.ownership.home(table, key))?;
        Ok(self.shared.load.is_spread(home.partition))
    }

    /// Number of requests that each core has answered.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// assert_eq!(cores.served(), [0, 0]);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn served(&self) -> Vec<u64> {
        self.shared.desks.iter().map(|desk| desk.served()).collect()
    }

    /// Refuses new requests, does and answers all that were accepted, and ends the owner threads. Dropping
    /// does the same. Answers are still collected by the sessions, which keep the database open until they
    /// are dropped.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// cores.close();
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        self.shared.close();
        let owners = std::mem::take(&mut *self.owners.lock());
        owners.into_iter().for_each(|owner| owner.join());
    }
}

impl std::fmt::Debug for Cores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cores").field("served", &self.served()).finish_non_exhaustive()
    }
}

#[cold]
fn closed() -> Error {
    Error::new(Kind::Cancelled, "the cores are closed: use the database itself, or build new ones")
}
