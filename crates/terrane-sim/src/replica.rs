//! A replica that applies the changes of a database, and only those that survive a loss of power. After any
//! crash of the database the replica goes on where it was; once it has applied every change it equals the
//! database.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use terrane::{Change, ChangeKind, Db, FeedOptions, Kind, Result, SeqNo};

use crate::order::Order;
use crate::run::Runner;

/// Keys that expire at moments of their own; whether they are there is asked elsewhere.
const EXPIRING: &[u8] = b"ttl/";

/// The rows of the replica.
#[derive(Debug)]
pub(crate) struct Replica {
    next: SeqNo,
    rows: BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Tables that were dropped, or nearly: a replica does not learn of that.
    pub(crate) dropped: BTreeSet<String>,
}

impl Default for Replica {
    fn default() -> Self {
        Replica { next: SeqNo(1), rows: BTreeMap::new(), dropped: BTreeSet::new() }
    }
}

impl Replica {
    /// Returns false if rows are missing: the feed does not list the rows of an ingest.
    fn apply(&mut self, change: &Change<'_>, order_of: &dyn Fn(&str) -> Order) -> bool {
        let Some(table) = change.table else { return true };
        let rows = self.rows.entry(table.to_owned()).or_default();
        match change.kind {
            ChangeKind::Put { key, value } => drop(rows.insert(key.to_vec(), value.to_vec())),
            ChangeKind::Delete { key } | ChangeKind::SingleDelete { key } => drop(rows.remove(key)),
            // The tables' operator appends.
            ChangeKind::Merge { key, operand } => rows.entry(key.to_vec()).or_default().extend(operand),
            ChangeKind::DeleteRange { start, end } => {
                let (order, range) = (order_of(table), (Bound::Included(start), Bound::Excluded(end)));
                rows.retain(|key, _| !order.holds(range, key));
            }
            ChangeKind::Ingest => return false,
            _ => {}
        }
        true
    }

    /// Begins with a copy.
    fn copy(&mut self, db: &Db) -> Result<()> {
        let snapshot = db.snapshot();
        // Copied commits must not be lost, or the replica would be ahead.
        db.sync()?;
        self.rows.clear();
        for name in db.tables() {
            let rows = snapshot.iter(&db.table(&name)?).collect::<Result<_>>()?;
            self.rows.insert(name, rows);
        }
        self.next = SeqNo(snapshot.seq().0 + 1);
        Ok(())
    }

    /// Applies the batches that are there; returns a difference if the feed listed every row and one is not
    /// as in the database.
    fn go_on(&mut self, db: &Db, order_of: &dyn Fn(&str) -> Order) -> Result<Option<String>> {
        let mut changes = db.changes_with(self.next, FeedOptions::new().durable_only(true))?;
        for batch in changes.by_ref() {
            let batch = batch?;
            if batch.first_seq() < self.next {
                return Ok(Some(format!("batch {} came twice", batch.first_seq())));
            }
            let mut is_whole = true;
            batch.changes().for_each(|change| is_whole &= self.apply(&change, order_of));
            if !is_whole {
                return self.copy(db).map(|()| None);
            }
            self.next = SeqNo(batch.last_seq().0 + 1);
        }
        self.next = changes.position();
        let snapshot = db.snapshot();
        if self.next.0 != snapshot.seq().0 + 1 {
            return Ok(None);
        }
        for name in db.tables().into_iter().filter(|name| !self.dropped.contains(name)) {
            let own = self.rows.entry(name.clone()).or_default();
            let lives = |key: &[u8]| !key.starts_with(EXPIRING);
            let mut expected = own.iter().filter(|(key, _)| lives(key));
            let table = db.table(&name)?;
            // Whether they lie in their order is asked elsewhere.
            let found = snapshot.iter(&table).collect::<Result<BTreeMap<_, _>>>()?;
            for (key, value) in found {
                if lives(&key) && expected.next() != Some((&key, &value)) {
                    return Ok(Some(format!(
                        "table {name:?}: a replica differs at \"{}\"",
                        key.escape_ascii()
                    )));
                }
            }
            if let Some((key, _)) = expected.next() {
                return Ok(Some(format!("table {name:?}: a replica has \"{}\", too", key.escape_ascii())));
            }
        }
        Ok(None)
    }
}

impl Runner {
    /// Has the replica go on.
    pub(crate) fn replicate(&self) {
        let db = self.db.borrow().clone();
        let Some(db) = db.filter(|_| self.has_journal && self.is_outermost() && !self.disk().has_crashed())
        else {
            return;
        };
        let mut replica = self.replica.take();
        let outcome = replica.go_on(&db, &|table| self.model.borrow().order(table));
        // A device that lied, or bytes that rotted, may have taken what was said to survive.
        let (counted, struck) = (self.outcome.get(), self.struck());
        let is_doubtful =
            self.is_hurt() || counted.lies + counted.silent + struck.silent > 0 || struck.may_poison();
        let is_over = self.disk().has_crashed();
        let copies = match outcome {
            _ if is_over => false,
            Ok(None) => {
                self.did("change feed: gone on");
                false
            }
            Ok(Some(_)) if is_doubtful => true,
            Ok(Some(difference)) => {
                self.fail(difference);
                false
            }
            Err(error) if error.kind() == Kind::Gone => true,
            Err(error) if error.kind() == Kind::Invalid && is_doubtful => true,
            Err(error) => {
                self.met("changes", &error);
                true
            }
        };
        if copies {
            self.did("change feed: copied again");
        }
        if copies && let Err(error) = replica.copy(&db) {
            self.met("copy for a replica", &error);
            replica = Replica { dropped: replica.dropped, ..Replica::default() };
        }
        *self.replica.borrow_mut() = replica;
    }
}
