//! Tries again, and finds out what happened.
//!
//! A request whose answer is lost may have had its effect. Reads, lists and deletions are repeated. A
//! creation that finds an object after an attempt whose outcome is unknown reads the object: if it has the
//! caller's bytes, the caller created it.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result};
use terrane_storage::BucketRequests;

use super::counting::CountingBucket;
use super::{Bucket, BucketSettings, Create, HedgeCounts, Listed, Pending, names};

/// Most bytes, from the end of an object, that are compared to find out whose it is.
const COMPARED_BYTES_MAX: u64 = 1 << 20;

/// Attempts that are made in any case: a request may be waited for long after it was begun.
pub(super) const ATTEMPTS_MIN: u32 = 4;

/// How long a request is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// The pause before the second attempt; each further one is twice as long, up to `pause_max`.
    pub pause_min: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// No further attempt begins after this time since the first one, but for a few.
    pub deadline: Duration,
}

impl Default for RetryLimits {
    /// 50 ms, 2 s, and one minute in all.
    fn default() -> Self {
        RetryLimits {
            pause_min: Duration::from_millis(50),
            pause_max: Duration::from_secs(2),
            deadline: Duration::from_secs(60),
        }
    }
}

/// Repeats the requests of another bucket that fail as `Io` or `Busy`, and counts all attempts.
///
/// The first attempt is made at once, further ones by the thread that waits. Requests that were begun
/// together have one deadline.
#[derive(Clone, Debug)]
pub struct RetryingBucket {
    inner: CountingBucket,
    settings: BucketSettings,
    env: Env,
}

impl RetryingBucket {
    /// Repeats the requests of `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Bucket>, limits: RetryLimits, env: Env) -> Self {
        Self::with_settings(inner, BucketSettings { limits, ..BucketSettings::default() }, env)
    }

    /// Repeats the requests of `inner`, which was opened with these settings.
    #[must_use]
    pub(super) fn with_settings(inner: Arc<dyn Bucket>, settings: BucketSettings, env: Env) -> Self {
        assert!(settings.attempts_min > 0, "the first attempt is made in any case");
        RetryingBucket { inner: CountingBucket::new(inner), settings, env }
    }

    /// Repeats an attempt, of which the first was made at `start`, until it succeeds, fails for good or takes
    /// too long.
    fn repeat<T>(
        &self,
        what: &str,
        name: &str,
        start: Duration,
        first: Result<T>,
        mut attempt: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        let (mut result, mut pause, mut attempts) = (first, self.settings.limits.pause_min, 1u32);
        loop {
            let error = match result {
                Err(error) if matches!(error.kind(), Kind::Io | Kind::Busy) => error,
                ended => return ended,
            };
            let took = self.env.clock.now().saturating_sub(start);
            let is_late = took + pause > self.settings.limits.deadline;
            if is_late && attempts >= self.settings.attempts_min {
                return Err(self.give_up(what, name, (attempts, took), error));
            }
            self.env.clock.sleep(self.jittered(pause));
            pause = (pause * 2).min(self.settings.limits.pause_max);
            attempts += 1;
            result = attempt();
        }
    }

    /// Between half of the pause and all of it, so that writers that failed together do not repeat together.
    fn jittered(&self, pause: Duration) -> Duration {
        let micros = pause.as_micros() as u64;
        Duration::from_micros(micros / 2 + self.env.random.next_u64() % (micros / 2 + 1))
    }

    #[cold]
    fn give_up(&self, what: &str, name: &str, (attempts, took): (u32, Duration), error: Error) -> Error {
        let place = names::place(self.inner.url(), name);
        let seconds = self.settings.limits.deadline.max(took).as_secs();
        let named = if attempts == 1 { "attempt" } else { "attempts" };
        let message = format!(
            "cannot {what} {place}: {attempts} {named} in {seconds} s failed; see whether the object \
             store can be reached and has no trouble"
        );
        error.context(message)
    }

    /// One attempt to create, after one whose outcome is not known.
    fn create_again(&self, name: &str, parts: &[Bytes]) -> Result<Create> {
        match self.inner.begin_create(name, parts.to_vec()).wait()? {
            Create::Created => Ok(Create::Created),
            Create::AlreadyExists => self.whose(name, parts),
        }
    }

    /// Says whether an object that exists has the caller's bytes, and so is what an earlier attempt created.
    fn whose(&self, name: &str, parts: &[Bytes]) -> Result<Create> {
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let compared = len.min(COMPARED_BYTES_MAX);
        // One byte more shows an object that is longer, if all of it is compared.
        let asked = if compared == len { compared + 1 } else { compared };
        let found = self.inner.get_tail(name, asked)?;
        let own = tail(parts, compared as usize);
        let is_own = found == own || terrane_base::planted!(TrustExistingObject);
        Ok(if is_own { Create::Created } else { Create::AlreadyExists })
    }

    fn create_to_the_end(
        &self,
        name: &str,
        parts: &[Bytes],
        start: Duration,
        first: Result<Create>,
    ) -> Result<Create> {
        // Some stores refuse a creation while another one of the same name is under way, and the other may
        // fail: an object that is said to exist must be there.
        let first = first.and_then(|created| match created {
            Create::Created => Ok(created),
            Create::AlreadyExists => match self.inner.get_tail(name, 1) {
                Err(error) if error.kind() == Kind::NotFound => Err(error.with_kind(Kind::Busy)),
                _ => Ok(created),
            },
        });
        self.repeat("create", name, start, first, || match self.create_again(name, parts) {
            // It existed a moment ago: another writer collects garbage.
            Err(error) if error.kind() == Kind::NotFound => Err(error.with_kind(Kind::Busy)),
            // An earlier attempt may have had its effect, which a later refusal would deny.
            Err(error) if error.kind() != Kind::Busy => Err(error.with_kind(Kind::Io)),
            created => created,
        })
    }
}

/// The last `len` bytes of the parts.
fn tail(parts: &[Bytes], len: usize) -> Vec<u8> {
    let mut missing = len;
    let mut pieces = Vec::new();
    for part in parts.iter().rev() {
        let start = part.len().saturating_sub(missing);
        missing -= part.len() - start;
        pieces.push(&part[start..]);
    }
    debug_assert_eq!(missing, 0, "the parts have as many bytes");
    pieces.reverse();
    pieces.concat()
}

impl Bucket for RetryingBucket {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn syncs_groups(&self) -> bool {
        self.inner.syncs_groups()
    }

    fn is_crowded(&self) -> bool {
        self.inner.is_crowded()
    }

    fn is_failed(&self) -> bool {
        self.inner.is_failed()
    }

    fn hedges(&self) -> HedgeCounts {
        self.inner.hedges()
    }

    fn requests(&self) -> BucketRequests {
        self.inner.requests()
    }

    fn settings(&self) -> BucketSettings {
        self.settings
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        let (start, first) = (self.env.clock.now(), self.inner.begin_create(name, parts.clone()));
        let (bucket, name) = (self.clone(), name.to_owned());
        Pending::new(move || bucket.create_to_the_end(&name, &parts, start, first.wait()))
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        let (start, first) = (self.env.clock.now(), self.inner.begin_get_ranges(name, ranges.clone()));
        let (bucket, name) = (self.clone(), name.to_owned());
        Pending::new(move || {
            bucket.repeat("read", &name, start, first.wait(), || {
                bucket.inner.begin_get_ranges(&name, ranges.clone()).wait()
            })
        })
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        self.repeat("read", name, self.env.clock.now(), self.inner.get_tail(name, bytes_max), || {
            self.inner.get_tail(name, bytes_max)
        })
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        self.repeat("list", folder, self.env.clock.now(), self.inner.list(folder, after), || {
            self.inner.list(folder, after)
        })
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        let first = names.first().map_or("", String::as_str);
        self.repeat("delete", first, self.env.clock.now(), self.inner.delete(names), || {
            self.inner.delete(names)
        })
    }
}
