//! Every crash of two-phase commits: at each call that changes something, every outcome of a loss of power
//! (or a sample, if there are too many) and the crash of the process is recovered and checked. A prepared
//! transaction exists completely, with its locks, or not at all; it is committed in all tables or in none; a
//! durable prepare or end stays durable; and a transaction that recovery finds prepared can still be
//! committed.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use terrane::{Batch, Concurrency, Db, Durability, Kind, Options, Result, TableOptions, TransactionOptions};
use terrane_device::MemDisk;

use crate::disk::{SimDisk, Watcher, watch};
use crate::fault::Crash;
use crate::panics;
use crate::world::World;

const DIR: &str = "/db";
const NAME: &str = "one";
/// A value over several pages, so that a record can be torn.
const LONG: usize = 9_000;
/// One recovered state in so many is killed once more after its end, and recovered.
const ONCE_MORE_ONE_IN: u64 = 8;

/// The result of an exploration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Calls that were crashed at.
    pub calls: u64,
    /// States after a crash that were recovered and judged.
    pub states: u64,
    /// States among them in which the transaction was prepared.
    pub prepared: u64,
    /// States among them in which it was committed.
    pub committed: u64,
}

/// How far the history is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Before,
    Preparing,
    Prepared,
    Committing,
    Committed { sync: bool },
    RollingBack,
    RolledBack,
}

/// The state that a recovery finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Old,
    Prepared,
    New,
}

impl Phase {
    fn allowed(self, crash: Crash) -> &'static [Found] {
        match self {
            Phase::Before | Phase::RolledBack => &[Found::Old],
            Phase::Preparing | Phase::RollingBack => &[Found::Old, Found::Prepared],
            Phase::Prepared => &[Found::Prepared],
            Phase::Committed { sync } if sync || crash == Crash::Kill => &[Found::New],
            Phase::Committing | Phase::Committed { .. } => &[Found::Prepared, Found::New],
        }
    }
}

/// Explores the history of a number, of which there are [`HISTORIES`]; at each call at most `outcomes_max`
/// outcomes of a loss of power.
///
/// # Errors
/// A failure, with its place.
pub fn explore(number: u64, outcomes_max: u64) -> std::result::Result<Seen, String> {
    panics::record();
    let explored = crate::alone::alone(|| {
        let scout = Rc::new(Scout {
            number,
            outcomes_max,
            phase: Cell::new(Phase::Before),
            is_on: Cell::new(false),
            seen: Cell::default(),
            wrong: RefCell::default(),
        });
        let _watching = watch(scout.clone());
        let done = scout.run(&History::of(number));
        scout.is_on.set(false);
        done.map_err(|error| format!("history {number}, {:?}: {error}", scout.phase.get()))?;
        scout.wrong.take().map_or(Ok(scout.seen.get()), Err)
    });
    panics::forget();
    explored
}

/// How many histories there are.
pub const HISTORIES: u64 = 48;

/// How a history goes.
#[derive(Clone, Copy, Debug)]
struct History {
    concurrency: Concurrency,
    commits: bool,
    sync: bool,
    /// The events between the two phases: none, a flush, more writes and background work, a reopening.
    between: u64,
    is_long: bool,
}

impl History {
    fn of(number: u64) -> History {
        let concurrency =
            if number.is_multiple_of(2) { Concurrency::Optimistic } else { Concurrency::Pessimistic };
        let (commits, sync) = [(true, true), (true, false), (false, true)][(number / 2 % 3) as usize];
        History { concurrency, commits, sync, between: number / 6 % 4, is_long: number / 24 % 2 == 1 }
    }

    fn value(self) -> Vec<u8> {
        vec![b'n'; if self.is_long { LONG } else { 20 }]
    }
}

fn options() -> Options {
    let mut options = Options { memory_bytes: 16 << 20, ..Options::default() };
    for (name, value) in [
        ("write_memory_bytes", "4MiB"),
        ("segment_bytes", "64KiB"),
        ("memtable_bytes", "64KiB"),
        ("level_base_bytes", "64KiB"),
        ("background_threads", "1"),
    ] {
        options.set(name, value).expect("an option and a value that there are");
    }
    options
}

fn open(image: MemDisk, seed: u64) -> Result<Db> {
    let world = World::new(seed);
    let disk = SimDisk::new(world.clone(), image);
    crate::order::open(Arc::new(disk), Path::new(DIR), &options(), world.env())
}

fn transaction_options(concurrency: Concurrency) -> TransactionOptions {
    TransactionOptions { concurrency, lock_timeout: Duration::ZERO, ..TransactionOptions::default() }
}

/// Reads `c` and the range from `r` on, sets `a` in both tables, removes `b`.
fn prepare(db: &Db, history: History) -> Result<()> {
    let (table, other) = (db.default_table(), db.table("other")?);
    let mut transaction = db.transaction(&transaction_options(history.concurrency))?;
    transaction.get(table, b"c")?;
    transaction.range(table, b"r".as_slice()..)?.try_for_each(|row| row.map(drop))?;
    transaction.put(table, b"a", history.value())?;
    transaction.put(&other, b"a", history.value())?;
    transaction.delete(table, b"b")?;
    transaction.prepare(NAME)
}

struct Scout {
    number: u64,
    outcomes_max: u64,
    phase: Cell<Phase>,
    is_on: Cell<bool>,
    seen: Cell<Seen>,
    wrong: RefCell<Option<String>>,
}

impl Scout {
    fn run(&self, history: &History) -> Result<()> {
        let (device, seed) = (MemDisk::new(), self.number);
        let mut db = open(device.clone(), seed)?;
        let other = db.create_table("other", &TableOptions::new())?;
        db.put(b"a", b"old")?;
        db.put(b"b", b"old")?;
        other.put_with(b"a", b"old", Durability::Synced)?;
        self.is_on.set(true);
        self.phase.set(Phase::Preparing);
        prepare(&db, *history)?;
        self.phase.set(Phase::Prepared);
        match history.between {
            1 => db.flush()?,
            2 => {
                for number in 0..40u8 {
                    db.put([b'f', number], [number; 4_000])?;
                }
                db.wait_until_quiescent()?;
                db.compact_range(db.default_table(), ..)?;
            }
            3 => {
                drop(other);
                db.close()?;
                db = open(device, seed + 1)?;
            }
            _ => {}
        }
        let sync = if history.sync { Durability::Synced } else { Durability::Buffered };
        if history.commits {
            self.phase.set(Phase::Committing);
            db.commit_prepared(NAME, sync)?;
            self.phase.set(Phase::Committed { sync: history.sync });
        } else {
            self.phase.set(Phase::RollingBack);
            db.rollback_prepared(NAME)?;
            self.phase.set(Phase::RolledBack);
        }
        db.put(b"f", b"after")?;
        db.flush()?;
        // Flushed rows are durable.
        if history.commits {
            self.phase.set(Phase::Committed { sync: true });
        }
        db.close()
    }

    fn look(&self, disk: &MemDisk) -> std::result::Result<(), String> {
        let calls = self.seen.get().calls + 1;
        self.count(|seen| seen.calls = calls);
        let outcomes = disk.outcomes();
        let powers = (0..outcomes.min(self.outcomes_max)).map(|number| match outcomes <= self.outcomes_max {
            true => Crash::Outcome(number),
            false => Crash::Power(self.number ^ calls << 20 ^ number),
        });
        for crash in powers.chain([Crash::Power(!(self.number ^ calls << 20)), Crash::Kill]) {
            let judged = self.judge(crash.image(disk), self.phase.get().allowed(crash));
            judged.map_err(|message| {
                format!(
                    "history {}, call {calls}, {:?}, after {crash:?}: {message}",
                    self.number,
                    self.phase.get()
                )
            })?;
        }
        Ok(())
    }

    fn count(&self, change: impl FnOnce(&mut Seen)) {
        let mut seen = self.seen.get();
        change(&mut seen);
        self.seen.set(seen);
    }

    fn judge(&self, image: MemDisk, allowed: &[Found]) -> std::result::Result<(), String> {
        let text_of = |error: terrane::Error| error.to_string();
        let history = History::of(self.number);
        let seed = self.seen.get().states;
        self.count(|seen| seen.states += 1);
        let db = open(image.clone(), seed).map_err(text_of)?;
        let found = look_at(&db, history)?;
        if !allowed.contains(&found) {
            return Err(format!("found {found:?}, allowed is {allowed:?}"));
        }
        match found {
            Found::Prepared => {
                self.count(|seen| seen.prepared += 1);
                assert_locked(&db)?;
                db.commit_prepared(NAME, Durability::Synced).map_err(text_of)?;
                expect(&db, history, Found::New)?;
            }
            Found::New => self.count(|seen| seen.committed += 1),
            Found::Old => {}
        }
        // Nothing is locked any more. As a batch: this thread is within a write of another database, which
        // has the buffer of single writes.
        let mut batch = Batch::new();
        for key in [b"a", b"c", b"r"] {
            batch.put(db.default_table(), key, b"free").map_err(text_of)?;
        }
        db.write(&batch, Durability::Buffered).map_err(text_of)?;
        let report = db.check(&mut |_, _| ()).map_err(text_of)?;
        if !report.findings.is_empty() {
            return Err(format!("check: {:?}", report.findings));
        }
        if seed.is_multiple_of(ONCE_MORE_ONE_IN) {
            let left = image.kill();
            drop(db);
            let db = open(left, seed + 1).map_err(text_of)?;
            if !db.prepared().is_empty() || db.get(b"a").map_err(text_of)?.as_deref() != Some(b"free") {
                return Err("once more: what had ended is prepared, or what was written is lost".to_owned());
            }
        }
        Ok(())
    }
}

/// The state of the transaction, which must be one of the three whole ones.
fn look_at(db: &Db, history: History) -> std::result::Result<Found, String> {
    let text_of = |error: terrane::Error| error.to_string();
    let other = db.table("other").map_err(text_of)?;
    let a = db.get(b"a").map_err(text_of)?.map(terrane::Value::into_vec);
    let b = db.get(b"b").map_err(text_of)?.map(terrane::Value::into_vec);
    let other = other.get(b"a").map_err(text_of)?.map(terrane::Value::into_vec);
    let (old, new) = (Some(b"old".to_vec()), Some(history.value()));
    let prepared = db.prepared();
    if a == old && b == old && other == old {
        match prepared.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => return Ok(Found::Old),
            [NAME] => return Ok(Found::Prepared),
            _ => {}
        }
    }
    if a == new && b.is_none() && other == new && prepared.is_empty() {
        return Ok(Found::New);
    }
    let lengths = [a, b, other].map(|value| value.map(|value| value.len()));
    Err(format!("neither old nor new: bytes of the values are {lengths:?}, prepared are {prepared:?}"))
}

fn expect(db: &Db, history: History, wanted: Found) -> std::result::Result<(), String> {
    let found = look_at(db, history)?;
    if found == wanted { Ok(()) } else { Err(format!("found {found:?}, expected {wanted:?}")) }
}

/// The keys that it wrote, read and scanned are locked for others, and no other keys are.
fn assert_locked(db: &Db) -> std::result::Result<(), String> {
    for (key, is_open) in [("a", false), ("b", false), ("c", false), ("r1", false), ("q", true)] {
        let attempt = || {
            let mut other = db.transaction(&transaction_options(Concurrency::Optimistic))?;
            other.put(db.default_table(), key.as_bytes(), b"other")?;
            other.commit(Durability::Buffered)
        };
        match attempt() {
            Ok(_) if is_open => {}
            Err(error) if !is_open && error.kind() == Kind::TimedOut => {}
            other => return Err(format!("a write of {key} beside a prepared transaction: {other:?}")),
        }
    }
    Ok(())
}

impl Watcher for Scout {
    fn before_change(&self, disk: &MemDisk) {
        if self.is_on.replace(false) {
            // A panic must not go through the database whose call this is.
            let looked = catch_unwind(AssertUnwindSafe(|| self.look(disk)));
            let panicked = || {
                let (number, phase) = (self.number, self.phase.get());
                Err(format!("history {number}, {phase:?}: panic: {}", panics::take().unwrap_or_default()))
            };
            match looked.unwrap_or_else(|_| panicked()) {
                Ok(()) => self.is_on.set(true),
                Err(message) => *self.wrong.borrow_mut() = Some(message),
            }
        }
    }
}
