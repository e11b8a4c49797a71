//! Prepared transactions: a prepared transaction survives every crash until it is committed or rolled back;
//! until then it is either prepared or committed, never both and never neither.

use std::time::Duration;

use terrane::{Durability, Kind, TransactionOptions};
use terrane_base::Rng;

use crate::model::Change;
use crate::oracle::Found;
use crate::run::Runner;
use crate::trace::hash;

/// How one is being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// No transaction.
    None,
    /// By the commit that makes this moment; perhaps a loss of power takes it back.
    Commit(u64),
    /// By a rollback.
    Rollback,
}

/// A transaction that was prepared, or nearly, and whose end is not durable yet.
#[derive(Clone, Debug)]
pub(crate) struct PreparedTransaction {
    pub(crate) name: String,
    changes: Vec<Change>,
    /// True if the preparing returned.
    is_sure: bool,
    ending: Ending,
}

impl PreparedTransaction {
    /// One that is being prepared.
    pub(crate) fn new(name: &str, changes: Vec<Change>) -> Self {
        PreparedTransaction { name: name.to_owned(), changes, is_sure: false, ending: Ending::None }
    }

    /// It is prepared, durably.
    pub(crate) fn is_there(&mut self) {
        (self.is_sure, self.ending) = (true, Ending::None);
    }

    /// Returns true if it must be there, or must not, in a database that was found so.
    fn must_be(&self, found: &Found) -> Option<bool> {
        match self.ending {
            Ending::None => self.is_sure.then_some(true),
            Ending::Commit(moment) if found.commits < moment => Some(true),
            Ending::Commit(moment) if found.commits_min >= moment => Some(false),
            // Its rows tell nothing: they are as before, or their table was dropped.
            Ending::Commit(_) => None,
            Ending::Rollback => None,
        }
    }
}

/// The name of the transaction that a seed stands for.
pub(crate) fn name_of(seed: u64) -> String {
    format!("{seed:016x}")
}

/// Returns true if it is to be rolled back once it is prepared, under any options.
pub(crate) fn rolls_back(name: &str) -> bool {
    Rng::new(hash(name.as_bytes())).one_in(3)
}

impl Runner {
    fn with_waiting(&self, name: &str, change: impl FnOnce(&mut PreparedTransaction)) {
        if let Some(one) = self.waiting.borrow_mut().iter_mut().find(|one| one.name == name) {
            change(one);
        }
    }

    /// Commits the prepared transaction, or rolls it back.
    pub(crate) fn resolve(&self, name: &str) {
        let found = self.waiting.borrow().iter().find(|one| one.name == name).cloned();
        let Some(PreparedTransaction { changes, ending, .. }) = found else { return };
        let db = self.db();
        // Once begun, perhaps found after the next opening: from then on only the same.
        let rolls_back = if ending == Ending::None { rolls_back(name) } else { ending == Ending::Rollback };
        if rolls_back {
            self.make_room();
            self.with_waiting(name, |one| one.ending = Ending::Rollback);
            let now = self.model.borrow().now();
            let ended = db.rollback_prepared(name);
            if self.disk().has_crashed() {
                return;
            }
            match ended {
                Ok(()) => {
                    self.did("transaction: prepared, rolled back");
                    self.waiting.borrow_mut().retain(|one| one.name != name);
                    self.note_durable(now);
                }
                Err(error) => self.met("rollback of a prepared transaction", &error),
            }
            return;
        }
        let sync = hash(name.as_bytes()).is_multiple_of(2);
        let moment = self.model.borrow().now() + 1;
        self.with_waiting(name, |one| one.ending = Ending::Commit(moment));
        let mode = if sync { Durability::Synced } else { Durability::Buffered };
        if self.write(changes, sync, |_| db.commit_prepared(name, mode).map(drop)) {
            self.did("transaction: prepared, committed");
        } else if !self.disk().has_crashed() && !self.life.borrow().is_poisoned {
            self.with_waiting(name, PreparedTransaction::is_there);
        }
        self.forget_ended();
    }

    /// A durably committed transaction is no longer prepared.
    fn forget_ended(&self) {
        let durable = self.life.borrow().durable();
        self.waiting
            .borrow_mut()
            .retain(|one| !matches!(one.ending, Ending::Commit(moment) if moment <= durable));
    }

    /// Ends what an opening found prepared and a fault kept from its end: its locks would be in the way.
    pub(crate) fn resolve_all(&self) {
        if self.waiting.borrow().is_empty() {
            return;
        }
        let prepared = self.db().prepared();
        self.is_transacting.set(true);
        for name in prepared {
            if !self.disk().has_crashed() {
                self.resolve(&name);
            }
        }
        self.is_transacting.set(false);
    }

    /// No transaction gets the locks of what an opening found prepared: neither of the first change, possibly
    /// a range delete, nor of the last.
    fn judge_locks(&self, names: &[String]) {
        let is_calm = self.struck().sum() == 0 && self.disk().faults().is_empty();
        if names.is_empty() || !is_calm {
            return;
        }
        let ends = self
            .waiting
            .borrow()
            .first()
            .map(|one| [one.changes.first().cloned(), one.changes.last().cloned()]);
        for (table, key, _) in ends.into_iter().flatten().flatten() {
            if self.model.borrow().has_table(&table) && !self.disk().has_crashed() {
                self.judge_lock(&table, &key);
            }
        }
    }

    fn judge_lock(&self, table: &str, key: &[u8]) {
        let options = TransactionOptions { lock_timeout: Duration::ZERO, ..TransactionOptions::default() };
        let db = self.db();
        let attempt = || {
            let mut other = db.transaction(&options)?;
            other.put(&db.table(table)?, key, b"other")?;
            other.commit(Durability::Buffered)
        };
        self.is_transacting.set(true);
        let attempted = attempt();
        self.is_transacting.set(false);
        match attempted {
            _ if self.disk().has_crashed() => {}
            Err(error) if error.kind() == Kind::TimedOut => {}
            attempted => {
                self.fail(format!("a commit of a transaction that another one prepared: {attempted:?}"))
            }
        }
    }

    /// Holds what an opening found prepared against what must be there, in a database that was found so; and
    /// ends it.
    pub(crate) fn judge_waiting(&self, found: &Found) {
        let (names, waiting) = (self.db().prepared(), self.waiting.take());
        let counted = self.outcome.get();
        let struck = self.struck();
        // A device that lied, or bytes that rotted, may have taken what was said to survive.
        let is_doubtful = self.is_hurt() || counted.lies + counted.silent + struck.silent + struck.lies > 0;
        let mut left = Vec::new();
        for mut one in waiting {
            let is_there = names.contains(&one.name);
            if one.must_be(found).is_some_and(|must| must != is_there) && !is_doubtful {
                self.fail(format!(
                    "{} of {} commits: prepared {is_there}, {:?}, sure {}",
                    one.name, found.commits, one.ending, one.is_sure
                ));
            }
            if is_there {
                self.did("transaction: prepared, found after an opening");
                one.is_there();
                left.push(one);
            }
        }
        if let Some(name) = names.iter().find(|name| left.iter().all(|one| one.name != **name)) {
            if is_doubtful {
                // It is back from the dead, and its changes are forgotten.
                match self.db().rollback_prepared(name) {
                    Err(error) if error.kind() != Kind::NotFound => self.met("rollback", &error),
                    _ => {}
                }
            } else {
                self.fail(format!("{name} is prepared, and no operation prepared it"));
            }
        }
        *self.waiting.borrow_mut() = left;
        self.judge_locks(&names);
        self.resolve_all();
    }
}
