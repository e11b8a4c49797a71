//! Panics of simulated databases: kept for the run that caused them instead of printed.

use std::cell::RefCell;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// The message of the first panic of this thread, if panics are recorded on it.
    static PANIC: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

/// From now on panics of this thread are recorded. Others are reported as before.
pub(crate) fn record() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !note(info) {
                before(info);
            }
        }));
    });
    PANIC.with_borrow_mut(|panic| *panic = Some(None));
}

/// Panics of this thread are reported as before.
pub(crate) fn forget() {
    PANIC.with_borrow_mut(|panic| *panic = None);
}

/// The first panic since the last look.
pub(crate) fn take() -> Option<String> {
    PANIC.with_borrow_mut(|panic| panic.as_mut().and_then(Option::take))
}

fn note(info: &PanicHookInfo<'_>) -> bool {
    PANIC.with_borrow_mut(|panic| match panic {
        Some(first) => {
            first.get_or_insert_with(|| info.to_string().replace('\n', " "));
            true
        }
        None => false,
    })
}
