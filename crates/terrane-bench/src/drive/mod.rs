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
mod series;
mod source;
mod worker;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
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
use series::{Series, pad};
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
    /// Runs so far: each has random choices of its own.
    runs: u64,
    /// Whether anything was deleted.
    deleted: bool,
    env: Env,
}

/// What the threads of one run share.
struct Round<'r> {
    driver: &'r Driver,
    engine: &'r dyn Engine,
    run: &'r Run,
    definition: &'static Definition,
    stop: &'r AtomicBool,
    background_stop: &'r AtomicBool,
    /// Workers, the background and the sampler: the time counts from here, when all are set up.
    ready: Barrier,
}

/// What one thread brought back.
struct Back {
    recorder: Recorder,
    counters: EngineCounters,
    /// When it was done.
    end: Duration,
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
            runs: 0,
            deleted: false,
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
        self.runs += 1;
        let (stop, background_stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let threads = run.threads as usize + usize::from(definition.background.is_some());
        let round = Round {
            driver: self,
            engine,
            run,
            definition,
            stop: &stop,
            background_stop: &background_stop,
            ready: Barrier::new(threads + 1),
        };
        let (mut measured, start) = round.go(observer)?;
        if run.until_quiescent && definition.writes {
            engine.control(Control::WaitUntilQuiescent).or_else(ignore_unsupported)?;
            measured.seconds_until_quiescent = (self.env.clock.now() - start).as_secs_f64();
            pad(&mut measured.timeline, measured.seconds_until_quiescent);
        }
        self.deleted |= measured.deleted;
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

impl Round<'_> {
    /// Does the run; returns what it measured and when it began.
    fn go(&self, observer: &dyn Observer) -> Result<(Measured, Duration)> {
        let tallies: Vec<Tally> = (0..self.run.threads).map(|_| Tally::default()).collect();
        let background_tally = Tally::default();
        let trace = self.trace()?;
        let (backs, background, timeline, start) = std::thread::scope(|scope| {
            let trace = trace.as_ref();
            let background = self.definition.background.is_some().then(|| {
                let tally = &background_tally;
                scope.spawn(move || self.background(tally, trace))
            });
            let workers: Vec<_> = tallies
                .iter()
                .enumerate()
                .map(|(thread, tally)| scope.spawn(move || self.work(thread as u32, tally, trace)))
                .collect();
            self.ready.wait();
            let start = self.driver.env.clock.now();
            let done = || workers.iter().all(std::thread::ScopedJoinHandle::is_finished);
            let (timeline, interrupted) = self.sample(start, &tallies, &done, observer);
            let backs: Vec<Result<Back>> =
                workers.into_iter().map(|worker| worker.join().expect("a bench thread panicked")).collect();
            self.background_stop.store(true, Ordering::Relaxed);
            let background = background.map(|thread| thread.join().expect("a bench thread panicked"));
            let backs = if interrupted { vec![Err(Error::Interrupted)] } else { backs };
            (backs, background, timeline, start)
        });
        if let Some(trace) = trace {
            trace.finish()?;
        }
        let backs = backs.into_iter().collect::<Result<Vec<_>>>()?;
        let end = backs.iter().map(|back| back.end).max().unwrap_or(start);
        let measured = self.measured(&backs, background.transpose()?, timeline, end.saturating_sub(start))?;
        Ok((measured, start))
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
        start: Duration,
        tallies: &[Tally],
        done: &dyn Fn() -> bool,
        observer: &dyn Observer,
    ) -> (Timeline, bool) {
        let clock = &self.driver.env.clock;
        let (limit, total) = match self.run.until {
            Until::Operations(operations) => (None, Some(operations)),
            Until::Seconds(seconds) => (Some(Duration::from_secs_f64(seconds)), None),
        };
        let mut series = Series::new(start);
        let mut interrupted = false;
        while !done() {
            let wake = limit.map_or(series.tick, |limit| series.tick.min(start + limit));
            self.sleep_until(wake, done);
            let operations: u64 = tallies.iter().map(Tally::get).sum();
            let now = clock.now();
            series.sample(now, operations);
            if limit.is_some_and(|limit| now - start >= limit) {
                self.stop.store(true, Ordering::Relaxed);
            }
            if !observer.progress(operations, now - start, total) {
                interrupted = true;
                self.stop.store(true, Ordering::Relaxed);
            }
        }
        (series.end(tallies.iter().map(Tally::get).sum()), interrupted)
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

    /// The seed of this run's random choices, the same for all its threads.
    fn seed(&self) -> u64 {
        mix(self.driver.seed, self.driver.runs)
    }

    /// One measured thread.
    fn work(&self, thread: u32, tally: &Tally, trace: Option<&trace::Writer>) -> Result<Back> {
        let manner = Manner {
            sync: self.run.sync,
            batch: self.run.batch as usize,
            verify: self.run.verify,
            complete: !self.driver.deleted
                && !self.definition.deletes
                && !matches!(self.definition.kind, Kind::Replay),
            operations: self.share(thread),
        };
        let setup = self.worker(tally, self.stop, manner).and_then(|worker| {
            let scans = matches!(self.definition.kind, Kind::WholeScan(_));
            Ok((worker, if scans { None } else { Some(self.source(thread, trace)?) }))
        });
        // Whoever failed comes here, too: the others wait for all.
        self.ready.wait();
        let done = setup.and_then(|(mut worker, source)| {
            self.work_on(&mut worker, source, thread)?;
            let end = self.driver.env.clock.now();
            Ok(Back { counters: worker.counters(), recorder: worker.recorder, end })
        });
        if done.is_err() {
            // The others need not go on: the step has failed.
            self.stop.store(true, Ordering::Relaxed);
        }
        done
    }

    fn work_on(&self, worker: &mut Worker<'_>, source: Option<Box<dyn Source>>, thread: u32) -> Result<()> {
        match (self.definition.kind, source) {
            (Kind::WholeScan(direction), _) => worker.run_whole_scan(self.driver.data.tables, direction),
            (_, Some(mut source)) => {
                let now = self.driver.env.clock.now();
                worker.run(&mut *source, Pace::new(self.run.rate, thread, self.run.threads, now))
            }
            (_, None) => Ok(()),
        }
    }

    /// Where the operations of a measured thread come from.
    fn source(&self, thread: u32, trace: Option<&trace::Writer>) -> Result<Box<dyn Source>> {
        let driver = self.driver;
        let source =
            source::open(self.definition, self.run, &driver.data, &driver.space, self.seed(), thread)?;
        Ok(match trace {
            Some(trace) => Box::new(Recorded::new(source, trace.recorder(thread))),
            None => source,
        })
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
        let manner =
            Manner { sync: self.run.sync, batch: 1, verify: false, complete: false, operations: u64::MAX };
        let setup = self
            .worker(tally, self.background_stop, manner)
            .and_then(|worker| Ok((worker, self.background_source(trace)?)));
        self.ready.wait();
        let (mut worker, source) = setup?;
        let now = self.driver.env.clock.now();
        match (&self.definition.background, source) {
            (Some(Background::Scan(direction)), _) => {
                worker.run_whole_scan(self.driver.data.tables, *direction)?;
            }
            (_, Some(mut source)) => {
                let rate = (self.run.background_rate > 0.0).then_some(self.run.background_rate);
                worker.run(&mut *source, Pace::new(rate, 0, 1, now))?;
            }
            (_, None) => {}
        }
        Ok(Back { counters: worker.counters(), end: now, recorder: worker.recorder })
    }

    /// Where the operations of a background thread that writes come from.
    fn background_source(&self, trace: Option<&trace::Writer>) -> Result<Option<Box<dyn Source>>> {
        let driver = self.driver;
        if !matches!(self.definition.background, Some(Background::Write(_))) {
            return Ok(None);
        }
        let seed = self.seed();
        let stream = Stream::background(self.definition, self.run, &driver.data, driver.space.clone(), seed)?;
        Ok(Some(match trace {
            Some(trace) => Box::new(Recorded::new(Box::new(stream), trace.recorder(self.run.threads))),
            None => Box::new(stream),
        }))
    }
}

/// A seed of its own for each run.
fn mix(seed: u64, run: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (run + 1).wrapping_mul(0xd1b5_4a32_d192_ed03)
}
