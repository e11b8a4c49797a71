//! The child: opens one engine, does the steps of one scenario in order, and sends its measurements.

use std::cell::Cell as Slot;
use std::io::{BufRead, Write};
use std::sync::Mutex;
use std::time::Duration;

use terrane::Env;

use super::protocol::{Event, Job};
use crate::drive::{Driver, Measured, Observer};
use crate::engine::{self, Engine, EngineOptions};
use crate::error::{Error, Result};
use crate::files;
use crate::generate::catalogue;
use crate::measure::process::ProcessProbe;
use crate::plan::text::control_name;
use crate::plan::{Run, Scenario, Step};
use crate::report::model::{Cell, Failed};
use crate::trace;

/// Time between two progress events.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// Reads a job from `input`, does it and writes events to `output`.
///
/// # Errors
/// `Io` if the job cannot be read or the parent has gone; a failure of an engine is sent as an event.
pub fn serve(input: &mut dyn BufRead, output: &mut (dyn Write + Send)) -> Result<()> {
    let mut text = String::new();
    input.read_line(&mut text).map_err(|error| Error::Io(format!("cannot read the job: {error}")))?;
    let job: Job =
        serde_json::from_str(&text).map_err(|error| Error::Io(format!("the job cannot be read: {error}")))?;
    let events = EventWriter { output: Mutex::new(output) };
    if let Err(error) = Child::open(&job, &events).and_then(Child::run) {
        if error == Error::Interrupted {
            return Err(error);
        }
        events.write(&Event::Failed(failed(&job, "", &error)))?;
    }
    events.write(&Event::Done)
}

fn failed(job: &Job, step: &str, error: &Error) -> Failed {
    Failed {
        scenario: job.scenario.name.clone(),
        step: step.to_owned(),
        engine: job.engine.label.clone(),
        repetition: job.repetition,
        unsupported: matches!(error, Error::Unsupported { .. }),
        why: error.to_string(),
    }
}

struct EventWriter<'t> {
    output: Mutex<&'t mut (dyn Write + Send)>,
}

impl EventWriter<'_> {
    fn write(&self, event: &Event) -> Result<()> {
        let mut line = serde_json::to_vec(event).expect("an event is plain data");
        line.push(b'\n');
        let mut output = self.output.lock().expect("no one panics with the lock");
        let written = output.write_all(&line).and_then(|()| output.flush());
        // A parent that has gone reads no further figures.
        written.map_err(|_| Error::Interrupted)
    }
}

/// Passes progress on, now and then.
struct Progress<'t> {
    events: &'t EventWriter<'t>,
    next: Slot<Duration>,
}

impl Observer for Progress<'_> {
    fn progress(&self, operations: u64, elapsed: Duration, total: Option<u64>) -> bool {
        if elapsed < self.next.get() {
            return true;
        }
        self.next.set(elapsed + PROGRESS_EVERY);
        self.events.write(&Event::Progress { operations, seconds: elapsed.as_secs_f64(), total }).is_ok()
    }
}

struct Child<'j> {
    job: &'j Job,
    events: &'j EventWriter<'j>,
    options: EngineOptions,
    engine: Option<Box<dyn Engine>>,
    driver: Driver,
    deleted: bool,
}

impl<'j> Child<'j> {
    fn open(job: &'j Job, events: &'j EventWriter<'j>) -> Result<Self> {
        let options = open_options(job)?;
        let engine = engine::open(&job.engine.engine, &options)?;
        let driver = Driver::new(&job.scenario.data, job.seed).watching(&job.directory);
        Ok(Child { job, events, options, engine: Some(engine), driver, deleted: false })
    }

    fn engine(&self) -> &dyn Engine {
        &**self.engine.as_ref().expect("open between steps")
    }

    /// Does the steps; an operation that the engine lacks leaves out the step and goes on.
    fn run(mut self) -> Result<()> {
        for (index, step) in self.job.scenario.steps.iter().enumerate() {
            let name = step_name(step);
            self.events.write(&Event::Started { step: name.clone() })?;
            match self.step(step, &name, index as u32) {
                Ok(cell) => self.events.write(&Event::Measured(Box::new(cell)))?,
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => {
                    self.events.write(&Event::Failed(failed(self.job, &name, &error)))?;
                    if !matches!(error, Error::Unsupported { .. }) {
                        return Ok(());
                    }
                }
            }
        }
        let closed = self.engine.take().expect("open between steps").close();
        match closed {
            Err(error) => self.events.write(&Event::Failed(failed(self.job, "close", &error))),
            Ok(()) => Ok(()),
        }
    }

    fn step(&mut self, step: &Step, name: &str, index: u32) -> Result<Cell> {
        let shape_before = self.engine().shape();
        let counters_before = self.engine().counters();
        let process = ProcessProbe::start();
        let measured = self.perform(step)?;
        let used = process.finish();
        self.deleted |= measured.deleted;
        let mut counters = self.engine().counters().since(&counters_before);
        counters.add(&measured.counters);
        Ok(Cell {
            scenario: self.job.scenario.name.clone(),
            step: name.to_owned(),
            index,
            engine: self.job.engine.label.clone(),
            repetition: self.job.repetition,
            opened: self.engine().opened(),
            process: used,
            counters,
            disk_bytes: files::directory_bytes(&self.options.directory)?,
            live_bytes: self.live_bytes(),
            shape_before,
            shape_after: self.engine().shape(),
            ..cell_of(measured)
        })
    }

    fn perform(&mut self, step: &Step) -> Result<Measured> {
        match step {
            Step::Run(run) => self.measure(run),
            Step::Control(control) => timed(|| self.engine().control(*control)),
            Step::Reopen => timed(|| {
                self.engine.take().expect("open between steps").close()?;
                self.engine = Some(engine::open(&self.job.engine.engine, &self.options)?);
                Ok(())
            }),
        }
    }

    fn measure(&mut self, run: &Run) -> Result<Measured> {
        let progress = Progress { events: self.events, next: Slot::new(Duration::ZERO) };
        let engine = &**self.engine.as_ref().expect("open between steps");
        self.driver.run(engine, run, &progress)
    }

    /// Bytes of live keys and values, where the driver knows how many there are.
    fn live_bytes(&self) -> Option<u64> {
        let data = &self.job.scenario.data;
        let record = data.key_bytes as f64 + data.value_bytes_mean();
        (!self.deleted).then(|| (self.driver.keys_written() as f64 * record) as u64)
    }
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Measured> {
    let clock = Env::real().clock;
    let start = clock.now();
    work()?;
    let seconds = (clock.now() - start).as_secs_f64();
    Ok(Measured { seconds, seconds_until_quiescent: seconds, ..Measured::default() })
}

fn cell_of(measured: Measured) -> Cell {
    Cell {
        operations: measured.operations,
        found: measured.found,
        user_bytes_written: measured.bytes_written,
        user_bytes_read: measured.bytes_read,
        seconds: measured.seconds,
        seconds_until_quiescent: measured.seconds_until_quiescent,
        latency: measured.latency,
        latency_by_kind: measured.latency_by_kind,
        timeline: measured.timeline,
        space: measured.space,
        background_operations: measured.background_operations,
        ..Cell::default()
    }
}

/// The name of a step in the report.
#[must_use]
pub fn step_name(step: &Step) -> String {
    match step {
        Step::Run(run) => run.name.clone(),
        Step::Control(control) => control_name(*control).to_owned(),
        Step::Reopen => "reopen".to_owned(),
    }
}

fn open_options(job: &Job) -> Result<EngineOptions> {
    let (scenario, data) = (&job.scenario, &job.scenario.data);
    Ok(EngineOptions {
        directory: job.directory.clone(),
        memory_bytes: scenario.memory_bytes,
        tables: data.tables,
        direct_io: scenario.direct_io,
        background_threads: scenario.background_threads,
        records: data.keys,
        data_bytes: data.bytes() as u64,
        value_bytes_max: value_bytes_max(scenario)? as u64,
        level_fanout: scenario.level_fanout,
        filter_bits_per_key: scenario.filter_bits_per_key,
        options: job.engine.options.clone(),
        library: job.engine.library.clone(),
    })
}

/// The longest value that any step writes: some workloads bring sizes of their own, a trace has those of its
/// recording.
fn value_bytes_max(scenario: &Scenario) -> Result<usize> {
    let mut longest = scenario.data.value_bytes_max();
    for step in &scenario.steps {
        let Step::Run(run) = step else { continue };
        longest = longest.max(catalogue::find(&run.workload)?.value_bytes_max(&scenario.data)?);
        if let Some(trace) = run.replay.as_deref().filter(|trace| trace.exists()) {
            longest = longest.max(trace::Reader::open(trace)?.header().value_bytes_max);
        }
    }
    Ok(longest)
}
