//! The view of a secondary: one moment of its primary at a time, all column families of it at once.
//!
//! Catching up puts a new view into the place of the old one in one step. A read of several families takes
//! the view once, so all of it is of one moment, also while another thread catches up.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};

use terrane::{Db, Follower, Snapshot, Table};

use crate::db::{Database, Family};
use crate::ffi::failure::{Failure, Result};

/// The newest view of a primary.
pub(crate) struct Views {
    newest: RwLock<Arc<View>>,
}

/// One moment of a primary: the database, and its tables by their numbers. One that the primary has dropped
/// since is as it was.
struct View {
    db: Db,
    tables: BTreeMap<u32, Table>,
}

/// The table of a family as it is seen now: the one that was opened, or that of a view of the primary.
pub(crate) enum Seen<'a> {
    Opened(&'a Table),
    Followed(Table),
}

impl Deref for Seen<'_> {
    type Target = Table;

    #[inline]
    fn deref(&self) -> &Table {
        match self {
            Seen::Opened(table) => table,
            Seen::Followed(table) => table,
        }
    }
}

/// A database as it is seen at one moment.
pub(crate) enum Sight<'a> {
    Opened(&'a Db),
    Followed(Followed),
}

/// A view that a read holds.
pub(crate) struct Followed(Arc<View>);

impl Views {
    pub(crate) fn new(db: Db) -> Views {
        Views { newest: RwLock::new(Arc::new(View { db, tables: BTreeMap::new() })) }
    }

    fn newest(&self) -> Arc<View> {
        self.newest.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Catches up with the primary. Threads do it one after the other: an older view never replaces a newer
    /// one.
    fn renew(&self, follower: &Follower, families: &[Arc<Family>]) -> Result<()> {
        follower.catch_up()?;
        let mut newest = self.newest.write().unwrap_or_else(PoisonError::into_inner);
        let db = follower.view();
        let mut tables = newest.tables.clone();
        for family in families {
            // One that was made under the name of a dropped one is another.
            let table = db.table(family.table.name()).ok();
            if let Some(table) = table.filter(|table| table.number() == family.id()) {
                if let Some(history) = &family.history {
                    history.look_again(&table);
                }
                tables.insert(family.id(), table);
            }
        }
        *newest = Arc::new(View { db, tables });
        Ok(())
    }
}

impl View {
    fn table(&self, family: &Family) -> Table {
        self.tables.get(&family.id()).unwrap_or(&family.table).clone()
    }
}

impl Sight<'_> {
    /// Keeps the moment.
    pub(crate) fn snapshot(&self) -> Snapshot {
        match self {
            Sight::Opened(db) => db.snapshot(),
            Sight::Followed(Followed(view)) => view.db.snapshot(),
        }
    }

    /// The table of a family at this moment.
    pub(crate) fn table<'f>(&self, family: &'f Family) -> Seen<'f> {
        match self {
            Sight::Opened(_) => Seen::Opened(&family.table),
            Sight::Followed(Followed(view)) => Seen::Followed(view.table(family)),
        }
    }
}

impl Family {
    /// Returns true if it is seen as it was when its primary was caught up with.
    #[inline]
    pub(crate) fn is_followed(&self) -> bool {
        self.views.is_some()
    }

    /// The table for reads.
    #[inline]
    pub(crate) fn seen(&self) -> Seen<'_> {
        match &self.views {
            None => Seen::Opened(&self.table),
            Some(views) => Seen::Followed(views.newest().table(self)),
        }
    }
}

impl Database {
    /// The database as it is seen now, for reads of several families.
    pub(crate) fn sight(&self) -> Sight<'_> {
        match &self.default.views {
            None => Sight::Opened(&self.db),
            Some(views) => Sight::Followed(Followed(views.newest())),
        }
    }

    /// The database as it is seen now.
    pub(crate) fn view(&self) -> Db {
        self.default.views.as_ref().map_or_else(|| self.db.clone(), |views| views.newest().db.clone())
    }

    /// Sees what the primary has now.
    pub(crate) fn catch_up(&self) -> Result<()> {
        match (&self.attached.follower, &self.default.views) {
            (Some(follower), Some(views)) => views.renew(follower, &self.families()),
            _ => Err(Failure::not_implemented("Supported only by secondary instance")),
        }
    }
}
