//! Flushes that are held off while something else changes what they would build on, and failed work that is
//! not held off any more because a caller asks for it.

use std::sync::Arc;

use terrane_base::{Error, Kind, Result, TableId};
use terrane_compaction::JobControl;

use crate::background::scheduler::Schedule;
use crate::background::scheduler::{Running, Scheduler};
use crate::observe::job_kind::{JobKind, JobKinds};
use crate::table::Table;

impl Scheduler {
    /// Keeps flushes of these tables from beginning, until [`Scheduler::resume_flushes`]; waits for those
    /// that run.
    ///
    /// # Errors
    /// As [`Scheduler::wait_until`]; `Busy` for a flush that is paused.
    pub(crate) fn hold_flushes(&self, tables: &[TableId], control: &Arc<JobControl>) -> Result<Vec<u64>> {
        let mut held = Vec::new();
        self.wait_until(|schedule| {
            if tables.iter().any(|table| schedule.is_running(JobKind::Flush, *table)) {
                return refuse_held_work(schedule).map(|()| false);
            }
            for table in tables {
                schedule.next_id += 1;
                held.push(schedule.next_id);
                schedule.running.push(Running {
                    id: schedule.next_id,
                    kind: JobKind::Flush,
                    table: Some(*table),
                    claim: None,
                    is_manual: false,
                    advance: None,
                    control: control.clone(),
                });
            }
            Ok(true)
        })?;
        debug_assert_eq!(held.len(), tables.len(), "each table is held once");
        Ok(held)
    }

    /// A caller requests jobs of these kinds on `tables`, and those of no table: a job that failed is tried
    /// at once. Returns the newest piece of work so far: the failure of a later one is the caller's error.
    pub(crate) fn ask(&self, kinds: JobKinds, tables: &[Arc<Table>]) -> u64 {
        let mut schedule = self.change();
        let newest = schedule.newest_piece();
        let is_of = |table: TableId| tables.iter().any(|asked| asked.id == table);
        schedule.failures.ask(newest, |(kind, table)| kinds.has(kind) && table.is_none_or(is_of));
        drop(schedule);
        self.wake();
        newest
    }

    /// Ends what [`Scheduler::hold_flushes`] began.
    pub(crate) fn resume_flushes(&self, held: &[u64]) {
        let mut schedule = self.change();
        let before = schedule.running.len();
        schedule.running.retain(|running| !held.contains(&running.id));
        debug_assert_eq!(before - schedule.running.len(), held.len(), "each hold ends once");
        drop(schedule);
        self.wake();
    }
}

/// A job that is paused gives nothing up.
pub(crate) fn refuse_held_work(schedule: &Schedule) -> Result<()> {
    if !schedule.holds_paused_work() {
        return Ok(());
    }
    Err(Error::new(
        Kind::Busy,
        "a job of the table was paused while it ran: let the background go on, or cancel its compactions",
    ))
}
