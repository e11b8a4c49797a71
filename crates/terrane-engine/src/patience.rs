//! Writes that are not held back for longer than their caller says, or not at all.
//!
//! Whoever waits pays first and then writes ([`crate::pressure`]). Whoever may not wait is let in at once if what was let
//! in so before is paid by now, and what it brings has to be paid by the time that follows: so impatient writers come at
//! the rate that is allowed, too, and none is refused without end. What cannot be let in by the deadline is refused at
//! once, before anything was written.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::{Batch, Error, Kind, Result, SeqNo};

use crate::engine::Engine;

/// Bytes that are paid for at once.
const QUANTUM_BYTES: u64 = 64 * 1024;
/// Time between two looks at what is awaited.
const LOOK: Duration = Duration::from_millis(1);

/// Until when, in microseconds of the clock, what impatient writers brought is not paid.
#[derive(Debug, Default)]
pub(crate) struct Unpaid(AtomicU64);

impl Engine {
    /// As [`Engine::write`], but held back until `patience` is over at most; with none, not at all. Bounds how long
    /// pacing, memory and locks hold the batch back together; a sync takes as long as the device.
    ///
    /// # Errors
    /// `Busy` if that was not enough, `TimedOut` if a transaction kept a lock of one of its keys until then: nothing is
    /// written. Otherwise as [`Engine::write`].
    pub fn write_within(&self, batch: &Batch, sync: bool, patience: Duration) -> Result<SeqNo> {
        let until = self.env.clock.now().saturating_add(patience);
        self.commit_admitted(batch, sync, Some(until), |engine| engine.admit_within(batch, patience, until))
    }

    fn admit_within(&self, batch: &Batch, patience: Duration, until: Duration) -> Result<u64> {
        let bytes = self.check_batch(batch)?;
        if !self.pay_within(bytes, until) {
            return Err(self.held_back(patience, "the background has to catch up"));
        }
        if !self.needs_room(bytes) {
            return Ok(0);
        }
        let room = self.room_for(bytes);
        while !self.try_reserve(room) {
            if self.is_closing() {
                return Err(Error::new(Kind::Cancelled, "the database is closing"));
            }
            self.journal.check()?;
            if !wait(&self.env, until) {
                if terrane_base::planted!(WriteThoughHeldBack) {
                    return Ok(0);
                }
                return Err(self.held_back(patience, "write memory is full"));
            }
        }
        Ok(room)
    }

    /// Pays for `bytes` by the time that follows, as soon as what is unpaid is paid; false if that is later than `until`.
    fn pay_within(&self, bytes: u64, until: Duration) -> bool {
        let micros = |time: Duration| time.as_micros() as u64;
        loop {
            let Some(rate) = self.pressure.rate() else { return true };
            let (now, unpaid) = (micros(self.env.clock.now()), self.unpaid.0.load(Ordering::Relaxed));
            // A batch less than a quantum may come early: pauses are that coarse elsewhere, too.
            let grace = (QUANTUM_BYTES as f64 / rate * 1e6) as u64;
            if unpaid <= now.saturating_add(grace) {
                let paid = unpaid.max(now) + (bytes as f64 / rate * 1e6) as u64;
                let taken =
                    self.unpaid.0.compare_exchange(unpaid, paid, Ordering::Relaxed, Ordering::Relaxed);
                if taken.is_ok() {
                    return true;
                }
            } else if unpaid - grace > micros(until) || !wait(&self.env, until) {
                return false;
            }
        }
    }

    #[cold]
    fn held_back(&self, patience: Duration, why: &str) -> Error {
        let message = format!(
            "{why}: the write was not let in within {patience:?} and nothing is written; try again later (pressure {:.2})",
            self.debt()
        );
        Error::new(Kind::Busy, message)
    }
}

/// Lets a little time pass; false if `until` is over.
fn wait(env: &Env, until: Duration) -> bool {
    let now = env.clock.now();
    let time = until.saturating_sub(now).min(LOOK);
    if time.is_zero() {
        return false;
    }
    match env.spawn.stepper() {
        Some(stepper) => stepper.pass(time),
        None => env.clock.sleep(time),
    }
    true
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use terrane_base::TableId;
    use terrane_base::env::Clock;
    use terrane_base::options::Options;
    use terrane_device::MemDisk;

    use super::*;
    use crate::txn::{Concurrency, Transaction, TransactionOptions};

    /// A clock that stands but for sleeps.
    #[derive(Debug, Default)]
    struct ByHand(AtomicU64);

    impl Clock for ByHand {
        fn now(&self) -> Duration {
            Duration::from_micros(self.0.load(Ordering::Relaxed))
        }

        fn wall(&self) -> Duration {
            self.now()
        }

        fn sleep(&self, duration: Duration) {
            self.0.fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
        }
    }

    fn open() -> (Arc<ByHand>, Arc<Engine>) {
        let (clock, options) =
            (Arc::new(ByHand::default()), Options { memory_bytes: 16 << 20, ..Options::default() });
        let env = Env { clock: clock.clone(), ..Env::real() };
        let engine =
            Engine::open_on(Arc::new(MemDisk::new()), Path::new("/db"), &options, env).expect("opens");
        engine.set_background_paused(true);
        (clock, engine)
    }

    fn batch() -> Batch {
        let mut batch = Batch::new();
        batch.put(TableId::DEFAULT, b"k", b"v").expect("fits");
        batch
    }

    /// Were the patience counted anew for locks, this would wait on a clock that stands, without end.
    #[test]
    fn what_admission_took_is_gone_for_locks() {
        let (clock, engine) = open();
        let options = TransactionOptions { concurrency: Concurrency::Pessimistic, ..Default::default() };
        let mut holder = Transaction::begin(engine.clone(), options).expect("begins");
        holder.before_write(TableId::DEFAULT, b"k").expect("nobody has it");
        let until = clock.now() + Duration::from_millis(500);
        let refused = engine.commit_admitted(&batch(), false, Some(until), |_| {
            clock.sleep(Duration::from_millis(500));
            Ok(0)
        });
        assert_eq!(refused.map_err(|error| error.kind()), Err(Kind::TimedOut));
        assert_eq!(engine.visible(), SeqNo(0), "nothing is written");
        drop(holder);
        engine.write_within(&batch(), false, Duration::ZERO).expect("nobody has the lock");
        engine.close().expect("closes");
    }

    #[test]
    fn a_commit_that_panics_gives_its_room_back() {
        let (_, engine) = open();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let room =
                |engine: &Engine| engine.try_reserve(4096).then_some(4096).ok_or_else(|| unreachable!());
            engine.write_by(&batch(), room, || panic!("a bug of the commit"))
        }));
        assert!(panicked.is_err());
        assert_eq!(engine.admitted.load(Ordering::Relaxed), 0);
        engine.close().expect("closes");
    }
}
