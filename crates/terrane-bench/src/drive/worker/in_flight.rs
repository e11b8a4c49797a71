//! A worker that has several synced writes in flight: each is recorded once it is on disk.

use std::time::Duration;

use super::Worker;
use crate::engine::Write;
use crate::error::Result;
use crate::generate::operation::{Operation, OperationKind};

/// A write that may not be on disk yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    number: u64,
    kind: OperationKind,
    /// When it arrived.
    from: Duration,
    /// Key and value bytes.
    bytes: u64,
}

impl Worker<'_> {
    /// Begins a write of one record, which arrived at `from`, beside those in flight; anything else it leaves
    /// alone. With as many in flight as the run allows, waits for the oldest.
    pub(super) fn begins(&mut self, operation: &Operation, from: Duration) -> Result<bool> {
        if self.manner.in_flight <= 1 {
            return Ok(false);
        }
        let (number, bytes) = match *operation {
            Operation::Update(number, bytes) | Operation::Insert(number, bytes) => (number, Some(bytes)),
            Operation::Delete(number) => (number, None),
            _ => return Ok(false),
        };
        self.keys.write(number, &mut self.key);
        let write = match bytes {
            Some(bytes) => {
                self.versions += 1;
                Write::Put(&self.key, self.values.write(number, self.versions, bytes))
            }
            None => Write::Delete(&self.key),
        };
        self.session.begin_write(self.keys.table_of(number), &[write])?;
        let bytes = (self.key.len() + bytes.unwrap_or_default()) as u64;
        self.in_flight.push_back(Begun { number, kind: operation.kind(), from, bytes });
        self.finish_writes(self.in_flight.len() >= self.manner.in_flight)?;
        Ok(true)
    }

    /// Records the writes that are on disk; with `waits`, waits until the oldest is.
    pub(super) fn finish_writes(&mut self, waits: bool) -> Result<Duration> {
        let finished = self.session.finish_writes(waits)?;
        let now = self.shared.env.clock.now();
        for Begun { number, kind, from, bytes } in self.in_flight.drain(..finished) {
            self.recorder.record(kind, now.saturating_sub(from).as_nanos() as u64);
            self.recorder.bytes_written += bytes;
            match kind {
                OperationKind::Insert => self.shared.space.acknowledge(number),
                OperationKind::Delete => self.recorder.deleted = true,
                _ => {}
            }
        }
        self.count(finished as u64);
        Ok(now)
    }
}
