//! Hedged reads: a read that takes longer than almost all others is asked for once more, and the first
//! answer counts (Dean and Barroso, "The Tail at Scale", CACM 2013). Objects never change, so either answer
//! is right.
//!
//! * *Which reads.* Short ones of one request, [`SHORT_BYTES_MAX`] at most. The time of a long one is that of
//!   its bytes, which a second request would take from the first.
//! * *When.* Behind the 95th percentile of the times of short reads, and not before [`DELAY_MIN`]. The
//!   percentile is one number: a slower read raises it by 19 parts, a faster one lowers it by one part, so
//!   that it rests where one read in 20 is slower (after Ma, Muthukrishnan and Sandler, "Frugal Streaming for
//!   Estimating Quantiles", 2013). The first [`LEARNED_READS`] reads only teach it.
//! * *How many.* One for 20 reads, with [`SAVED_MAX`] saved up. A store that becomes slow as a whole gets a
//!   twentieth more requests at most.
//!
//! A read that was hedged teaches the time until its answer: that is longer than the percentile was.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use terrane_base::env::{Clock, Env};
use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, Result};
use tokio::time::timeout;

/// Most bytes of a read that is hedged.
const SHORT_BYTES_MAX: u64 = 256 << 10;
/// No read is hedged before that: a store that answers faster has no tail that readers feel.
const DELAY_MIN: Duration = Duration::from_millis(2);
/// Reads that teach the percentile before the first hedge.
const LEARNED_READS: u64 = 100;
/// Reads for which there is one hedge.
const READS_PER_HEDGE: f64 = 20.0;
/// Hedges that are saved up, at most.
const SAVED_MAX: f64 = 10.0;
/// How far one read moves the percentile, as a part of it.
const PART: f64 = 0.005;

/// How often reads were hedged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HedgeCounts {
    /// Reads that were asked for a second time.
    pub hedged: u64,
    /// Of these, reads that the second request answered.
    pub won: u64,
}

impl HedgeCounts {
    /// Those of two buckets.
    #[must_use]
    pub(crate) fn with(self, other: HedgeCounts) -> HedgeCounts {
        HedgeCounts { hedged: self.hedged + other.hedged, won: self.won + other.won }
    }
}

/// The times of the reads of one bucket, and the hedges that it may make.
pub(super) struct Hedge {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The 95th percentile, in seconds.
    percentile: f64,
    reads: u64,
    saved: f64,
    counts: HedgeCounts,
}

impl State {
    /// Takes in the time of a read.
    fn learn(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        self.percentile = match self.reads {
            0 => took,
            _ if took > self.percentile => self.percentile * (1.0 + PART * (READS_PER_HEDGE - 1.0)),
            _ => self.percentile * (1.0 - PART),
        };
        self.reads += 1;
        debug_assert!(self.percentile.is_finite(), "a percentile of times is a time");
    }

    /// When a read that begins now is hedged, and one part of a hedge for it.
    fn begin(&mut self) -> Option<Duration> {
        self.saved = (self.saved + 1.0 / READS_PER_HEDGE).min(SAVED_MAX);
        // The percentile falls by parts and may be as good as nothing: the least delay is above that.
        let learned = self.reads >= LEARNED_READS;
        learned.then(|| Duration::try_from_secs_f64(self.percentile).unwrap_or(Duration::MAX).max(DELAY_MIN))
    }

    /// Takes a hedge, if there is one.
    fn take(&mut self) -> bool {
        let is_there = self.saved >= 1.0;
        if is_there {
            self.saved -= 1.0;
            debug_assert!(self.saved >= 0.0, "a hedge was saved up");
            self.counts.hedged += 1;
        }
        is_there
    }
}

impl Default for Hedge {
    fn default() -> Self {
        Hedge { clock: Env::real().clock, state: Mutex::default() }
    }
}

impl Hedge {
    pub(super) fn counts(&self) -> HedgeCounts {
        self.state.lock().counts
    }

    /// Reads `bytes`; `read` is called a second time if the first answer does not come for long.
    pub(super) async fn read<T, F>(&self, bytes: u64, read: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        if bytes > SHORT_BYTES_MAX {
            return read().await;
        }
        let start = self.clock.now();
        let delay = self.state.lock().begin();
        let answer = self.answer(delay, read).await;
        debug_assert!(self.clock.now() >= start, "an answer comes behind its request");
        if answer.is_ok() {
            self.state.lock().learn(self.clock.now() - start);
        }
        answer
    }

    async fn answer<T, F>(&self, delay: Option<Duration>, read: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut first = pin!(read());
        let Some(delay) = delay else { return first.await };
        if let Ok(answer) = timeout(delay, first.as_mut()).await {
            return answer;
        }
        if !self.state.lock().take() {
            return first.await;
        }
        let (answer, is_second) = first_answer(first, pin!(read())).await;
        self.state.lock().counts.won += u64::from(is_second && answer.is_ok());
        answer
    }
}

/// The answer that comes first; true if the second request gave it. A failure that may be repeated waits for
/// the other request.
async fn first_answer<T, F: Future<Output = Result<T>>>(
    first: Pin<&mut F>,
    second: Pin<&mut F>,
) -> (Result<T>, bool) {
    let fails = |error: &Error| matches!(error.kind(), Kind::Io | Kind::Busy);
    match select(first, second).await {
        Either::Left((Err(error), second)) if fails(&error) => (second.await, true),
        Either::Left((answer, _)) => (answer, false),
        Either::Right((Err(error), first)) if fails(&error) => (first.await, false),
        Either::Right((answer, _)) => (answer, true),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::runtime::{Builder, Runtime};

    use super::*;

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_time().build().expect("a runtime of this thread")
    }

    /// A hedge that has learned that reads take no time, and may hedge.
    fn taught() -> Hedge {
        let hedge = Hedge::default();
        let mut state = hedge.state.lock();
        (0..LEARNED_READS).for_each(|_| state.learn(Duration::from_micros(10)));
        state.saved = 1.0;
        drop(state);
        hedge
    }

    #[derive(Clone, Copy)]
    enum Outcome {
        Never,
        Bytes(u8),
        Fails(Kind),
    }

    /// Reads `bytes` by requests of these outcomes; returns the answer and how many requests there were.
    fn read(hedge: &Hedge, bytes: u64, outcomes: &[Outcome]) -> (Result<u8>, usize) {
        let requests = Cell::new(0);
        let request = || {
            let outcome = outcomes[requests.get()];
            requests.set(requests.get() + 1);
            async move {
                match outcome {
                    Outcome::Never => std::future::pending().await,
                    Outcome::Bytes(byte) => Ok(byte),
                    Outcome::Fails(kind) => Err(Error::new(kind, "as asked for")),
                }
            }
        };
        let answer = runtime().block_on(hedge.read(bytes, request));
        (answer, requests.get())
    }

    #[test]
    fn a_read_whose_answer_does_not_come_is_asked_for_again() {
        let hedge = taught();
        let (answer, requests) = read(&hedge, 100, &[Outcome::Never, Outcome::Bytes(7)]);
        assert_eq!((answer.expect("the second answers"), requests), (7, 2));
        assert_eq!(hedge.counts(), HedgeCounts { hedged: 1, won: 1 });
        assert!(hedge.state.lock().saved < 1.0, "it has taken the hedge");
    }

    #[test]
    fn a_hedge_that_fails_leaves_the_first_request() {
        let hedge = taught();
        let (requests, has_failed) = (Cell::new(0), tokio::sync::Notify::new());
        let request = || {
            requests.set(requests.get() + 1);
            let is_second = requests.get() == 2;
            let has_failed = &has_failed;
            async move {
                if is_second {
                    has_failed.notify_one();
                    return Err(Error::new(Kind::Io, "as asked for"));
                }
                has_failed.notified().await;
                Ok(1)
            }
        };
        let answer = runtime().block_on(hedge.read(1, request));
        assert_eq!((answer.expect("the first answers"), requests.get()), (1, 2));
        assert_eq!(hedge.counts(), HedgeCounts { hedged: 1, won: 0 });
        // An answer that no repetition changes is the answer.
        let hedge = taught();
        let (answer, _) = read(&hedge, 1, &[Outcome::Never, Outcome::Fails(Kind::NotFound)]);
        assert_eq!(answer.expect_err("it is not there").kind(), Kind::NotFound);
        assert_eq!(hedge.counts(), HedgeCounts { hedged: 1, won: 0 });
    }

    #[test]
    fn hedges_are_few_and_of_short_reads() {
        let hedge = taught();
        let fast = |bytes| read(&hedge, bytes, &[Outcome::Bytes(1), Outcome::Bytes(2)]);
        assert_eq!(fast(SHORT_BYTES_MAX).1, 1);
        let before = hedge.state.lock().reads;
        assert_eq!(fast(SHORT_BYTES_MAX + 1).1, 1);
        assert_eq!(hedge.state.lock().reads, before, "a long read teaches nothing");
        // Every read is slow: one in 20 is hedged.
        let mut state = hedge.state.lock();
        state.saved = 0.0;
        let hedged = (0..1000).filter(|_| state.begin().is_some() && state.take()).count();
        assert!((48..=50).contains(&hedged), "{hedged} of 1000");
        // A bucket at rest saves up a few.
        state.saved = 0.0;
        for _ in 0..1000 {
            let _ = state.begin();
        }
        let hedged = (0..1000).filter(|_| state.take()).count();
        assert_eq!(hedged, SAVED_MAX as usize);
        state.reads = LEARNED_READS - 1;
        assert_eq!(state.begin(), None, "the percentile is not known yet");
    }

    #[test]
    fn one_read_in_twenty_is_slower_than_the_percentile() {
        let mut state = State::default();
        let mut random = terrane_base::Rng::new(7);
        // Most take 10 to 20 ms, one in ten takes 100 to 200.
        let draw = |random: &mut terrane_base::Rng| {
            let micros = 10_000 + random.below(10_000);
            Duration::from_micros(if random.one_in(10) { micros * 10 } else { micros })
        };
        (0..5_000).for_each(|_| state.learn(draw(&mut random)));
        let delay = |state: &mut State| state.begin().expect("it has learned");
        let slower = (0..5_000).filter(|_| draw(&mut random) > delay(&mut state)).count();
        assert!((100..500).contains(&slower), "{slower} of 5000, expected about 250");
        // It follows a store that becomes faster, down to the least delay.
        (0..5_000).for_each(|_| state.learn(Duration::from_micros(100)));
        assert_eq!(delay(&mut state), DELAY_MIN);
    }
}
