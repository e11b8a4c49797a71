//! Signals that ask a command to stop.
//!
//! A thread of its own waits for SIGINT, SIGTERM and SIGHUP from the first long command on; for SIGHUP not
//! if it was ignored at the start, as `nohup` asks for. The first signal sets the
//! flag that long commands look at, and calls what the running command asked for; the second one ends the
//! process at once, and says so. Both write one line to standard error. Signals within [`SAME`] are one: some
//! programs that end a command send it a signal of its own and one to its group.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use terrane_base::env::Env;
use terrane_base::sync::Mutex;

use crate::exit::{Code, Failure};
use crate::files;

/// Time within which two signals mean the same wish.
const SAME: Duration = Duration::from_millis(300);

type Action = Box<dyn Fn() + Send>;

/// State that the waiting thread and the commands share; one for the process.
#[derive(Clone, Default)]
struct Shared {
    stop: Arc<AtomicBool>,
    action: Arc<Mutex<Option<Action>>>,
}

static SHARED: OnceLock<Result<Shared, Failure>> = OnceLock::new();

/// A flag that the first signal sets, for a long command to end in good order.
///
/// # Errors
/// The system refuses a handler or a thread.
pub(crate) fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    shared().map(|shared| shared.stop)
}

/// As long as the result lives, the first signal calls `action`, too.
///
/// # Errors
/// As [`stop_on_signals`].
pub(crate) fn act_on_signal(action: impl Fn() + Send + 'static) -> Result<Acting, Failure> {
    let shared = shared()?;
    *shared.action.lock() = Some(Box::new(action));
    Ok(Acting { shared })
}

/// As long as the result lives, the first signal ends the process with [`Code::Stopped`] and this message:
/// for work that cannot be stopped in the middle, and leaves nothing behind that the message does not name.
///
/// # Errors
/// As [`stop_on_signals`].
pub(crate) fn exit_on_signal(message: String) -> Result<Acting, Failure> {
    let ended = stopped(&message);
    let acting = act_on_signal(move || {
        eprintln!("terrane: error: stopped by a signal: {message}");
        process::exit(Code::Stopped as i32);
    })?;
    // Acquire: pairs with the swap of the thread that waits, which calls the action behind it: a signal that
    // came before the action was set has called none.
    if acting.shared.stop.load(Ordering::Acquire) { Err(ended) } else { Ok(acting) }
}

/// That a signal ended the work in good order.
pub(crate) fn stopped(how: impl std::fmt::Display) -> Failure {
    Failure::new(Code::Stopped, format!("stopped by a signal: {how}"))
}

/// Forgets the signals so far: what was asked to stop has stopped, and the next command begins.
pub(crate) fn forget_signals() {
    if let Some(Ok(shared)) = SHARED.get() {
        // Release: the thread that waits sees it before the next signal's work.
        shared.stop.store(false, Ordering::Release);
    }
}

/// See [`act_on_signal`].
pub(crate) struct Acting {
    shared: Shared,
}

impl Drop for Acting {
    fn drop(&mut self) {
        *self.shared.action.lock() = None;
    }
}

fn shared() -> Result<Shared, Failure> {
    SHARED.get_or_init(start).clone()
}

fn start() -> Result<Shared, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::new(Code::Other, format!("signal handler: {error}"));
    let shared = Shared::default();
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|error| failed(&error))?;
    if !files::is_signal_ignored(SIGHUP) {
        signals.add_signal(SIGHUP).map_err(|error| failed(&error))?;
    }
    let Shared { stop, action } = shared.clone();
    let clock = Env::real().clock;
    let wait = move || {
        let mut first = Duration::ZERO;
        for signal in signals.forever() {
            // AcqRel: pairs with the loads of commands and with `forget_signals`.
            if stop.swap(true, Ordering::AcqRel) {
                if clock.now().saturating_sub(first) < SAME {
                    continue;
                }
                eprintln!("terrane: second signal: ended at once, without waiting for the running work");
                let _ = signal_hook::low_level::emulate_default_handler(signal);
                process::exit(128 + signal);
            }
            first = clock.now();
            eprintln!("terrane: stopping in good order; a second signal ends at once");
            if let Some(action) = &*action.lock() {
                action();
            }
        }
    };
    // The thread lasts as long as the process: nothing waits for it.
    let spawned = Env::real().spawn.spawn("terrane-signals", Box::new(wait));
    spawned.map(|_| shared).map_err(|error| failed(&error))
}
