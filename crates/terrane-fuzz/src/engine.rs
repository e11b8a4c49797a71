//! Target: the engine on a device that fails, held against the model. Each operation is a byte and its
//! choices.
//!
//! An operation answers as the model does, or with an error. After a failed write, and at every cut of the
//! power or death of the process, the database is opened again: it must hold a prefix of the batches, with
//! everything that was acknowledged (after a cut: acknowledged and durable). All of it happens in stepped
//! worlds, one for each life, so an input repeats exactly.

use std::ops::Bound;
use std::sync::Arc;

use terrane_base::{Batch, Result};
use terrane_device::{Call, Failure, Fault, FaultyDisk, MemDisk};
use terrane_engine::{Bounds, Engine, ReadMode, Row, Snapshot, Table};
use terrane_sim::model::Change;
use terrane_sim::{Model, SteppedWorld};

use crate::Seed;
use crate::database::{open, rows};
use crate::input::Input;

const OPERATIONS_MAX: usize = 80;
const TABLES: [&str; 2] = ["default", "other"];
/// Every batch puts its number here, so that what was recovered says which prefix it is.
const STAMP: &[u8] = b"~stamp";

const CALLS: [Call; 15] = [
    Call::Open,
    Call::Create,
    Call::List,
    Call::Exists,
    Call::Rename,
    Call::Remove,
    Call::SyncDir,
    Call::Len,
    Call::Read,
    Call::Write,
    Call::Sync,
    Call::SetLen,
    Call::Allocate,
    Call::Punch,
    Call::Map,
];

/// See the head of the file.
pub fn run(bytes: &[u8]) {
    let mut input = Input(bytes);
    let mut life = Life::new();
    for _ in 0..OPERATIONS_MAX {
        if input.is_over() {
            break;
        }
        life.step(&mut input);
    }
    life.restart(Death::Kill);
    // Dropped alone, an engine's threads end after this, and a leak checker meets them in their last moments.
    life.engine.close().expect("a sound device");
}

#[derive(Clone, Copy, Debug)]
enum Death {
    Kill,
    Power(u64),
}

struct Life {
    mem: MemDisk,
    /// Lives so far.
    lives: u64,
    world: SteppedWorld,
    disk: FaultyDisk,
    engine: Arc<Engine>,
    tables: [Arc<Table>; 2],
    model: Model,
    batches: Vec<Vec<Change>>,
    /// Batches that must be there after the death of the process, and after the loss of power.
    acknowledged: usize,
    durable: usize,
    snapshots: Vec<(Snapshot, u64)>,
    has_faults: bool,
}

impl Life {
    fn new() -> Life {
        let mem = MemDisk::new();
        let disk = FaultyDisk::new(Arc::new(mem.clone()));
        let world = SteppedWorld::new(0);
        let engine = open(disk.clone(), &world).expect("a device without faults");
        engine.create_table(TABLES[1], &[]).expect("a device without faults");
        let tables = tables(&engine);
        Life {
            mem,
            lives: 1,
            world,
            disk,
            engine,
            tables,
            model: model_of(&[]),
            batches: Vec::new(),
            acknowledged: 0,
            durable: 0,
            snapshots: Vec::new(),
            has_faults: false,
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        self.world.begin_operation();
        match input.below(16) {
            0..=5 => self.write(input),
            6 => self.get(input),
            7 => self.scan(input),
            8 => self.make_durable(|engine| engine.flush()),
            9 => self.make_durable(|engine| engine.sync()),
            10 => {
                let table = self.tables[usize::from(input.below(2))].clone();
                let _ = self.maintain(|engine| engine.compact_range(&table, &Bounds::all()));
            }
            11 => match input.below(2) {
                0 if self.snapshots.len() < 3 => {
                    self.snapshots.push((Snapshot::new(self.engine.clone()), self.model.now()));
                }
                _ => drop(self.snapshots.pop()),
            },
            12 => self.fault(input),
            13 => {
                self.disk.heal();
                self.has_faults = false;
            }
            14 => self.restart(Death::Power(u64::from(input.u16()))),
            _ => self.restart(Death::Kill),
        }
    }

    fn write(&mut self, input: &mut Input<'_>) {
        let shape = input.u8();
        let number = self.batches.len() + 1;
        let mut changes: Vec<Change> = (0..shape & 7)
            .map(|_| {
                let value = (input.below(4) > 0).then(|| vec![number as u8; usize::from(input.u8()) * 8]);
                (TABLES[usize::from(input.below(2))].to_owned(), key(input), value)
            })
            .collect();
        if shape & 8 != 0 {
            // Enough to fill a memtable now and then.
            changes.push((TABLES[1].to_owned(), b"bulk".to_vec(), Some(vec![number as u8; 20_000])));
        }
        changes.push((TABLES[0].to_owned(), STAMP.to_vec(), Some((number as u64).to_le_bytes().to_vec())));
        let mut batch = Batch::new();
        for (table, key, value) in &changes {
            let id = self.tables[usize::from(table == TABLES[1])].id;
            let added = match value {
                Some(value) => batch.put(id, key, value),
                None => batch.delete(id, key),
            };
            added.expect("a small change");
        }
        self.batches.push(changes);
        let sync = shape & 0x30 == 0;
        match self.engine.write(&batch, sync) {
            Ok(_) => {
                self.model.write(&self.batches[number - 1]);
                self.acknowledged = number;
                self.durable = if sync { number } else { self.durable };
            }
            Err(error) => {
                assert!(self.has_faults, "a write failed on a sound device: {error}");
                // It may be there or not: only opening again tells.
                self.restart(Death::Kill);
            }
        }
    }

    /// The present or a snapshot, and the moment of the model.
    fn moment(&self, input: &mut Input<'_>) -> (terrane_base::SeqNo, u64) {
        match self.snapshots.get(usize::from(input.below(4))) {
            Some((snapshot, moment)) => (snapshot.seq(), *moment),
            None => (self.engine.visible(), self.model.now()),
        }
    }

    fn get(&mut self, input: &mut Input<'_>) {
        let (seq, moment) = self.moment(input);
        let (table, key) = (usize::from(input.below(2)), key(input));
        let mut value = Vec::new();
        let found = self.engine.get(&self.tables[table], &key, ReadMode::at(seq), &mut value);
        let expected = self.model.get(TABLES[table], &key, moment).map(<[u8]>::to_vec);
        self.answer(found.map(|is_there| is_there.then_some(value)), &expected);
    }

    fn scan(&mut self, input: &mut Input<'_>) {
        let (seq, moment) = self.moment(input);
        let table = usize::from(input.below(2));
        let (lower, upper) = (key(input), key(input));
        let is_back = input.below(2) == 1;
        let range = (Bound::Included(lower.clone()), Bound::Excluded(upper.clone()));
        let bounds = Bounds { lower: range.0, upper: range.1, ..Bounds::all() };
        let iter = self.engine.range(&self.tables[table], bounds, seq);
        let found: Result<Vec<Row>> = if is_back { iter.rev().collect() } else { iter.collect() };
        let bounds = (Bound::Included(lower.as_slice()), Bound::Excluded(upper.as_slice()));
        let mut expected = self.model.range(TABLES[table], bounds, moment);
        if is_back {
            expected.reverse();
        }
        self.answer(found, &expected);
    }

    fn answer<T: PartialEq + std::fmt::Debug>(&self, found: Result<T>, expected: &T) {
        match found {
            Ok(found) => assert!(found == *expected, "expected {expected:?}, found {found:?}"),
            Err(error) => assert!(self.has_faults, "a read failed on a sound device: {error}"),
        }
    }

    /// Returns true if it succeeded.
    fn maintain(&mut self, work: impl FnOnce(&Engine) -> Result<()>) -> bool {
        let done = work(&self.engine);
        if let Err(error) = &done {
            assert!(self.has_faults, "maintenance failed on a sound device: {error}");
        }
        done.is_ok()
    }

    /// Maintenance behind which every acknowledged batch survives a loss of power. The compaction of one
    /// table does not count: it flushes no other.
    fn make_durable(&mut self, work: impl FnOnce(&Engine) -> Result<()>) {
        if self.maintain(work) {
            self.durable = self.acknowledged;
        }
    }

    fn fault(&mut self, input: &mut Input<'_>) {
        let call = CALLS[usize::from(input.u8()) % CALLS.len()];
        let shape = input.u8();
        let failure = if shape & 1 == 0 { Failure::Broken } else { Failure::Full };
        let fault = Fault::new(call, failure).after(u64::from(shape >> 2));
        self.disk.fail(if shape & 2 == 0 { fault } else { fault.lasting() });
        self.has_faults = true;
    }

    /// Ends the process or the power, opens the rest and judges it.
    fn restart(&mut self, death: Death) {
        self.snapshots.clear();
        self.disk.cut();
        self.world.begin_operation();
        // Every call fails now, so nothing but threads comes to an end; then the image is of one moment.
        let _ = self.engine.close();
        self.world = SteppedWorld::new(self.lives);
        self.lives += 1;
        self.mem = match death {
            Death::Kill => self.mem.kill(),
            Death::Power(seed) => self.mem.crash(seed),
        };
        let least = if matches!(death, Death::Kill) { self.acknowledged } else { self.durable };
        self.disk = FaultyDisk::new(Arc::new(self.mem.clone()));
        self.has_faults = false;
        self.engine = open(self.disk.clone(), &self.world)
            .unwrap_or_else(|error| panic!("{death:?}: cannot open: {error}"));
        self.tables = tables(&self.engine);
        let mut stamp = Vec::new();
        let is_there =
            self.engine.get(&self.tables[0], STAMP, ReadMode::default(), &mut stamp).expect("a sound device");
        let found =
            if is_there { u64::from_le_bytes(stamp.try_into().expect("8 bytes")) as usize } else { 0 };
        assert!(
            (least..=self.batches.len()).contains(&found),
            "{death:?}: {found} batches are there, expected {least} to {}",
            self.batches.len()
        );
        self.batches.truncate(found);
        self.model = model_of(&self.batches);
        for (table, name) in self.tables.iter().zip(TABLES) {
            let all = (Bound::Unbounded, Bound::Unbounded);
            let expected = self.model.range(name, all, self.model.now());
            assert!(
                rows(&self.engine, table).expect("a sound device") == expected,
                "{death:?}: {name} differs"
            );
        }
        // What a recovery found it has made durable.
        (self.acknowledged, self.durable) = (found, found);
    }
}

fn key(input: &mut Input<'_>) -> Vec<u8> {
    let choice = input.u8();
    match choice & 7 {
        0 => Vec::new(),
        1 => vec![0; usize::from(choice >> 6)],
        2 => vec![0xff; usize::from(choice >> 6)],
        _ => format!("key{}", choice >> 3).into_bytes(),
    }
}

fn tables(engine: &Engine) -> [Arc<Table>; 2] {
    TABLES.map(|name| engine.catalog().require(name).expect("the table was made durably"))
}

fn model_of(batches: &[Vec<Change>]) -> Model {
    let mut model = Model::new();
    model.create_table(TABLES[1]);
    batches.iter().for_each(|batch| model.write(batch));
    model
}

/// Corpus of [`run`].
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let write = |shape: u8| [0, shape, 1, 30, 0, 24, 2, 9, 1, 40];
    let mut plain = Vec::new();
    for round in 0..12u8 {
        plain.extend(write(2 | (round & 3) << 4 | (round & 1) << 3));
        plain.extend(
            [[6, 0, 0, 24].as_slice(), &[7, 3, 0, 0, 250, round & 1], &[11, 0]][usize::from(round % 3)],
        );
        plain.extend([[8].as_slice(), &[9], &[10, 1], &[15]][usize::from(round / 3)]);
    }
    let mut seeds = vec![("plain".to_owned(), plain.clone())];
    for call in 0..CALLS.len() as u8 {
        for shape in [0, 3, 21] {
            let fault =
                [&write(0x12)[..], &write(8), &[12, call, shape], &plain[..40], &[14, call, 0]].concat();
            seeds.push((format!("fault-{call}-{shape}"), fault));
        }
    }
    seeds
}
