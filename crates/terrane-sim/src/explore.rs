//! Every crash of small histories: at each changing call, every outcome of a loss of power (or a sample) and
//! the death of the process is recovered and checked, for some again at each call of that recovery.
//!
//! A history is a fixed beginning and then one operation of each kind in `kinds.rs`: all pairs, or all
//! triples.

mod kinds;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use terrane::Options;
use terrane_device::MemDisk;

use crate::campaign::Job;
use crate::continue_after_crash::{Recovered, recover};
use crate::disk::{Watcher, watch};
use crate::fault::Crash;
use crate::op::Op;
use crate::oracle::{Allowed, adopt};
use crate::panics;
use crate::run::Runner;
use crate::script::Script;
use kinds::{KINDS, batch, put};

pub use kinds::KIND_COUNT;

/// How thoroughly to look.
#[derive(Clone, Debug)]
pub struct Explorer {
    /// Operations of a history.
    pub operations: u32,
    /// Outcomes of a loss of power per call: all if there are at most so many, else so many at random.
    pub outcomes_max: u64,
    /// One recovery in so many is crashed again at each of its calls; 0: none is.
    pub again_one_in: u64,
}

/// The result of an exploration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Explored {
    /// Histories.
    pub histories: u64,
    /// Calls that were crashed at.
    pub calls: u64,
    /// States after a crash that were recovered and judged.
    pub states: u64,
    /// States among them after a crash inside a recovery.
    pub again: u64,
    /// Calls where every outcome was looked at.
    pub exhausted: u64,
    /// States among them that were written on, and crashed and recovered once more.
    pub onward: u64,
    /// States that hold torn pages or any changes of a directory.
    pub torn: u64,
}

impl Explorer {
    /// How many histories there are.
    #[must_use]
    pub fn histories(&self) -> u64 {
        KIND_COUNT.pow(self.operations)
    }

    /// The history of a number, and its name.
    fn script(&self, number: u64) -> (String, Script) {
        let mut ops = vec![
            Op::Create { table: "other".to_owned(), options: 0 },
            put(1, 100, 1, false),
            batch(2, false),
            Op::Flush,
            put(6, 500, 4, false),
            put(1, 50, 5, true),
            batch(6, false),
        ];
        let (mut names, mut left) = (Vec::new(), number);
        for place in 0..self.operations {
            let (name, make) = KINDS[(left % KIND_COUNT) as usize];
            left /= KIND_COUNT;
            names.push(name);
            ops.extend(make(100 * (u64::from(place) + 1)));
        }
        ops.push(Op::Sync);
        let options = [
            ("memory_bytes", 16 << 20),
            ("write_memory_bytes", 4 << 20),
            ("segment_bytes", 64 << 10),
            ("memtable_bytes", 64 << 10),
            ("level_base_bytes", 64 << 10),
            ("level_fanout", 2),
            ("background_threads", 1),
        ];
        let mut options = options.map(|(name, value)| (name.to_owned(), value.to_string())).to_vec();
        let from = number % 2 * 32;
        options.push(("value_separation_bytes".to_owned(), from.to_string()));
        options.push(crate::operand_ops::operator());
        (names.join(", "), Script { seed: number, options, ops })
    }
}

impl Job for Explorer {
    type Sum = Explored;

    fn work(&self, number: u64, sum: &mut Explored) -> Option<String> {
        let (name, script) = self.script(number % self.histories());
        let result = explore(self, number, &script);
        sum.histories = 1;
        match result {
            Ok(explored) => {
                Explorer::add(sum, &explored);
                None
            }
            Err(failure) => {
                let mut found = script;
                found.ops.truncate(failure.op + 1);
                let text = |script: &Script| format!("# {name}: {}\n{script}", failure.message);
                let Some(crash) = failure.crash else { return Some(text(&found)) };
                found.ops.insert(0, *crash);
                found.ops.push(Op::Check);
                Some(match crate::shrink(&found, 300) {
                    Some((short, second)) => format!("# {name}: {}\n{short}", second.message),
                    None => text(&found),
                })
            }
        }
    }

    fn add(sum: &mut Explored, other: &Explored) {
        sum.histories += other.histories;
        sum.calls += other.calls;
        sum.states += other.states;
        sum.again += other.again;
        sum.exhausted += other.exhausted;
        sum.torn += other.torn;
        sum.onward += other.onward;
    }
}

/// A failure, with its crash.
pub(crate) struct Wrong {
    message: String,
    op: usize,
    crash: Option<Box<Op>>,
}

fn explore(settings: &Explorer, number: u64, script: &Script) -> Result<Explored, Wrong> {
    panics::record();
    let result = crate::alone::alone(|| {
        let runner = Rc::new(Runner::new(script));
        let scout = Rc::new(Scout {
            runner: runner.clone(),
            settings: settings.clone(),
            options: runner.options(),
            seed: number,
            is_on: Cell::new(false),
            creation_calls: Cell::new(0),
            explored: Cell::default(),
            wrong: RefCell::default(),
        });
        let _watching = watch(scout.clone());
        let done = catch_unwind(AssertUnwindSafe(|| scout.run(&script.ops)));
        let done =
            done.unwrap_or_else(|_| Err(Wrong { message: panic_text(), op: script.ops.len(), crash: None }));
        runner.die();
        done
    });
    panics::forget();
    result
}

fn panic_text() -> String {
    format!("panic: {}", panics::take().unwrap_or_default())
}

/// Looks at each call of a history.
struct Scout {
    runner: Rc<Runner>,
    settings: Explorer,
    options: Options,
    seed: u64,
    is_on: Cell<bool>,
    /// Calls before the first operation.
    creation_calls: Cell<u64>,
    explored: Cell<Explored>,
    wrong: RefCell<Option<(String, Op)>>,
}

impl Scout {
    fn run(&self, ops: &[Op]) -> Result<Explored, Wrong> {
        let wrong = |message, op, crash| Err(Wrong { message, op, crash });
        self.is_on.set(true);
        self.runner.open_first();
        if let Some((message, _)) = self.wrong.take() {
            return wrong(format!("in the first creation: {message}"), 0, None);
        }
        self.creation_calls.set(self.explored.get().calls);
        for (index, op) in ops.iter().enumerate() {
            self.runner.do_op(op);
            if let Some((message, crash)) = self.wrong.take() {
                return wrong(message, index, Some(Box::new(crash)));
            }
            if let Err(message) = self.runner.check_failure() {
                return wrong(message, index, None);
            }
        }
        Ok(self.explored.get())
    }

    fn count(&self, change: impl FnOnce(&mut Explored)) {
        let mut explored = self.explored.get();
        change(&mut explored);
        self.explored.set(explored);
    }

    fn look(&self, disk: &MemDisk) {
        self.count(|explored| explored.calls += 1);
        let call = self.explored.get().calls;
        let outcomes = disk.outcomes();
        let is_exhausted = outcomes <= self.settings.outcomes_max;
        self.count(|explored| explored.exhausted += u64::from(is_exhausted));
        let powers = (0..outcomes.min(self.settings.outcomes_max)).map(|number| match is_exhausted {
            true => Crash::Outcome(number),
            false => Crash::Power(self.seed ^ call << 20 ^ number),
        });
        // Counted outcomes keep or lose whole pages: torn sectors and older bytes are sampled beside them.
        let torn = if is_exhausted && outcomes > 1 { TORN_OUTCOMES } else { 0 };
        self.count(|explored| explored.torn += torn);
        let torn = (0..torn).map(|number| Crash::Power(!(self.seed ^ call << 20 ^ number)));
        for crash in powers.chain(torn).chain([Crash::Kill]) {
            let again = self.settings.again_one_in > 0
                && self.explored.get().states.is_multiple_of(self.settings.again_one_in);
            let allowed = self.runner.allowed(crash);
            let judged = catch_unwind(AssertUnwindSafe(|| self.judge(crash.image(disk), &allowed, again)));
            if let Err(message) = judged.unwrap_or_else(|_| Err(panic_text())) {
                let after = call - self.creation_calls.get();
                let crash = Op::Crash { crash, after, again: None };
                self.wrong.borrow_mut().get_or_insert((message, crash));
                self.is_on.set(false);
                return;
            }
        }
    }

    /// Recovers an image and judges its state; `again` looks at each call of the recovery.
    fn judge(&self, image: MemDisk, allowed: &Allowed, again: bool) -> Result<(), String> {
        let watcher = Rc::new(Inner::default());
        watcher.is_on.set(again);
        let _watching = watch(watcher.clone());
        let goes_on = !again && self.explored.get().states % ONWARD_ONE_IN == 1;
        let opened = self.judge_one(image, allowed, goes_on);
        watcher.is_on.set(false);
        self.count(|explored| explored.states += 1);
        opened?;
        let within = Allowed { floor: allowed.floor.min(allowed.durable), ..allowed.clone() };
        for Again { call, is_kill, image } in watcher.images.take() {
            self.count(|explored| {
                (explored.states, explored.again) = (explored.states + 1, explored.again + 1)
            });
            self.judge_one(image, if is_kill { allowed } else { &within }, false)
                .map_err(|message| format!("again, at call {call} of the recovery: {message}"))?;
        }
        Ok(())
    }

    fn judge_one(&self, image: MemDisk, allowed: &Allowed, goes_on: bool) -> Result<(), String> {
        self.runner.judge_checkpoints(&image)?;
        self.runner.judge_backups(&image)?;
        let mut model = self.runner.model.borrow().clone();
        let recovered = recover(image, &self.options, self.seed, &model, allowed)?;
        let done = if goes_on {
            self.count(|explored| explored.onward += 1);
            adopt(&mut model, &recovered.found, allowed);
            let seed = self.seed ^ self.explored.get().states << 24;
            recovered.write_on(&mut model, seed).and_then(|left| {
                let again = recover(left.image, &self.options, seed, &model, &left.allowed);
                again.map(Recovered::end).map_err(|message| format!("written on: {message}"))
            })
        } else {
            Ok(())
        };
        recovered.end();
        done
    }
}

impl Watcher for Scout {
    fn before_change(&self, disk: &MemDisk) {
        if self.is_on.get() {
            self.look(disk);
        }
    }
}

/// Takes images at each call of a recovery.
#[derive(Default)]
struct Inner {
    is_on: Cell<bool>,
    calls: Cell<u64>,
    images: RefCell<Vec<Again>>,
}

/// The device after a second crash, at a call of the recovery from the first.
struct Again {
    call: u64,
    is_kill: bool,
    image: MemDisk,
}

/// One recovered state in so many is written on.
const ONWARD_ONE_IN: u64 = 8;
/// Outcomes per call inside a recovery.
const AGAIN_OUTCOMES: u64 = 3;
/// Outcomes by parts of pages, per call where every outcome by pages is looked at.
const TORN_OUTCOMES: u64 = 3;

impl Watcher for Inner {
    fn before_change(&self, disk: &MemDisk) {
        if !self.is_on.get() {
            return;
        }
        let call = self.calls.get() + 1;
        self.calls.set(call);
        let outcomes = disk.outcomes();
        let images = (0..outcomes.min(AGAIN_OUTCOMES)).map(|number| {
            let image = if outcomes <= AGAIN_OUTCOMES {
                disk.crash_as(number)
            } else {
                disk.crash(call << 8 ^ number)
            };
            Again { call, is_kill: false, image }
        });
        let killed = Again { call, is_kill: true, image: disk.kill() };
        let images = images.chain([killed]);
        self.images.borrow_mut().extend(images);
    }
}
