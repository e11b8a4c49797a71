//! Transactions of a run: each runs from its beginning to its end in one operation, with plain writes and
//! background work in between. It commits if and only if its level of isolation allows it. It reads its own
//! changes over the state that its level shows. A prepared one exists after every crash until it is ended
//! (`prepared_transactions.rs`).
//!
//! Plain writes beside it do not touch its locked keys: they would wait for it, and no other thread could end
//! it.

mod end;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::time::Duration;

use terrane::{Concurrency, Error, Isolation, Kind, Table, Transaction, TransactionOptions};
use terrane_base::Rng;

use crate::op::Op;
use crate::overlay::{Overlay, RowKey};
use crate::run::Runner;
use crate::script::parse;

/// Lifetime of a transaction that expires: longer than its operations take while no lock makes it wait.
const EXPIRES_AFTER: Duration = Duration::from_secs(3600);

/// Steps of a transaction or an indexed batch, at most.
pub(crate) const STEPS_MAX: u64 = 12;

/// Draws one, or an indexed batch.
pub(crate) fn draw(numbers: &mut Rng, tables: &[String]) -> Op {
    let (one, other) = (numbers.pick(tables).clone(), numbers.pick(tables).clone());
    let tables = if one == other { vec![one] } else { vec![one, other] };
    let seed = numbers.next_u64();
    if numbers.one_in(4) { Op::Indexed { tables, seed } } else { Op::Transact { tables, seed } }
}

/// Such an operation as a line of a script.
pub(crate) fn show(op: &Op, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match op {
        Op::Transact { tables, seed } => write!(f, "transact {} {seed}", tables.join(",")),
        Op::Indexed { tables, seed } => write!(f, "indexed {} {seed}", tables.join(",")),
        _ => unreachable!("shown elsewhere"),
    }
}

/// A line of a script as such an operation.
pub(crate) fn read(words: &[&str]) -> Result<Op, String> {
    let names = |text: &str| text.split(',').map(str::to_owned).collect();
    match words {
        ["transact", tables, seed] => Ok(Op::Transact { tables: names(tables), seed: parse(seed)? }),
        ["indexed", tables, seed] => Ok(Op::Indexed { tables: names(tables), seed: parse(seed)? }),
        _ => Err("expected tables and a number".to_owned()),
    }
}

/// Why a transaction goes no further: it was refused, as it must be, or something failed that may.
struct Over;

/// True if it goes on.
type Step<T = ()> = Result<T, Over>;

/// Where a scan has looked, both ends in it.
type Seen = (String, Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A transaction, and its state by the model.
struct RunningTransaction<'r> {
    runner: &'r Runner,
    numbers: Rng,
    /// A random stream for options that were added later, so that an old seed draws the same numbers as
    /// before.
    later: Rng,
    tables: Vec<Table>,
    options: TransactionOptions,
    /// The moment that it reads; for read committed, the moment of its beginning.
    moment: u64,
    /// It has seen or locked something: what it sees does not move any more.
    has_begun: bool,
    /// More time has passed than it may take.
    is_late: bool,
    /// True if another transaction has taken a lock from it since.
    is_lost: bool,
    overlay: Overlay,
    /// Changes as they were at each savepoint.
    saved: Vec<Overlay>,
    /// Keys that must be as they were at a moment.
    reads: BTreeMap<RowKey, u64>,
    /// Some of them were read for update.
    has_claims: bool,
    /// Keys that it has locked.
    locked: BTreeSet<RowKey>,
    /// Places in ranges that it deletes, into which no other writer may write.
    range_locked: BTreeSet<RowKey>,
    /// Ranges that must be as they were.
    scans: Vec<Seen>,
}

/// Options of a transaction: of any kind and level, and one that never waits for a lock.
pub(crate) fn random_options(numbers: &mut Rng) -> TransactionOptions {
    TransactionOptions {
        concurrency: *numbers.pick(&[Concurrency::Optimistic, Concurrency::Pessimistic]),
        isolation: *numbers.pick(&[
            Isolation::ReadCommitted,
            Isolation::Snapshot,
            Isolation::Serializable,
            Isolation::Serializable,
        ]),
        lock_timeout: Duration::ZERO,
        ..TransactionOptions::default()
    }
}

/// Sets the options that were added later, drawn from a random stream of their own. No transaction waits
/// here, so there is no deadlock to find.
fn add_later_options(options: &mut TransactionOptions, later: &mut Rng) {
    options.finds_deadlocks = later.one_in(2);
    options.keeps_snapshot = later.one_in(2);
    options.expires_after = later.one_in(4).then_some(EXPIRES_AFTER);
}

impl Runner {
    /// Does a transaction.
    pub(crate) fn transact(&self, tables: &[String], seed: u64) {
        let Some(tables) = self.tables_of(tables) else { return };
        let mut numbers = Rng::new(seed);
        let mut later = numbers.fork();
        let mut options = random_options(&mut numbers);
        add_later_options(&mut options, &mut later);
        self.did(match options.concurrency {
            Concurrency::Optimistic => "transaction: optimistic",
            _ => "transaction: pessimistic",
        });
        let running = match self.db().transaction(&options) {
            Ok(running) => running,
            Err(error) => return self.met("begin of a transaction", &error),
        };
        let transaction = RunningTransaction {
            runner: self,
            numbers,
            later,
            tables,
            options,
            moment: self.model.borrow().now(),
            has_begun: false,
            is_late: false,
            is_lost: false,
            overlay: Overlay::default(),
            saved: Vec::new(),
            reads: BTreeMap::new(),
            has_claims: false,
            locked: BTreeSet::new(),
            range_locked: BTreeSet::new(),
            scans: Vec::new(),
        };
        // An operation in the middle of calls must not write: it could wait for the locks.
        self.is_transacting.set(true);
        let _ended: Step = transaction.run(running, seed);
        self.is_transacting.set(false);
    }

    /// Those tables that are there; `None` if none is, or one cannot be had.
    pub(crate) fn tables_of(&self, names: &[String]) -> Option<Vec<Table>> {
        let known = names.iter().filter(|name| self.model.borrow().has_table(name));
        let tables: terrane::Result<Vec<Table>> = known.map(|name| self.db().table(name)).collect();
        match tables {
            Ok(tables) if tables.is_empty() => None,
            Ok(tables) => Some(tables),
            Err(error) => {
                self.met("table", &error);
                None
            }
        }
    }
}

impl RunningTransaction<'_> {
    fn run(mut self, mut running: Transaction, seed: u64) -> Step {
        // Its first read fixes its snapshot; without a read the first lock may move it.
        if !self.later.one_in(3) {
            self.read_in(&running)?;
        }
        for _ in 0..self.numbers.below(STEPS_MAX) {
            self.between_steps();
            match self.numbers.below(16) {
                0..3 => self.read_in(&running)?,
                3..9 => self.write_in(&mut running)?,
                9 | 10 => self.scan_in(&running)?,
                11 | 12 => self.savepoint_in(&mut running)?,
                13 => self.background(),
                _ => self.write_beside(),
            }
            if self.is_over() {
                return Err(Over);
            }
        }
        self.end(running, seed)
    }

    /// Returns true if nothing more can be learnt.
    fn is_over(&self) -> bool {
        self.runner.disk().has_crashed() || self.runner.failure.borrow().is_some()
    }

    fn is_pessimistic(&self) -> bool {
        self.options.concurrency == Concurrency::Pessimistic
    }

    fn is_serializable(&self) -> bool {
        self.options.isolation == Isolation::Serializable
    }

    /// Returns true if it sees one moment.
    fn has_moment(&self) -> bool {
        self.options.isolation != Isolation::ReadCommitted
    }

    fn changed_since(&self, place: &RowKey, moment: u64) -> bool {
        self.runner.model.borrow().changed_since(&place.0, &place.1, moment)
    }

    /// It sees something, or keeps it for its commit.
    fn begin(&mut self) {
        self.has_begun = true;
    }

    /// It has locked something: if that was the first, what it sees is as it is now.
    fn begin_with_lock(&mut self) {
        if !self.has_begun && !self.options.keeps_snapshot {
            let now = self.runner.model.borrow().now();
            if now > self.moment {
                self.runner.did("transaction: moved on with its first lock");
            }
            self.moment = now;
        }
        self.has_begun = true;
    }

    /// Why a lock must be refused: another writer changed the key after the transaction's snapshot, or may
    /// take its locks.
    fn lock(&mut self, place: &RowKey) -> Option<Kind> {
        if !self.is_pessimistic() {
            self.begin();
            return None;
        }
        if self.is_lost {
            return Some(Kind::TooOld);
        }
        self.begin_with_lock();
        let is_new = !self.locked.contains(place) && !self.range_locked.contains(place);
        let is_stale = self.has_moment() && is_new && self.changed_since(place, self.moment);
        self.locked.insert(place.clone());
        is_stale.then_some(Kind::Conflict)
    }

    /// Why the commit must be refused.
    fn refusal(&self) -> Option<Kind> {
        if self.is_late { Some(Kind::TooOld) } else { self.is_stale().then_some(Kind::Conflict) }
    }

    /// Returns true if what it wrote, read or scanned has changed.
    fn is_stale(&self) -> bool {
        if self.overlay.is_empty() && !self.has_claims {
            // A read-only transaction is of the moment that it read.
            return false;
        }
        let is_changed = |place: &RowKey| self.changed_since(place, self.moment);
        let reads = self.reads.iter().any(|(place, since)| self.changed_since(place, *since));
        let writes = self.has_moment()
            && !self.is_pessimistic()
            && (self.overlay.written.iter().any(is_changed) || self.overlay.deleted.iter().any(is_changed));
        reads || writes || self.scans.iter().any(|seen| self.is_scan_stale(seen))
    }

    fn is_scan_stale(&self, (table, lower, upper): &Seen) -> bool {
        let bounds = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
        self.runner.model.borrow().has_changed_in(table, bounds, self.moment)
    }

    /// Holds the end of a step against what was expected.
    fn judge<T>(&self, what: &str, done: terrane::Result<T>, refusal: Option<Kind>) -> Step<T> {
        match (done, refusal) {
            (Ok(_), Some(refusal)) if !self.runner.disk().has_crashed() => {
                self.wrong(format!("{what} is done, and was to be refused ({refusal:?})"));
                Err(Over)
            }
            (Ok(done), _) => Ok(done),
            (Err(error), refusal) => {
                self.refused(what, &error, refusal);
                Err(Over)
            }
        }
    }

    fn refused(&self, what: &str, error: &Error, refusal: Option<Kind>) {
        if refusal == Some(error.kind()) {
            return self.runner.did(match error.kind() {
                Kind::Conflict => "transaction: conflict",
                _ => "transaction: too late",
            });
        }
        self.runner.met(&format!("{what} of a transaction, {}", self.level()), error);
    }

    fn level(&self) -> String {
        format!("{:?} {:?}", self.options.concurrency, self.options.isolation)
    }

    fn wrong(&self, message: String) {
        self.runner.fail(format!("transaction, {}: {message}", self.level()));
    }
}
