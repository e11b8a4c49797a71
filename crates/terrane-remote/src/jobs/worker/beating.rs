//! The signs of life of a running job, on a thread of their own: the merge may wait for the bucket for longer
//! than a coordinator waits for a sign.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::Result;
use terrane_base::env::{Clock, Env, Joiner};
use terrane_base::sync::{Condvar, Mutex};
use terrane_compaction::{CancelCause, JobControl, Work};

use super::{Ended, Present, Stop};
use crate::jobs::{Beat, Claim};

/// Signs of life in the time after which an attempt is lost.
const BEATS_IN_LOST: u32 = 4;
/// Between two looks whether the worker is asked to stop.
const LOOK: Duration = Duration::from_millis(50);

const _: () = assert!(BEATS_IN_LOST >= 2, "one sign of life may get lost");
const _: () = assert!(!LOOK.is_zero(), "the thread is not busy");

/// A job whose signs of life are given. The thread ends with it, also where a panic passes.
pub(super) struct Beating {
    shared: Arc<Shared>,
    /// None when it was joined.
    thread: Option<Box<dyn Joiner>>,
}

impl Drop for Beating {
    fn drop(&mut self) {
        *self.shared.is_over.lock() = true;
        self.shared.over.notify_all();
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

#[derive(Default)]
struct Shared {
    is_over: Mutex<bool>,
    over: Condvar,
    /// The claim, and why the job was cancelled, when the thread has ended.
    left: Mutex<Option<(Claim, Option<Ended>)>>,
}

impl Shared {
    /// Waits; true if the job is over.
    fn pass(&self, time: Duration) -> bool {
        let mut is_over = self.is_over.lock();
        if !*is_over {
            self.over.wait_for(&mut is_over, time);
        }
        *is_over
    }
}

impl Beating {
    /// Begins: the job of `control` is cancelled when the writer does not wait for it any more.
    ///
    /// # Errors
    /// `Io` if the system refuses a thread; the claim is given back.
    pub(super) fn begin(
        claim: Claim,
        control: Arc<JobControl>,
        stop: Stop,
        (env, present): (&Env, Arc<Present>),
    ) -> Result<Beating> {
        let shared = Arc::new(Shared::default());
        *shared.left.lock() = Some((claim, None));
        let (own, clock) = (shared.clone(), env.clock.clone());
        let body = move || {
            let (mut claim, _) = own.left.lock().take().expect("the thread begins with the claim");
            let job = Job { control: &control, stop: &stop, present: &present, clock: &*clock };
            let stopped = job.beat_until_over(&own, &mut claim);
            if stopped.is_some() {
                control.cancel(CancelCause::Asked);
            }
            *own.left.lock() = Some((claim, stopped));
        };
        match env.spawn.spawn("terrane-beat", Box::new(body)) {
            Ok(thread) => Ok(Beating { shared, thread: Some(thread) }),
            Err(error) => {
                if let Some((claim, _)) = shared.left.lock().take() {
                    // Without it the coordinator waits for the attempt to be lost.
                    let _ = claim.give_back(error.message());
                }
                Err(error)
            }
        }
    }

    /// Ends: returns the claim, and why the job was cancelled if it was.
    pub(super) fn end(self) -> (Claim, Option<Ended>) {
        let shared = self.shared.clone();
        drop(self);
        debug_assert!(shared.left.lock().is_some(), "the thread has left the claim");
        shared.left.lock().take().expect("the thread leaves the claim")
    }
}

/// The thread's view of the job.
struct Job<'j> {
    control: &'j JobControl,
    stop: &'j Stop,
    present: &'j Present,
    clock: &'j dyn Clock,
}

impl Job<'_> {
    /// Gives signs of life until the job is over; the reason if it is to be cancelled.
    fn beat_until_over(&self, shared: &Shared, claim: &mut Claim) -> Option<Ended> {
        let (clock, every) = (self.clock, claim.lost / BEATS_IN_LOST);
        let (mut last, mut next) = (clock.now(), clock.now() + every);
        while !shared.pass(LOOK.min(every)) {
            if self.stop.is_asked() {
                return Some(Ended::GivenBack("the worker was asked to stop".to_owned()));
            }
            let now = clock.now();
            debug_assert!(last <= now, "the clock does not go back");
            if now < next {
                continue;
            }
            self.present.renew();
            match claim.beat(done(&self.control.work())) {
                Ok(Beat::Current) => {
                    last = now;
                    next = now + every;
                }
                Ok(Beat::Withdrawn) => return Some(Ended::Withdrawn),
                Err(error) if clock.now().saturating_sub(last) > claim.lost => {
                    return Some(Ended::GivenBack(format!("no sign of life gets through: {error}")));
                }
                // Tried again at the next look.
                Err(_) => {}
            }
        }
        None
    }
}

/// How far a job is: this changes with each block and each entry that it passes.
fn done(work: &Work) -> u64 {
    let numbers =
        [work.bytes_read, work.bytes_written, work.bytes_relinked, work.entries_in, work.entries_out];
    numbers.iter().fold(0, |sum, number| sum.saturating_add(*number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bucket;
    use crate::bucket::MemoryBucket;
    use crate::bucket::faulty::FaultyBucket;
    use crate::jobs::{Coordinator, JobTable};

    /// A job that is claimed over a bucket that may fail.
    fn claimed(lost: Duration) -> (Coordinator, FaultyBucket, Claim) {
        let env = Env::real();
        let bucket: Arc<dyn Bucket> = Arc::new(MemoryBucket::new(env.clock.clone()));
        let faulty = FaultyBucket::new(bucket.clone());
        let table = |bucket| JobTable::new(bucket, "db", env.random.clone()).expect("a table");
        let coordinator = table(bucket).coordinate(1).expect("the only one");
        coordinator.offer(b"job", 5..9, lost).expect("offered");
        let table = table(Arc::new(faulty.clone()));
        let open = table.list_open().expect("lists");
        let claim = table.claim(open[0], "worker").expect("claims").expect("is open");
        (coordinator, faulty, claim)
    }

    fn present() -> Arc<Present> {
        let (env, clock) = (Env::real(), Env::real().clock);
        let table =
            JobTable::new(Arc::new(MemoryBucket::new(clock.clone())), "db", env.random).expect("a table");
        Arc::new(Present::new(table.presence("worker").expect("a name"), clock))
    }

    fn control() -> Arc<JobControl> {
        Arc::new(JobControl::new(Env::real().clock, None))
    }

    /// Waits until the job is cancelled: a job that never is hangs the test.
    fn ended(claim: Claim, stop: Stop) -> Option<Ended> {
        let control = control();
        let with = (&Env::real(), present());
        let beating = Beating::begin(claim, control.clone(), stop, with).expect("a thread");
        while !control.is_cancelled() {
            std::thread::yield_now();
        }
        beating.end().1
    }

    #[test]
    fn a_worker_that_is_asked_to_stop_cancels_its_job() {
        let (_coordinator, _, claim) = claimed(Duration::from_secs(3600));
        let stop = Stop::default();
        stop.ask();
        assert!(matches!(ended(claim, stop), Some(Ended::GivenBack(why)) if why.contains("asked to stop")));
    }

    #[test]
    fn a_job_that_was_withdrawn_is_cancelled() {
        let (coordinator, _, claim) = claimed(Duration::from_millis(20));
        coordinator.withdraw(claim.id).expect("withdrawn");
        assert_eq!(ended(claim, Stop::default()), Some(Ended::Withdrawn));
    }

    #[test]
    fn a_job_of_a_writer_that_was_replaced_is_cancelled() {
        let (coordinator, _, claim) = claimed(Duration::from_millis(20));
        let next = coordinator.table().coordinate(2).expect("takes over");
        assert_eq!(ended(claim, Stop::default()), Some(Ended::Withdrawn));
        drop(next);
    }

    #[test]
    fn a_job_whose_signs_of_life_do_not_get_through_is_cancelled() {
        let (_coordinator, bucket, claim) = claimed(Duration::from_millis(20));
        bucket.set_down(true);
        let ended = ended(claim, Stop::default());
        assert!(matches!(&ended, Some(Ended::GivenBack(why)) if why.contains("sign of life")), "{ended:?}");
    }

    #[test]
    fn a_job_that_ends_first_is_not_cancelled() {
        let (_coordinator, _, claim) = claimed(Duration::from_secs(3600));
        let control = control();
        let with = (&Env::real(), present());
        let beating = Beating::begin(claim, control.clone(), Stop::default(), with).expect("a thread");
        let (claim, stopped) = beating.end();
        assert!(stopped.is_none() && !control.is_cancelled());
        assert!(claim.finish(b"outcome").expect("reported"));
    }

    #[test]
    fn a_worker_is_seen_while_it_runs_a_job() {
        let (coordinator, _, claim) = claimed(Duration::from_millis(20));
        let (id, table) = (claim.id, coordinator.table().clone());
        let present = Arc::new(Present::new(table.presence("worker").expect("a name"), Env::real().clock));
        let control = control();
        control.show(&Work { entries_in: 5, bytes_read: 8, ..Work::default() });
        let with = (&Env::real(), present);
        let beating = Beating::begin(claim, control, Stop::default(), with).expect("a thread");
        let done = || match coordinator.state(id).expect("state") {
            crate::jobs::JobState::Claimed { done, .. } => done,
            other => panic!("it was claimed: {other:?}"),
        };
        while done() == 0 {
            std::thread::yield_now();
        }
        assert_eq!(done(), 13, "how far the job is");
        assert_eq!(table.workers().expect("lists").len(), 1, "before the first sign of life of the job");
        beating.end();
    }

    #[test]
    fn the_thread_ends_with_what_began_it() {
        let (_coordinator, _, claim) = claimed(Duration::from_secs(3600));
        let control = control();
        let with = (&Env::real(), present());
        drop(Beating::begin(claim, control.clone(), Stop::default(), with).expect("a thread"));
        assert_eq!(Arc::strong_count(&control), 1, "no thread has it");
    }
}
