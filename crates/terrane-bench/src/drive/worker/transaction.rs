//! A worker that runs transactions: one that is refused is run again until it commits, or the run ends.

use std::sync::atomic::Ordering;

use super::{Checker, Worker, touch};
use crate::engine::Change;
use crate::error::Result;

impl Worker<'_> {
    /// Reads keys for update and writes each, as one transaction. The values are new ones, made before it
    /// begins, so that only the engine is measured. One that is still refused when the run ends is counted as
    /// refused, and as done.
    pub(super) fn transact(&mut self, numbers: &[u64], bytes: usize) -> Result<()> {
        let Worker { shared, session, manner, keys, values, recorder, versions, .. } = self;
        let width = keys.bytes();
        let (mut names, mut contents) = (vec![0; width * numbers.len()], Vec::new());
        for (number, name) in numbers.iter().zip(names.chunks_mut(width)) {
            keys.write(*number, name);
            *versions += 1;
            contents.extend_from_slice(values.write(*number, *versions, bytes));
        }
        let parts = numbers.iter().zip(names.chunks(width)).enumerate();
        let changes: Vec<_> = parts
            .map(|(index, (number, key))| {
                let value = &contents[index * bytes..][..bytes];
                Change { table: keys.table_of(*number), key, value }
            })
            .collect();
        let checker = Checker { keys, values, verify: manner.verify };
        let (mut read, mut found, mut wrong) = (0, 0, 0);
        loop {
            let is_committed = session.transact(&changes, manner.sync, &mut |key, value| {
                found += 1;
                read += touch(value) + key.len() as u64;
                wrong += checker.wrong(key, value);
            })?;
            if is_committed {
                recorder.bytes_written += ((width + bytes) * numbers.len()) as u64;
                break;
            }
            recorder.aborted += 1;
            if shared.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        recorder.found += u64::from(found > 0);
        recorder.bytes_read += read;
        recorder.wrong += wrong;
        let missing = (numbers.len() as u64).saturating_sub(found);
        self.recorder.wrong += self.missed(missing);
        Ok(())
    }
}
