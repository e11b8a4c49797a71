//! Signals that ask a command to stop.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::exit::Failure;

/// A flag that the first SIGINT or SIGTERM sets, for a long command to end in good order; the second one
/// kills.
///
/// # Errors
/// The system refuses a handler.
pub(crate) fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let registered = signal_hook::flag::register_conditional_default(signal, stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()));
        registered.map_err(|error| Failure::file("signal handler", &error))?;
    }
    Ok(stop)
}
