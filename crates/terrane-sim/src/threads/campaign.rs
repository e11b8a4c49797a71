//! Many histories under many schedules, and the repetition of one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use terrane::{Db, Listener, Options, TableOptions, WorkFailed};
use terrane_base::Rng;
use terrane_device::MemDisk;

use super::caller::{Caller, Left, OWN, difference, own_name, rows_of};
use super::controller::Explored;
use super::history::{History, Op, TABLES};
use super::other_ops::set_filters;
use super::strategy::{Kind, Strategy};
use super::world::{World, explore};
use super::{Doors, Log};
use crate::trace::Trace;

/// Where the database lies on its device.
pub(super) const PATH: &str = "/db";
/// Most bytes that the world may store.
const CAPACITY_BYTES: u64 = 1 << 30;

/// The settings of a campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Seed of the first history; the others follow.
    pub start: u64,
    /// Histories, at most.
    pub histories: u64,
    /// Schedules of each history.
    pub schedules: u64,
    /// Time after which no further schedule begins.
    pub time: Option<Duration>,
}

/// The result of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Histories of which all schedules ran.
    pub histories: u64,
    /// Schedules.
    pub schedules: u64,
    /// Operations of all callers.
    pub operations: u64,
    /// Choices of a thread.
    pub choices: u64,
    /// Most threads of one schedule.
    pub threads: usize,
    /// How often each kind of operation was done, and how often it was refused because of what another caller
    /// did.
    pub kinds: BTreeMap<String, [u64; 2]>,
}

impl Done {
    fn add(&mut self, history: &History, explored: &Explored, log: &Log) {
        self.schedules += 1;
        self.operations += history.len() as u64;
        self.choices += explored.choices;
        self.threads = self.threads.max(explored.threads);
        for (kind, [done, refused]) in &log.kinds {
            let counts = self.kinds.entry(kind.clone()).or_default();
            counts[0] += done;
            counts[1] += refused;
        }
    }
}

/// A schedule that failed: what repeats it, and what it said.
#[derive(Clone, Debug)]
pub struct Failed {
    /// Seed of the history.
    pub history: u64,
    /// Number of the schedule.
    pub schedule: u64,
    /// The failure.
    pub why: String,
    /// The strategy.
    pub strategy: String,
    /// The operations that callers had begun, in order.
    pub begun: Vec<String>,
}

/// Runs a campaign up to its end, its time, or the first failure. `progress` is called after each history.
///
/// # Errors
/// The first failure. Threads of a schedule that failed stay parked: end the process soon.
#[expect(
    clippy::disallowed_methods,
    reason = "the time of the campaign itself, not of the program that it explores"
)]
pub fn run(campaign: &Campaign, progress: &mut dyn FnMut(&Done)) -> Result<Done, (Done, Box<Failed>)> {
    let started = Instant::now();
    let mut done = Done::default();
    for seed in campaign.start..campaign.start.saturating_add(campaign.histories) {
        let history = Arc::new(History::of(seed));
        let mut length = 0;
        for schedule in 0..campaign.schedules {
            if campaign.time.is_some_and(|time| started.elapsed() >= time) {
                return Ok(done);
            }
            let (kind, explored, log) = run_one(&history, seed, schedule, length);
            if schedule == 0 {
                length = explored.weight;
            }
            done.add(&history, &explored, &log);
            if let Err(why) = explored.outcome {
                let (strategy, begun) = (kind.to_string(), log.begun);
                return Err((done, Box::new(Failed { history: seed, schedule, why, strategy, begun })));
            }
        }
        done.histories += 1;
        progress(&done);
    }
    Ok(done)
}

/// Runs one schedule of a history again: first the schedule that measures it, then the one that is asked for.
/// Returns the hash of its choices.
///
/// # Errors
/// The failure.
pub fn replay(seed: u64, schedule: u64) -> Result<Trace, Box<Failed>> {
    let history = Arc::new(History::of(seed));
    let mut length = 0;
    if schedule > 0 {
        length = run_one(&history, seed, 0, 0).1.weight;
    }
    let (kind, explored, log) = run_one(&history, seed, schedule, length);
    match explored.outcome {
        Ok(()) => Ok(explored.trace),
        Err(why) => {
            let (strategy, begun) = (kind.to_string(), log.begun);
            Err(Box::new(Failed { history: seed, schedule, why, strategy, begun }))
        }
    }
}

/// A history as text for people.
#[must_use]
pub fn show(seed: u64) -> String {
    let history = History::of(seed);
    let mut text = format!("history {seed}\noptions {:?}\n", history.options);
    for op in &history.before {
        text.push_str(&format!("before: {op}\n"));
    }
    for (number, operations) in history.callers.iter().enumerate() {
        for op in operations {
            text.push_str(&format!("caller {number}: {op}\n"));
        }
    }
    text
}

fn run_one(history: &Arc<History>, seed: u64, schedule: u64, length: u64) -> (Kind, Explored, Log) {
    let mut numbers = Rng::part(seed, 1000 + schedule);
    let kind = Kind::of_schedule(schedule, &mut numbers);
    let strategy = Strategy::new(kind, length, Rng::new(numbers.next_u64()));
    let log = Arc::new(Mutex::new(Log::default()));
    let (history, for_program) = (history.clone(), log.clone());
    let explored = explore(numbers.next_u64(), strategy, move |world| program(&history, world, for_program));
    let log = log.lock().clone();
    (kind, explored, log)
}

/// The first thread: opens the database, starts the callers, waits for them, compares everything, opens it
/// again and compares once more.
fn program(history: &History, world: Arc<World>, log: Arc<Mutex<Log>>) {
    let disk = MemDisk::new();
    disk.set_capacity(CAPACITY_BYTES);
    let doors = Doors { world, disk, log, is_closing: Arc::default() };
    let mut options = Options::default();
    for (name, value) in &history.options {
        options.set(name, value).expect("generated options are valid");
    }
    let db = open(&doors, &options);
    let failures = Arc::new(Failures::default());
    db.add_listener(failures.clone()).expect("a listener");
    for name in TABLES.iter().filter(|name| **name != "default") {
        db.create_table(name, &TableOptions::new()).expect("a new table");
    }
    set_filters(&db, &TABLES).expect("known tables");
    let ended = call(history, &db, &doors);
    if !history.closes() {
        work_at_the_end(history, &db, &ended);
    }
    db.close().expect("closing");
    let failed = failures.0.lock().clone();
    assert!(failed.is_empty(), "the background failed: {failed:?}");
    let db = open(&doors, &options);
    compare(&db, &ended, "after opening again");
    db.close().expect("closing again");
}

/// The final states of the callers, once all have ended.
fn call(history: &History, db: &Db, doors: &Doors) -> Vec<Left> {
    let before = Caller::new(db.clone(), doors.clone(), 0, Left::default());
    let left = before.run(&history.before);
    let first_turn = history.before.len() as u64;
    let ended: Arc<Mutex<Vec<Left>>> = Arc::default();
    let mut joiners = Vec::new();
    for (number, operations) in history.callers.iter().enumerate() {
        // Earlier operations belong to the first.
        let left = if number == 0 { left.clone() } else { Left { number, ..Left::default() } };
        let caller = Caller::new(db.clone(), doors.clone(), first_turn, left);
        let (operations, ended) = (operations.clone(), ended.clone());
        let body = move || {
            let left = caller.run(&operations);
            ended.lock().push(left);
        };
        let joiner = doors.env().spawn.spawn(&format!("caller-{number}"), Box::new(body));
        joiners.push(joiner.expect("the system gives threads"));
    }
    joiners.into_iter().for_each(|joiner| joiner.join());
    std::mem::take(&mut *ended.lock())
}

fn work_at_the_end(history: &History, db: &Db, ended: &[Left]) {
    db.resume_background();
    compare(db, ended, "at the end");
    match history.len() % 3 {
        0 => db.flush().expect("a flush at the end"),
        1 => db.compact_range(db.default_table(), ..).expect("a compaction at the end"),
        _ => {}
    }
    compare(db, ended, "behind the last work");
    let report = db.check(&mut |_, _| ()).expect("a check");
    assert!(report.findings.is_empty(), "check found {:?}", report.findings);
    let errors = db.background_errors();
    assert!(errors.is_empty(), "the background failed: {errors:?}");
}

/// Work of the background that failed: no call of the device does, so none may.
#[derive(Default)]
struct Failures(Mutex<Vec<String>>);

impl Listener for Failures {
    fn work_failed(&self, failure: &WorkFailed) {
        if failure.error.kind() != terrane::Kind::Cancelled {
            self.0.lock().push(format!("{} of {:?}: {}", failure.work, failure.table, failure.error));
        }
    }
}

fn open(doors: &Doors, options: &Options) -> Db {
    Db::open_on(doors.disk(), PATH, options, doors.env()).expect("opening")
}

/// Every table has the rows of all callers and no others.
fn compare(db: &Db, ended: &[Left], when: &str) {
    for (place, name) in TABLES.iter().enumerate() {
        compare_table(db, (place, name), ended, when);
    }
    for left in ended {
        let (name, own) = (own_name(left.number), std::slice::from_ref(left));
        let is_there = db.tables().contains(&name);
        let may_differ = matches!(left.refused, Some((Op::CreateTable { .. } | Op::DropTable, _)));
        assert!(may_differ || is_there == left.has_own, "table {name} {when}: {is_there}");
        if is_there && !may_differ {
            compare_table(db, (OWN, &name), own, when);
        }
    }
}

fn compare_table(db: &Db, (place, name): (usize, &str), ended: &[Left], when: &str) {
    let seen = rows_of(db.table(name).expect("a known table").iter()).expect("a scan");
    let mut expected: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
    for left in ended {
        let of_table = left.rows.iter().filter(|((table, _), _)| *table == place);
        expected.extend(of_table.map(|((_, key), value)| (&key[..], &value[..])));
    }
    for left in ended {
        allow_refused(left, &seen, &mut expected);
    }
    let found: Vec<(&[u8], &[u8])> = seen.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    let expected: Vec<(&[u8], &[u8])> = expected.into_iter().collect();
    assert!(found == expected, "table {name} {when}: {}", difference(&found, &expected));
}

/// An operation that the close refused may have been done in part: a row that was found may be the one that
/// it wrote, and one that it may have deleted may be missing. The batch of an operation is whole or not at
/// all, which single callers test.
fn allow_refused<'a>(
    left: &Left,
    seen: &'a [(Vec<u8>, Vec<u8>)],
    expected: &mut BTreeMap<&'a [u8], &'a [u8]>,
) {
    let Some((op, turn)) = &left.refused else { return };
    let (mark, prefix) = (format!("<{}.{turn}>", left.number), format!("c{}/", left.number));
    let found: BTreeMap<&[u8], &[u8]> = seen.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    if op.may_delete() {
        expected.retain(|key, _| !key.starts_with(prefix.as_bytes()) || found.contains_key(key));
    }
    for (key, value) in found.iter().filter(|(key, _)| key.starts_with(prefix.as_bytes())) {
        if value.windows(mark.len()).any(|part| part == mark.as_bytes()) {
            expected.insert(key, value);
        }
    }
}
