//! A worker that removes a range of keys.

use super::Worker;
use crate::error::Result;

impl Worker<'_> {
    pub(super) fn delete_range(&mut self, number: u64, keys: u64) -> Result<()> {
        self.keys.write(number, &mut self.key);
        let mut end = vec![0; self.keys.bytes()];
        self.keys.write_end(number, keys, self.shared.space.count(), &mut end);
        self.session.delete_range(self.keys.table_of(number), &self.key, &end, self.manner.sync)?;
        self.recorder.bytes_written += (self.key.len() + end.len()) as u64;
        self.recorder.deleted = true;
        Ok(())
    }
}
