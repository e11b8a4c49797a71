//! The state of each thread that reads and writes need, in one thread-local variable.
//!
//! A shared library reaches each thread-local variable by a call (`__tls_get_addr`); the compiler makes one
//! call of all accesses to the same variable within a function. So what one operation needs is here, not in
//! a variable of each module: its modules have the functions. Without a destructor, and made at compile time:
//! in a program an access is an offset from the thread's own register, and it works while the thread ends.

use std::cell::{Cell, RefCell};
use std::ptr::null;

use crossbeam_epoch::LocalHandle;

use crate::counters::ReadCells;
use crate::sampling::Countdown;

/// See the [module](self).
pub(crate) struct ThreadCells {
    /// Of [`crate::counters`].
    pub(crate) reads: ReadCells,
    /// Of [`crate::sampling`].
    pub(crate) countdown: Countdown,
    /// The same of commits.
    pub(crate) commit_countdown: Countdown,
    /// Of [`crate::epoch`]: the thread's handle, while it is there.
    pub(crate) epoch: Cell<*const RefCell<LocalHandle>>,
    /// Of [`crate::callback`]: nested callbacks.
    pub(crate) callback_depth: Cell<u32>,
    /// Of [`crate::sync::thread_number`]; `usize::MAX` before it is asked for.
    pub(crate) number: Cell<usize>,
}

thread_local! {
    static CELLS: ThreadCells = const {
        ThreadCells {
            reads: ReadCells::new(),
            countdown: Countdown::new(),
            commit_countdown: Countdown::new(),
            epoch: Cell::new(null()),
            callback_depth: Cell::new(0),
            number: Cell::new(usize::MAX),
        }
    };
}

/// Calls `access` with the cells of the calling thread.
#[inline]
pub(crate) fn with<R>(access: impl FnOnce(&ThreadCells) -> R) -> R {
    CELLS.with(access)
}
