//! A worker that collects several point requests and does them together.

use std::time::Duration;

use super::{Checker, Worker, touch};
use crate::error::Result;
use crate::generate::operation::{Operation, OperationKind};

impl Worker<'_> {
    /// Takes a point request, which arrived at `from`, into the window; anything else it does not take.
    pub(super) fn takes(&mut self, operation: &Operation, from: Duration) -> bool {
        if self.manner.window <= 1 {
            return false;
        }
        let (number, bytes) = match *operation {
            Operation::Update(number, bytes) | Operation::Insert(number, bytes) => (number, Some(bytes)),
            Operation::Read(number) | Operation::ReadMissing(number) | Operation::Delete(number) => {
                (number, None)
            }
            _ => return false,
        };
        let kind = operation.kind();
        if kind == OperationKind::ReadMissing {
            self.keys.write_missing(number, &mut self.key);
        } else {
            self.keys.write(number, &mut self.key);
        }
        let value = bytes.map(|bytes| {
            self.versions += 1;
            self.values.write(number, self.versions, bytes)
        });
        self.window.push(self.keys.table_of(number), &self.key, value, (number, kind, from));
        true
    }

    /// Performs the requests of the window.
    pub(super) fn perform_window(&mut self) -> Result<Duration> {
        let Worker { shared, session, manner, keys, values, recorder, window, .. } = self;
        let checker = Checker { keys, values, verify: manner.verify };
        let (mut found, mut bytes, mut wrong) = (0, 0, 0);
        window.perform(&mut **session, manner.sync, &mut |key, value| {
            found += 1;
            bytes += touch(value) + key.len() as u64;
            wrong += checker.wrong(key, value);
        })?;
        let now = shared.env.clock.now();
        window.record(recorder, shared.space, now);
        recorder.found += found;
        recorder.bytes_read += bytes;
        let expected = window.reads();
        let done = window.len() as u64;
        window.clear();
        recorder.wrong += wrong;
        self.recorder.wrong += self.missed(expected.saturating_sub(found));
        self.count(done);
        Ok(now)
    }
}
