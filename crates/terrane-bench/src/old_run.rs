//! Runs one workload with some threads and measures it.

use std::time::Duration;

use hdrhistogram::Histogram;
use terrane::{Batch, Db, Env, Error, Result, Sync, Table};

use crate::old_report::Report;
use crate::old_workload::{Numbers, Values, Workload, key_into};

/// What to run and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What to do.
    pub workload: Workload,
    /// Keys in the database: numbers from 0 up to this.
    pub keys: u64,
    /// Operations in all, over all threads.
    pub operations: u64,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// What compression leaves of a value, 0 to 1.
    pub entropy: f64,
    /// Records per batch.
    pub batch: u64,
    /// Threads.
    pub threads: u64,
    /// Nexts after a seek.
    pub nexts: u64,
    /// Whether each write waits until it is on disk.
    pub sync: bool,
    /// Seed of every random choice.
    pub seed: u64,
}

impl Plan {
    /// The usual sizes: 16-byte keys, 100-byte values of which half is left by compression.
    #[must_use]
    pub fn new(workload: Workload, keys: u64) -> Self {
        Plan {
            workload,
            keys,
            operations: keys,
            key_bytes: 16,
            value_bytes: 100,
            entropy: 0.5,
            batch: 1,
            threads: 1,
            nexts: 8,
            sync: false,
            seed: 1,
        }
    }

    fn check(&self) -> Result<()> {
        let refuse = |bad: bool, message: &str| if bad { Err(Error::invalid(message)) } else { Ok(()) };
        refuse(self.keys == 0 || self.operations == 0, "the bench needs at least one key and one operation")?;
        refuse(!(1..=1024).contains(&self.threads), "threads: accepted is 1 to 1024")?;
        refuse(!(1..=1_000_000).contains(&self.batch), "batch: accepted is 1 to 1,000,000 records")?;
        refuse(!(8..=1024).contains(&self.key_bytes), "key bytes: accepted is 8 to 1024")?;
        refuse(!(0.0..=1.0).contains(&self.entropy), "entropy: accepted is 0 to 1")
    }
}

/// What one thread did.
struct Done {
    latencies: Histogram<u64>,
    operations: u64,
    found: u64,
    bytes: u64,
}

/// Runs `plan` on `db`; for a workload that writes, the figures include the time until the database is quiescent
/// again, next to those without.
///
/// # Errors
/// `Invalid` for a plan out of range; the database's errors.
pub fn run(db: &Db, plan: &Plan) -> Result<Report> {
    plan.check()?;
    let env = Env::real();
    let before = db.stats();
    let start = env.clock.now();
    let done = run_threads(db, plan, &env)?;
    let elapsed = env.clock.now() - start;
    let until_quiescent = if plan.workload.writes() {
        db.wait_until_quiescent()?;
        env.clock.now() - start
    } else {
        elapsed
    };
    Ok(summarize(plan, done, elapsed, until_quiescent, &before, &db.stats()))
}

fn run_threads(db: &Db, plan: &Plan, env: &Env) -> Result<Vec<Done>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads)
            .map(|thread| scope.spawn(move || Worker::new(db, plan, env.clone(), thread).run()))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a bench thread panicked")).collect()
    })
}

fn summarize(
    plan: &Plan,
    done: Vec<Done>,
    elapsed: Duration,
    until_quiescent: Duration,
    before: &terrane::Stats,
    after: &terrane::Stats,
) -> Report {
    let mut latencies = new_histogram();
    for part in &done {
        latencies.add(&part.latencies).expect("histograms of the same bounds");
    }
    let written = |stats: &terrane::Stats| stats.flush_bytes_written + stats.compaction_bytes_written;
    Report {
        workload: plan.workload,
        threads: plan.threads,
        operations: done.iter().map(|part| part.operations).sum(),
        found: done.iter().map(|part| part.found).sum(),
        bytes: done.iter().map(|part| part.bytes).sum(),
        elapsed,
        until_quiescent,
        latencies,
        store_bytes_written: written(after) - written(before),
        paused: Duration::from_micros(after.writes_paused_micros - before.writes_paused_micros),
    }
}

fn new_histogram() -> Histogram<u64> {
    // Nanoseconds up to ten minutes, to three digits.
    Histogram::new_with_bounds(1, 600_000_000_000, 3).expect("constant bounds are valid")
}

struct Worker<'d> {
    db: &'d Db,
    table: &'d Table,
    plan: &'d Plan,
    env: Env,
    thread: u64,
    numbers: Numbers,
    values: Values,
    key: Vec<u8>,
    done: Done,
}

impl<'d> Worker<'d> {
    fn new(db: &'d Db, plan: &'d Plan, env: Env, thread: u64) -> Self {
        let seed =
            plan.seed.wrapping_add(thread.wrapping_mul(0x1234_5678_9abc)).wrapping_add(plan.workload as u64);
        Worker {
            db,
            table: db.default_table(),
            plan,
            env,
            thread,
            numbers: Numbers::new(seed),
            values: Values::new(seed, plan.value_bytes, plan.entropy),
            key: vec![0; plan.key_bytes],
            done: Done { latencies: new_histogram(), operations: 0, found: 0, bytes: 0 },
        }
    }

    fn run(mut self) -> Result<Done> {
        let share = self.plan.operations / self.plan.threads;
        let extra = u64::from(self.thread < self.plan.operations % self.plan.threads);
        let count = share + extra;
        let first = self.thread * share + self.thread.min(self.plan.operations % self.plan.threads);
        if self.plan.workload.writes() {
            self.write(first, count)?;
        } else {
            self.read(count)?;
        }
        Ok(self.done)
    }

    fn write(&mut self, first: u64, count: u64) -> Result<()> {
        let mut batch = Batch::new();
        let mut at = 0;
        // One clock reading per batch: the end of one is the start of the next.
        let mut last = self.env.clock.now();
        while at < count {
            batch.clear();
            for _ in 0..self.plan.batch.min(count - at) {
                let number = match self.plan.workload {
                    Workload::FillSeq => first + at,
                    _ => self.numbers.below(self.plan.keys),
                };
                key_into(number, &mut self.key);
                batch.put(self.table, &self.key, self.values.next(self.plan.value_bytes))?;
                at += 1;
            }
            self.db.write(&batch, if self.plan.sync { Sync::Yes } else { Sync::No })?;
            self.done.operations += batch.len() as u64;
            self.done.bytes += (batch.len() * (self.plan.key_bytes + self.plan.value_bytes)) as u64;
            last = self.record(last);
        }
        Ok(())
    }

    fn read(&mut self, count: u64) -> Result<()> {
        let mut value = Vec::new();
        let mut last = self.env.clock.now();
        for _ in 0..count {
            let number = self.numbers.below(self.plan.keys);
            key_into(number, &mut self.key);
            if self.plan.workload == Workload::ReadRandom {
                value.clear();
                if self.table.get_into(&self.key, &mut value)? {
                    self.done.found += 1;
                    self.done.bytes += (self.key.len() + value.len()) as u64;
                }
            } else {
                self.seek()?;
            }
            self.done.operations += 1;
            last = self.record(last);
        }
        Ok(())
    }

    fn seek(&mut self) -> Result<()> {
        let mut cursor = self.table.cursor();
        cursor.seek(&self.key)?;
        self.done.found += u64::from(cursor.row().is_some());
        for _ in 0..self.plan.nexts {
            let Some((key, value)) = cursor.row() else { break };
            self.done.bytes += (key.len() + value.len()) as u64;
            cursor.next()?;
        }
        Ok(())
    }

    #[inline]
    fn record(&mut self, last: Duration) -> Duration {
        let now = self.env.clock.now();
        self.done.latencies.saturating_record((now - last).as_nanos() as u64);
        now
    }
}
