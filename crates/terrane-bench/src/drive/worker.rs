//! One thread of a run: takes operations from a stream, does them in a session, records them.
//!
//! One clock reading per operation: the end of one is the start of the next. Writes gather into batches; a
//! batch is one latency and as many operations as it has records.

mod in_flight;
mod ranges;
mod requests;
mod transaction;
mod whole_scan;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrane::Env;

use super::batch::Gathered;
use super::pace::Pace;
use super::recorder::{Recorder, Tally};
use super::window::Window;
use crate::engine::{Direction, EngineCounters, Session};
use crate::error::Result;
use crate::generate::keys::Keys;
use crate::generate::operation::{Operation, OperationKind};
use crate::generate::space::KeySpace;
use crate::generate::values::Values;
use in_flight::Begun;

/// State that a worker shares with its run.
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
    /// Number of point requests that the worker does together.
    pub(super) window: usize,
    /// Synced writes that the worker has in flight at most.
    pub(super) in_flight: usize,
    pub(super) verify: bool,
    /// True if every key that is read must be there: nothing was deleted, and no trace asks for keys of its
    /// own.
    pub(super) complete: bool,
    /// Operations after which it ends.
    pub(super) operations: u64,
}

/// Where operations come from.
pub(super) trait Source {
    /// Puts the next operation into `operation`; false at the end.
    fn next(&mut self, operation: &mut Operation) -> Result<bool>;

    /// When the operation that was just given arrives, counted from the start of the run, if the source has a
    /// schedule of its own.
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
    window: Window,
    in_flight: VecDeque<Begun>,
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
            window: Window::new(keys.bytes()),
            in_flight: VecDeque::new(),
            keys,
            values,
            recorder: Recorder::new(),
            key,
            versions: 0,
        }
    }

    /// The engine's counters of this thread.
    pub(super) fn counters(&self) -> EngineCounters {
        self.session.counters()
    }

    /// Does what `source` gives until it ends, the operations are done or the run is stopped.
    pub(super) fn run(&mut self, source: &mut dyn Source, mut pace: Pace) -> Result<()> {
        let (env, stop) = (self.shared.env, self.shared.stop);
        let stopped = || stop.load(Ordering::Relaxed);
        let mut operation = Operation::Read(0);
        let start = env.clock.now();
        let (mut last, mut batch_from) = (start, start);
        let mut left = self.manner.operations;
        while left > 0 && !stopped() {
            // The arrival comes first: an operation that was taken is done, or a claimed insert would be
            // missing for ever.
            let Some(mut from) = pace.arrival(env, last, &stopped) else { break };
            if !source.next(&mut operation)? {
                break;
            }
            if let Some(offset) = source.arrival() {
                let Some(arrival) = pace.wait(env, start + offset, &stopped) else { break };
                from = arrival;
            }
            source.starts(&operation, from.saturating_sub(start));
            if self.gathers(&operation) {
                left -= 1;
                if self.gathered.len() == 1 {
                    // A batch counts from the arrival of its first record: that one waits longest.
                    batch_from = from;
                }
                if self.gathered.is_full(self.manner.batch) {
                    last = self.commit(batch_from)?;
                }
                continue;
            }
            if self.takes(&operation, from) {
                left -= 1;
                if self.window.len() >= self.manner.window {
                    last = self.perform_window()?;
                }
                continue;
            }
            if self.begins(&operation, from)? {
                left -= 1;
                last = env.clock.now();
                continue;
            }
            if !self.window.is_empty() {
                self.perform_window()?;
            }
            let kind = operation.kind();
            self.perform(&operation)?;
            last = env.clock.now();
            self.recorder.record(kind, last.saturating_sub(from).as_nanos() as u64);
            let done = if let Operation::MultiRead(numbers) = &operation { numbers.len() as u64 } else { 1 };
            self.count(done);
            left = left.saturating_sub(done);
        }
        if !self.gathered.is_empty() {
            self.commit(batch_from)?;
        }
        if !self.window.is_empty() {
            self.perform_window()?;
        }
        while !self.in_flight.is_empty() {
            self.finish_writes(true)?;
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
            Operation::ReadMissing(number) => self.read_missing(*number),
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
            Operation::DeleteRange(number, keys) => self.delete_range(*number, *keys),
            Operation::Scan(number, rows, direction) => self.scan(*number, *rows, *direction),
            Operation::Transaction(numbers, bytes) => self.transact(numbers, *bytes),
        }
    }

    fn read(&mut self, number: u64) -> Result<bool> {
        self.keys.write(number, &mut self.key);
        let (values, verify) = (&self.values, self.manner.verify);
        let (mut bytes, mut wrong) = (0, 0);
        let found = self.session.get(self.keys.table_of(number), &self.key, &mut |_, value| {
            bytes += touch(value);
            wrong += u64::from(verify && !values.check(number, value));
        })?;
        if found {
            self.recorder.found += 1;
            self.recorder.bytes_read += bytes + self.key.len() as u64;
        }
        self.recorder.wrong += wrong + self.missed(u64::from(!found));
        Ok(found)
    }

    /// How many of `missing` keys had to be there.
    fn missed(&self, missing: u64) -> u64 {
        if self.manner.verify && self.manner.complete { missing } else { 0 }
    }

    fn read_missing(&mut self, number: u64) -> Result<()> {
        self.keys.write_missing(number, &mut self.key);
        let found = self.session.get(self.keys.table_of(number), &self.key, &mut |_, _| {})?;
        self.recorder.found += u64::from(found);
        self.recorder.wrong += u64::from(found && self.manner.verify);
        Ok(())
    }

    /// One call for each table that the keys lie in, as an application would ask.
    fn multi_read(&mut self, numbers: &[u64]) -> Result<()> {
        let width = self.keys.bytes();
        let mut sorted: Vec<(u32, u64)> =
            numbers.iter().map(|&number| (self.keys.table_of(number), number)).collect();
        sorted.sort_by_key(|(table, _)| *table);
        let mut keys = std::mem::take(&mut self.gathered.scratch);
        keys.resize(sorted.len() * width, 0);
        for ((_, number), key) in sorted.iter().zip(keys.chunks_exact_mut(width)) {
            self.keys.write(*number, key);
        }
        let slices: Vec<&[u8]> = keys.chunks_exact(width).collect();
        let checker = Checker { keys: &self.keys, values: &self.values, verify: self.manner.verify };
        let (mut bytes, mut wrong, mut found, mut at) = (0, 0, 0, 0);
        for group in sorted.chunk_by(|left, right| left.0 == right.0) {
            let asked = &slices[at..at + group.len()];
            found += self.session.multi_get(group[0].0, asked, &mut |key, value| {
                bytes += touch(value);
                wrong += checker.wrong(key, value);
            })?;
            at += group.len();
        }
        drop(slices);
        self.gathered.scratch = keys;
        self.recorder.found += found;
        self.recorder.bytes_read += bytes + found * width as u64;
        self.recorder.wrong += wrong + self.missed(numbers.len() as u64 - found);
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
        let checker = Checker { keys: &self.keys, values: &self.values, verify: self.manner.verify };
        let (mut bytes, mut wrong) = (0, 0);
        let table = self.keys.table_of(number);
        let seen = self.session.scan(table, &self.key, rows, direction, &mut |key, value| {
            bytes += touch(value) + key.len() as u64;
            wrong += checker.wrong(key, value);
        })?;
        self.recorder.found += u64::from(seen > 0);
        self.recorder.bytes_read += bytes;
        self.recorder.wrong += wrong + self.missed(u64::from(seen == 0 && rows > 0));
        Ok(())
    }
}

/// Compares a value with what was written for the key beside it.
#[derive(Clone, Copy)]
struct Checker<'c> {
    keys: &'c Keys,
    values: &'c Values,
    verify: bool,
}

impl Checker<'_> {
    /// 1 if the value was never written for this key. A value too short to name its key is not judged here.
    #[inline]
    fn wrong(&self, key: &[u8], value: &[u8]) -> u64 {
        if !self.verify {
            return 0;
        }
        let Some(number) = Values::number_of(value) else { return 0 };
        let mut expected = vec![0; key.len()];
        self.keys.write(number, &mut expected);
        u64::from(expected != key || !self.values.check(number, value))
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
