//! Ranges that are read ahead, because a caller hinted that it will read them.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use terrane_base::ExtentId;
use terrane_base::sync::Mutex;

use crate::bucket::Pending;

/// Most ranges; the oldest goes first.
const RANGES_MAX: usize = 16;
/// Most bytes of all ranges.
const BYTES_MAX: u64 = 32 << 20;

/// Ranges of extents that were asked for. An extent that readers know is never written again, so nothing here
/// is out of date.
#[derive(Debug, Default)]
pub(super) struct ReadAhead(Mutex<VecDeque<Ahead>>);

#[derive(Clone)]
struct Ahead {
    id: ExtentId,
    range: Range<u64>,
    bytes: Arc<Mutex<Arrival>>,
}

/// The bytes of a range, or the read that will bring them.
enum Arrival {
    Begun(Pending<Bytes>),
    Here(Bytes),
    Failed,
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").field("id", &self.id).field("range", &self.range).finish_non_exhaustive()
    }
}

impl Ahead {
    fn covers(&self, id: ExtentId, range: &Range<u64>) -> bool {
        self.id == id && self.range.start <= range.start && range.end <= self.range.end
    }

    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Waits for the bytes; `None` if they could not be read, and the caller is to read them itself.
    fn wait(&self) -> Option<Bytes> {
        let mut arrival = self.bytes.lock();
        *arrival = match std::mem::replace(&mut *arrival, Arrival::Failed) {
            Arrival::Begun(pending) => pending.wait().map_or(Arrival::Failed, Arrival::Here),
            ended => ended,
        };
        match &*arrival {
            Arrival::Here(bytes) => Some(bytes.clone()),
            _ => None,
        }
    }
}

impl ReadAhead {
    /// The bytes of a range, if they were asked for.
    pub(super) fn get(&self, id: ExtentId, range: Range<u64>) -> Option<Bytes> {
        let found = self.0.lock().iter().find(|ahead| ahead.covers(id, &range)).cloned();
        let (ahead, bytes) = found.and_then(|ahead| ahead.wait().map(|bytes| (ahead, bytes)))?;
        debug_assert_eq!(bytes.len() as u64, ahead.len(), "the bytes of the range");
        let from = range.start - ahead.range.start;
        Some(bytes.slice(from as usize..(from + range.end - range.start) as usize))
    }

    pub(super) fn covers(&self, id: ExtentId, range: &Range<u64>) -> bool {
        self.0.lock().iter().any(|ahead| ahead.covers(id, range))
    }

    pub(super) fn add(&self, id: ExtentId, range: Range<u64>, pending: Pending<Bytes>) {
        let ahead = Ahead { id, range, bytes: Arc::new(Mutex::new(Arrival::Begun(pending))) };
        let mut ranges = self.0.lock();
        ranges.push_back(ahead);
        let mut bytes: u64 = ranges.iter().map(Ahead::len).sum();
        while ranges.len() > RANGES_MAX || (bytes > BYTES_MAX && ranges.len() > 1) {
            bytes -= ranges.pop_front().map_or(0, |oldest| oldest.len());
        }
    }

    /// Forgets the ranges of an extent.
    pub(super) fn forget(&self, id: ExtentId) {
        self.0.lock().retain(|ahead| ahead.id != id);
    }
}
