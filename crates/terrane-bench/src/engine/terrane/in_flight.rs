//! Synced writes that one thread has in flight, by their tickets.

use std::collections::VecDeque;

use terrane::{Batch, Db, Durability, Ticket};

use super::failed;
use crate::error::Result;

/// Tickets of a session, oldest first.
#[derive(Default)]
pub(super) struct InFlight(VecDeque<Ticket>);

impl InFlight {
    pub(super) fn begin(&mut self, db: &Db, batch: &Batch) -> Result<()> {
        self.0.push_back(db.write_async(batch, Durability::Synced).map_err(failed("write in flight"))?);
        Ok(())
    }

    /// Takes out those that are on disk, and returns how many; with `waits`, at least the oldest.
    pub(super) fn finish(&mut self, waits: bool) -> Result<usize> {
        let mut finished = 0;
        while self.0.front().is_some_and(|oldest| oldest.is_done() || (waits && finished == 0)) {
            let oldest = self.0.pop_front().expect("there is one");
            oldest.wait().map_err(failed("sync in flight"))?;
            finished += 1;
        }
        Ok(finished)
    }
}
