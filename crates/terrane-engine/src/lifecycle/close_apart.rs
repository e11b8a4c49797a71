//! The close of a database whose last handle was dropped where a close could wait for itself: in a callback,
//! or on a thread of its own background.

use std::sync::Arc;

use terrane_base::Result;
use terrane_base::env::Step;
use terrane_base::options::JournalMode;

use crate::background::job::Look;
use crate::engine::Engine;
use crate::observe::job_kind::JobKinds;
use crate::reentrancy::Working;

/// Closes the database on a thread of its own, a little later. Where the system refuses one, a worker closes
/// it between two jobs; if it is the only worker, it flushes only what no journal keeps. No caller is left
/// for an error: the log gets it.
pub fn close_apart(engine: &Arc<Engine>) {
    debug_assert!(!engine.is_closing(), "the last handle is gone, so no other caller closes it");
    let own = engine.clone();
    let close = Box::new(move || log(&own, own.close()));
    let Err(error) = engine.env.spawn.spawn("terrane-close", close) else { return };
    tracing::error!(
        target: "terrane::close",
        dir = %engine.dir().display(),
        %error,
        "no thread closes the database whose last handle was dropped in a callback: a worker does"
    );
    if engine.options.read_only {
        // It has no workers, and its close waits for no job and writes nothing.
        drop(engine.shut());
        return;
    }
    let has_other_workers = engine.options.background_threads > 1 && engine.env.spawn.stepper().is_none();
    let own = engine.clone();
    let close = move || log(&own, if has_other_workers { own.close() } else { close_alone(&own) });
    engine.background.scheduler.hand_over(Box::new(close));
}

/// The close by the only worker, for whose flush no other one is there. Records stay in the journal; with the
/// journal off they are in memory only, and this worker flushes them.
fn close_alone(engine: &Engine) -> Result<()> {
    debug_assert!(!engine.options.read_only, "a view has no worker that could close it");
    let is_unsafe = engine.options.journal == JournalMode::Off;
    let flushed = if is_unsafe { flush_alone(engine) } else { Ok(()) };
    flushed.and(engine.shut())
}

/// Does the work of the background on this thread until everything is flushed.
fn flush_alone(engine: &Engine) -> Result<()> {
    debug_assert!(engine.options.journal == JournalMode::Off, "the journal has what is not flushed");
    let (_working, scheduler) = (Working::of(engine.instance()), &engine.background.scheduler);
    engine.begin_drain();
    let tables = engine.catalog.all();
    let upto = engine.request_flush(&tables);
    let asked = scheduler.ask(JobKinds::MEMORY, &tables);
    loop {
        let (seen, schedule) = (scheduler.signals(), scheduler.copy_for([]));
        if (Look { engine, schedule: &schedule }).is_flush_done(&tables, upto, asked)? {
            return Ok(());
        }
        match engine.work_step() {
            Step::Worked => {}
            Step::Idle => scheduler.wait_for_signal(seen),
            // Another caller closes it.
            Step::Ended => return Ok(()),
        }
    }
}

#[cold]
fn log(engine: &Engine, closed: Result<()>) {
    let Err(error) = closed else { return };
    let is_lost = engine.options.journal == JournalMode::Off;
    let records =
        if is_lost { "what was not flushed is lost: the journal is off" } else { "the journal has all" };
    tracing::error!(
        target: "terrane::close",
        dir = %engine.dir().display(),
        %error,
        records,
        "the close of the database whose last handle was dropped in a callback failed"
    );
}
