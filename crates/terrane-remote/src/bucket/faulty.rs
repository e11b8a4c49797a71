//! A bucket that fails and lies as a test asks it to.
//!
//! Every call has a number, from 0. A test counts the calls of a run, then fails each of them once; or calls
//! fail at random, by a seed. What a run did is the same for the same calls.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, Result, Rng};

use super::{Bucket, BucketSettings, Create, Listed, Pending, names};

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It has no effect, and may be repeated.
    Before,
    /// It has its effect, but the answer is lost.
    After,
    /// It has no effect: the service has too much to do, and may be asked again.
    Busy,
    /// It has no effect, and an error that no repetition helps against.
    Refused,
    /// It has no effect, and panics: a bug of whatever called it.
    Panics,
}

/// How the store breaks a promise, in every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lie {
    /// A creation of an object that exists claims success and leaves the object.
    EveryoneCreates,
    /// A creation of an object that exists replaces it.
    Replaces,
    /// A creation is lost after it was confirmed.
    Forgets,
    /// The object that was created last is not found by reads.
    ReadsLate,
    /// The object that was created last is not in lists.
    ListsLate,
    /// Lists begin with the first name, whatever `after` says.
    ListsAll,
    /// Ranges begin one byte later, and tails at the object's first byte.
    ShiftsRanges,
    /// Deletions do nothing.
    KeepsDeleted,
}

/// Passes calls to another bucket, but for those that fail. Clones are handles of the same bucket.
#[derive(Clone, Debug)]
pub struct FaultyBucket {
    inner: Arc<dyn Bucket>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    calls: u64,
    planned: BTreeMap<u64, Fault>,
    /// One call in so many fails.
    one_in: Option<u64>,
    rng: Rng,
    lies: BTreeSet<Lie>,
    /// True while every call fails without effect.
    is_down: bool,
    /// Every call from this number on fails without effect.
    fails_from: u64,
    last_created: String,
}

impl FaultyBucket {
    /// Passes calls to `inner`; none fails until a fault is set.
    #[must_use]
    pub fn new(inner: Arc<dyn Bucket>) -> Self {
        let state = State {
            calls: 0,
            planned: BTreeMap::new(),
            one_in: None,
            rng: Rng::new(0),
            lies: BTreeSet::new(),
            is_down: false,
            fails_from: u64::MAX,
            last_created: String::new(),
        };
        FaultyBucket { inner, state: Arc::new(Mutex::new(state)) }
    }

    /// The number of the next call: how many there were.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state.lock().calls
    }

    /// Lets the call of this number fail.
    pub fn fail(&self, call: u64, fault: Fault) {
        self.state.lock().planned.insert(call, fault);
    }

    /// Lets one call in `one_in` fail, as `seed` says, with its effect or without. 0 ends it.
    pub fn fail_at_random(&self, one_in: u64, seed: u64) {
        let mut state = self.state.lock();
        state.one_in = Some(one_in).filter(|one_in| *one_in > 0);
        state.rng = Rng::new(seed);
    }

    /// Lets every call fail without effect, or ends that.
    pub fn set_down(&self, is_down: bool) {
        self.state.lock().is_down = is_down;
    }

    /// Lets every call from this number on fail without effect.
    pub fn fail_from(&self, call: u64) {
        self.state.lock().fails_from = call;
    }

    /// Breaks a promise from now on.
    pub fn lie(&self, lie: Lie) {
        self.state.lock().lies.insert(lie);
    }

    /// Counts a call and says how it fails.
    fn next(&self) -> Option<Fault> {
        let mut state = self.state.lock();
        let call = state.calls;
        state.calls += 1;
        let random = state.one_in.is_some_and(|one_in| state.rng.one_in(one_in));
        let random = random.then(|| *state.rng.pick(&[Fault::Before, Fault::After]));
        let down = (state.is_down || call >= state.fails_from).then_some(Fault::Before);
        state.planned.remove(&call).or(down).or(random)
    }

    fn lies(&self, lie: Lie) -> bool {
        self.state.lock().lies.contains(&lie)
    }

    fn call<T>(&self, name: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let error =
            |kind, what: &str| Error::new(kind, format!("{}: {what}", names::place(self.inner.url(), name)));
        match self.next() {
            None => body(),
            Some(Fault::Before) => Err(error(Kind::Io, "an injected fault before the call")),
            Some(Fault::Busy) => Err(error(Kind::Busy, "an injected refusal for now")),
            Some(Fault::Refused) => Err(error(Kind::Invalid, "an injected refusal")),
            Some(Fault::Panics) => std::panic::panic_any("an injected panic"),
            Some(Fault::After) => {
                // The call is made, and its outcome is lost.
                drop(body());
                Err(error(Kind::Io, "an injected fault behind the call"))
            }
        }
    }

    fn create_now(&self, name: &str, parts: Vec<Bytes>) -> Result<Create> {
        if self.lies(Lie::Forgets) {
            return Ok(Create::Created);
        }
        if self.lies(Lie::Replaces) {
            self.inner.delete(&[name.to_owned()])?;
        }
        let created = self.inner.begin_create(name, parts).wait()?;
        if created == Create::Created {
            name.clone_into(&mut self.state.lock().last_created);
        }
        Ok(if self.lies(Lie::EveryoneCreates) { Create::Created } else { created })
    }

    fn check_visible(&self, name: &str) -> Result<()> {
        let state = self.state.lock();
        let is_late = state.lies.contains(&Lie::ReadsLate) && state.last_created == name;
        if is_late { Err(super::missing(self.inner.url(), name)) } else { Ok(()) }
    }
}

impl Bucket for FaultyBucket {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn settings(&self) -> BucketSettings {
        self.inner.settings()
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

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        Pending::ready(self.call(name, || self.create_now(name, parts)))
    }

    fn begin_get_ranges(&self, name: &str, mut ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        let read = self.call(name, || {
            self.check_visible(name)?;
            if self.lies(Lie::ShiftsRanges) {
                ranges = ranges.into_iter().map(|range| range.start + 1..range.end + 1).collect();
            }
            self.inner.begin_get_ranges(name, ranges).wait()
        });
        Pending::ready(read)
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        self.call(name, || {
            self.check_visible(name)?;
            if self.lies(Lie::ShiftsRanges) {
                let whole = self.inner.get_tail(name, u64::MAX)?;
                return Ok(whole.slice(..whole.len().min(usize::try_from(bytes_max).unwrap_or(usize::MAX))));
            }
            self.inner.get_tail(name, bytes_max)
        })
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        self.call(folder, || {
            let after = after.filter(|_| !self.lies(Lie::ListsAll));
            let mut listed = self.inner.list(folder, after)?;
            if self.lies(Lie::ListsLate) {
                let state = self.state.lock();
                listed.retain(|object| object.name != state.last_created);
            }
            Ok(listed)
        })
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        let first = names.first().map_or("", String::as_str);
        self.call(first, || if self.lies(Lie::KeepsDeleted) { Ok(()) } else { self.inner.delete(names) })
    }
}
