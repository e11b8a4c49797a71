//! How range deletes come into their memtable: those of one batch together.
//!
//! Each version of the tree of chunks that was published stays in memory until no guard is left that could
//! see it, and the writer of a batch holds one. So the writer builds the tree for its whole batch and
//! publishes it once.

use terrane_base::epoch::pin;
use terrane_base::sync::atomic::Ordering;
use terrane_base::{Collation, SeqNo, verify};

use std::sync::Arc;

use super::state::State;
use super::{Chunk, Chunks, RangeDeletes, Stretch, check};

impl RangeDeletes {
    /// Adds the range delete with number `seq` over the keys from `start` to before `end`. An empty range, or
    /// a number that is already present, adds nothing. Returns true if it was added.
    ///
    /// Cheap for numbers that come roughly in order; each later chunk costs as much again.
    pub fn insert(&self, start: &[u8], end: &[u8], seq: SeqNo) -> bool {
        self.insert_all([(start, end, seq)]).contains(&true)
    }

    /// As [`RangeDeletes::insert`] for each of these; says of each whether it was added. A reader sees all of
    /// them at once.
    pub fn insert_all<'k>(
        &self,
        deletes: impl IntoIterator<Item = (&'k [u8], &'k [u8], SeqNo)>,
    ) -> Vec<bool> {
        let _writer = self.writer.lock();
        let mut chunks = Chunks::clone(self.chunks.load(&pin()));
        let (mut count, mut bytes) = (0, 0);
        let add = |(start, end, seq)| {
            let is_new = !self.collation.le(end, start) && !holds(&chunks, seq);
            if is_new {
                place(&mut chunks, Stretch { start: start.into(), end: end.into(), seq }, &self.collation);
                count += 1;
                bytes += RangeDeletes::bytes_of(start, end);
            }
            is_new
        };
        let added: Vec<bool> = deletes.into_iter().map(add).collect();
        if count == 0 {
            return added;
        }
        // Sampled: a walk for each would take quadratic time. A caller's comparator may break its promise.
        let before = self.len();
        let is_sampled = before == 0 || (before + count).ilog2() > before.ilog2();
        verify!(!is_sampled || !self.collation.is_bytes() || check::check(&chunks));
        // Before the tree: a reader that has seen a range delete in the tree never takes the set for empty.
        self.is_used.store(true, Ordering::Release);
        self.chunks.replace(chunks);
        self.count.fetch_add(count, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        added
    }
}

/// Adds `delete`, which is not there, to its chunk and to all later states.
fn place(chunks: &mut Chunks, delete: Stretch, collation: &Collation) {
    let later: Vec<SeqNo> = chunks.range(delete.seq..).map(|(first, _)| *first).collect();
    let (first, chunk) = with(chunks, delete, later.is_empty(), collation);
    debug_assert!(later.first().is_none_or(|next| first < *next), "later chunks begin with greater numbers");
    let mut state = (!later.is_empty()).then(|| chunk.state_at(SeqNo::MAX));
    chunks.insert_mut(first, chunk);
    for first in later {
        let before = state.take().expect("there are later ones");
        let deletes = chunks.get(&first).expect("listed above").deletes.clone();
        let chunk = Chunk { before, deletes };
        state = Some(chunk.state_at(SeqNo::MAX));
        chunks.insert_mut(first, chunk);
    }
}

/// Returns true if the range delete with this number is present.
fn holds(chunks: &Chunks, seq: SeqNo) -> bool {
    let chunk = chunks.range(..=seq).next_back();
    chunk.is_some_and(|(_, chunk)| chunk.deletes.iter().any(|delete| delete.seq == seq))
}

/// The chunk to which `delete` belongs, with `delete` added, and the chunk's key. Only at the end is a full
/// chunk followed by a new one.
fn with(chunks: &Chunks, delete: Stretch, is_last: bool, collation: &Collation) -> (SeqNo, Chunk) {
    let seq = delete.seq;
    match chunks.range(..seq).next_back() {
        None => (seq, Chunk { before: State::new(collation), deletes: Arc::new(vec![delete]) }),
        Some((_, chunk)) if is_last && chunk.is_full_before(seq) => {
            (seq, Chunk { before: chunk.state_at(SeqNo::MAX), deletes: Arc::new(vec![delete]) })
        }
        Some((first, chunk)) => {
            let mut chunk = chunk.clone();
            let place = chunk.deletes.partition_point(|other| other.seq < seq);
            debug_assert!(chunk.deletes.get(place).is_none_or(|next| next.seq > seq), "a number comes once");
            Arc::make_mut(&mut chunk.deletes).insert(place, delete);
            (*first, chunk)
        }
    }
}
