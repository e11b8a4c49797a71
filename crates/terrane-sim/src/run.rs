//! A run: the operations of a script on a database in a world of its own. Every answer is compared with the
//! model, and every recovery is checked by the oracle.
//!
//! A *life* is the time from an opening to a close or crash. Each life has a device of its own (`SimDisk`)
//! over the bytes that the previous life left. Nothing here is borrowed while the database works: another
//! operation may run in the middle of one (`Op::During`).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use terrane::{Db, Error, Kind, Options, Snapshot};
use terrane_base::env::Clock as _;
use terrane_device::MemDisk;

use crate::checkpoint::Making;
use crate::count::Counts;
use crate::disk::{SimDisk, watch};
use crate::fault::{Crash, Struck};
use crate::model::{Change, Model};
use crate::op::Op;
use crate::oracle::{Allowed, Event};
use crate::order::Order;
use crate::outcome::Outcome;
use crate::panics;
use crate::prepared_transactions::PreparedTransaction;
use crate::replica::Replica;
use crate::restore::Kept;
use crate::script::Script;
use crate::tickets::{Due, InFlight};
use crate::trace::Trace;
use crate::world::{OPERATION_MILLIS, World};

/// Where the database lies on its device.
pub(crate) const DIR: &str = "/db";

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Index of the operation.
    pub at: usize,
    /// The failure.
    pub message: String,
}

/// Does what the script says.
///
/// # Errors
/// The first thing that was wrong.
pub fn run(script: &Script) -> Result<Outcome, Failure> {
    panics::record();
    let body = || {
        let runner = Rc::new(Runner::new(script));
        let _watching = watch(runner.clone());
        let result = catch_unwind(AssertUnwindSafe(|| runner.run_all(&script.ops)));
        let result = result.unwrap_or_else(|_| Err(runner.panicked()));
        runner.die();
        result
    };
    let result = crate::alone::alone(body);
    panics::forget();
    result
}

/// Returns true if the script's options are a configuration.
pub(crate) fn accepts(script: &Script) -> bool {
    let mut options = Options::default();
    script.options.iter().all(|(name, value)| options.set(name, value).is_ok()) && options.resolve(1).is_ok()
}

/// The state of the present life.
pub(crate) struct Life {
    /// Commits that a loss of power does not take.
    pub(crate) durable: u64,
    /// Commits that rot of the journal does not take: they are in the levels, or their end is in the
    /// manifest.
    pub(crate) marked: u64,
    /// Of each commit of this life, how many commits were durable when it began: what the mark in its group
    /// says.
    pub(crate) marks: Vec<u64>,
    pub(crate) snapshots: BTreeMap<u64, (Snapshot, u64)>,
    /// Batches under way, the innermost last.
    pub(crate) inflight: Vec<Vec<Change>>,
    /// A batch that failed and may be found after the next open.
    pub(crate) doubt: Option<Vec<Change>>,
    /// Tickets that are not known to be done.
    pub(crate) in_flight: Vec<InFlight>,
    /// Callbacks of tickets that are done.
    pub(crate) due: Vec<Due>,
    /// Tables whose change is under way, or failed.
    pub(crate) events: Vec<Event>,
    /// Changes of tables that were done.
    pub(crate) changed: Vec<Event>,
    /// Commits that the opening found.
    pub(crate) found: u64,
    /// Commits that no lost write of the journal was to make durable.
    pub(crate) kept: u64,
    /// Lost syncs of segments that were noted.
    pub(crate) segments_lost: u64,
    /// Edits of the manifest may be lost.
    pub(crate) is_manifest_hurt: bool,
    /// The allowed states of an image that was taken.
    pub(crate) captured: Option<Allowed>,
    /// The kind of the armed crash.
    pub(crate) armed: Option<(Crash, Option<u64>)>,
    pub(crate) is_paused: bool,
    /// After a failed sync no commit may succeed.
    pub(crate) is_poisoned: bool,
    /// Journal or manifest are poisoned, and nothing is refused any more.
    pub(crate) is_stuck: bool,
    /// The device has less room than it wants.
    pub(crate) is_cramped: bool,
    pub(crate) was_cramped: bool,
    pub(crate) during: Vec<(u64, Op)>,
    /// Calls that were refused before everything worked again: they excuse nothing that comes later.
    pub(crate) forgiven: u64,
}

impl Life {
    /// A life of a database of which so many commits cannot be lost.
    pub(crate) fn new(marked: u64) -> Self {
        Life {
            durable: 0,
            marked,
            found: marked,
            kept: u64::MAX,
            marks: Vec::new(),
            snapshots: BTreeMap::new(),
            inflight: Vec::new(),
            doubt: None,
            in_flight: Vec::new(),
            due: Vec::new(),
            events: Vec::new(),
            changed: Vec::new(),
            captured: None,
            armed: None,
            segments_lost: 0,
            is_manifest_hurt: false,
            is_paused: false,
            is_poisoned: false,
            is_stuck: false,
            is_cramped: false,
            was_cramped: false,
            during: Vec::new(),
            forgiven: 0,
        }
    }
}

pub(crate) struct Runner {
    pub(crate) world: Arc<World>,
    pub(crate) options: RefCell<Options>,
    pub(crate) disk: RefCell<SimDisk>,
    pub(crate) db: RefCell<Option<Db>>,
    pub(crate) model: RefCell<Model>,
    pub(crate) life: RefCell<Life>,
    pub(crate) failure: RefCell<Option<String>>,
    pub(crate) outcome: Cell<Outcome>,
    /// Operations and answers: apart from the rest, because they change all the time.
    pub(crate) counts: RefCell<Counts>,
    pub(crate) answers: Cell<Trace>,
    /// True if stored bytes may be damaged.
    pub(crate) is_damaged: Cell<bool>,
    pub(crate) is_opening: Cell<bool>,
    pub(crate) nesting: Cell<u32>,
    /// True if point reads do without filters.
    pub(crate) is_plain: Cell<bool>,
    /// True if writes and point reads go through cores.
    pub(crate) is_through: Cell<bool>,
    pub(crate) has_journal: bool,
    /// The order of the default table, and of those that name none.
    pub(crate) order: Order,
    /// The replica, made from the changes alone.
    pub(crate) replica: RefCell<Replica>,
    /// Checkpoints that are there.
    pub(crate) made: RefCell<BTreeMap<u64, Making>>,
    /// The expected content of backups, by number.
    pub(crate) kept: RefCell<BTreeMap<u64, Kept>>,
    /// Prepared transactions whose end is not durable yet.
    pub(crate) waiting: RefCell<Vec<PreparedTransaction>>,
    /// A transaction is under way, whose locks writers would wait for.
    pub(crate) is_transacting: Cell<bool>,
    /// The newest backup that was made; 0 before the first.
    pub(crate) newest_backup: Cell<u64>,
}

impl Runner {
    pub(crate) fn new(script: &Script) -> Self {
        let world = World::new(script.seed);
        let mut options = Options::default();
        for (name, value) in &script.options {
            options.set(name, value).unwrap_or_else(|error| panic!("option {name}={value}: {error}"));
        }
        let has_journal = options.journal == terrane::JournalMode::File;
        let order = Order::of(&script.options).unwrap_or_default();
        Runner {
            disk: RefCell::new(SimDisk::new(world.clone(), MemDisk::new())),
            world,
            options: RefCell::new(options),
            db: RefCell::default(),
            model: RefCell::new(Model::in_order(order)),
            life: RefCell::new(Life::new(0)),
            failure: RefCell::default(),
            outcome: Cell::default(),
            counts: RefCell::default(),
            answers: Cell::default(),
            is_damaged: Cell::new(false),
            is_opening: Cell::new(false),
            nesting: Cell::new(0),
            is_plain: Cell::new(false),
            is_through: Cell::new(false),
            has_journal,
            order,
            replica: RefCell::default(),
            made: RefCell::default(),
            kept: RefCell::default(),
            waiting: RefCell::default(),
            is_transacting: Cell::new(false),
            newest_backup: Cell::new(0),
        }
    }

    pub(crate) fn run_all(self: &Rc<Self>, ops: &[Op]) -> Result<Outcome, Failure> {
        let at = Cell::new(0);
        let failed = |message| Failure { at: at.get(), message };
        self.open_first();
        for (index, op) in ops.iter().enumerate() {
            at.set(index);
            self.check_failure().map_err(failed)?;
            if self.outcome.get().refused {
                break;
            }
            self.do_op(op);
        }
        self.check_failure().map_err(failed)?;
        self.count_faults();
        self.count_scrubbing();
        let mut outcome = self.outcome.get();
        outcome.trace = self.world.trace();
        outcome.answers = self.answers.get();
        outcome.did = *self.counts.borrow();
        Ok(outcome)
    }

    /// Makes the database.
    pub(crate) fn open_first(&self) {
        self.open(&Allowed::default(), None);
    }

    /// The options in force.
    pub(crate) fn options(&self) -> Options {
        self.options.borrow().clone()
    }

    pub(crate) fn do_op(&self, op: &Op) {
        self.world.begin_operation();
        if !op.is_background() {
            self.world.move_wall(OPERATION_MILLIS);
        }
        self.model.borrow_mut().set_clock(self.world.wall().as_millis() as u64);
        self.count(|outcome| outcome.operations += 1);
        op.names().into_iter().for_each(|name| self.did(name));
        self.resolve_all();
        self.act(op);
        self.note_tickets();
        if matches!(op, Op::Check | Op::Peek | Op::Reopen { .. } | Op::Flush) {
            self.replicate();
        }
        if self.disk().has_crashed() && self.failure.borrow().is_none() {
            self.recover();
            self.replicate();
        }
    }

    fn act(&self, op: &Op) {
        match op {
            Op::Crash { crash, after, again } => {
                self.life.borrow_mut().armed = Some((*crash, *again));
                match after {
                    0 => self.disk().crash_now(*crash),
                    _ => self.disk().crash_after(after - 1, *crash),
                }
            }
            Op::Reopen { options } => self.reopen(*options),
            Op::Rot { seed, path_part } => self.rot(*seed, path_part),
            Op::Fault(fault) => self.disk().fail(fault.clone()),
            Op::GoBack { seed } => self.go_back(*seed),
            Op::Heal => self.heal(),
            Op::Room { bytes } => self.set_room(*bytes),
            Op::Decay { seed } => self.decay(*seed),
            Op::Scrub => self.scrub(),
            Op::Rest => self.rest(),
            Op::Peek => self.peek(),
            Op::Repair => self.repair(),
            Op::Follow => self.follow(),
            Op::During { after, op } => self.life.borrow_mut().during.push((*after, (**op).clone())),
            op => self.use_database(op),
        }
    }

    pub(crate) fn disk(&self) -> SimDisk {
        self.disk.borrow().clone()
    }

    pub(crate) fn db(&self) -> Db {
        self.db.borrow().clone().expect("open between operations")
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Outcome)) {
        let mut outcome = self.outcome.get();
        change(&mut outcome);
        self.outcome.set(outcome);
    }

    /// Counts something that was done.
    pub(crate) fn did(&self, name: &str) {
        self.counts.borrow_mut().note(name);
    }

    /// The wall clock, in milliseconds.
    pub(crate) fn wall_millis(&self) -> u64 {
        self.world.wall().as_millis() as u64
    }

    /// Notes a fault; the first stays.
    pub(crate) fn fail(&self, message: impl Into<String>) {
        self.failure.borrow_mut().get_or_insert(message.into());
    }

    pub(crate) fn check_failure(&self) -> Result<(), String> {
        if let Some(panic) = panics::take() {
            return Err(format!("panic: {panic}"));
        }
        self.failure.borrow().clone().map_or(Ok(()), Err)
    }

    fn panicked(&self) -> Failure {
        let message = panics::take().unwrap_or_else(|| "panic".to_owned());
        Failure { at: self.outcome.get().operations as usize, message: format!("panic: {message}") }
    }

    pub(crate) fn struck(&self) -> Struck {
        self.disk().struck()
    }

    /// Returns true if this error may come now.
    pub(crate) fn may_fail(&self, error: &Error) -> bool {
        let life = self.life.borrow();
        let struck = self.struck();
        let is_harmed = struck.sum() > life.forgiven || life.is_cramped || life.was_cramped;
        match error.kind() {
            _ if self.disk().has_crashed() => true,
            Kind::Corrupt => self.is_damaged.get() || struck.silent > 0,
            Kind::Invalid => life.is_paused,
            // A transaction that stays prepared because of a fault keeps its locks.
            Kind::TimedOut if self.db.borrow().as_ref().is_some_and(|db| !db.prepared().is_empty()) => true,
            // For ever, or rather until the next open; and never for want of room.
            Kind::Poisoned => struck.may_poison() || self.is_damaged.get(),
            _ => is_harmed || self.is_damaged.get(),
        }
    }

    /// Notes an error that may not come now.
    pub(crate) fn met(&self, what: &str, error: &Error) {
        if !self.may_fail(error) {
            self.fail(format!("{what}: {error} ({:?})", error.kind()));
        }
    }

    /// Adds what struck in this life.
    pub(crate) fn count_faults(&self) {
        let struck = self.struck();
        self.count(|outcome| {
            outcome.broken += struck.broken;
            outcome.full += struck.full;
            outcome.lies += struck.lies;
            outcome.silent += struck.silent;
        });
    }

    /// Everything up to a moment is on the device.
    pub(crate) fn note_durable(&self, moment: u64) {
        self.note_losses();
        if !self.disk().has_crashed() {
            let mut life = self.life.borrow_mut();
            life.durable = life.durable.max(moment);
        }
    }
}
