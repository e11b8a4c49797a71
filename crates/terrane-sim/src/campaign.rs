//! Many runs on several threads, with figures while they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use terrane_base::Result;
use terrane_base::env::Spawn;

/// Numbered work; each number is done by the next free thread.
pub trait Job: Send + Sync + 'static {
    /// The figures of the work, which are summed.
    type Sum: Default + Clone + Send;

    /// Does the work of one number; says what was wrong, if something was.
    fn work(&self, number: u64, sum: &mut Self::Sum) -> Option<String>;

    /// Adds a sum to another.
    fn add(sum: &mut Self::Sum, other: &Self::Sum);
}

/// How far a campaign has come.
#[derive(Clone, Debug, Default)]
pub struct State<S> {
    /// Numbers done.
    pub done: u64,
    /// Their figures, summed.
    pub sum: S,
    /// The failures, by number.
    pub failures: Vec<(u64, String)>,
}

struct Shared<J: Job> {
    job: J,
    next: AtomicU64,
    end: u64,
    failures_max: usize,
    is_stopped: AtomicBool,
    state: Mutex<State<J::Sum>>,
}

/// Runs under way.
pub struct Campaign<J: Job> {
    shared: Arc<Shared<J>>,
    threads: Vec<Box<dyn terrane_base::env::Joiner>>,
}

impl<J: Job> Campaign<J> {
    /// Starts `threads` threads on the numbers from `start` to below `end`; stops after `failures_max`
    /// failures.
    ///
    /// # Errors
    /// `Io` if no thread can be started.
    pub fn start(
        job: J,
        numbers: std::ops::Range<u64>,
        threads: u64,
        failures_max: usize,
        spawn: &dyn Spawn,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            job,
            next: AtomicU64::new(numbers.start),
            end: numbers.end,
            failures_max,
            is_stopped: AtomicBool::new(false),
            state: Mutex::new(State { done: 0, sum: J::Sum::default(), failures: Vec::new() }),
        });
        let mut campaign = Campaign { shared, threads: Vec::new() };
        for number in 0..threads.max(1) {
            let shared = Arc::clone(&campaign.shared);
            let body = Box::new(move || shared.work());
            campaign.threads.push(spawn.spawn(&format!("terrane-sim-{number}"), body)?);
        }
        Ok(campaign)
    }

    /// How far it is.
    #[must_use]
    pub fn state(&self) -> State<J::Sum> {
        self.shared.state.lock().clone()
    }

    /// Returns true if nothing is left to begin.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.shared.is_over()
    }

    /// Begins no further run.
    pub fn stop(&self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Waits for the runs that were begun.
    #[must_use]
    pub fn finish(mut self) -> State<J::Sum> {
        for thread in self.threads.drain(..) {
            thread.join();
        }
        self.state()
    }
}

impl<J: Job> Shared<J> {
    fn is_over(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed) || self.next.load(Ordering::Relaxed) >= self.end
    }

    fn work(&self) {
        while !self.is_stopped.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.end {
                return;
            }
            let mut sum = J::Sum::default();
            let failure = self.job.work(number, &mut sum);
            let mut state = self.state.lock();
            state.done += 1;
            J::add(&mut state.sum, &sum);
            state.failures.extend(failure.map(|failure| (number, failure)));
            if state.failures.len() >= self.failures_max {
                self.is_stopped.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// The runs of seeds.
#[derive(Clone, Debug)]
pub struct Seeds {
    /// Operations of each.
    pub operations: u64,
    /// Runs that shrinking a failure may take.
    pub shrink_runs: u64,
}

impl Job for Seeds {
    type Sum = crate::Outcome;

    fn work(&self, seed: u64, sum: &mut crate::Outcome) -> Option<String> {
        let script = crate::generate(seed, self.operations);
        match crate::run(&script) {
            Ok(outcome) => {
                sum.add(&outcome);
                None
            }
            Err(first) => Some(match crate::shrink(&script, self.shrink_runs) {
                Some((short, failure)) => format!("# seed {seed}: {}\n{short}", failure.message),
                None => format!("# seed {seed}: {}; a second run did not fail!\n{script}", first.message),
            }),
        }
    }

    fn add(sum: &mut crate::Outcome, other: &crate::Outcome) {
        sum.add(other);
    }
}
