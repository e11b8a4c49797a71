//! Writes that are not held back for longer than their caller says, or not at all.
//!
//! Whoever waits pays first and then writes ([`crate::pressure`]). Whoever may not wait is let in at once if what was let
//! in so before is paid by now, and what it brings has to be paid by the time that follows: so impatient writers come at
//! the rate that is allowed, too, and none is refused without end. What cannot be let in by the deadline is refused at
//! once, before anything was written.

use std::time::Duration;

use terrane_base::{Batch, Error, Kind, Result, SeqNo};

use crate::engine::Engine;

impl Engine {
    /// As [`Engine::write`], but held back until `patience` is over at most; with none, not at all. Bounds how long
    /// pacing, memory and locks hold the batch back together; a sync takes as long as the device.
    ///
    /// # Errors
    /// `Busy` if that was not enough, `TimedOut` if a transaction kept a lock of one of its keys until then: nothing is
    /// written. Otherwise as [`Engine::write`].
    pub fn write_within(&self, batch: &Batch, sync: bool, patience: Duration) -> Result<SeqNo> {
        let until = self.env.clock.now().saturating_add(patience);
        self.commit_admitted(batch, sync, Some(until), |engine| {
            engine.admit_within(batch, patience, Some(until))
        })
    }

    /// Lets the batch in by `until`, or if that is not given by the end of its patience, which begins now.
    pub(crate) fn admit_within(
        &self,
        batch: &Batch,
        patience: Duration,
        until: Option<Duration>,
    ) -> Result<u64> {
        let bytes = self.check_batch(batch)?;
        if !self.pressure.is_slowing() && !self.needs_room(bytes) {
            return Ok(0);
        }
        let start = self.env.clock.now();
        let until = until.unwrap_or_else(|| start.saturating_add(patience));
        let admitted = self.admit_until(batch, bytes, patience, until);
        self.note_held_back(self.env.clock.now().saturating_sub(start));
        admitted
    }

    #[cold]
    fn admit_until(&self, batch: &Batch, bytes: u64, patience: Duration, until: Duration) -> Result<u64> {
        if !self.pay_within(batch, until) {
            return Err(self.held_back(patience, "the background has to catch up"));
        }
        if !self.needs_room(bytes) {
            return Ok(0);
        }
        let mut waited = Duration::ZERO;
        match self.reserve(bytes, Some(until), &mut waited) {
            Err(error) if error.kind() == Kind::Busy && terrane_base::planted!(WriteThoughHeldBack) => Ok(0),
            Err(error) if error.kind() == Kind::Busy => Err(self.held_back(patience, error.message())),
            reserved => reserved,
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use terrane_base::TableId;
    use terrane_base::env::{Clock, Env};
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
