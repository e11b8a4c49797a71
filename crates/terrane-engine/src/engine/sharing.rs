//! The page of metrics that an open database shares with other processes: when, and what of all its parts.

use std::sync::Arc;
use std::time::Duration;

use terrane_format::metrics_page::MetricsPage;

use crate::background::scheduler::Schedule;
use crate::engine::Engine;
use crate::observe::metrics_page::PageFile;
use crate::observe::stats::add;
use crate::observe::ticker::Turn;

impl Engine {
    /// Removes the page of a process that died, and begins to share pages, if the option says so and another
    /// process could read them. Without threads (in a simulator) none are shared.
    pub(crate) fn share_metrics(self: &Arc<Self>) {
        debug_assert!(!self.options.read_only, "the process that writes shares its metrics");
        let interval = self.options.diagnostics.metrics_page_ms;
        if !self.disk().is_public() || self.env.spawn.stepper().is_some() {
            return;
        }
        let file = PageFile::of(self.disk(), self.dir());
        // It would be taken for a page of this process. A file of another program stays.
        let _ = file.remove();
        if interval == 0 {
            return;
        }
        let opened = self.env.clock.now();
        // As a worker, the thread holds the engine only while it makes a page.
        let engine = Arc::downgrade(self);
        let mut number = 0;
        let turn = move || {
            let Some(engine) = engine.upgrade() else { return Turn::Ended };
            number += 1;
            let open_micros = engine.env.clock.now().saturating_sub(opened).as_micros() as u64;
            let page = MetricsPage { number, open_micros, ..engine.current_page() };
            add(&engine.counters.metrics_page_errors, u64::from(file.write(&page.encode()).is_err()));
            Turn::Done
        };
        let writer = &self.background.page_writer;
        let thread = (&*self.env.spawn, "terrane-metrics", self.instance());
        if writer.start(thread, Duration::from_millis(interval), turn).is_err() {
            // A database does not fail because nothing looks into it.
            add(&self.counters.metrics_page_errors, 1);
        }
    }

    /// The page of this moment.
    fn current_page(&self) -> MetricsPage {
        let jobs = self.background.scheduler.inspect(|schedule: &Schedule| {
            let job = |running: &crate::background::scheduler::Running| {
                let done = running.control.work();
                let read = done.bytes_read + done.bytes_relinked + done.bytes_copied;
                (running.kind, running.table, running.control.age(), (read, done.bytes_written))
            };
            schedule.running.iter().map(job).collect::<Vec<_>>()
        });
        let job = |(kind, table, age, bytes)| {
            let kind: crate::observe::job_kind::JobKind = kind;
            self.page_job(kind.name(), table, age, bytes)
        };
        self.metrics_page(&self.stats(), jobs.into_iter().map(job).collect())
    }

    /// Ends the sharing, and takes the page away: a clean close leaves none. Requires: the lock is held, so
    /// that no later opening has a page there.
    pub(crate) fn stop_sharing(&self) {
        if self.background.page_writer.close() {
            // A page that stays shows that its writer is gone: nothing is wrong with it but its age.
            let _ = PageFile::of(self.disk(), self.dir()).remove();
        }
    }
}
