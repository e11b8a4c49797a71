//! The ceiling of space of separated values while writers go on: an engine in a world of steps, so that how
//! far its background is behind follows from the seed alone.

use std::path::Path;
use std::sync::Arc;

use terrane_base::options::Options;
use terrane_base::{Rng, TableId};
use terrane_device::MemDisk;
use terrane_engine::{Engine, TableStats};
use terrane_sim::SteppedWorld;

use crate::TURN;

const KEYS: u64 = 6000;
const VALUE_BYTES: usize = 4000;
/// Every key is overwritten so many times, in the mean.
const ROUNDS: u64 = 10;
/// Most bytes of records that a flush takes: a generation.
const GENERATION_BYTES: u64 = 1 << 20;
/// The stored bytes of one version of each key, with room for what lies around a value.
const DATA_BYTES: u64 = KEYS * VALUE_BYTES as u64 * 101 / 100;
/// Bytes that flushes make dead beyond those that they and the jobs beside them give back.
const SLACK_BYTES: u64 = 3 * GENERATION_BYTES;
/// A quarter of the quarter that the ceiling allows, and the runs that come until a job has merged them.
const HIDDEN_BYTES_MAX: u64 = DATA_BYTES / 16 + 3 * GENERATION_BYTES;

fn options() -> Options {
    let mut options = Options { memory_bytes: 32 << 20, ..Options::default() };
    for (name, value) in [
        ("segment_bytes", "1MiB"),
        ("memtable_bytes", "512KiB"),
        ("global_index_bytes", "1MiB"),
        ("compression", "none"),
        ("compression_last", "none"),
        ("value_separation_bytes", "512"),
        ("background_threads", "1"),
    ] {
        options.set(name, value).unwrap();
    }
    options
}

/// The maxima of a run.
#[derive(Debug, Default)]
struct Highest {
    /// Bytes of value tables above the ceiling of what entries of runs and levels point to.
    above: u64,
    /// Bytes of values that entries point to, beyond those of the newest versions.
    hidden: u64,
    permille: u64,
    runs: u64,
}

/// How a run goes.
#[derive(Debug)]
struct Course {
    seed: u64,
    /// Keys that nine of ten puts go to.
    hot: u64,
    /// After every 16 puts the background gets fewer steps than this.
    steps: u64,
    /// Puts after which memory is written as an overflow run; 0 for none but those of the engine.
    run: u64,
}

impl Course {
    /// Overwrites the data; the ceiling holds at each look.
    fn overwrite(&self) -> Highest {
        let _turn = TURN.lock();
        let world = SteppedWorld::new(self.seed);
        world.begin_operation();
        let disk = Arc::new(MemDisk::new());
        let engine = Engine::open_on(disk, Path::new("/db"), &options(), world.env()).unwrap();
        let table = engine.catalog().require("default").unwrap();
        let (mut rng, mut highest) = (Rng::new(self.seed), Highest::default());
        for put in 0..KEYS * (ROUNDS + 1) {
            let number = match put < KEYS {
                true => put * 7919 % KEYS,
                false if rng.below(10) < 9 => rng.below(self.hot),
                false => rng.below(KEYS),
            };
            world.begin_operation();
            let key = format!("key-{number:06}");
            engine.put(TableId::DEFAULT, key.as_bytes(), &[put as u8; VALUE_BYTES], false).unwrap();
            if self.run > 0 && put % self.run == 0 {
                engine.flush_to_run(&table).unwrap();
            }
            if put % 16 == 0 {
                world.step(rng.below(self.steps) as usize);
                highest.look(&table.stats(), put);
            }
        }
        world.begin_operation();
        engine.close().unwrap();
        highest
    }
}

impl Highest {
    fn look(&mut self, stats: &TableStats, put: u64) {
        let allowed = stats.table_value_live_bytes * stats.table_value_space_max_permille / 1000;
        self.above = self.above.max(stats.table_value_bytes.saturating_sub(allowed));
        self.hidden = self.hidden.max(stats.table_value_live_bytes.saturating_sub(DATA_BYTES));
        self.runs = self.runs.max(stats.table_overflow_runs);
        if stats.table_value_bytes > 8 << 20 {
            self.permille = self.permille.max(stats.table_value_space_permille);
        }
        assert!(self.above <= SLACK_BYTES, "put {put}: {self:?}");
        assert!(self.hidden <= HIDDEN_BYTES_MAX, "put {put}: {self:?}");
    }
}

/// Writers with a background that is slow, one that keeps up, and hot keys; and memory that comes as runs.
const COURSES: [Course; 4] = [
    Course { seed: 1, hot: KEYS, steps: 1, run: 0 },
    Course { seed: 2, hot: KEYS, steps: 8, run: 0 },
    Course { seed: 3, hot: 100, steps: 8, run: 0 },
    Course { seed: 4, hot: KEYS, steps: 8, run: 256 },
];

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// All courses; with `TERRANE_SIM_COURSES` so many, from the one that `TERRANE_SIM_START` chooses.
#[test]
fn the_ceiling_holds_while_writers_go_on() {
    let (count, start) = (number("TERRANE_SIM_COURSES", COURSES.len()), number("TERRANE_SIM_START", 0));
    for course in COURSES.iter().cycle().skip(start % COURSES.len()).take(count) {
        let highest = course.overwrite();
        assert!(highest.permille > 1100, "{course:?} came nowhere near the ceiling: {highest:?}");
        assert!(course.run == 0 || highest.runs > 0, "{course:?}: {highest:?}");
    }
}
