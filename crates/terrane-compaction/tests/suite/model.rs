//! Random flushes, dumps, snapshots and jobs of every kind against a map of all versions: whatever is merged,
//! every live reader sees the same, levels stay disjoint, and the store holds exactly what the levels name.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use crate::support;

use std::ops::Range;

use support::{Row, World};
use terrane_base::options::Compression;
use terrane_base::{Rng, SeqNo};
use terrane_compaction::{Claims, JobKind, KeyRange, RangeRequest, RangeStep, pick_range};

/// A table and what drives it.
struct Run {
    world: World,
    numbers: Rng,
    seq: u64,
    /// Keys are `k` and a number below this.
    keys: u64,
    value_bytes: u64,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut numbers = Rng::new(seed);
        let mut world = World::new();
        world.limits.level_base_bytes = 4 << 20;
        world.limits.level_fanout = 2 + numbers.below(3);
        world.limits.job_bytes_max = 2 << 20 << numbers.below(4);
        world.limits.overflow_runs_trigger = 1 + numbers.below(3);
        world.limits.grandparent_bytes_max = 4 << 20 << numbers.below(4);
        world.limits.merge_through = numbers.below(2) == 0;
        world.limits.part_bytes = 256 << 10 << numbers.below(5);
        world.puts_off = numbers.below(2) == 0;
        world.limits.block_bytes = 4096 << numbers.below(4);
        if numbers.below(2) == 0 {
            world.limits.compression_last = Compression::Lz4;
        }
        let keys = 200 << numbers.below(5);
        world.limits.space_percent_max = [0, 110, 150][(seed % 3) as usize];
        // Of the values, which are 10,000 bytes on average, none, most or all but the shortest are separated.
        world.limits.separate_from = [u64::MAX, 5_000, 64][(seed / 3 % 3) as usize];
        world.limits.value_groups_max = 1 << (seed % 5);
        world.limits.lazy_values = seed.is_multiple_of(2);
        world.limits.scan_optimised_values = seed.is_multiple_of(5);
        world.limits.value_garbage_permille = [100, 300, 1000][(seed % 3) as usize];
        // A device with room for all extents, or for short ones only, of jobs in parts.
        world.room_bytes = [u64::MAX, 8 << 20, 0][(seed / 2 % 3) as usize];
        Run { world, numbers, seq: 0, keys, value_bytes: 20_000 }
    }

    /// Some rows of a range of the keys, some of them several versions of a key.
    fn rows(&mut self) -> Vec<Row> {
        let span = 1 + self.numbers.below(self.keys);
        let start = self.numbers.below(self.keys);
        let deletes = self.numbers.below(4);
        let count = 20 + self.numbers.below(200);
        let row = |run: &mut Run| {
            run.seq += 1;
            let key = format!("key-{:06}", start + run.numbers.below(span));
            if run.numbers.below(4) < deletes {
                return Row::delete(key, run.seq);
            }
            let len = run.numbers.below(run.value_bytes) as usize;
            Row::put(key, run.seq, vec![run.seq as u8; len])
        };
        (0..count).map(|_| row(self)).collect()
    }

    fn step(&mut self) {
        match self.numbers.below(10) {
            0..=3 => {
                let rows = self.rows();
                self.world.flush(&rows);
            }
            4 => {
                let rows = self.rows();
                self.world.remember(&rows);
                self.world.dump(&rows);
            }
            5 => self.world.snapshots.push(SeqNo(self.seq)),
            6 if !self.world.snapshots.is_empty() => {
                let index = self.numbers.below(self.world.snapshots.len() as u64);
                self.world.snapshots.remove(index as usize);
            }
            7 => self.compact_range(),
            8 => {
                let first = self.numbers.below(self.keys);
                let last = first + self.numbers.below(self.keys);
                let key = |number: u64| format!("key-{number:06}").into_bytes();
                self.world.scanned = vec![KeyRange::closed(&key(first), &key(last))];
                if let Some(spec) = self.world.pick() {
                    self.world.run(&spec);
                }
            }
            _ => {
                if let Some(spec) = self.world.pick() {
                    self.world.run(&spec);
                }
            }
        }
        self.world.snapshots.dedup();
    }

    /// As `step`, but jobs are claimed at one time and run at another, in any order.
    fn step_with_pending_jobs(&mut self) {
        match self.numbers.below(10) {
            0..=2 => {
                let rows = self.rows();
                self.world.flush(&rows);
            }
            3 => {
                let rows = self.rows();
                self.world.remember(&rows);
                self.world.dump(&rows);
            }
            4 => self.world.snapshots.push(SeqNo(self.seq)),
            5 if !self.world.snapshots.is_empty() => {
                self.world.snapshots.remove(0);
            }
            6..=7 => self.world.start_job(),
            _ if !self.world.pending.is_empty() => {
                let index = self.numbers.below(self.world.pending.len() as u64);
                self.world.finish_job(index as usize);
            }
            _ => {}
        }
        self.world.snapshots.dedup();
    }

    fn compact_range(&mut self) {
        let (a, b) = (self.numbers.below(2 * self.keys), self.numbers.below(2 * self.keys));
        let key = |number: u64| format!("key-{number:06}").into_bytes();
        let range = KeyRange::closed(&key(a.min(b)), &key(a.max(b)));
        let mut request = RangeRequest::new(range, 0..=3, self.numbers.below(2) == 0);
        loop {
            let claims = Claims::new();
            match pick_range(&self.world.shape(), &self.world.limits, &claims, &request) {
                RangeStep::Done => return,
                RangeStep::Busy => panic!("nothing is claimed"),
                RangeStep::Job(spec) => {
                    assert_eq!(spec.kind, JobKind::Manual);
                    self.world.run(&spec);
                    request.advance(&spec);
                }
            }
        }
    }
}

fn run(seed: u64, steps: usize) {
    let mut run = Run::new(seed);
    for _ in 0..steps {
        run.step();
        run.world.check_content();
    }
    run.world.puts_off = false;
    run.world.compact_until_done();
    run.world.check_content();
    assert!(run.world.metasnapshot.runs.is_empty(), "nothing overflows in the end");
    // Without snapshots a rewrite of everything leaves one version of each key and no delete.
    run.world.snapshots.clear();
    let mut request = RangeRequest::new(KeyRange::all(), 0..=u8::MAX, true);
    while let RangeStep::Job(spec) =
        pick_range(&run.world.shape(), &run.world.limits, &Claims::new(), &request)
    {
        run.world.run(&spec);
        request.advance(&spec);
    }
    run.world.check_content();
    let entries: u64 = run.world.extents().iter().map(|(_, extent)| extent.meta.entries).sum();
    assert_eq!(entries, run.world.expected(SeqNo::MAX).len() as u64, "garbage stays");
}

/// Returns the most jobs that were pending at once.
fn run_with_pending_jobs(seed: u64) -> usize {
    let mut run = Run::new(seed);
    // Small jobs over many keys, so that several fit side by side.
    run.world.limits.job_bytes_max = 2 << 20;
    run.keys = 3200;
    let mut pending_max = 0;
    for step in 0..60 {
        run.step_with_pending_jobs();
        pending_max = pending_max.max(run.world.pending.len());
        if step % 4 == 0 {
            run.world.check_content();
        }
    }
    while !run.world.pending.is_empty() {
        run.world.finish_job(0);
    }
    run.world.puts_off = false;
    run.world.compact_until_done();
    run.world.check_content();
    pending_max
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn parts_of_jobs_keep_every_reader() {
    const SEEDS: u64 = 12;
    let count = number("TERRANE_PARTS_SEEDS", SEEDS).min(SEEDS);
    let start = number("TERRANE_PARTS_START", 0);
    let mut parts = 0;
    for seed in (start..start + count).map(|seed| 200 + seed % SEEDS) {
        let mut run = Run::new(seed);
        run.world.limits.merge_through = true;
        run.world.limits.part_bytes = 256 << 10;
        run.world.room_bytes = u64::MAX;
        run.world.limits.job_bytes_max = 32 << 20;
        run.world.puts_off = true;
        run.keys = 1600;
        for _ in 0..60 {
            let rows = run.rows();
            run.world.remember(&rows);
            run.world.dump(&rows);
            if let Some(spec) = run.world.pick() {
                run.world.run(&spec);
            }
            run.world.check_content();
        }
        parts += run.world.parts;
    }
    // Some seeds have no part: a few of them say nothing of how many there are.
    assert!(count < SEEDS || parts > 20, "{parts} parts of jobs were published before their end");
}

#[test]
fn jobs_side_by_side_keep_every_reader() {
    let pending_max = (100..106).map(run_with_pending_jobs).max();
    assert!(pending_max >= Some(2), "no two jobs were pending at once");
}

/// The seeds of a test: all of them, or `TERRANE_JOBS_SEEDS` from the one that `TERRANE_PARTS_START` chooses.
fn chosen(seeds: Range<u64>) -> impl Iterator<Item = u64> {
    let all = seeds.end - seeds.start;
    let (count, start) = (number("TERRANE_JOBS_SEEDS", all).min(all), number("TERRANE_PARTS_START", 0));
    (0..count).map(move |index| seeds.start + (start % all + index) % all)
}

macro_rules! seeds {
    ($($name:ident: $seeds:expr;)*) => {
        $(
            #[test]
            fn $name() {
                for seed in chosen($seeds) {
                    println!("seed {seed}");
                    run(seed, 40);
                }
            }
        )*
    };
}

seeds! {
    random_jobs_keep_every_reader_0: 0..6;
    random_jobs_keep_every_reader_1: 6..12;
    random_jobs_keep_every_reader_2: 12..18;
    random_jobs_keep_every_reader_3: 18..24;
}
