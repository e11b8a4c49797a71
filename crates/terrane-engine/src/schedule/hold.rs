//! Flushes that are held off while something else changes what they would build on.

use std::sync::Arc;

use terrane_base::{Result, TableId};
use terrane_compaction::JobControl;

use super::{Running, Scheduler};
use crate::drop_extents::refuse_if_paused;

impl Scheduler {
    /// Keeps flushes of these tables from beginning, until [`Scheduler::resume_flushes`]; waits for those that run.
    ///
    /// # Errors
    /// As [`Scheduler::wait_until`]; `Busy` for a flush that is paused.
    pub(crate) fn hold_flushes(&self, tables: &[TableId], control: &Arc<JobControl>) -> Result<Vec<u64>> {
        let mut held = Vec::new();
        self.wait_until(|schedule| {
            if tables.iter().any(|table| schedule.is_running("flush", *table)) {
                return refuse_if_paused(schedule).map(|()| false);
            }
            for table in tables {
                schedule.next_id += 1;
                held.push(schedule.next_id);
                schedule.running.push(Running {
                    id: schedule.next_id,
                    name: "flush",
                    table: Some(*table),
                    claim: None,
                    advance: None,
                    control: control.clone(),
                });
            }
            Ok(true)
        })?;
        Ok(held)
    }

    /// Ends what [`Scheduler::hold_flushes`] began.
    pub(crate) fn resume_flushes(&self, held: &[u64]) {
        self.schedule.lock().running.retain(|running| !held.contains(&running.id));
        self.wake();
    }
}
