//! The close of a database whose last handle was dropped where a close could wait for itself: in a callback,
//! or on a thread of its own background.

use std::sync::Arc;

use crate::engine::Engine;

/// Closes the database on a thread of its own, a little later. Where the system refuses one, a worker closes
/// it between two jobs; if it is the only worker, without a flush. No caller is left for an error.
pub fn close_apart(engine: &Arc<Engine>) {
    debug_assert!(!engine.is_closing(), "the last handle is gone, so no other caller closes it");
    let own = engine.clone();
    let close = Box::new(move || drop(own.close()));
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
    let close = move || {
        // A flush is the work of a worker. Without one the records stay in the journal.
        let _ = if has_other_workers { own.close() } else { own.shut() };
    };
    engine.background.scheduler.hand_over(Box::new(close));
}
