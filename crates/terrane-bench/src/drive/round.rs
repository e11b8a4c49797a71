//! One run on an open engine: its threads, their sources, the sampler.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::pace::Pace;
use super::recorder::{Recorder, Tally};
use super::series::Series;
use super::source::{self, Recorded};
use super::space_series::SpaceSeries;
use super::worker::{Manner, Shared, Source, Worker};
use super::{Driver, Measured, Observer};
use crate::engine::{Engine, EngineCounters};
use crate::error::{Error, Result};
use crate::generate::catalogue::{Background, Definition, Kind};
use crate::generate::operation::OperationKind;
use crate::generate::stream::Stream;
use crate::generate::values::Values;
use crate::plan::{Run, Until};
use crate::report::model::{SpaceTimeline, Timeline};
use crate::trace;

/// State that the threads of one run share.
pub(super) struct Round<'r> {
    pub(super) driver: &'r Driver,
    pub(super) engine: &'r dyn Engine,
    pub(super) run: &'r Run,
    pub(super) definition: &'static Definition,
    /// The values that each thread writes and checks.
    pub(super) values: Values,
    pub(super) stop: &'r AtomicBool,
    pub(super) background_stop: &'r AtomicBool,
    /// Workers, the background and the sampler: the time counts from here, when all are set up.
    pub(super) ready: Barrier,
}

/// The results of one thread.
struct Back {
    recorder: Recorder,
    counters: EngineCounters,
    /// When it began and when it was done.
    start: Duration,
    end: Duration,
}

impl Round<'_> {
    /// Does the run; returns what it measured and when it began.
    pub(super) fn go(&self, observer: &dyn Observer) -> Result<(Measured, Duration)> {
        let tallies: Vec<Tally> = (0..self.run.threads).map(|_| Tally::default()).collect();
        let background_tally = Tally::default();
        let trace = self.trace()?;
        let (backs, background, over_time, start) = std::thread::scope(|scope| {
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
            let (over_time, interrupted) = self.sample(start, &tallies, &done, observer);
            let backs: Vec<Result<Back>> =
                workers.into_iter().map(|worker| worker.join().expect("a bench thread panicked")).collect();
            self.background_stop.store(true, Ordering::Relaxed);
            let background = background.map(|thread| thread.join().expect("a bench thread panicked"));
            let backs = if interrupted { vec![Err(Error::Interrupted)] } else { backs };
            (backs, background, over_time, start)
        });
        if let Some(trace) = trace {
            trace.finish()?;
        }
        let backs = backs.into_iter().collect::<Result<Vec<_>>>()?;
        // Where the machine is busy, a worker may be far ahead of the sampler, which would see a part of it.
        let start = backs.iter().map(|back| back.start).min().map_or(start, |first| first.min(start));
        let end = backs.iter().map(|back| back.end).max().unwrap_or(start);
        let measured =
            self.measured(&backs, background.transpose()?, over_time, end.saturating_sub(start))?;
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
        (timeline, space): (Timeline, SpaceTimeline),
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
        if all.latency_of(OperationKind::Transaction).is_some() {
            counters.transactions_aborted = Some(all.aborted);
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
            space,
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
    ) -> ((Timeline, SpaceTimeline), bool) {
        let clock = &self.driver.env.clock;
        let (limit, total) = match self.run.until {
            Until::Operations(operations) => (None, Some(operations)),
            Until::Seconds(seconds) => (Some(Duration::from_secs_f64(seconds)), None),
        };
        let mut series = Series::new(start);
        let mut space = SpaceSeries::new(self.engine, self.driver.directory.as_deref(), start);
        let mut interrupted = false;
        while !done() {
            let wake = limit.map_or(series.tick, |limit| series.tick.min(start + limit));
            self.sleep_until(wake, done);
            let operations: u64 = tallies.iter().map(Tally::get).sum();
            let now = clock.now();
            series.sample(now, operations);
            space.look(now);
            if limit.is_some_and(|limit| now - start >= limit) {
                self.stop.store(true, Ordering::Relaxed);
            }
            if !observer.progress(operations, now - start, total) {
                interrupted = true;
                self.stop.store(true, Ordering::Relaxed);
            }
        }
        ((series.end(tallies.iter().map(Tally::get).sum()), space.end()), interrupted)
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
        Ok(Worker::new(shared, self.engine.session()?, manner, driver.keys.clone(), self.values.clone()))
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
            window: self.run.window as usize,
            in_flight: if self.run.sync { self.run.in_flight as usize } else { 1 },
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
        // A failed worker comes here, too: the others wait for all.
        self.ready.wait();
        let start = self.driver.env.clock.now();
        let done = setup.and_then(|(mut worker, source)| {
            self.work_on(&mut worker, source, thread)?;
            let end = self.driver.env.clock.now();
            Ok(Back { counters: worker.counters(), recorder: worker.recorder, start, end })
        });
        if done.is_err() {
            // The others need not go on: the step has failed.
            self.stop.store(true, Ordering::Relaxed);
        }
        done
    }

    fn work_on(&self, worker: &mut Worker<'_>, source: Option<Box<dyn Source>>, thread: u32) -> Result<()> {
        match (self.definition.kind, source) {
            (Kind::WholeScan(direction), _) => {
                worker.run_whole_scan(self.driver.data.tables, direction, None)
            }
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
        let manner = Manner {
            sync: self.run.sync,
            batch: 1,
            window: 1,
            in_flight: 1,
            verify: false,
            complete: false,
            operations: u64::MAX,
        };
        let setup = self
            .worker(tally, self.background_stop, manner)
            .and_then(|worker| Ok((worker, self.background_source(trace)?)));
        self.ready.wait();
        let (mut worker, source) = setup?;
        let now = self.driver.env.clock.now();
        let rate = (self.run.background_rate > 0.0).then_some(self.run.background_rate);
        match (&self.definition.background, source) {
            (Some(Background::Scan(direction)), _) => {
                worker.run_whole_scan(self.driver.data.tables, *direction, rate)?;
            }
            (_, Some(mut source)) => {
                worker.run(&mut *source, Pace::new(rate, 0, 1, now))?;
            }
            (_, None) => {}
        }
        Ok(Back { counters: worker.counters(), start: now, end: now, recorder: worker.recorder })
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
