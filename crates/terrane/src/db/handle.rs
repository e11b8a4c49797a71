//! Handles keep a database open; the drop of the last one closes it.
//!
//! Every handle of the user holds one [`Handle`]: databases, tables, snapshots, iterators, cursors and
//! transactions. The background holds none, and readers of changes hold none: a thread that waits for
//! changes ends when no writer is left.

use std::fmt;
use std::sync::{Arc, Weak};

use terrane_base::callback;
use terrane_engine::{Engine, Holds, Shared, close_apart};

use crate::Db;

/// Keeps the database open; dropped, it closes it. Apart from its count, which every new reader changes.
#[repr(align(64))]
pub(crate) struct Handle {
    engine: Arc<Engine>,
}

impl Handle {
    pub(crate) fn new(engine: Arc<Engine>) -> Arc<Handle> {
        Arc::new(Handle { engine })
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }
}

/// So a reader keeps the database open with the one count that keeps it in memory.
impl Holds<Shared> for Handle {
    fn part(&self) -> &Shared {
        &self.engine
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.engine.is_closing() {
            return;
        }
        // A callback must not wait for work of which it may be a part, nor a thread of the background for its
        // own end, and no other handle is left to close the engine.
        if callback::is_inside() || self.engine.is_on_own_thread() {
            return close_apart(&self.engine);
        }
        // No caller is left for the error; a caller that needs it calls `close`.
        let _ = self.engine.close();
        debug_assert!(self.engine.is_closing(), "nothing would ever close a database without handles");
    }
}

/// A handle that does not keep the database open: for a listener, a callback, or whatever else the database
/// itself keeps. See [`Db::downgrade`].
///
/// While a listener holds the [`Db`] of an [`WeakDb::upgrade`], that is a handle like others: if the last
/// handle of the program is dropped meanwhile, the database closes a little later, on a thread of its own. A
/// program that needs the end of the close, to open the database again or to leave `main`, calls
/// [`Db::close`].
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// use std::sync::Mutex;
/// static CURRENT: Mutex<Option<terrane::WeakDb>> = Mutex::new(None); // a `Db` here would never be dropped
///
/// let db = terrane::Db::open_in_memory()?;
/// *CURRENT.lock().unwrap() = Some(db.downgrade());
/// if let Some(db) = CURRENT.lock().unwrap().as_ref().and_then(terrane::WeakDb::upgrade) {
///     println!("{}", db.shape());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct WeakDb {
    handle: Weak<Handle>,
}

impl WeakDb {
    pub(super) fn of(handle: &Arc<Handle>) -> WeakDb {
        WeakDb { handle: Arc::downgrade(handle) }
    }

    /// The database; `None` once its last handle is gone. A database that was closed while there are handles
    /// is still given, and its writes are refused.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// let db = terrane::Db::open_in_memory()?;
    /// let weak = db.downgrade();
    /// weak.upgrade().expect("it is open").put("k", "v")?;
    /// drop(db); // the last handle: the database is closed
    /// assert!(weak.upgrade().is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn upgrade(&self) -> Option<Db> {
        self.handle.upgrade().map(Db::of)
    }
}

impl fmt::Debug for WeakDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakDb").finish_non_exhaustive()
    }
}
