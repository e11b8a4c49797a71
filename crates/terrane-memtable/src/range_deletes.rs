//! The range deletes of one memtable.
//!
//! A range delete hides every older version of every key in `[start, end)`. Every read of a table with range
//! deletes asks which of them hides its key at its sequence number, so the structure keeps answers and not a
//! list to search. Range deletes are grouped by number into *chunks* of 16. Each chunk has the *state* before
//! it: disjoint stretches of keys with the newest range delete of each. States share their common parts: they
//! are persistent balanced trees (Driscoll, Sarnak, Sleator and Tarjan, "Making data structures persistent",
//! 1989). So a range delete costs logarithmic time and a sixteenth of that in memory, and a query at any
//! number costs logarithmic time and at most one chunk.
//!
//! Invariants
//! 1. The stretches of a state are disjoint, none is empty, and their numbers are below those of the chunk.
//! 2. A reader sees a whole range delete or none of it: the tree of chunks is published at once.
//! 3. Range deletes may come in any order; one with a smaller number goes into all later states, too.

mod check;
mod insert;
mod state;

use std::fmt;
use std::sync::Arc;
use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rpds::RedBlackTreeMapSync;
use state::{State, stretch};
use terrane_base::epoch::{EpochCell, pin};
use terrane_base::sync::Mutex;
use terrane_base::{Collation, SeqNo, verify};

type Key = Arc<[u8]>;

/// Range deletes per chunk, while they come in order.
const CHUNK: usize = 16;
/// Bytes of memory of a range delete beside its keys: its element in a chunk, and the unshared parts of
/// states and chunks.
const BYTES_EACH: u64 = 320;

/// Keys from `start` to before `end`, each hidden by a range delete with this number or a greater one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// First key.
    pub start: Key,
    /// First key after the stretch.
    pub end: Key,
    /// The number: older versions are hidden.
    pub seq: SeqNo,
}

/// Consecutive range deletes, and the state before them.
#[derive(Clone)]
struct Chunk {
    before: State,
    /// By number.
    deletes: Arc<Vec<Stretch>>,
}

/// By the number of the first range delete of the chunk.
type Chunks = RedBlackTreeMapSync<SeqNo, Chunk>;

/// The range deletes of one memtable; many concurrent readers, one writer at a time.
pub struct RangeDeletes {
    /// True if there is any: most reads check nothing else.
    is_used: AtomicBool,
    chunks: EpochCell<Chunks>,
    writer: Mutex<()>,
    /// Key order of the table.
    collation: Collation,
    count: AtomicU64,
    /// Approximate bytes of memory.
    bytes: AtomicU64,
}

/// The range deletes around a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Around {
    /// The key is hidden.
    Hidden(Stretch),
    /// The key is not hidden, and no key between these two is: the end of the stretch before, and the start
    /// of the next.
    Clear(Option<Key>, Option<Key>),
}

/// The range deletes that a read at one number sees: a state, and the first part of a chunk.
#[derive(Clone, Debug)]
pub struct RangeView {
    before: State,
    deletes: Arc<Vec<Stretch>>,
    /// How many range deletes of the chunk the read sees.
    seen: usize,
}

impl RangeView {
    /// Returns true if nothing is hidden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seen == 0 && self.before.is_empty()
    }

    /// The stretch that hides `key`, or the range around it in which nothing is hidden.
    #[must_use]
    pub fn around(&self, key: &[u8]) -> Around {
        let deletes = &self.deletes[..self.seen];
        let collation = self.before.collation();
        let over = deletes.iter().rposition(|delete| delete.covers(key, collation));
        // Newer range deletes do not cover the key; they limit the range in which the answer is the same.
        let beside = &deletes[over.map_or(0, |over| over + 1)..];
        let found = match over {
            Some(over) => Around::Hidden(deletes[over].clone()),
            None => around(&self.before, key),
        };
        let found = beside.iter().fold(found, |found, delete| found.beside(delete, key, collation));
        debug_assert!(
            !collation.is_bytes() || found.is_around(key, collation),
            "the answer is about another key"
        );
        found
    }
}

impl Stretch {
    #[inline]
    fn covers(&self, key: &[u8], collation: &Collation) -> bool {
        collation.le(&self.start, key) && collation.lt(key, &self.end)
    }
}

impl Around {
    /// True if the answer is about `key`.
    fn is_around(&self, key: &[u8], collation: &Collation) -> bool {
        match self {
            Around::Hidden(by) => by.covers(key, collation),
            Around::Clear(from, to) => {
                from.as_ref().is_none_or(|from| collation.le(from, key))
                    && to.as_ref().is_none_or(|to| collation.lt(key, to))
            }
        }
    }

    /// The part around `key` that a newer range delete, which does not cover the key, leaves of it.
    fn beside(self, newer: &Stretch, key: &[u8], collation: &Collation) -> Around {
        debug_assert!(!collation.is_bytes() || !newer.covers(key, collation), "the newer one hides the key");
        let is_behind = collation.lt(key, &newer.start);
        match self {
            Around::Hidden(mut by) if is_behind => {
                by.end = collation.min(by.end, newer.start.clone());
                Around::Hidden(by)
            }
            Around::Hidden(mut by) => {
                by.start = collation.max(by.start, newer.end.clone());
                Around::Hidden(by)
            }
            Around::Clear(from, to) if is_behind => {
                let to =
                    to.filter(|to| collation.lt(to, &newer.start)).unwrap_or_else(|| newer.start.clone());
                Around::Clear(from, Some(to))
            }
            Around::Clear(from, to) => {
                let from =
                    from.filter(|from| collation.lt(&newer.end, from)).unwrap_or_else(|| newer.end.clone());
                Around::Clear(Some(from), to)
            }
        }
    }
}

fn around(state: &State, key: &[u8]) -> Around {
    if state.is_empty() {
        return Around::Clear(None, None);
    }
    let before = state.last_to(key, true).map(|(start, end)| stretch(start, end));
    if let Some(hiding) = before.clone().filter(|stretch| state.collation().lt(key, &stretch.end)) {
        return Around::Hidden(hiding);
    }
    Around::Clear(before.map(|stretch| stretch.end), state.next_start(key).cloned())
}

impl Default for RangeDeletes {
    fn default() -> Self {
        RangeDeletes {
            is_used: AtomicBool::new(false),
            chunks: EpochCell::new(Chunks::new_sync()),
            writer: Mutex::new(()),
            collation: Collation::BYTES,
            count: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }
}

impl RangeDeletes {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty set, for a table with this key order.
    #[must_use]
    pub fn ordered(collation: &Collation) -> Self {
        RangeDeletes { collation: collation.clone(), ..RangeDeletes::default() }
    }

    /// Bytes of memory that one takes, about.
    pub(crate) fn bytes_of(start: &[u8], end: &[u8]) -> u64 {
        (start.len() + end.len()) as u64 + BYTES_EACH
    }

    /// Returns true if there is no range delete.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.is_used.load(Ordering::Acquire)
    }

    /// Number of range deletes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Approximate bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Smallest and greatest number.
    #[must_use]
    pub fn seq_range(&self) -> Option<(SeqNo, SeqNo)> {
        let guard = pin();
        let chunks = self.chunks.load(&guard);
        let least = chunks.first()?.1.deletes.first()?.seq;
        let greatest = chunks.last()?.1.deletes.last()?.seq;
        debug_assert!(least <= greatest, "chunks have the order of their numbers");
        Some((least, greatest))
    }

    /// The number of the newest range delete that covers `key` and that a read at `at` sees.
    #[inline]
    #[must_use]
    pub fn covering(&self, key: &[u8], at: SeqNo) -> Option<SeqNo> {
        if self.is_empty() {
            return None;
        }
        let guard = pin();
        let chunk = chunk_at(self.chunks.load(&guard), at)?;
        let mut seen = chunk.deletes.iter().rev().skip_while(|delete| delete.seq > at);
        let found = seen.find(|delete| delete.covers(key, &self.collation));
        let hiding = found.map(|delete| delete.seq).or_else(|| covering(&chunk.before, key));
        debug_assert!(
            hiding.is_none_or(|hiding| hiding <= at),
            "a range delete hides nothing from older readers"
        );
        hiding
    }

    /// Returns true if any of them covers a key from `first` to `last`, both inclusive.
    #[must_use]
    pub fn touches(&self, first: &[u8], last: &[u8]) -> bool {
        if self.is_empty() {
            return false;
        }
        let RangeView { before, deletes, .. } = self.view(SeqNo::MAX);
        let collation = &self.collation;
        deletes.iter().any(|delete| collation.le(&delete.start, last) && collation.lt(first, &delete.end))
            || covering(&before, first).is_some()
            || before.next_start(first).is_some_and(|start| collation.le(start, last))
    }

    /// The range deletes that a read at `at` sees, for scans: later changes are not visible.
    #[must_use]
    pub fn view(&self, at: SeqNo) -> RangeView {
        let guard = pin();
        let Some(Chunk { before, deletes }) = chunk_at(self.chunks.load(&guard), at).cloned() else {
            return RangeView { before: State::new(&self.collation), deletes: Arc::default(), seen: 0 };
        };
        debug_assert!(deletes.is_sorted_by(|a, b| a.seq < b.seq), "a search in numbers that do not ascend");
        let seen = deletes.partition_point(|delete| delete.seq <= at);
        RangeView { before, deletes, seen }
    }

    /// The stretches that a read at `at` sees, in key order: disjoint, each with its newest number.
    #[must_use]
    pub fn stretches(&self, at: SeqNo) -> Vec<Stretch> {
        let guard = pin();
        let state = chunk_at(self.chunks.load(&guard), at).map(|chunk| chunk.state_at(at));
        let all = state.map_or_else(Vec::new, |state| state.all());
        let is_disjoint = || all.windows(2).all(|pair| pair[0].end <= pair[1].start);
        verify!(!self.collation.is_bytes() || is_disjoint(), "invariant 1: {all:?}");
        all
    }
}

impl fmt::Debug for RangeDeletes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.stretches(SeqNo::MAX)).finish()
    }
}

impl Chunk {
    /// Returns true if a range delete with this number may begin a new chunk.
    fn is_full_before(&self, seq: SeqNo) -> bool {
        self.deletes.len() >= CHUNK && self.deletes.last().is_some_and(|last| last.seq < seq)
    }

    /// The state that a read at `at` sees.
    fn state_at(&self, at: SeqNo) -> State {
        debug_assert!(self.deletes.is_sorted_by(|a, b| a.seq < b.seq), "a range delete would be passed over");
        let seen = self.deletes.iter().take_while(|delete| delete.seq <= at);
        seen.fold(self.before.clone(), overlaid)
    }
}

/// The chunk in which a read at `at` searches: mostly the last one.
#[inline]
fn chunk_at(chunks: &Chunks, at: SeqNo) -> Option<&Chunk> {
    let (first, chunk) = chunks.last()?;
    if *first <= at { Some(chunk) } else { chunks.range(..=at).next_back().map(|(_, chunk)| chunk) }
}

fn covering(state: &State, key: &[u8]) -> Option<SeqNo> {
    if state.is_empty() {
        return None;
    }
    let (_, (end, seq)) = state.last_to(key, true)?;
    state.collation().lt(key, end).then_some(*seq)
}

/// `state` with a newer range delete on top: it replaces the parts of stretches that it covers.
fn overlaid(mut state: State, delete: &Stretch) -> State {
    let Stretch { start, end, seq } = delete;
    let collation = state.collation().clone();
    debug_assert!(!collation.is_bytes() || start < end, "invariant 1: no stretch is empty");
    let before = state.last_to(start, false).map(|(start, end)| stretch(start, end));
    if let Some(cut) = before.filter(|cut| collation.lt(start, &cut.end)) {
        state.insert(cut.start, (start.clone(), cut.seq));
        if collation.lt(end, &cut.end) {
            state.insert(end.clone(), (cut.end, cut.seq));
        }
    }
    for covered in state.beginning_within(start, end) {
        state.remove(&covered.start);
        if collation.lt(end, &covered.end) {
            state.insert(end.clone(), (covered.end, covered.seq));
        }
    }
    state.insert(start.clone(), (end.clone(), *seq));
    state
}
