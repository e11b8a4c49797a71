//! Where a database must not be changed or waited for: on a thread of its own background, and inside a
//! callback of the user on any thread ([`terrane_base::callback`]).
//!
//! A write, flush or checkpoint that runs there could wait for itself. It gets an error instead.
//! A listener is not a part of other work: it may change other databases, and close its own.

use std::cell::Cell;

use terrane_base::{Error, Result, callback};

thread_local! {
    /// The instance whose background this thread is; 0 for every other thread.
    static WORKS_FOR: Cell<u64> = const { Cell::new(0) };
}

/// This thread is a worker of a database, until dropped.
pub(crate) struct Working(u64);

impl Working {
    pub(crate) fn of(instance: u64) -> Working {
        Working(WORKS_FOR.replace(instance))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        WORKS_FOR.set(self.0);
    }
}

/// Returns true if this thread is one of the background of the engine with this number.
pub(crate) fn works_for(instance: u64) -> bool {
    WORKS_FOR.get() == instance
}

/// Refuses a call that could wait for the thread that makes it.
///
/// # Errors
/// `Invalid` on a thread of the background of the engine with this number, and in a callback.
#[inline]
pub(crate) fn refuse(instance: u64) -> Result<()> {
    if terrane_base::planted!(WaitForItself) {
        return Ok(());
    }
    callback::refuse()?;
    if works_for(instance) { Err(on_own_thread()) } else { Ok(()) }
}

#[cold]
fn on_own_thread() -> Error {
    Error::invalid(
        "a callback on a thread of the database's background cannot change the database, nor wait for it: hand the \
         work to a thread of your own",
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use terrane_base::env::Env;
    use terrane_base::options::Options;
    use terrane_base::{Batch, Kind, TableId};
    use terrane_device::MemDisk;

    use super::*;
    use crate::engine::Engine;

    fn open(dir: &str) -> Arc<Engine> {
        let options = Options { memory_bytes: 16 << 20, ..Options::default() };
        Engine::open_on(Arc::new(MemDisk::new()), Path::new(dir), &options, Env::real()).expect("opens")
    }

    #[test]
    fn a_worker_cannot_wait_for_itself() {
        let (engine, other) = (open("/a"), open("/b"));
        let mut batch = Batch::new();
        batch.put(TableId::DEFAULT, b"k", b"v").expect("fits");
        let all = |engine: &Engine| {
            [
                engine.write(&batch, false).map(drop),
                engine.write_within(&batch, false, Duration::ZERO).map(drop),
                engine.flush(),
                engine.sync(),
                engine.create_table("t", &[]).map(drop),
                engine.checkpoint(Path::new("/copy")).map(drop),
            ]
        };
        let working = Working::of(engine.instance());
        for refused in all(&engine) {
            assert_eq!(refused.map_err(|error| error.kind()), Err(Kind::Invalid));
        }
        all(&other).into_iter().for_each(|done| done.expect("another database"));
        drop(working);
        all(&engine).into_iter().for_each(|done| done.expect("a thread of the user's"));
        engine.close().expect("closes");
        other.close().expect("closes");
    }
}
