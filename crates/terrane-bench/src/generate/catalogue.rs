//! Every workload by name: what it does, not how long or on what.
//!
//! YCSB's core workloads follow its files `workloada` to `workloadf`, the others db_bench of RocksDB, with
//! these differences:
//! * The fills write each key exactly once, so that all keys exist afterwards; `fillrandom` and `fillsync` in
//!   a random order (db_bench draws with replacement, which leaves out 37 of 100 keys). Threads share one
//!   fill. How many keys `fillsync` writes, says the run (db_bench: a thousandth).
//! * `mixgraph`: see [`super::ranges::KeyRanges`]; values too long are cut, scans too long wrapped as in
//!   db_bench.

use super::operation::OperationKind;
use super::sizes::Sizes;
use crate::engine::Direction;
use crate::error::{Error, Result};
use crate::plan::{Data, Distribution, ValueSize};

use super::distribution::ZIPFIAN_CONSTANT;

/// Keys of a range delete, about.
pub const RANGE_KEYS: u64 = 100;

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its name in plans.
    pub name: &'static str,
    /// One line for `--list` and reports.
    pub about: &'static str,
    /// The work of its threads.
    pub kind: Kind,
    /// The work of one more thread meanwhile; not counted in the operations of the run.
    pub background: Option<Background>,
    /// True if it works on keys that were loaded before; otherwise it begins with none.
    pub needs_data: bool,
    /// True if it changes the data.
    pub writes: bool,
    /// True if it removes keys: later reads of them find nothing.
    pub deletes: bool,
    /// True if each write is synced, where the workload itself says so; else the run says.
    pub sync: Option<bool>,
    /// The meaning of [`Distribution::Default`]. `None`: the order of keys is the workload itself, or has a
    /// model of its own.
    pub distribution: Option<Distribution>,
    /// The usual `scan_rows` of a run; 0 where it has no scans of limited length.
    pub scan_rows: u64,
}

/// The work of the threads of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Operations of a [`super::stream::Stream`].
    Stream(Mix),
    /// Each thread scans the whole of every table, again and again; a row is an operation.
    WholeScan(Direction),
    /// The operations of a recorded trace.
    Replay,
}

/// The work of a background thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Background {
    /// Operations of a [`super::stream::Stream::background`].
    Write(Mix),
    /// Whole scans, again and again.
    Scan(Direction),
}

/// A mix of operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Share of each kind; they sum to 1. Most frequent first.
    pub shares: &'static [(OperationKind, f64)],
    /// How keys are chosen.
    pub keys: KeyChoice,
    /// How long scans are.
    pub rows: Rows,
    /// How long values are.
    pub values: ValueChoice,
}

/// How a mix chooses keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyChoice {
    /// Each of the data's keys once, in the order of their numbers over all threads; then the stream ends.
    Ascending,
    /// Each of the data's keys once, in a random order over all threads; then the stream ends.
    Shuffled,
    /// Existing keys, by the distribution of the run; inserts take the next new number.
    Existing,
    /// Existing keys, by the model of mixgraph, unless the run names a distribution.
    KeyRanges,
}

/// How long scans are, in rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rows {
    /// `scan_rows` of the run.
    Fixed,
    /// Uniform from 1 to `scan_rows`.
    Uniform,
    /// Generalized Pareto, modulo `scan_rows`: shape, scale.
    Pareto(f64, f64),
}

/// How long values are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueChoice {
    /// As the data says.
    Data,
    /// As the data says if that is a Pareto distribution, else this.
    Pareto(ValueSize),
}

impl Mix {
    /// The lengths of its values on this data.
    ///
    /// # Errors
    /// `Plan`: parameters of sizes that make no sense.
    pub fn sizes(&self, data: &Data) -> Result<Sizes> {
        Sizes::new(match (self.values, data.value) {
            (ValueChoice::Pareto(size), ValueSize::Fixed(_) | ValueSize::Uniform(..)) => size,
            (_, size) => size,
        })
    }

    /// The share of a kind.
    #[must_use]
    pub fn share(&self, kind: OperationKind) -> f64 {
        self.shares.iter().filter(|(other, _)| *other == kind).map(|(_, share)| share).sum()
    }
}

impl Definition {
    /// The longest value that it writes on this data, in bytes.
    ///
    /// # Errors
    /// As [`Mix::sizes`].
    pub fn value_bytes_max(&self, data: &Data) -> Result<usize> {
        let mut longest = Sizes::new(data.value)?.longest();
        if let Kind::Stream(mix) = &self.kind {
            longest = longest.max(mix.sizes(data)?.longest());
        }
        if let Some(Background::Write(mix)) = &self.background {
            longest = longest.max(mix.sizes(data)?.longest());
        }
        Ok(longest)
    }

    /// Returns true if it fills an empty database.
    #[must_use]
    pub fn is_load(&self) -> bool {
        let fills = |mix: &Mix| matches!(mix.keys, KeyChoice::Ascending | KeyChoice::Shuffled);
        matches!(&self.kind, Kind::Stream(mix) if fills(mix))
    }

    /// Returns true if a run may name a distribution of keys for it.
    #[must_use]
    pub fn takes_distribution(&self) -> bool {
        let takes = |mix: &Mix| matches!(mix.keys, KeyChoice::Existing | KeyChoice::KeyRanges);
        matches!(&self.kind, Kind::Stream(mix) if takes(mix))
    }
}

/// Every workload, in the order of this list.
#[must_use]
pub fn all() -> &'static [Definition] {
    &DEFINITIONS
}

/// The workload of this name.
///
/// # Errors
/// `Plan` if no workload has the name; the message names the nearest and all.
pub fn find(name: &str) -> Result<&'static Definition> {
    if let Some(definition) = all().iter().find(|definition| definition.name == name) {
        return Ok(definition);
    }
    let wanted = name.to_lowercase();
    let nearest = all()
        .iter()
        .map(|definition| (strsim::jaro_winkler(&wanted, definition.name), definition.name))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|left, right| left.0.total_cmp(&right.0));
    let hint = nearest.map_or(String::new(), |(_, name)| format!(" (did you mean {name}?)"));
    let names: Vec<&str> = all().iter().map(|definition| definition.name).collect();
    Err(Error::plan(format!("unknown workload {name:?}{hint}: known are {}", names.join(", "))))
}

use OperationKind::{
    Delete, DeleteRange, Insert, MultiRead, Read, ReadMissing, ReadModifyWrite, Scan, Transaction, Update,
};

const fn mix(shares: &'static [(OperationKind, f64)]) -> Mix {
    Mix { shares, keys: KeyChoice::Existing, rows: Rows::Fixed, values: ValueChoice::Data }
}

const fn fill(name: &'static str, about: &'static str, keys: KeyChoice) -> Definition {
    Definition {
        name,
        about,
        kind: Kind::Stream(Mix { keys, ..mix(&[(Insert, 1.0)]) }),
        background: None,
        needs_data: false,
        writes: true,
        deletes: false,
        sync: None,
        distribution: None,
        scan_rows: 0,
    }
}

const fn random(name: &'static str, about: &'static str, writes: bool, mix: Mix) -> Definition {
    Definition {
        name,
        about,
        kind: Kind::Stream(mix),
        background: None,
        needs_data: true,
        writes,
        deletes: false,
        sync: None,
        distribution: Some(Distribution::Uniform),
        scan_rows: 0,
    }
}

const fn ycsb(name: &'static str, about: &'static str, writes: bool, mix: Mix) -> Definition {
    Definition {
        distribution: Some(Distribution::Zipfian(ZIPFIAN_CONSTANT)),
        ..random(name, about, writes, mix)
    }
}

const fn whole(name: &'static str, about: &'static str, kind: Kind) -> Definition {
    Definition { kind, distribution: None, ..random(name, about, false, mix(&[])) }
}

const MIXGRAPH: Mix = Mix {
    shares: &[(Read, 0.83), (Update, 0.14), (Scan, 0.03)],
    keys: KeyChoice::KeyRanges,
    rows: Rows::Pareto(2.517, 14.236),
    values: ValueChoice::Pareto(ValueSize::Pareto { shape: 0.2615, scale: 25.45, max: 1024 }),
};

static DEFINITIONS: [Definition; 26] = [
    fill("load", "inserts every key once, in order of numbers (YCSB's load phase)", KeyChoice::Ascending),
    ycsb("ycsb_a", "50 % reads, 50 % updates", true, mix(&[(Read, 0.5), (Update, 0.5)])),
    ycsb("ycsb_b", "95 % reads, 5 % updates", true, mix(&[(Read, 0.95), (Update, 0.05)])),
    ycsb("ycsb_c", "reads only", false, mix(&[(Read, 1.0)])),
    Definition {
        distribution: Some(Distribution::Latest),
        ..ycsb("ycsb_d", "95 % reads of the latest, 5 % inserts", true, mix(&[(Read, 0.95), (Insert, 0.05)]))
    },
    Definition {
        scan_rows: 100,
        ..ycsb(
            "ycsb_e",
            "95 % scans of 1 to 100 rows, 5 % inserts",
            true,
            Mix { rows: Rows::Uniform, ..mix(&[(Scan, 0.95), (Insert, 0.05)]) },
        )
    },
    ycsb("ycsb_f", "50 % reads, 50 % read-modify-writes", true, mix(&[(Read, 0.5), (ReadModifyWrite, 0.5)])),
    fill("fillseq", "inserts every key once, in order of numbers", KeyChoice::Ascending),
    fill("fillrandom", "inserts every key once, in random order", KeyChoice::Shuffled),
    Definition {
        sync: Some(true),
        ..fill("fillsync", "inserts in random order, each write synced", KeyChoice::Shuffled)
    },
    random("overwrite", "overwrites random keys", true, mix(&[(Update, 1.0)])),
    random("readrandom", "reads random keys", false, mix(&[(Read, 1.0)])),
    random("readmissing", "reads absent keys inside the range of keys", false, mix(&[(ReadMissing, 1.0)])),
    whole("readseq", "scans everything forward", Kind::WholeScan(Direction::Forward)),
    whole("readreverse", "scans everything backward", Kind::WholeScan(Direction::Backward)),
    Definition {
        scan_rows: 8,
        ..random("seekrandom", "seeks random keys, then some nexts", false, mix(&[(Scan, 1.0)]))
    },
    random("multireadrandom", "reads many random keys at once", false, mix(&[(MultiRead, 1.0)])),
    Definition {
        background: Some(Background::Write(mix(&[(Update, 1.0)]))),
        writes: true,
        ..random(
            "readwhilewriting",
            "reads random keys while one thread overwrites",
            true,
            mix(&[(Read, 1.0)]),
        )
    },
    Definition {
        background: Some(Background::Scan(Direction::Forward)),
        ..random("readwhilescanning", "reads random keys while one thread scans", false, mix(&[(Read, 1.0)]))
    },
    random("updaterandom", "reads random keys and writes them back", true, mix(&[(ReadModifyWrite, 1.0)])),
    Definition {
        deletes: true,
        ..random("deleterandom", "removes random keys", true, mix(&[(Delete, 1.0)]))
    },
    Definition {
        deletes: true,
        ..random(
            "deleterangerandom",
            "removes 100 keys from random ones on, by range deletes",
            true,
            mix(&[(DeleteRange, 1.0)]),
        )
    },
    Definition {
        deletes: true,
        scan_rows: 8,
        ..random(
            "mixdeleterange",
            "50 % gets, 29.8 % puts, 20 % seeks with nexts, 0.2 % range deletes of 100 keys",
            true,
            mix(&[(Read, 0.5), (Update, 0.298), (Scan, 0.2), (DeleteRange, 0.002)]),
        )
    },
    Definition {
        distribution: None,
        scan_rows: 10_000,
        ..random(
            "mixgraph",
            "83 % gets, 14 % puts, 3 % scans in hot key ranges (Cao et al. 2020)",
            true,
            MIXGRAPH,
        )
    },
    random(
        "transactions",
        "reads some random keys for update and writes them, in one transaction, run again until it commits",
        true,
        mix(&[(Transaction, 1.0)]),
    ),
    Definition { writes: true, ..whole("replay", "the operations of a recorded trace", Kind::Replay) },
];
