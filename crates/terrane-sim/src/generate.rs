//! Runs drawn from a seed: options, a *habit* (the distributions of keys, values and operations), and the
//! operations.
//!
//! Each run has one profile: few keys or many, small values or values that fill extents, faults of one kind.
//! A mix of everything in each run would make each rare path rare in every run.

use std::ops::Bound;

use terrane_base::Rng;
use terrane_device::Call;

use crate::checkpoint::CHECKPOINTS;
use crate::fault::{Crash, Fault, Harm};
use crate::op::{Edit, KEYS_MAX, Op, Span, Value, Way};
use crate::options::random_options;
use crate::script::Script;

/// The kind of faults in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Climate {
    /// Nothing: every answer is the model's, every call succeeds.
    Fair,
    /// The process dies and the power goes.
    Crashes,
    /// Crashes, and calls that fail and say so.
    Faults,
    /// Crashes, and a device that fills up.
    Full,
    /// Bits rot, reads and writes go wrong without a word.
    Rot,
}

impl Climate {
    /// The climate of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Climate {
        let all =
            [Climate::Crashes, Climate::Faults, Climate::Fair, Climate::Full, Climate::Crashes, Climate::Rot];
        all[(seed % all.len() as u64) as usize]
    }
}

/// The profile of a run.
struct Habit {
    climate: Climate,
    keys: u64,
    value_bytes: u64,
    /// One value in so many is up to `wide_bytes`.
    wide_one_in: u64,
    wide_bytes: u64,
    tables: u64,
    sync_one_in: u64,
    has_journal: bool,
}

/// The run of `seed` with about `operations` operations.
#[must_use]
pub fn generate(seed: u64, operations: u64) -> Script {
    generate_in(seed, operations, Climate::of(seed))
}

/// The run of `seed` in a climate.
#[must_use]
pub fn generate_in(seed: u64, operations: u64, climate: Climate) -> Script {
    let mut numbers = Rng::part(seed, 3);
    let has_journal = climate != Climate::Fair || !numbers.one_in(6);
    let mut options = random_options(&mut numbers);
    options.push(crate::operand_ops::operator());
    let mut ordered = Rng::part(seed, 13);
    if ordered.one_in(4) {
        options.push(crate::order::draw_compared(&mut ordered));
    }
    if !has_journal {
        crate::options::without_journal(&mut options);
    }
    let is_wide = numbers.one_in(8);
    let habit = Habit {
        climate,
        keys: *numbers.pick(&[5, 40, 300, KEYS_MAX]),
        value_bytes: *numbers.pick(&[12, 60, 300, 1_500]),
        wide_one_in: if is_wide { 12 } else { 200 },
        wide_bytes: if is_wide { 200_000 } else { 8_000 },
        tables: 1 + numbers.below(4),
        sync_one_in: *numbers.pick(&[2, 10, 60, 1_000]),
        has_journal,
    };
    let mut builder =
        HistoryBuilder { numbers, habit, tables: vec!["default".to_owned()], stamp: 0, ops: Vec::new() };
    let mut operands = Rng::part(seed, 9);
    let mut bulk = Rng::part(seed, 10);
    let mut grouped = Rng::part(seed, 11);
    let mut kept = Rng::part(seed, 12);
    let mut in_flight = Rng::part(seed, 14);
    let mut large = Rng::part(seed, 15);
    while (builder.ops.len() as u64) < operations {
        builder.add_op();
        // If edits are lost silently, no commit of the journal shows that they existed.
        if climate != Climate::Rot && bulk.one_in(30) {
            let op = crate::bulk::draw(&mut bulk, &builder.tables);
            builder.ops.push(op);
        }
        if operands.one_in(8) {
            let op = crate::operand_ops::draw(&mut operands, &builder.tables);
            builder.ops.push(op);
        }
        if grouped.one_in(16) {
            let op = crate::transactions::draw(&mut grouped, &builder.tables);
            builder.ops.push(op);
        }
        if in_flight.one_in(14) {
            let op = crate::tickets::draw(&mut in_flight, &builder.tables, builder.habit.keys);
            builder.ops.push(op);
        }
        if large.one_in(800) {
            let op = crate::large::draw(&mut large, &builder.tables, has_journal);
            builder.ops.push(op);
        }
        if kept.one_in(200) {
            builder.ops.push(draw_copy(&mut kept));
        }
    }
    builder.ops.extend([
        Op::Resume,
        Op::Heal,
        Op::Room { bytes: u64::MAX },
        Op::Reopen { options: 0 },
        Op::Check,
    ]);
    Script { seed, options, ops: builder.ops }
}

/// Operations that copy the database, or restore a copy.
fn draw_copy(numbers: &mut Rng) -> Op {
    match numbers.below(8) {
        0..3 => Op::Backup { keep: 1 + numbers.below(3), seed: numbers.below(4) },
        3 | 4 => Op::Restore { seed: numbers.next_u64() },
        5 => Op::GoBack { seed: numbers.next_u64() },
        6 => Op::Checkpoint { name: numbers.below(CHECKPOINTS) },
        _ => Op::Follow,
    }
}

struct HistoryBuilder {
    numbers: Rng,
    habit: Habit,
    /// Tables that exist if everything went well.
    tables: Vec<String>,
    stamp: u64,
    ops: Vec<Op>,
}

impl HistoryBuilder {
    fn add_op(&mut self) {
        // Faults wait for a call of their kind, and many never meet one: where they are the theme there are
        // more of them.
        let around_one_in = if self.habit.climate == Climate::Faults { 8 } else { 25 };
        if self.numbers.one_in(around_one_in) {
            let op = self.around();
            self.ops.push(op);
            return;
        }
        if self.numbers.one_in(40) {
            let (after, op) = (self.numbers.below(6), Box::new(self.inner()));
            self.ops.push(Op::During { after, op });
            return;
        }
        let op = match self.numbers.below(100) {
            0..34 => self.put(),
            34..46 => self.batch(20),
            46..51 => self.delete(),
            51..98 => self.read(),
            _ => self.snapshot(),
        };
        self.ops.push(if op.may_go_through() && self.numbers.one_in(12) {
            Op::Through(Box::new(op))
        } else {
            op
        });
    }

    /// Operations that may run in the middle of another one.
    fn inner(&mut self) -> Op {
        match self.numbers.below(10) {
            0..4 => self.batch(5),
            4..8 => self.read(),
            8 => self.snapshot(),
            _ => Op::Steps { count: 1 },
        }
    }

    /// Operations other than reads and writes.
    fn around(&mut self) -> Op {
        match self.numbers.below(100) {
            0..8 => Op::Flush,
            8..12 => Op::Compact { table: self.table(), span: self.span() },
            12..14 => Op::Level { table: self.table(), level: self.numbers.below(4) },
            14..17 => self.create_or_drop(),
            17..20 => Op::Run { table: self.table() },
            20..42 => Op::Steps { count: 1 + self.numbers.skewed(16) },
            42..45 => Op::Wait { millis: self.numbers.skewed(4_000) },
            45 => Op::Rest,
            46 => Op::Scrub,
            47 | 48 => Op::Peek,
            49 => self.repair(),
            50..56 => Op::Sync,
            56..61 => Op::Quiesce,
            61..62 => Op::Check,
            62..64 => Op::Pause,
            64..68 => Op::Resume,
            68 if self.numbers.one_in(2) => Op::Checkpoint { name: self.numbers.below(CHECKPOINTS) },
            68 if self.numbers.one_in(2) => {
                Op::Backup { keep: 1 + self.numbers.below(3), seed: self.numbers.below(4) }
            }
            68 if self.numbers.one_in(2) => Op::Follow,
            68 => Op::Cancel,
            69..74 => {
                Op::Reopen { options: if self.numbers.one_in(2) { self.numbers.next_u64() } else { 0 } }
            }
            _ => self.weather(),
        }
    }

    /// Events of the climate: faults and crashes.
    fn weather(&mut self) -> Op {
        match (self.habit.climate, self.numbers.below(4)) {
            (Climate::Fair, _) => Op::Steps { count: 2 },
            (Climate::Crashes, _) | (_, 0) => self.crash(),
            (Climate::Faults, 1) | (Climate::Rot, 1) => Op::Heal,
            (Climate::Faults, _) => self.fault(),
            (Climate::Full, 1) => Op::Room { bytes: u64::MAX },
            (Climate::Full, _) => Op::Room { bytes: self.numbers.skewed(8 << 20) },
            (Climate::Rot, 2) if self.numbers.one_in(2) => Op::Decay { seed: self.numbers.next_u64() },
            (Climate::Rot, 2) => {
                let path_part = (*self.numbers.pick(&["/", ".seg", ".ext", "MANIFEST"])).to_owned();
                Op::Rot { seed: self.numbers.next_u64(), path_part }
            }
            (Climate::Rot, _) => self.silent_fault(),
        }
    }

    fn crash(&mut self) -> Op {
        let crash = if self.numbers.one_in(3) { Crash::Kill } else { Crash::Power(self.numbers.next_u64()) };
        let after = if self.numbers.one_in(4) { 0 } else { self.numbers.skewed(120) };
        let again = if self.numbers.one_in(3) { Some(self.numbers.below(20)) } else { None };
        Op::Crash { crash, after, again }
    }

    fn fault(&mut self) -> Op {
        // Syncs are few of the kinds of calls, and what matters most.
        let syncs = [Call::Sync, Call::Sync, Call::SyncDir];
        let call =
            if self.numbers.one_in(4) { *self.numbers.pick(&syncs) } else { *self.numbers.pick(&Call::ALL) };
        let harm = match self.numbers.below(4) {
            0 => Harm::Full,
            1 | 2 if matches!(call, Call::Sync | Call::SyncDir) => Harm::Lie,
            _ => Harm::Broken,
        };
        let lasting = self.numbers.one_in(4);
        Op::Fault(Fault { call, path_part: self.path_part(), harm, skip: self.numbers.skewed(20), lasting })
    }

    /// Harm without a word, which checksums, chains and marks have to find out.
    fn silent_fault(&mut self) -> Op {
        let (call, harm) = match self.numbers.below(8) {
            0 => (Call::Read, Harm::Short),
            1..4 => (Call::Read, Harm::Flip(self.numbers.next_u64())),
            // Syncs write mapped pages.
            lost => {
                let call = if self.numbers.one_in(2) { Call::Write } else { Call::Sync };
                (call, if lost < 6 { Harm::Lost } else { Harm::Misdirected(self.numbers.next_u64()) })
            }
        };
        let path_part = match call {
            Call::Read => self.path_part(),
            Call::Write => (*self.numbers.pick(&[".ext", ".ext", ".ext", "MANIFEST", "CURRENT"])).to_owned(),
            _ => (*self.numbers.pick(&[".seg", ".seg", ".seg", ".ext", "MANIFEST"])).to_owned(),
        };
        Op::Fault(Fault { call, path_part, harm, skip: self.numbers.skewed(20), lasting: false })
    }

    fn path_part(&mut self) -> String {
        (*self.numbers.pick(&["", "", ".seg", ".ext", "MANIFEST", "/data", "/journal"])).to_owned()
    }

    fn create_or_drop(&mut self) -> Op {
        let name = format!("t{}", self.numbers.below(self.habit.tables));
        if let Some(index) = self.tables.iter().position(|table| *table == name) {
            self.tables.swap_remove(index);
            return Op::Drop { table: name };
        }
        self.tables.push(name.clone());
        let options = if self.numbers.one_in(2) { self.numbers.next_u64() } else { 0 };
        Op::Create { table: name, options }
    }

    fn table(&mut self) -> String {
        self.numbers.pick(&self.tables).clone()
    }

    fn key(&mut self) -> u64 {
        if self.numbers.one_in(4) {
            self.numbers.skewed(self.habit.keys)
        } else {
            self.numbers.below(self.habit.keys)
        }
    }

    fn value(&mut self) -> Value {
        self.stamp += 1;
        let is_wide = self.numbers.one_in(self.habit.wide_one_in);
        let bound = if is_wide { self.habit.wide_bytes } else { self.habit.value_bytes };
        Value { len: self.numbers.below(bound), stamp: self.stamp }
    }

    fn is_synced(&mut self) -> bool {
        self.habit.has_journal && self.numbers.one_in(self.habit.sync_one_in)
    }

    fn put(&mut self) -> Op {
        Op::Put { table: self.table(), key: self.key(), value: self.value(), sync: self.is_synced() }
    }

    fn delete(&mut self) -> Op {
        let (table, key) = (self.table(), self.key());
        // A random stream of its own: operations that were added later do not change the numbers that follow.
        let mut later = self.numbers.fork();
        if !later.one_in(4) {
            return Op::Delete { table, key };
        }
        Op::DeleteRange { table, from: key, to: later.below(self.habit.keys) }
    }

    fn batch(&mut self, count: u64) -> Op {
        let count = 1 + self.numbers.skewed(count);
        let edits = (0..count).map(|_| {
            let value = if self.numbers.one_in(4) { None } else { Some(self.value()) };
            Edit { table: self.table(), key: self.key(), value }
        });
        let edits = edits.collect();
        Op::Batch { edits, sync: self.is_synced() }
    }

    fn at(&mut self) -> Option<u64> {
        if self.numbers.one_in(4) { Some(self.numbers.below(4)) } else { None }
    }

    fn read(&mut self) -> Op {
        let (table, at) = (self.table(), self.at());
        match self.numbers.below(17) {
            16 => Op::Plain(Box::new(self.point_read(table, at))),
            0..8 => Op::Get { table, key: self.key(), at },
            8..11 => self.point_read(table, at),
            11 => Op::Prefix { table, key: self.key(), len: self.numbers.below(12), at },
            _ => {
                let way = match self.numbers.below(5) {
                    0 | 1 => Way::Forward,
                    2 => Way::Backward,
                    3 => Way::Both(self.numbers.next_u64()),
                    _ => Way::Cursor(self.numbers.next_u64()),
                };
                Op::Scan { table, span: self.span(), way, limit: 1 + self.numbers.skewed(60), at }
            }
        }
    }

    fn point_read(&mut self, table: String, at: Option<u64>) -> Op {
        match self.numbers.below(3) {
            0 => Op::Get { table, key: self.key(), at },
            1 => Op::Contains { table, key: self.key(), at },
            _ => {
                let keys = (0..self.numbers.below(12)).map(|_| self.key()).collect();
                Op::MultiGet { table, keys, at }
            }
        }
    }

    /// A repair reads and writes everything: not often.
    fn repair(&mut self) -> Op {
        if self.numbers.one_in(4) { Op::Repair } else { Op::Check }
    }

    fn span(&mut self) -> Span {
        let mut bound = || match self.numbers.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(()),
            _ => Bound::Excluded(()),
        };
        let (lower, upper) = (bound(), bound());
        Span { lower: lower.map(|()| self.key()), upper: upper.map(|()| self.key()) }
    }

    fn snapshot(&mut self) -> Op {
        let name = self.numbers.below(4);
        if self.numbers.one_in(3) { Op::Release { name } } else { Op::Snapshot { name } }
    }
}
