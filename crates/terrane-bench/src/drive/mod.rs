//! Does one run on an open engine: workers, background threads of the workload, the sampler of the timeline.
//!
//! 1. Every worker gets a session, a stream (or a trace) and a share of the operations.
//! 2. The calling thread samples their tallies every [`SAMPLE`], ends a run that is bound by time, and passes figures to
//!    the observer.
//! 3. When the workers are done, background threads are stopped.
//! 4. If the run asks for it, the engine works until quiescent; that time belongs to the sustained rate, and the timeline
//!    shows it with no operations.
//!
//! The harness takes no lock while operations run; workers share only read-only data, the key space and their own tally.

mod batch;
mod pace;
mod recorder;
mod source;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrane::Env;

use crate::engine::{Control, Engine, EngineCounters};
use crate::error::{Error, Result};
use crate::generate::catalogue::{self, Background, Definition, Kind};
use crate::generate::keys::Keys;
use crate::generate::operation::OperationKind;
use crate::generate::space::KeySpace;
use crate::generate::stream::Stream;
use crate::generate::values::Values;
use crate::plan::{Data, Run, Until};
use crate::report::model::{Latency, Timeline};
use crate::trace;

use pace::Pace;
use recorder::{Recorder, Tally};
use source::Recorded;
use worker::{Manner, Shared, Source, Worker};

/// Length of an interval of the timeline.
pub const SAMPLE: Duration = Duration::from_millis(100);

/// Hears of a run while it goes on.
pub trait Observer {
    /// Called about every [`SAMPLE`]: operations so far, the time so far, and the operations that a run bound by
    /// operations will have in the end. Returns false to interrupt the run.
    fn progress(&self, operations: u64, elapsed: Duration, total: Option<u64>) -> bool;
}

/// What a run measured; the child adds what concerns the process and the engine.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Operations done.
    pub operations: u64,
    /// Reads that found their key.
    pub found: u64,
    /// Key and value bytes written.
    pub bytes_written: u64,
    /// Key and value bytes read.
    pub bytes_read: u64,
    /// Time of the operations, in seconds.
    pub seconds: f64,
    /// Time until quiescent as well, in seconds.
    pub seconds_until_quiescent: f64,
    /// Latency over all operations.
    pub latency: Latency,
    /// Latency by kind, if there is more than one kind.
    pub latency_by_kind: BTreeMap<OperationKind, Latency>,
    /// Operations over time.
    pub timeline: Timeline,
    /// What sessions counted.
    pub counters: EngineCounters,
    /// Operations of background threads.
    pub background_operations: u64,
    /// Whether anything was deleted, so that the number of live keys is not known.
    pub deleted: bool,
}

/// What all runs on one database share.
#[derive(Debug)]
pub struct Driver {
    data: Data,
    seed: u64,
    keys: Arc<Keys>,
    space: Arc<KeySpace>,
    env: Env,
}

/// What the threads of one run share.
struct Round<'r> {
    driver: &'r Driver,
    engine: &'r dyn Engine,
    run: &'r Run,
    definition: &'static Definition,
    start: Duration,
    stop: &'r AtomicBool,
    background_stop: &'r AtomicBool,
}

/// What one thread brought back.
struct Back {
    recorder: Recorder,
    counters: EngineCounters,
}

impl Driver {
    /// A driver for a new database that holds nothing yet.
    #[must_use]
    pub fn new(data: &Data, seed: u64) -> Self {
        Driver {
            data: data.clone(),
            seed,
            keys: Arc::new(Keys::new(data)),
            space: Arc::new(KeySpace::new(0)),
            env: Env::real(),
        }
    }

    /// Does `run` on `engine`.
    ///
    /// # Errors
    /// The engine's; `Interrupted` if the observer says so; `Engine` if a value read under `verify` was wrong.
    pub fn run(&mut self, engine: &dyn Engine, run: &Run, observer: &dyn Observer) -> Result<Measured> {
        let definition = catalogue::find(&run.workload)?;
        let before = self.space.claimed();
        if definition.is_load() {
            self.space = Arc::new(KeySpace::new(0));
        } else if definition.needs_data && self.space.count() == 0 {
            return Err(Error::plan(format!("{}: the database is empty: load it first", run.workload)));
        }
        let (stop, background_stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let round = Round {
            driver: self,
            engine,
            run,
            definition,
            start: self.env.clock.now(),
            stop: &stop,
            background_stop: &background_stop,
        };
        let mut measured = round.go(observer)?;
        if run.until_quiescent && definition.writes {
            engine.control(Control::WaitUntilQuiescent).or_else(ignore_unsupported)?;
            measured.seconds_until_quiescent = (self.env.clock.now() - round.start).as_secs_f64();
            pad(&mut measured.timeline, measured.seconds_until_quiescent);
        }
        if definition.is_load() && self.space.claimed() < before {
            // A fill that was cut short, over keys that exist: they still do.
            self.space = Arc::new(KeySpace::new(before));
        }
        Ok(measured)
    }

    /// Keys that were written; all are live unless something was deleted.
    #[must_use]
    pub fn keys_written(&self) -> u64 {
        self.space.claimed()
    }
}

fn ignore_unsupported(error: Error) -> Result<()> {
    if matches!(error, Error::Unsupported { .. }) { Ok(()) } else { Err(error) }
}

/// Lengthens a timeline by intervals in which nothing was done.
fn pad(timeline: &mut Timeline, seconds: f64) {
    let wanted = (seconds / timeline.interval) as usize;
    if wanted > timeline.operations.len() {
        timeline.operations.resize(wanted, 0);
    }
}

impl Round<'_> {
    fn go(&self, observer: &dyn Observer) -> Result<Measured> {
        let threads = self.run.threads;
        let tallies: Vec<Tally> = (0..threads).map(|_| Tally::default()).collect();
        let background_tally = Tally::default();
        let trace = self.trace()?;
        let (backs, background, timeline, elapsed) = std::thread::scope(|scope| {
            let background = self.definition.background.is_some().then(|| {
                let tally = &background_tally;
                let trace = trace.as_ref();
                scope.spawn(move || self.background(tally, trace))
            });
            let trace = trace.as_ref();
            let workers: Vec<_> = tallies
                .iter()
                .enumerate()
                .map(|(thread, tally)| scope.spawn(move || self.work(thread as u32, tally, trace)))
                .collect();
            let done = || workers.iter().all(std::thread::ScopedJoinHandle::is_finished);
            let (timeline, interrupted) = self.sample(&tallies, &done, observer);
            let backs: Vec<Result<Back>> =
                workers.into_iter().map(|worker| worker.join().expect("a bench thread panicked")).collect();
            let elapsed = self.driver.env.clock.now() - self.start;
            self.background_stop.store(true, Ordering::Relaxed);
            let background = background.map(|thread| thread.join().expect("a bench thread panicked"));
            let backs = if interrupted { vec![Err(Error::Interrupted)] } else { backs };
            (backs, background, timeline, elapsed)
        });
        if let Some(trace) = trace {
            trace.finish()?;
        }
        let backs = backs.into_iter().collect::<Result<Vec<_>>>()?;
        let background = background.transpose()?;
        self.measured(&backs, background, timeline, elapsed)
    }

    /// The trace that the run is recorded to, if it asks for one.
    fn trace(&self) -> Result<Option<trace::Writer>> {
        let Some(path) = &self.run.record else { return Ok(None) };
        let data = self.driver.data.clone();
        let value_bytes_max = self.definition.value_bytes_max(&data)?;
        trace::Writer::create(path, &trace::Header { data, value_bytes_max }).map(Some)
    }

    fn measured(
        &self,
        backs: &[Back],
        background: Option<Back>,
        timeline: Timeline,
        elapsed: Duration,
    ) -> Result<Measured> {
        let mut all = Recorder::new();
        let mut counters = EngineCounters::default();
        for back in backs {
            all.merge(&back.recorder);
            counters.add(&back.counters);
        }
        let background_operations = background.as_ref().map_or(0, |back| back.recorder.operations);
        if let Some(back) = background {
            // Its writes are the user's as well: amplification is against all that was written.
            all.bytes_written += back.recorder.bytes_written;
            all.deleted |= back.recorder.deleted;
        }
        if all.wrong > 0 {
            let why = format!("{} of {} values read were not what was written", all.wrong, all.found);
            return Err(Error::engine(&self.run.workload, "verify", why));
        }
        let kinds: BTreeMap<_, _> =
            OperationKind::ALL.iter().filter_map(|&kind| Some((kind, all.latency_of(kind)?))).collect();
        Ok(Measured {
            operations: all.operations,
            found: all.found,
            bytes_written: all.bytes_written,
            bytes_read: all.bytes_read,
            seconds: elapsed.as_secs_f64(),
            seconds_until_quiescent: elapsed.as_secs_f64(),
            latency: all.latency(),
            latency_by_kind: if kinds.len() > 1 { kinds } else { BTreeMap::new() },
            timeline,
            counters,
            background_operations,
            // A trace may insert any number: how many keys are live is not known after it.
            deleted: all.deleted || matches!(self.definition.kind, Kind::Replay),
        })
    }

    /// Samples until the workers are done, and ends a run that is bound by time.
    fn sample(
        &self,
        tallies: &[Tally],
        done: &dyn Fn() -> bool,
        observer: &dyn Observer,
    ) -> (Timeline, bool) {
        let clock = &self.driver.env.clock;
        let (limit, total) = match self.run.until {
            Until::Operations(operations) => (None, Some(operations)),
            Until::Seconds(seconds) => (Some(Duration::from_secs_f64(seconds)), None),
        };
        let mut timeline = Timeline { interval: SAMPLE.as_secs_f64(), operations: Vec::new() };
        let (mut seen, mut interrupted) = (0, false);
        let mut tick = self.start;
        while !done() {
            tick += SAMPLE;
            let wake = limit.map_or(tick, |limit| tick.min(self.start + limit));
            self.sleep_until(wake, done);
            let now: u64 = tallies.iter().map(Tally::get).sum();
            let elapsed = clock.now() - self.start;
            if clock.now() >= tick {
                timeline.operations.push(now - seen);
                seen = now;
            }
            if limit.is_some_and(|limit| elapsed >= limit) {
                self.stop.store(true, Ordering::Relaxed);
            }
            if !observer.progress(now, elapsed, total) {
                interrupted = true;
                self.stop.store(true, Ordering::Relaxed);
            }
        }
        let now: u64 = tallies.iter().map(Tally::get).sum();
        if now > seen {
            timeline.operations.push(now - seen);
        }
        (timeline, interrupted)
    }

    /// Sleeps in short pieces, so that a short run ends when its workers do.
    fn sleep_until(&self, wake: Duration, done: &dyn Fn() -> bool) {
        loop {
            let now = self.driver.env.clock.now();
            if now >= wake || done() {
                return;
            }
            self.driver.env.clock.sleep((wake - now).min(Duration::from_millis(10)));
        }
    }

    fn worker<'w>(&'w self, tally: &'w Tally, stop: &'w AtomicBool, manner: Manner) -> Result<Worker<'w>> {
        let driver = self.driver;
        let shared = Shared { env: &driver.env, stop, tally, space: &driver.space };
        let longest = self.definition.value_bytes_max(&driver.data)?;
        // One seed for all threads and runs: any of them can check what another wrote.
        let values = Values::new(driver.seed, longest.max(1), driver.data.entropy);
        Ok(Worker::new(shared, self.engine.session()?, manner, driver.keys.clone(), values))
    }

    /// One measured thread.
    fn work(&self, thread: u32, tally: &Tally, trace: Option<&trace::Writer>) -> Result<Back> {
        let driver = self.driver;
        let seed = mix(driver.seed, u64::from(thread));
        let manner = Manner {
            sync: self.run.sync,
            batch: self.run.batch as usize,
            verify: self.run.verify,
            operations: self.share(thread),
        };
        let mut worker = self.worker(tally, self.stop, manner)?;
        let done = match self.definition.kind {
            Kind::WholeScan(direction) => worker.run_whole_scan(driver.data.tables, direction),
            _ => self.streamed(&mut worker, thread, seed, trace),
        };
        if done.is_err() {
            // The others need not go on: the step has failed.
            self.stop.store(true, Ordering::Relaxed);
        }
        done.map(|()| Back { counters: worker.counters(), recorder: worker.recorder })
    }

    fn streamed(
        &self,
        worker: &mut Worker<'_>,
        thread: u32,
        seed: u64,
        trace: Option<&trace::Writer>,
    ) -> Result<()> {
        let driver = self.driver;
        let mut source = source::open(self.definition, self.run, &driver.data, &driver.space, seed, thread)?;
        if let Some(trace) = trace {
            source = Box::new(Recorded::new(source, trace.recorder(thread)));
        }
        let pace = Pace::new(self.run.rate, thread, self.run.threads, driver.env.clock.now());
        worker.run(&mut *source, pace)
    }

    /// Operations of this thread: an even share.
    fn share(&self, thread: u32) -> u64 {
        match self.run.until {
            Until::Seconds(_) => u64::MAX,
            Until::Operations(operations) => {
                let threads = u64::from(self.run.threads);
                operations / threads + u64::from(u64::from(thread) < operations % threads)
            }
        }
    }

    /// The background thread of the workload: same keys, not counted.
    fn background(&self, tally: &Tally, trace: Option<&trace::Writer>) -> Result<Back> {
        let background = self.definition.background.as_ref().expect("called only with a background");
        let driver = self.driver;
        let seed = mix(driver.seed, 0xbac6);
        let manner = Manner { sync: self.run.sync, batch: 1, verify: false, operations: u64::MAX };
        let mut worker = self.worker(tally, self.background_stop, manner)?;
        match background {
            Background::Scan(direction) => worker.run_whole_scan(driver.data.tables, *direction)?,
            Background::Write(_) => {
                let space = driver.space.clone();
                let stream = Stream::background(self.definition, self.run, &driver.data, space, seed)?;
                let mut source: Box<dyn Source> = Box::new(stream);
                if let Some(trace) = trace {
                    source = Box::new(Recorded::new(source, trace.recorder(self.run.threads)));
                }
                let rate = (self.run.background_rate > 0.0).then_some(self.run.background_rate);
                worker.run(&mut *source, Pace::new(rate, 0, 1, driver.env.clock.now()))?;
            }
        }
        Ok(Back { counters: worker.counters(), recorder: worker.recorder })
    }
}

/// A seed of its own for each thread.
fn mix(seed: u64, thread: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (thread + 1).wrapping_mul(0xd1b5_4a32_d192_ed03)
}
