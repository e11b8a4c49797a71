//! One thread of a run: takes operations from a stream, does them in a session, records them.
//!
//! One clock reading per operation: the end of one is the start of the next. Writes gather into batches; a batch is one
//! latency and as many operations as it has records.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrane::Env;

use super::batch::Gathered;
use super::pace::Pace;
use super::recorder::{Recorder, Tally};
use crate::engine::{Direction, EngineCounters, Session};
use crate::error::Result;
use crate::generate::keys::Keys;
use crate::generate::operation::{Operation, OperationKind};
use crate::generate::space::KeySpace;
use crate::generate::values::Values;

/// Rows of a whole scan between two readings of the clock.
const SCAN_CHUNK: u64 = 256;

/// What a worker shares with its run.
pub(super) struct Shared<'r> {
    pub(super) env: &'r Env,
    pub(super) stop: &'r AtomicBool,
    pub(super) tally: &'r Tally,
    pub(super) space: &'r KeySpace,
}

/// How a worker does what it is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) sync: bool,
    pub(super) batch: usize,
    pub(super) verify: bool,
    /// Operations after which it ends.
    pub(super) operations: u64,
}

/// Where operations come from.
pub(super) trait Source {
    /// Puts the next operation into `operation`; false at the end.
    fn next(&mut self, operation: &mut Operation) -> Result<bool>;

    /// When the operation that was just given arrives, counted from the start of the run, if the source has a schedule
    /// of its own.
    fn arrival(&self) -> Option<Duration> {
        None
    }

    /// Hears that the operation that was just given arrived so long after the start of the run.
    fn starts(&mut self, _operation: &Operation, _offset: Duration) {}
}

/// One thread of a run.
pub(super) struct Worker<'r> {
    shared: Shared<'r>,
    session: Box<dyn Session + 'r>,
    manner: Manner,
    keys: Arc<Keys>,
    values: Values,
    pub(super) recorder: Recorder,
    key: Vec<u8>,
    gathered: Gathered,
    versions: u64,
}

impl<'r> Worker<'r> {
    pub(super) fn new(
        shared: Shared<'r>,
        session: Box<dyn Session + 'r>,
        manner: Manner,
        keys: Arc<Keys>,
        values: Values,
    ) -> Self {
        let key = vec![0; keys.bytes()];
        Worker {
            shared,
            session,
            manner,
            gathered: Gathered::new(keys.bytes()),
            keys,
            values,
            recorder: Recorder::new(),
            key,
            versions: 0,
        }
    }

    /// What the engine counted for this thread.
    pub(super) fn counters(&self) -> EngineCounters {
        self.session.counters()
    }

    /// Does what `source` gives until it ends, the operations are done or the run is stopped.
    pub(super) fn run(&mut self, source: &mut dyn Source, mut pace: Pace) -> Result<()> {
        let (env, stop) = (self.shared.env, self.shared.stop);
        let stopped = || stop.load(Ordering::Relaxed);
        let mut operation = Operation::Read(0);
        let start = env.clock.now();
        let mut last = start;
        let mut left = self.manner.operations;
        while left > 0 && !stopped() {
            // The arrival comes first: an operation that was taken is done, or a claimed insert would be missing for ever.
            let Some(mut from) = pace.arrival(env, last, &stopped) else { break };
            if !source.next(&mut operation)? {
                break;
            }
            if let Some(offset) = source.arrival() {
                let Some(arrival) = pace.wait(env, start + offset, &stopped) else { break };
                from = arrival;
            }
            source.starts(&operation, from.saturating_sub(start));
            left -= 1;
            if self.gathers(&operation) {
                if !self.gathered.is_full(self.manner.batch) {
                    continue;
                }
                last = self.commit(from)?;
                continue;
            }
            let kind = operation.kind();
            self.perform(&operation)?;
            last = env.clock.now();
            self.recorder.record(kind, last.saturating_sub(from).as_nanos() as u64);
            self.count(1);
        }
        if !self.gathered.is_empty() {
            self.commit(last)?;
        }
        Ok(())
    }

    #[inline]
    fn count(&mut self, operations: u64) {
        self.recorder.operations += operations;
        self.shared.tally.add(operations);
    }

    /// Takes a write into the batch; anything else is not gathered.
    fn gathers(&mut self, operation: &Operation) -> bool {
        if self.manner.batch <= 1 {
            return false;
        }
        let (number, value) = match *operation {
            Operation::Update(number, bytes) | Operation::Insert(number, bytes) => (number, Some(bytes)),
            Operation::Delete(number) => (number, None),
            _ => return false,
        };
        self.keys.write(number, &mut self.key);
        let table = self.keys.table_of(number);
        let value = value.map(|bytes| {
            self.versions += 1;
            self.values.write(number, self.versions, bytes)
        });
        self.gathered.push(table, &self.key, value, number, operation.kind());
        true
    }

    fn commit(&mut self, from: Duration) -> Result<Duration> {
        let kind = self.gathered.kind();
        self.gathered.write(&mut *self.session, self.manner.sync)?;
        self.gathered.acknowledge(self.shared.space);
        self.recorder.bytes_written += self.gathered.bytes();
        self.recorder.deleted |= kind == OperationKind::Delete;
        let now = self.shared.env.clock.now();
        self.recorder.record(kind, now.saturating_sub(from).as_nanos() as u64);
        self.count(self.gathered.len() as u64);
        self.gathered.clear();
        Ok(now)
    }

    #[inline]
    fn perform(&mut self, operation: &Operation) -> Result<()> {
        match operation {
            Operation::Read(number) => self.read(*number).map(drop),
            Operation::ReadMissing(number) => {
                self.keys.write_missing(*number, &mut self.key);
                let found = self.session.get(self.keys.table_of(*number), &self.key, &mut |_, _| {})?;
                self.recorder.found += u64::from(found);
                Ok(())
            }
            Operation::MultiRead(numbers) => self.multi_read(numbers),
            Operation::Update(number, bytes) => self.put(*number, *bytes),
            Operation::Insert(number, bytes) => {
                self.put(*number, *bytes)?;
                self.shared.space.acknowledge(*number);
                Ok(())
            }
            Operation::ReadModifyWrite(number, bytes) => {
                self.read(*number)?;
                self.put(*number, *bytes)
            }
            Operation::Delete(number) => self.delete(*number),
            Operation::Scan(number, rows, direction) => self.scan(*number, *rows, *direction),
        }
    }

    fn read(&mut self, number: u64) -> Result<bool> {
        self.keys.write(number, &mut self.key);
        let (values, verify) = (&self.values, self.manner.verify);
        let (mut bytes, mut wrong) = (0, 0);
        let found = self.session.get(self.keys.table_of(number), &self.key, &mut |_, value| {
            bytes += touch(value);
            if verify && !values.check(number, value) {
                wrong += 1;
            }
        })?;
        if found {
            self.recorder.found += 1;
            self.recorder.bytes_read += bytes + self.key.len() as u64;
            self.recorder.wrong += wrong;
        }
        Ok(found)
    }

    fn multi_read(&mut self, numbers: &[u64]) -> Result<()> {
        let width = self.keys.bytes();
        let mut bytes = 0;
        // The keys of one call go to one table, as an application would ask.
        let table = numbers.first().map_or(0, |&number| self.keys.table_of(number));
        let mut keys = std::mem::take(&mut self.gathered.scratch);
        keys.resize(numbers.len() * width, 0);
        for (number, key) in numbers.iter().zip(keys.chunks_exact_mut(width)) {
            self.keys.write(*number, key);
        }
        let slices: Vec<&[u8]> = keys.chunks_exact(width).collect();
        let found = self.session.multi_get(table, &slices, &mut |_, value| bytes += touch(value));
        drop(slices);
        self.gathered.scratch = keys;
        let found = found?;
        self.recorder.found += found;
        self.recorder.bytes_read += bytes + found * width as u64;
        Ok(())
    }

    fn put(&mut self, number: u64, bytes: usize) -> Result<()> {
        self.keys.write(number, &mut self.key);
        self.versions += 1;
        let value = self.values.write(number, self.versions, bytes);
        let put = crate::engine::Write::Put(&self.key, value);
        self.session.write(self.keys.table_of(number), &[put], self.manner.sync)?;
        self.recorder.bytes_written += (self.key.len() + bytes) as u64;
        Ok(())
    }

    fn delete(&mut self, number: u64) -> Result<()> {
        self.keys.write(number, &mut self.key);
        let delete = crate::engine::Write::Delete(&self.key);
        self.session.write(self.keys.table_of(number), &[delete], self.manner.sync)?;
        self.recorder.bytes_written += self.key.len() as u64;
        self.recorder.deleted = true;
        Ok(())
    }

    fn scan(&mut self, number: u64, rows: u64, direction: Direction) -> Result<()> {
        self.keys.write(number, &mut self.key);
        let mut bytes = 0;
        let seen = self.session.scan(
            self.keys.table_of(number),
            &self.key,
            rows,
            direction,
            &mut |key, value| {
                bytes += touch(value) + key.len() as u64;
            },
        )?;
        self.recorder.found += u64::from(seen > 0);
        self.recorder.bytes_read += bytes;
        Ok(())
    }

    /// Scans whole tables, again and again, until the rows are counted or the run is stopped; a row is an operation.
    pub(super) fn run_whole_scan(&mut self, tables: u32, direction: Direction) -> Result<()> {
        let Worker { shared, session, recorder, manner, .. } = self;
        let mut last = shared.env.clock.now();
        let (mut rows, mut bytes, mut pending) = (0u64, 0u64, 0u64);
        let limit = manner.operations;
        'passes: loop {
            let before = rows;
            for table in 0..tables {
                session.scan_all(table, direction, &mut |key, value| {
                    bytes += touch(value) + key.len() as u64;
                    rows += 1;
                    pending += 1;
                    if pending < SCAN_CHUNK {
                        return rows < limit;
                    }
                    let now = shared.env.clock.now();
                    recorder.record(OperationKind::Scan, (now - last).as_nanos() as u64 / pending);
                    last = now;
                    shared.tally.add(std::mem::take(&mut pending));
                    rows < limit && !shared.stop.load(Ordering::Relaxed)
                })?;
                if rows >= limit || shared.stop.load(Ordering::Relaxed) {
                    break 'passes;
                }
            }
            if rows == before {
                break;
            }
        }
        shared.tally.add(pending);
        recorder.operations += rows;
        recorder.found += rows;
        recorder.bytes_read += bytes;
        Ok(())
    }
}

/// Reads what an engine lends as a user would begin to: its length, first and last byte.
#[inline]
fn touch(value: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (value.first(), value.last()) {
        std::hint::black_box(first ^ last);
    }
    value.len() as u64
}
