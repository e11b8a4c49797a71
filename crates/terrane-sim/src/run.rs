//! A run: the operations of a script on a database in a world of its own, every answer compared with the model, every
//! recovery judged.
//!
//! A *life* is the time from an open to a close or crash. Each has a device of its own ([`SimDisk`]) over the bytes
//! that the one before left. Nothing here is borrowed while the database works: in the middle of one operation
//! another one may come ([`Op::During`]).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use terrane::{Db, Error, Kind, Options, Snapshot};
use terrane_device::MemDisk;

use crate::disk::{SimDisk, Watcher, watch};
use crate::fault::{Crash, Fault, Struck};
use crate::judge::{Allowed, Event, Verdict, judge};
use crate::model::{Change, Model};
use crate::numbers::{Numbers, Trace};
use crate::op::Op;
use crate::panics;
use crate::script::Script;
use crate::world::World;

/// Where the database lies on its device.
pub(crate) const DIR: &str = "/db";
/// How often a background that met a full device is asked again once there is room.
const RETRIES: u32 = 40;

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Index of the operation.
    pub at: usize,
    /// What was wrong.
    pub message: String,
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Hash of everything that happened: the same for the same script, always.
    pub trace: Trace,
    /// Hash of every answer: the same for the same operations under other options.
    pub answers: Trace,
    /// Operations done.
    pub operations: u64,
    /// Operations done in the middle of others.
    pub nested: u64,
    /// Crashes, those inside a recovery included.
    pub crashes: u64,
    /// Times the database was opened.
    pub opens: u64,
    /// Calls that were refused with EIO.
    pub broken: u64,
    /// Calls that were refused with ENOSPC, by fault or for want of room.
    pub full: u64,
    /// Syncs that failed and then lied.
    pub lies: u64,
    /// Bits that rotted, reads and writes harmed without a word.
    pub silent: u64,
    /// Whether the database said that it is damaged, which ends a run.
    pub refused: bool,
}

impl Outcome {
    /// Adds another's counts; hashes stay.
    pub fn add(&mut self, other: &Outcome) {
        self.operations += other.operations;
        self.nested += other.nested;
        self.crashes += other.crashes;
        self.opens += other.opens;
        self.broken += other.broken;
        self.full += other.full;
        self.lies += other.lies;
        self.silent += other.silent;
    }
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

/// Whether the script's options are a configuration.
pub(crate) fn accepts(script: &Script) -> bool {
    let mut options = Options::default();
    script.options.iter().all(|(name, value)| options.set(name, value).is_ok()) && options.resolve(1).is_ok()
}

/// What is known of the present life.
#[derive(Default)]
pub(crate) struct Life {
    /// Commits that a loss of power does not take.
    pub(crate) durable: u64,
    /// Commits that rot of the journal's end does not take.
    pub(crate) marked: u64,
    pub(crate) snapshots: BTreeMap<u64, (Snapshot, u64)>,
    /// Batches under way, the innermost last.
    pub(crate) inflight: Vec<Vec<Change>>,
    /// A batch that failed and may be found after the next open.
    pub(crate) doubt: Option<Vec<Change>>,
    /// Tables whose change is under way, or failed.
    pub(crate) events: Vec<Event>,
    /// What an image that was taken may hold.
    captured: Option<Allowed>,
    /// What the crash that is armed is like.
    armed: Option<(Crash, Option<u64>)>,
    pub(crate) is_paused: bool,
    /// After a failed sync no commit may succeed.
    pub(crate) is_poisoned: bool,
    /// The device has less room than it wants.
    pub(crate) is_cramped: bool,
    was_cramped: bool,
    during: Vec<(u64, Op)>,
}

pub(crate) struct Runner {
    pub(crate) world: Arc<World>,
    options: RefCell<Options>,
    disk: RefCell<SimDisk>,
    db: RefCell<Option<Db>>,
    pub(crate) model: RefCell<Model>,
    pub(crate) life: RefCell<Life>,
    failure: RefCell<Option<String>>,
    pub(crate) outcome: Cell<Outcome>,
    /// What is stored may be damaged.
    is_damaged: Cell<bool>,
    is_opening: Cell<bool>,
    nesting: Cell<u32>,
    /// Whether the operation under way is a read.
    pub(crate) is_reading: Cell<bool>,
    has_journal: bool,
}

impl Runner {
    pub(crate) fn new(script: &Script) -> Self {
        let world = World::new(script.seed);
        let mut options = Options::default();
        for (name, value) in &script.options {
            options.set(name, value).unwrap_or_else(|error| panic!("option {name}={value}: {error}"));
        }
        let has_journal = options.journal == terrane::JournalMode::File;
        Runner {
            disk: RefCell::new(SimDisk::new(world.clone(), MemDisk::new())),
            world,
            options: RefCell::new(options),
            db: RefCell::default(),
            model: RefCell::new(Model::new()),
            life: RefCell::default(),
            failure: RefCell::default(),
            outcome: Cell::default(),
            is_damaged: Cell::new(false),
            is_opening: Cell::new(false),
            nesting: Cell::new(0),
            is_reading: Cell::new(false),
            has_journal,
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
        let mut outcome = self.outcome.get();
        outcome.trace = self.world.trace();
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
        self.count(|outcome| outcome.operations += 1);
        self.is_reading.set(op.is_read());
        self.act(op);
        if self.disk().has_crashed() && self.failure.borrow().is_none() {
            self.recover();
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
            Op::Heal => self.heal(),
            Op::Room { bytes } => self.set_room(*bytes),
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

    /// Notes what is wrong; the first stays.
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

    fn struck(&self) -> Struck {
        self.disk().struck()
    }

    /// Whether this error may come now.
    pub(crate) fn may_fail(&self, error: &Error) -> bool {
        let life = self.life.borrow();
        let is_harmed = self.struck().sum() > 0 || life.is_cramped || life.was_cramped;
        match error.kind() {
            _ if self.disk().has_crashed() => true,
            Kind::Corrupt => self.is_damaged.get() || self.struck().silent > 0,
            Kind::Invalid => life.is_paused,
            _ => is_harmed || self.is_damaged.get(),
        }
    }

    /// Notes an error that may not come now.
    pub(crate) fn met(&self, what: &str, error: &Error) {
        if !self.may_fail(error) {
            self.fail(format!("{what}: {error} ({:?})", error.kind()));
        }
    }

    fn heal(&self) {
        self.disk().heal();
        self.expect_recovery();
    }

    fn set_room(&self, bytes: u64) {
        let disk = self.disk();
        let device = disk.device();
        let is_cramped = bytes != u64::MAX;
        device.set_capacity(if is_cramped { device.used_bytes() + bytes } else { u64::MAX });
        {
            let mut life = self.life.borrow_mut();
            life.was_cramped |= is_cramped;
            life.is_cramped = is_cramped;
        }
        if !is_cramped {
            self.expect_recovery();
        }
    }

    /// A device that was only full, and is so no more, hinders nothing: the background must come to rest, and a write
    /// must succeed.
    fn expect_recovery(&self) {
        let struck = self.struck();
        let life = self.life.borrow();
        let was_only_full =
            struck.broken + struck.lies + struck.silent == 0 && (struck.full > 0 || life.was_cramped);
        let is_settled =
            !was_only_full || life.is_cramped || life.is_paused || life.is_poisoned || self.is_damaged.get();
        drop(life);
        if is_settled || self.disk().has_crashed() {
            return;
        }
        let db = self.db();
        let mut last = None;
        for _ in 0..RETRIES {
            match db
                .wait_until_quiescent()
                .and_then(|()| db.write(&terrane::Batch::new(), terrane::Sync::Yes))
            {
                Ok(_) => return self.note_durable(self.model.borrow().now()),
                Err(error) => last = Some(error),
            }
            if self.disk().has_crashed() {
                return;
            }
            terrane_base::env::Clock::sleep(&*self.world, std::time::Duration::from_secs(1));
            // What failed is tried again by the background, not by who asks.
            self.world.begin_operation();
            while self.world.step() {}
        }
        if let Some(error) = last {
            self.fail(format!("there is room again, and still: {error}"));
        }
    }

    /// Everything up to a moment is on the device.
    pub(crate) fn note_durable(&self, moment: u64) {
        if !self.disk().has_crashed() {
            let mut life = self.life.borrow_mut();
            life.durable = life.durable.max(moment);
        }
    }

    /// What a kill, or a loss of power, may leave now.
    pub(crate) fn allowed(&self, crash: Crash) -> Allowed {
        let life = self.life.borrow();
        if self.is_opening.get()
            && let Some(captured) = &life.captured
        {
            return captured.clone();
        }
        let acked = self.model.borrow().now();
        let floor = match crash {
            Crash::Kill if self.has_journal => acked,
            _ => life.durable,
        };
        let extra = life.inflight.last().or(life.doubt.as_ref()).cloned();
        Allowed { floor, durable: life.durable, acked, extra, events: life.events.clone() }
    }

    fn reopen(&self, options: u64) {
        let allowed = {
            let db = self.db.borrow_mut().take();
            self.life.borrow_mut().snapshots.clear();
            let closed = db.map_or(Ok(()), Db::close);
            match closed {
                Ok(()) => self.note_durable(self.model.borrow().now()),
                Err(error) => self.met("close", &error),
            }
            if self.disk().has_crashed() {
                return;
            }
            self.allowed(Crash::Kill)
        };
        if options != 0 {
            self.change_options(options);
        }
        let (pending, armed) = (self.disk().pending_crash(), self.life.borrow().armed);
        self.next_life(self.disk().device().clone());
        if let Some((left, crash)) = pending {
            self.disk().crash_after(left, crash);
            self.life.borrow_mut().armed = armed;
        }
        self.open(&allowed, None);
    }

    /// Other options where a database may be opened with others.
    fn change_options(&self, seed: u64) {
        let mut options = self.options.borrow_mut();
        for (name, value) in crate::generate::random_options(&mut Numbers::new(seed)) {
            options.set(&name, &value).expect("generated options are valid");
        }
    }

    fn rot(&self, seed: u64, path_part: &str) {
        if !self.has_journal {
            return;
        }
        let mut allowed = self.allowed(Crash::Kill);
        allowed.floor = self.life.borrow().marked;
        allowed.durable = allowed.floor;
        let image = self.disk().device().kill();
        self.die();
        let chosen = |path: &str| path.contains(path_part) && !path.ends_with("LOCK");
        for bit in 0..1 + seed % 3 {
            if let Some((path, offset)) = image.rot(seed.wrapping_add(bit), &chosen) {
                self.world.note(crate::numbers::hash(path.as_bytes()) ^ offset);
                self.is_damaged.set(true);
                self.count(|outcome| outcome.silent += 1);
            }
        }
        self.next_life(image);
        self.open(&allowed, None);
    }

    /// After a crash: the image is the device of the next life.
    fn recover(&self) {
        let disk = self.disk();
        let (captured, armed) = {
            let mut life = self.life.borrow_mut();
            (life.captured.take(), life.armed.take())
        };
        let image = disk.image().expect("there was a crash");
        let captured = captured.expect("noted when the image was taken");
        self.count(|outcome| outcome.crashes += 1);
        self.die();
        self.next_life(image);
        self.open(&captured, armed.and_then(|(_, again)| again));
    }

    /// The process is gone.
    pub(crate) fn die(&self) {
        self.disk().abandon();
        self.life.borrow_mut().snapshots.clear();
        let db = self.db.borrow_mut().take();
        // It closes itself, and fails at that: its device is dead.
        drop(db);
        self.world.end_loops();
    }

    /// A new device over what is there, with the faults that have not struck yet.
    fn next_life(&self, device: MemDisk) {
        let before = self.disk();
        let struck = before.struck();
        self.count(|outcome| {
            outcome.broken += struck.broken;
            outcome.full += struck.full;
            outcome.lies += struck.lies;
            outcome.silent += struck.silent;
        });
        if struck.damage > 0 {
            self.is_damaged.set(true);
        }
        self.world.end_loops();
        device.set_capacity(u64::MAX);
        let next = SimDisk::new(self.world.clone(), device);
        before.faults().into_iter().for_each(|fault: Fault| next.fail(fault));
        *self.disk.borrow_mut() = next;
        let marked = self.life.borrow().marked;
        *self.life.borrow_mut() = Life { marked, ..Life::default() };
    }

    /// Opens the database and judges what it holds; `again` crashes at that call of the recovery.
    fn open(&self, allowed: &Allowed, again: Option<u64>) {
        self.count(|outcome| outcome.opens += 1);
        let disk = self.disk();
        let seed = self.world.trace().value() as u64;
        if let Some(again) = again {
            disk.crash_after(again, Crash::Power(seed));
            self.life.borrow_mut().armed = Some((Crash::Power(seed), None));
        }
        {
            let mut life = self.life.borrow_mut();
            // A loss of power inside a recovery takes with it what was only in the page cache.
            let is_kill = matches!(life.armed, Some((Crash::Kill, _)));
            let floor = if is_kill { allowed.floor } else { allowed.floor.min(allowed.durable) };
            life.captured = Some(Allowed { floor, ..allowed.clone() });
        }
        self.is_opening.set(true);
        let options = self.options.borrow().clone();
        let opened = Db::open_on(Arc::new(disk.clone()), DIR, &options, self.world.env());
        self.is_opening.set(false);
        match opened {
            _ if disk.has_crashed() => {
                drop(opened);
                self.recover();
            }
            Ok(db) => {
                if again.is_some() {
                    disk.disarm();
                    self.life.borrow_mut().armed = None;
                }
                self.life.borrow_mut().captured = None;
                *self.db.borrow_mut() = Some(db);
                self.settle(allowed);
            }
            Err(error) if self.may_fail(&error) => self.open_without_faults(allowed, &error),
            Err(error) => self.fail(format!("open: {error} ({:?})", error.kind())),
        }
    }

    /// An open that met a fault: without faults the next one succeeds, unless something is damaged.
    fn open_without_faults(&self, allowed: &Allowed, error: &Error) {
        let is_harmed = self.struck().sum() > 0;
        self.disk().heal();
        self.next_life(self.disk().device().clone());
        self.disk().heal();
        if is_harmed {
            return self.open(allowed, None);
        }
        self.world.note_text(&error.to_string());
        self.count(|outcome| outcome.refused = true);
    }

    /// Finds out which moment the database holds, and goes on from there.
    fn settle(&self, allowed: &Allowed) {
        let verdict = judge(&self.db(), &self.model.borrow(), allowed);
        let found = match verdict {
            Ok(found) => found,
            Err(Verdict::Refused(message)) if self.is_damaged.get() || self.struck().silent > 0 => {
                self.world.note_text(&message);
                return self.count(|outcome| outcome.refused = true);
            }
            Err(_) if self.disk().has_crashed() => return,
            Err(Verdict::Unread(error)) => {
                self.met("after open", &error);
                if self.failure.borrow().is_none() {
                    self.disk().heal();
                    self.settle(allowed);
                }
                return;
            }
            Err(Verdict::Refused(message) | Verdict::Wrong(message)) => {
                return self.fail(format!("after open: {message}"));
            }
        };
        self.world.note(found.commits);
        let mut model = self.model.borrow_mut();
        for event in &found.events {
            if event.is_created { model.create_table(&event.table) } else { model.drop_table(&event.table) }
        }
        if found.commits > allowed.acked {
            model.write(allowed.extra.as_deref().unwrap_or_default());
        }
        model.roll_back(found.commits);
        model.forget_before(&[found.commits]);
        let mut life = self.life.borrow_mut();
        if self.has_journal {
            life.durable = found.commits;
            life.marked = found.commits;
        }
    }
}

impl Watcher for Runner {
    fn at_crash(&self) {
        if !self.is_opening.get() {
            let crash = self.life.borrow().armed.map_or(Crash::Power(0), |(crash, _)| crash);
            let allowed = self.allowed(crash);
            self.life.borrow_mut().captured = Some(allowed);
        }
    }

    fn during_data_call(&self, is_transfer: bool) {
        if self.nesting.get() > 0 || self.db.borrow().is_none() {
            return;
        }
        let due = {
            let mut life = self.life.borrow_mut();
            life.during.iter_mut().for_each(|(after, _)| *after = after.saturating_sub(1));
            let index = life.during.iter().position(|(after, _)| *after == 0);
            index.map(|index| life.during.remove(index).1)
        };
        let Some(op) = due else { return };
        self.nesting.set(1);
        if self.may_nest(&op, is_transfer) {
            self.count(|outcome| outcome.nested += 1);
            self.use_database(&op);
        }
        self.nesting.set(0);
    }
}

impl Runner {
    /// Whether no operation is under way around this one.
    pub(crate) fn is_outermost(&self) -> bool {
        self.nesting.get() == 0
    }

    /// A batch that may be in the image that was just taken, too.
    pub(crate) fn add_to_captured(&self, changes: Vec<Change>) {
        if let Some(captured) = &mut self.life.borrow_mut().captured {
            captured.extra.get_or_insert(changes);
        }
    }

    fn may_nest(&self, op: &Op, is_transfer: bool) -> bool {
        let is_calm = self.struck().sum() == 0 && !self.life.borrow().is_cramped;
        match op {
            Op::Steps { .. } => is_transfer,
            // A writer that waits for memory in the middle of the job that brings it back waits for ever.
            Op::Batch { .. } => is_calm && self.db().pressure() < 0.5,
            Op::Snapshot { .. } => true,
            op => op.is_read(),
        }
    }
}
