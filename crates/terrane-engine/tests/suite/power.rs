//! Losses of power and crashes of the process before every kind of call of every thread, also during a
//! recovery. Every acknowledged commit must exist, and the existing rows must be those of a prefix of the
//! commits over all tables.
//!
//! `TERRANE_POWER_HISTORIES` scales it, `TERRANE_POWER_SEED` is the first history.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::sync::Arc;

use parking_lot::Mutex;
use support::gate::GateDisk;
use support::going_on::go_on;
use support::oracle::{LASTING, Oracle, Reached, Span, random_changes, stamp};
use support::{get, number_from_env, open, small_options};
use terrane_base::options::{JournalMode, Options};
use terrane_base::{Kind, Result, Rng};
use terrane_device::MemDisk;
use terrane_engine::{Bounds, Engine};

/// Images of one history.
const IMAGES_MAX: usize = 10;

/// A device as a cut left it, and what must be on it.
struct Image {
    disk: MemDisk,
    power_loss: bool,
    span: Span,
    /// The same moment, if the power went as well: what remains to be promised then.
    span_after_power_loss: Span,
}

fn take(disk: &MemDisk, reached: &Reached, power_loss: bool, seed: u64) -> Image {
    let (floor, durable) = (reached.floor(power_loss), reached.floor(true));
    let disk = if power_loss { disk.crash(seed) } else { disk.kill() };
    Image { disk, power_loss, span: reached.close(floor), span_after_power_loss: reached.close(durable) }
}

/// A running history: one writer, the engine's background, and a device that is cut now and then.
struct History {
    seed: u64,
    numbers: Rng,
    options: Options,
    disk: GateDisk,
    engine: Arc<Engine>,
    oracle: Oracle,
    images: Arc<Mutex<Vec<Image>>>,
    stamp_table: usize,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut numbers = Rng::new(seed);
        let mut options = small_options();
        // Equal limits never merge by pointer, unequal ones do.
        options.global_index_bytes = [64 << 10, 96 << 10, 256 << 10][numbers.below(3) as usize];
        options.overflow_runs_max = 1 + numbers.below(3);
        // In every second history values are separated.
        options.value_separation_bytes = seed % 2 * 32;
        let disk = GateDisk::new(MemDisk::new());
        let engine = open(disk.clone(), &options).unwrap();
        let mut oracle = Oracle::new();
        oracle.begin_event(LASTING[1]);
        engine.create_table(LASTING[1], &[]).unwrap();
        oracle.end_event();
        let images = Arc::default();
        let history = History { seed, numbers, options, disk, engine, oracle, images, stamp_table: 0 };
        history.watch();
        history
    }

    /// Takes images at calls to come, whichever thread makes them.
    fn watch(&self) {
        let (images, reached) = (self.images.clone(), self.oracle.reached.clone());
        let mut numbers = Rng::new(self.seed ^ 0x5eed);
        let first = 1 + numbers.below(60);
        let look = move |disk: &MemDisk| {
            let mut images = images.lock();
            if images.len() < IMAGES_MAX {
                let power_loss = !numbers.one_in(4);
                images.push(take(disk, &reached, power_loss, numbers.next_u64()));
            }
            // Neighbouring calls now and then: what lies between them is where orders go wrong.
            if numbers.one_in(3) { 1 } else { 1 + numbers.below(150) }
        };
        self.disk.look_after(first, Box::new(look));
    }

    fn step(&mut self) -> Result<()> {
        match self.numbers.below(1000) {
            0..820 => self.write(),
            820..850 => {
                self.engine.sync()?;
                self.oracle.all_durable();
                Ok(())
            }
            850..870 => {
                self.engine.flush()?;
                self.oracle.all_durable();
                Ok(())
            }
            870..885 => self.compact(),
            885..915 => self.create_or_drop(),
            915..925 => self.engine.wait_until_quiescent(),
            925..940 => {
                let seed = self.numbers.next_u64();
                self.disk.still(|disk| disk.writeback(seed));
                Ok(())
            }
            940..950 => self.reopen(),
            950..970 => {
                self.cut_at_rest();
                Ok(())
            }
            _ => {
                self.stamp_table = 1 - self.stamp_table;
                Ok(())
            }
        }
    }

    fn write(&mut self) -> Result<()> {
        let number = self.oracle.batches.len() + 1;
        let changes = random_changes(&mut self.numbers, &self.oracle.live(), number);
        let batch = self.oracle.begin(&self.engine, changes, self.stamp_table);
        let sync = self.numbers.one_in(25);
        self.engine.write(&batch, sync)?;
        self.oracle.end(sync);
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        let live = self.oracle.live();
        let name = &live[self.numbers.below(live.len() as u64) as usize].1;
        let table = self.engine.catalog().require(name)?;
        self.engine.compact_range(&table, &Bounds::all())
    }

    fn create_or_drop(&mut self) -> Result<()> {
        let name = ["one", "two"][self.numbers.below(2) as usize];
        self.oracle.begin_event(name);
        match self.engine.catalog().find(name) {
            Some(_) => self.engine.drop_table(name)?,
            None => drop(self.engine.create_table(name, &[])?),
        }
        self.oracle.end_event();
        Ok(())
    }

    fn reopen(&mut self) -> Result<()> {
        self.engine.close()?;
        self.oracle.all_durable();
        self.engine = open(self.disk.clone(), &self.options)?;
        let found = self.oracle.judge(&self.engine, self.now(), &self.place("clean close"))?;
        assert_eq!(found, self.oracle.batches.len(), "{}", self.place("clean close"));
        Ok(())
    }

    fn cut_at_rest(&mut self) {
        let (power_loss, seed) = (self.numbers.one_in(2), self.numbers.next_u64());
        let reached = self.oracle.reached.clone();
        let image = self.disk.still(|disk| take(disk, &reached, power_loss, seed));
        self.images.lock().push(image);
    }

    fn now(&self) -> Span {
        let reached = &self.oracle.reached;
        reached.close(reached.floor(false))
    }

    fn place(&self, what: &str) -> String {
        format!("seed {} after {} batches, {what}", self.seed, self.oracle.batches.len())
    }

    /// Does the steps, then judges every image. Returns how many images there were.
    fn run(mut self, steps: u64) -> usize {
        for step in 0..steps {
            if let Err(error) = self.step() {
                panic!("{}: step {step}: {error}", self.place("in the history"));
            }
        }
        self.disk.look_away();
        assert_eq!(self.engine.stats().background_errors, 0, "{}", self.place("background"));
        let closed = self.engine.close();
        closed.unwrap_or_else(|error| panic!("{}: {error}", self.place("close")));
        let images = std::mem::take(&mut *self.images.lock());
        let count = images.len();
        for (index, image) in images.into_iter().enumerate() {
            let kind = if image.power_loss { "power loss" } else { "process death" };
            let place = format!("seed {} image {index} ({kind}, {:?})", self.seed, image.span);
            judge_image(&self.oracle, &self.options, &image, &mut self.numbers, &place);
        }
        count
    }
}

/// Opens an image, while cutting the opening itself; the state found must be within the span, the same when
/// opened again, and writable.
fn judge_image(oracle: &Oracle, options: &Options, image: &Image, numbers: &mut Rng, place: &str) {
    let cuts = cuts_in_recovery(options, image, numbers, place);
    let found = reopen_and_judge(oracle, options, &image.disk, image.span, place);
    let again = Span { least: found, most: found, ..image.span };
    for (index, cut) in cuts.iter().enumerate() {
        // Bytes of a dead process in the page cache survive only until a loss of power.
        let span = if image.power_loss { again } else { image.span_after_power_loss };
        let place = format!("{place}, cut {index} in recovery");
        let found = reopen_and_judge(oracle, options, cut, span, &place);
        let again = Span { least: found, most: found, ..span };
        reopen_and_judge(oracle, options, &cut.crash(numbers.next_u64()), again, &format!("{place}, again"));
    }
    // Rows that an opening has shown survive every later loss of power.
    let later = image.disk.crash(numbers.next_u64());
    reopen_and_judge(oracle, options, &later, again, &format!("{place}, opened again"));
    go_on(options, &image.disk.kill(), numbers, place);
}

/// Images of the opening, at a few of its calls.
fn cuts_in_recovery(options: &Options, image: &Image, numbers: &mut Rng, place: &str) -> Vec<MemDisk> {
    let gate = GateDisk::new(image.disk.kill());
    let cuts: Arc<Mutex<Vec<MemDisk>>> = Arc::default();
    let (taken, mut choices) = (cuts.clone(), Rng::new(numbers.next_u64()));
    let first = 1 + choices.below(4);
    let look = move |disk: &MemDisk| {
        taken.lock().push(disk.crash(choices.next_u64()));
        1 + choices.below(8)
    };
    gate.look_after(first, Box::new(look));
    let engine = open(gate.clone(), options).unwrap_or_else(|error| panic!("{place}: {error}"));
    gate.look_away();
    engine.close().unwrap_or_else(|error| panic!("{place}: {error}"));
    let mut cuts = std::mem::take(&mut *cuts.lock());
    cuts.truncate(2);
    cuts
}

fn reopen_and_judge(oracle: &Oracle, options: &Options, disk: &MemDisk, span: Span, place: &str) -> usize {
    let engine = open(disk.clone(), options).unwrap_or_else(|error| panic!("{place}: open: {error}"));
    let found = oracle.judge(&engine, span, place).unwrap_or_else(|error| panic!("{place}: {error}"));
    let report = engine.check(&mut |_, _| ()).unwrap_or_else(|error| panic!("{place}: check: {error}"));
    assert!(report.findings.is_empty(), "{place}: {:?}", report.findings);
    engine.close().unwrap_or_else(|error| panic!("{place}: close: {error}"));
    found
}

#[test]
fn a_cut_at_any_call_leaves_a_prefix_with_everything_acknowledged() {
    let first = number_from_env("TERRANE_POWER_SEED", 0);
    let histories = number_from_env("TERRANE_POWER_HISTORIES", 25);
    let mut images = 0;
    for seed in first..first + histories {
        images += History::new(seed).run(300);
    }
    println!("{images} images of {histories} histories");
    assert!(images as u64 >= histories, "hardly any image was taken: {images}");
}

#[test]
fn a_table_created_after_unsynced_writes_does_not_promise_them() {
    for seed in 0..20 {
        let disk = MemDisk::new();
        let engine = open(disk.clone(), &small_options()).unwrap();
        let table = engine.catalog().require("default").unwrap();
        for number in 0..10u8 {
            engine.put(table.id, &[number], b"value", false).unwrap();
        }
        engine.create_table("other", &[]).unwrap();
        let cut = disk.crash(seed);
        engine.close().unwrap();
        let engine = open(cut, &small_options()).unwrap();
        assert!(engine.catalog().find("other").is_some(), "a created table is durable");
        engine.close().unwrap();
    }
}

/// With the journal off, only flushed rows are promised; there may be more.
#[test]
fn without_a_journal_flushed_writes_survive() {
    let options = Options { journal: JournalMode::Off, ..small_options() };
    let first = number_from_env("TERRANE_POWER_SEED", 0);
    for seed in first..first + number_from_env("TERRANE_POWER_HISTORIES", 25) {
        let mut numbers = Rng::new(seed);
        let disk = MemDisk::new();
        let mut engine = open(disk.clone(), &options).unwrap();
        let mut flushed = vec![0u64; 50];
        let mut written = vec![0u64; 50];
        for round in 1..400u64 {
            let table = engine.catalog().require("default").unwrap();
            let key = numbers.below(50);
            let mut value = vec![0; 1000];
            value[..8].copy_from_slice(&round.to_le_bytes());
            engine.put(table.id, &[key as u8], &value, false).unwrap();
            written[key as usize] = round;
            if numbers.one_in(60) {
                engine.flush().unwrap();
                flushed.clone_from(&written);
            }
            if numbers.one_in(150) {
                engine.wait_until_quiescent().unwrap();
                let cut = if numbers.one_in(2) { disk.crash(numbers.next_u64()) } else { disk.kill() };
                check_flushed(&cut, &options, &flushed, &written, seed);
                // Also with a journal again, and then without one.
                let with_journal = small_options();
                check_flushed(&cut, &with_journal, &flushed, &written, seed);
                check_flushed(&cut, &options, &flushed, &written, seed);
            }
            if numbers.one_in(150) {
                engine.flush().unwrap();
                flushed.clone_from(&written);
                engine.close().unwrap();
                engine = open(disk.clone(), &options).unwrap();
            }
        }
        assert_eq!(engine.stats().background_errors, 0, "seed {seed}");
        engine.close().unwrap();
    }
}

fn check_flushed(disk: &MemDisk, options: &Options, flushed: &[u64], written: &[u64], seed: u64) {
    let engine = open(disk.clone(), options).unwrap();
    let table = engine.catalog().require("default").unwrap();
    for (key, (&least, &most)) in flushed.iter().zip(written).enumerate() {
        let value = get(&engine, &table, &[key as u8]).unwrap();
        let found = value.map_or(0, |value| u64::from_le_bytes(value[..8].try_into().unwrap()));
        assert!((least..=most).contains(&found), "seed {seed} key {key}: {least} <= {found} <= {most}");
    }
    engine.close().unwrap();
}

/// A process dies at each call of a short life; the next one goes on in whatever files that left, and then
/// the power goes.
#[test]
fn bytes_of_a_dead_process_are_durable_before_they_are_used() {
    let images: Arc<Mutex<Vec<MemDisk>>> = Arc::default();
    let gate = GateDisk::new(MemDisk::new());
    let taken = images.clone();
    let look = move |disk: &MemDisk| {
        taken.lock().push(disk.kill());
        1
    };
    gate.look_after(1, Box::new(look));
    let engine = open(gate.clone(), &small_options()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    for number in 0u64..200 {
        engine.put(table.id, &number.to_be_bytes(), &[3; 1000], false).unwrap();
    }
    engine.flush().unwrap();
    engine.close().unwrap();
    gate.look_away();
    let images = std::mem::take(&mut *images.lock());
    assert!(images.len() > 40, "{} images", images.len());
    let mut numbers = Rng::new(1);
    for (index, image) in images.iter().enumerate() {
        for _ in 0..2 {
            go_on(&small_options(), &image.kill(), &mut numbers, &format!("image {index}"));
        }
    }
}

/// A store that was never finished is made again or is whole: a cut at each call of its making.
#[test]
fn a_cut_while_the_store_is_made_leaves_none_or_a_whole_one() {
    let cuts: Arc<Mutex<Vec<MemDisk>>> = Arc::default();
    let gate = GateDisk::new(MemDisk::new());
    let (taken, mut numbers) = (cuts.clone(), Rng::new(7));
    let look = move |disk: &MemDisk| {
        taken.lock().extend((0..4).map(|_| disk.crash(numbers.next_u64())));
        taken.lock().push(disk.kill());
        1
    };
    gate.look_after(1, Box::new(look));
    open(gate.clone(), &small_options()).unwrap().close().unwrap();
    gate.look_away();
    let cuts = std::mem::take(&mut *cuts.lock());
    assert!(cuts.len() > 40, "{} cuts", cuts.len());
    for (index, cut) in cuts.into_iter().enumerate() {
        let engine =
            open(cut.clone(), &small_options()).unwrap_or_else(|error| panic!("cut {index}: {error}"));
        assert_eq!(stamp(&engine).unwrap(), 0);
        engine.close().unwrap();
        let missing = Options { create_if_missing: false, ..small_options() };
        let engine = open(cut, &missing).unwrap_or_else(|error| panic!("cut {index}: {error}"));
        assert_eq!(engine.create_table("default", &[]).err().map(|error| error.kind()), Some(Kind::Invalid));
        engine.close().unwrap();
    }
}
