//! Where a worker's operations come from: a generated stream or a recorded trace; either may be recorded on
//! the way.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::worker::Source;
use crate::error::{Error, Result};
use crate::generate::catalogue::{Definition, Kind};
use crate::generate::operation::Operation;
use crate::generate::space::KeySpace;
use crate::generate::stream::Stream;
use crate::plan::{Data, Run};
use crate::trace::Recorder;
use crate::trace::{Operations, Reader};

impl Source for Stream {
    fn next(&mut self, operation: &mut Operation) -> Result<bool> {
        Ok(Stream::next(self, operation))
    }
}

/// The source of a measured worker.
pub(super) fn open(
    definition: &Definition,
    run: &Run,
    data: &Data,
    space: &Arc<KeySpace>,
    seed: u64,
    thread: u32,
) -> Result<Box<dyn Source>> {
    if let (Kind::Replay, Some(path)) = (definition.kind, &run.replay) {
        return Ok(Box::new(Replay::open(path, data, run, thread)?));
    }
    Ok(Box::new(Stream::new(definition, run, data, space.clone(), seed, thread, run.threads)?))
}

/// Operations of a trace: those of every `threads`-th of its threads, in the order of their arrival.
#[derive(Debug)]
struct Replay {
    threads: Vec<Ahead>,
    /// True if operations wait for their recorded arrival.
    as_recorded: bool,
    arrival: u64,
}

/// One thread of a trace, with its next operation read ahead.
#[derive(Debug)]
struct Ahead {
    operations: Operations,
    operation: Operation,
    micros: Option<u64>,
}

impl Ahead {
    fn advance(&mut self) -> Result<()> {
        self.micros = self.operations.next(&mut self.operation)?;
        Ok(())
    }
}

impl Replay {
    fn open(path: &Path, data: &Data, run: &Run, thread: u32) -> Result<Self> {
        let reader = Reader::open(path)?;
        let recorded = &reader.header().data;
        if (recorded.key_bytes, recorded.hashed_keys) != (data.key_bytes, data.hashed_keys) {
            return Err(Error::plan(format!(
                "the trace {} was recorded with key_bytes = {} and hashed_keys = {}: set the same",
                path.display(),
                recorded.key_bytes,
                recorded.hashed_keys
            )));
        }
        let mine = reader.threads().into_iter().skip(thread as usize).step_by(run.threads as usize);
        let mut threads = Vec::new();
        for number in mine {
            let mut ahead =
                Ahead { operations: reader.thread(number), operation: Operation::Read(0), micros: None };
            ahead.advance()?;
            threads.push(ahead);
        }
        Ok(Replay { threads, as_recorded: run.as_recorded, arrival: 0 })
    }
}

impl Source for Replay {
    fn next(&mut self, operation: &mut Operation) -> Result<bool> {
        let first = self.threads.iter_mut().filter(|thread| thread.micros.is_some());
        let Some(first) = first.min_by_key(|thread| thread.micros) else { return Ok(false) };
        self.arrival = first.micros.expect("filtered");
        std::mem::swap(operation, &mut first.operation);
        first.advance()?;
        Ok(true)
    }

    fn arrival(&self) -> Option<Duration> {
        self.as_recorded.then(|| Duration::from_micros(self.arrival))
    }
}

/// A source that records what passes.
pub(super) struct Recorded {
    source: Box<dyn Source>,
    recorder: Recorder,
}

impl Recorded {
    pub(super) fn new(source: Box<dyn Source>, recorder: Recorder) -> Self {
        Recorded { source, recorder }
    }
}

impl Source for Recorded {
    fn next(&mut self, operation: &mut Operation) -> Result<bool> {
        self.source.next(operation)
    }

    fn arrival(&self) -> Option<Duration> {
        self.source.arrival()
    }

    fn starts(&mut self, operation: &Operation, offset: Duration) {
        self.recorder.record(operation, offset.as_micros() as u64);
    }
}
