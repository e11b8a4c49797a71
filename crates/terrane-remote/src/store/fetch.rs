//! Requests for ranges of objects, which readers share, with the tier in front of them.
//!
//! A reader that wants a range that another one has asked for waits for the same call. A reader of a few
//! blocks asks for whole frames where there is a tier, and they come in once the answer is there. Bulk reads,
//! of compactions and ahead of scans, use the tier and do not come in: they would be read once.
//!
//! Lock order: the answer of a new call, which no other reader knows yet, then `Flights`. No answer is locked
//! under `Flights`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, Result};

use super::names::DataName;
use super::places::Places;
use super::read::Wanted;
use crate::bucket::Pending;
use crate::tier::{self, FRAME_PAYLOAD_BYTES, ObjectKey, Tier};

/// Longest read that brings its frames into the tier.
const COMES_IN_BYTES_MAX: u64 = 4 * FRAME_PAYLOAD_BYTES;

/// Calls that are under way, by object.
type Flights = Mutex<BTreeMap<DataName, Vec<Weak<Call>>>>;

/// The buckets from which ranges of objects are read.
#[derive(Clone, Debug)]
pub(super) struct Source {
    places: Arc<Places>,
    flights: Arc<Flights>,
    pub(super) tier: Option<Arc<Tier>>,
}

/// A range of an object that was asked for.
pub(super) enum Asked {
    Tiered(tier::Found),
    Called(Share),
}

/// One range of a call.
pub(super) struct Share {
    call: Arc<Call>,
    at: usize,
}

/// One call that reads ranges of one object.
#[derive(Debug)]
struct Call {
    name: DataName,
    ranges: Vec<AskedRange>,
    answer: Mutex<Answer>,
    flights: Weak<Flights>,
}

#[derive(Clone, Debug)]
struct AskedRange {
    range: Range<u64>,
    /// Where the bytes go when they are there.
    into: Option<Into>,
}

#[derive(Clone, Debug)]
struct Into {
    tier: Arc<Tier>,
    key: ObjectKey,
    object_bytes: u64,
}

#[derive(Debug)]
enum Answer {
    Begun(Pending<Vec<Bytes>>),
    Here(Vec<Bytes>),
    Failed(Error),
}

impl Source {
    pub(super) fn new(places: Arc<Places>) -> Self {
        Source { places, flights: Arc::default(), tier: None }
    }

    /// Looks for a range in the tier.
    pub(super) fn find(&self, wanted: &Wanted) -> Option<Asked> {
        let found = self.tier.as_ref()?.find(wanted.key.as_ref()?, &wanted.range)?;
        Some(Asked::Tiered(found))
    }

    /// Starts to read ranges of one object by one call, but for those that a call under way brings.
    pub(super) fn call(&self, wanted: &[&Wanted]) -> Vec<Asked> {
        let Some(name) = wanted.first().map(|wanted| wanted.name) else { return Vec::new() };
        // Dropped behind the lock: the drop of a call takes it.
        let under_way: Vec<Arc<Call>>;
        let mut flights = self.flights.lock();
        under_way = flights.get(&name).into_iter().flatten().filter_map(Weak::upgrade).collect();
        // A call that ended since the reader looked into the tier has left its frames there.
        let tiered = |wanted: &Wanted| {
            let found = self.tier.as_ref()?.find_again(wanted.key.as_ref()?, &wanted.range);
            found.map(Asked::Tiered)
        };
        let known = |wanted: &&Wanted| {
            let joined = Share::of(&under_way, &wanted.range).map(Asked::Called);
            joined.or_else(|| tiered(wanted))
        };
        let joined: Vec<Option<Asked>> = wanted.iter().map(known).collect();
        let mut ranges: Vec<AskedRange> = Vec::new();
        for (wanted, _) in wanted.iter().zip(&joined).filter(|(_, joined)| joined.is_none()) {
            if !ranges.iter().any(|asked| covers(&asked.range, &wanted.range)) {
                ranges.push(self.range_of(wanted));
            }
        }
        let answer = Mutex::new(Answer::Failed(Error::new(Kind::Cancelled, "the read was not begun")));
        let own = Arc::new(Call { name, ranges, answer, flights: Arc::downgrade(&self.flights) });
        if own.ranges.is_empty() {
            drop(flights);
        } else {
            // The call is known before it begins, so that no second reader begins one meanwhile; one that
            // joins it waits for this lock.
            let mut answer = own.answer.lock();
            flights.entry(name).or_default().push(Arc::downgrade(&own));
            drop(flights);
            let ranges = own.ranges.iter().map(|asked| asked.range.clone()).collect();
            *answer = Answer::Begun(match self.places.of(name) {
                Ok((bucket, text)) => bucket.begin_get_ranges(&text, ranges),
                Err(error) => Pending::ready(Err(error)),
            });
        }
        let own = std::slice::from_ref(&own);
        let share = |(wanted, joined): (&&Wanted, Option<Asked>)| {
            let of_own = || Share::of(own, &wanted.range).map(Asked::Called);
            joined.or_else(of_own).expect("it was asked for")
        };
        wanted.iter().zip(joined).map(share).collect()
    }

    /// The range that is asked for.
    fn range_of(&self, wanted: &Wanted) -> AskedRange {
        let is_small = wanted.comes_in && wanted.range.end - wanted.range.start <= COMES_IN_BYTES_MAX;
        let tier = self.tier.as_ref().filter(|tier| is_small && tier.off().is_none());
        match (tier, wanted.key) {
            (Some(tier), Some(key)) => {
                let object_bytes = wanted.object_bytes;
                let into = Some(Into { tier: tier.clone(), key, object_bytes });
                AskedRange { range: tier::widened(&wanted.range, object_bytes), into }
            }
            _ => AskedRange { range: wanted.range.clone(), into: None },
        }
    }

    /// Waits for the bytes. A frame that is not in the tier after all is read from the bucket.
    pub(super) fn wait(&self, mut asked: Asked, wanted: &Wanted) -> Result<Bytes> {
        loop {
            let found = match asked {
                Asked::Called(share) => return share.wait(&wanted.range),
                Asked::Tiered(found) => found,
            };
            if let Some(bytes) = found.read() {
                return Ok(bytes);
            }
            // Ends: a frame that could not be read is not found again, unless another reader brought it.
            asked = self.call(&[wanted]).pop().expect("one for each range");
        }
    }
}

fn covers(whole: &Range<u64>, part: &Range<u64>) -> bool {
    whole.start <= part.start && part.end <= whole.end
}

impl Share {
    /// The share of one of these calls that brings the range, unless the call failed.
    fn of(calls: &[Arc<Call>], range: &Range<u64>) -> Option<Share> {
        calls.iter().find_map(|call| {
            let at = call.ranges.iter().position(|asked| covers(&asked.range, range))?;
            Some(Share { call: call.clone(), at })
        })
    }

    fn wait(&self, wanted: &Range<u64>) -> Result<Bytes> {
        let bytes = self.call.wait(self.at)?;
        let range = &self.call.ranges[self.at].range;
        debug_assert!(covers(range, wanted), "the call brings the wanted range");
        if bytes.len() as u64 != range.end - range.start {
            let expected = range.end - range.start;
            return Err(Error::corrupt(format!("{} bytes were read, expected {expected}", bytes.len())));
        }
        Ok(bytes.slice((wanted.start - range.start) as usize..(wanted.end - range.start) as usize))
    }
}

impl Call {
    /// Waits for the answer, and returns the bytes of one range.
    fn wait(&self, at: usize) -> Result<Bytes> {
        let mut answer = self.answer.lock();
        let before = Answer::Failed(Error::new(Kind::Cancelled, "another reader gave the read up"));
        *answer = match std::mem::replace(&mut *answer, before) {
            Answer::Begun(pending) => match pending.wait() {
                Ok(bytes) => {
                    self.come_in(&bytes);
                    Answer::Here(bytes)
                }
                Err(error) => {
                    // A later reader asks again.
                    self.leave();
                    Answer::Failed(error)
                }
            },
            ended => ended,
        };
        match &*answer {
            Answer::Here(bytes) => Ok(bytes.get(at).cloned().unwrap_or_default()),
            Answer::Failed(error) => Err(error.clone()),
            Answer::Begun(_) => unreachable!("it was waited for"),
        }
    }

    fn come_in(&self, bytes: &[Bytes]) {
        for (AskedRange { range, into }, bytes) in self.ranges.iter().zip(bytes) {
            if let Some(Into { tier, key, object_bytes }) = into
                && bytes.len() as u64 == range.end - range.start
            {
                tier.offer(key, range.start, bytes, *object_bytes);
            }
        }
    }

    /// Takes the call from those under way.
    fn leave(&self) {
        debug_assert!(!self.ranges.is_empty(), "a call without a range is not known");
        let Some(flights) = self.flights.upgrade() else { return };
        let mut flights = flights.lock();
        if let Some(calls) = flights.get_mut(&self.name) {
            calls.retain(|call| call.strong_count() > 0 && !std::ptr::eq(call.as_ptr(), self));
            if calls.is_empty() {
                flights.remove(&self.name);
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.ranges.is_empty() {
            self.leave();
        }
    }
}
