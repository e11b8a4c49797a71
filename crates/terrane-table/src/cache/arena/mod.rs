//! Memory of cached objects: chunks, on huge pages if the system provides them on advice, instead of the
//! allocator's heap. With small pages every random access to an object costs a miss of the address
//! translation, and memory that evictions free in a heap stays with the process.
//!
//! ```text
//! chunk   = granule*                            a run of granules is a spot: one object, header and bytes
//! arena   = chunk of things that can be moved*  chunk of things that cannot*
//! ```
//!
//! * *Dense*: a spot is any run of free granules; nearly equal sizes are rounded to equal ones, so that gaps
//!   are reused. An object goes into the first chunk with room, into its shortest run that is long enough, so
//!   that later chunks become empty over time.
//! * *Returned*: an empty chunk is unmapped at once. To empty another one, the cache moves the objects of the
//!   chunk with the fewest bytes into gaps of the others ([`Arena::drain_sparsest`]). Index blocks cannot be
//!   moved, because their children hold their address; they have chunks of their own: about a hundredth of
//!   the cache where it holds the data, a half and more where data are much larger.
//! * *Counted*: a chunk is counted as a whole in its owner's accounting, from before it is mapped until after
//!   it is unmapped.
//!
//! The arena does not access the memory that it hands out. The owner *notes* a spot while other threads may
//! look up its object: a thread that entered an epoch before the note was removed may use the object until it
//! leaves the epoch, if the owner removes notes before it retires objects.

#![expect(unsafe_code, reason = "threads pass addresses of memory to each other")]

mod bits;
#[cfg(test)]
mod tests;

use std::ptr::NonNull;

use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicU64, Ordering};
use terrane_base::verify;
use terrane_device::Region;

use self::bits::Bits;

/// Unit in which memory is given out, in bytes.
pub(super) const GRANULE_BYTES: usize = 512;
/// An object larger than this share of a chunk would leave gaps that no object fits.
const LARGEST_SHARE: usize = 8;

/// Says if the objects of a chunk can be moved to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Movable = 0,
    Fixed = 1,
}

/// A run of granules that belongs to the holder of this value, until it is returned.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) start: NonNull<u8>,
    chunk: u32,
    first: u32,
    granules: u32,
}

// SAFETY: an address and numbers; what lies there is its owner's business.
unsafe impl Send for Spot {}
// SAFETY: as above.
unsafe impl Sync for Spot {}

impl Spot {
    /// Bytes from the start on.
    pub(super) fn bytes(&self) -> usize {
        self.granules as usize * GRANULE_BYTES
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Arena {
    chunk_bytes: usize,
    /// Bytes of all chunks: a copy of the state for readers without the lock.
    resident: AtomicU64,
    /// Free bytes in chunks of each group, such a copy as well.
    gaps: [AtomicU64; 2],
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    chunks: Vec<Option<Chunk>>,
    /// For each group, the longest free run of each chunk that accepts objects; 0 for other chunks. Stored
    /// apart from the chunks, so that a search among thousands reads few cache lines.
    rooms: [Vec<u32>; 2],
    /// Free granules in the chunks of each group.
    free: [usize; 2],
}

#[derive(Debug)]
struct Chunk {
    region: Region,
    group: Group,
    /// True if the chunk is to be emptied: it accepts objects only if there is no other room.
    is_draining: bool,
    taken: Bits,
    /// First granules of spots that were noted.
    noted: Bits,
    free: usize,
    /// Length of the longest free run.
    longest: usize,
}

/// A chunk that is to be emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Draining(usize);

impl Arena {
    /// An arena without chunks. Requires: `chunk_bytes` is a multiple of [`GRANULE_BYTES`].
    pub(super) fn new(chunk_bytes: usize) -> Arena {
        assert!(chunk_bytes > 0 && chunk_bytes.is_multiple_of(GRANULE_BYTES), "chunks are whole granules");
        let (resident, gaps) = (AtomicU64::new(0), [AtomicU64::new(0), AtomicU64::new(0)]);
        Arena { chunk_bytes, resident, gaps, state: Mutex::new(State::default()) }
    }

    pub(super) fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes as u64
    }

    /// Bytes of all chunks.
    pub(super) fn resident_bytes(&self) -> u64 {
        self.resident.load(Ordering::Relaxed)
    }

    /// Free bytes in the chunks of a group.
    pub(super) fn gap_bytes(&self, group: Group) -> u64 {
        self.gaps[group as usize].load(Ordering::Relaxed)
    }

    /// Updates the copies of the state. Requires: the state is locked and was changed.
    fn echo(&self, state: &State) {
        let free: usize = state.free.iter().sum();
        debug_assert!(
            (free * GRANULE_BYTES) as u64 <= self.resident_bytes(),
            "free granules are mapped: {free}"
        );
        for (gaps, free) in self.gaps.iter().zip(state.free) {
            gaps.store((free * GRANULE_BYTES) as u64, Ordering::Relaxed);
        }
    }

    /// Returns true if objects of `bytes` bytes belong in the arena.
    pub(super) fn takes(&self, bytes: usize) -> bool {
        bytes <= self.chunk_bytes / LARGEST_SHARE
    }

    /// A spot of at least `bytes`. Maps a new chunk if necessary and if `may_open` allows it; `may_open` is
    /// called under the lock. Requires: [`Arena::takes`].
    pub(super) fn take(&self, bytes: usize, group: Group, may_open: impl FnOnce() -> bool) -> Option<Spot> {
        debug_assert!(self.takes(bytes), "an object is a small share of a chunk, not {bytes} bytes");
        let wanted = granules(bytes);
        let mut state = self.state.lock();
        let at = if let Some(at) = state.find(group, wanted) {
            at
        } else if may_open() {
            self.open(&mut state, group)
        } else {
            // Better than evicting an object.
            state.find_draining(group, wanted)?
        };
        let spot = state.take(at, wanted);
        self.echo(&state);
        Some(spot)
    }

    /// As [`Arena::take`] for a movable object, in an existing chunk that is not draining.
    pub(super) fn take_elsewhere(&self, bytes: usize) -> Option<Spot> {
        let wanted = granules(bytes);
        let mut state = self.state.lock();
        let at = state.find(Group::Movable, wanted)?;
        debug_assert!(!state.chunk(at).is_draining, "no object moves into a chunk that is emptied");
        let spot = state.take(at, wanted);
        self.echo(&state);
        Some(spot)
    }

    fn open(&self, state: &mut State, group: Group) -> usize {
        self.resident.fetch_add(self.chunk_bytes as u64, Ordering::Relaxed);
        let granules = self.chunk_bytes / GRANULE_BYTES;
        let chunk = Chunk {
            region: Region::heap(self.chunk_bytes),
            group,
            is_draining: false,
            taken: Bits::new(granules),
            noted: Bits::new(granules),
            free: granules,
            longest: granules,
        };
        let at = state.chunks.iter().position(Option::is_none).unwrap_or(state.chunks.len());
        if at == state.chunks.len() {
            state.chunks.push(None);
            state.rooms.iter_mut().for_each(|rooms| rooms.push(0));
        }
        state.chunks[at] = Some(chunk);
        state.free[group as usize] += granules;
        verify!(state.check());
        at
    }

    /// Frees a spot whose memory is not used any more; returns the bytes of chunks that were unmapped with
    /// it.
    pub(super) fn give_back(&self, spot: Spot) -> u64 {
        let mut state = self.state.lock();
        let at = spot.chunk as usize;
        let chunk = state.chunk(at);
        chunk.give_back(&spot);
        let is_empty = chunk.free == chunk.taken.len() && !terrane_base::planted!(KeepEmptyChunks);
        let (group, granules) = (chunk.group as usize, chunk.taken.len());
        let empty = if is_empty { state.chunks[at].take() } else { None };
        state.free[group] += spot.granules as usize;
        state.free[group] -= if is_empty { granules } else { 0 };
        state.refresh(at);
        verify!(!is_empty || state.check());
        self.echo(&state);
        drop(state);
        if !is_empty {
            return 0;
        }
        // Unmapped without the lock, and only then subtracted.
        drop(empty);
        let before = self.resident.fetch_sub(self.chunk_bytes as u64, Ordering::Relaxed);
        assert!(before >= self.chunk_bytes as u64, "a chunk is unmapped that was not counted");
        self.chunk_bytes as u64
    }

    /// Records that the object in `spot` can be found, or no longer can.
    pub(super) fn note(&self, spot: &Spot, is_there: bool) {
        let mut state = self.state.lock();
        let chunk = state.chunk(spot.chunk as usize);
        debug_assert!(chunk.taken.is_set(spot.first as usize), "the spot has an object");
        debug_assert!(chunk.noted.is_set(spot.first as usize) != is_there, "a spot is noted once");
        chunk.noted.fill(spot.first as usize, 1, is_there);
    }

    /// Selects, among the chunks with movable objects, the one with the fewest bytes, if all of them fit into
    /// the others: from then on it takes no new objects.
    pub(super) fn drain_sparsest(&self) -> Option<Draining> {
        let mut state = self.state.lock();
        let chunks = &state.chunks;
        let room: usize = chunks.iter().flatten().filter(|c| c.is_open()).map(|chunk| chunk.free).sum();
        // A chunk whose draining has begun is preferred; its free granules are not part of the room.
        let is_begun = |chunk: &Chunk| chunk.is_draining && chunk.noted.ones().next().is_some();
        if let Some(at) = chunks.iter().position(|chunk| chunk.as_ref().is_some_and(is_begun)) {
            return (room > 0).then_some(Draining(at));
        }
        let open = chunks.iter().enumerate().filter_map(|(at, chunk)| Some((at, chunk.as_ref()?)));
        let (at, sparsest) = open.filter(|(_, chunk)| chunk.is_open()).max_by_key(|(_, chunk)| chunk.free)?;
        let used = sparsest.taken.len() - sparsest.free;
        debug_assert!(room >= sparsest.free, "the chunk is open, so its granules are among the room");
        if used > room - sparsest.free {
            return None;
        }
        state.chunk(at).is_draining = true;
        state.refresh(at);
        Some(Draining(at))
    }

    /// The addresses of the noted objects of a draining chunk.
    pub(super) fn noted(&self, draining: Draining) -> Vec<NonNull<u8>> {
        let state = self.state.lock();
        // The chunk may be gone and another may have its index: then that one is drained a little.
        let Some(Some(chunk)) = state.chunks.get(draining.0) else { return Vec::new() };
        verify!(
            chunk.noted.ones().all(|granule| chunk.taken.is_set(granule)),
            "the address of a free granule would be read as an object"
        );
        chunk.noted.ones().filter_map(|granule| chunk.address(granule)).collect()
    }

    /// Ends draining: all chunks accept objects again.
    pub(super) fn stop_draining(&self) {
        let mut state = self.state.lock();
        for at in 0..state.chunks.len() {
            if let Some(chunk) = &mut state.chunks[at] {
                chunk.is_draining = false;
            }
            state.refresh(at);
        }
        verify!(state.check(), "chunks that are filled again have the free granules that are counted");
    }
}

/// Granules of a spot of `bytes`: rounded up by a sixteenth at most, so that objects of nearly equal size fit
/// into each other's gaps.
fn granules(bytes: usize) -> usize {
    let granules = bytes.div_ceil(GRANULE_BYTES).max(1);
    granules.next_multiple_of(1 << granules.ilog2().saturating_sub(4))
}

impl State {
    /// A chunk with a spot in use, or one that was just found.
    fn chunk(&mut self, at: usize) -> &mut Chunk {
        self.chunks[at].as_mut().expect("a chunk with a spot is there")
    }

    /// The first chunk of a group with a free run of `wanted` granules.
    fn find(&self, group: Group, wanted: usize) -> Option<usize> {
        self.rooms[group as usize].iter().position(|longest| *longest as usize >= wanted)
    }

    fn find_draining(&self, group: Group, wanted: usize) -> Option<usize> {
        let fits = |chunk: &Chunk| chunk.group == group && chunk.is_draining && chunk.longest >= wanted;
        self.chunks.iter().position(|chunk| chunk.as_ref().is_some_and(fits))
    }

    /// Requires: the chunk has a free run of `wanted` granules.
    fn take(&mut self, at: usize, wanted: usize) -> Spot {
        let chunk = self.chunk(at);
        let (group, spot) = (chunk.group as usize, chunk.take(at, wanted));
        assert!(self.free[group] >= wanted, "{wanted} granules are taken of {} free ones", self.free[group]);
        self.free[group] -= wanted;
        self.refresh(at);
        spot
    }

    /// Walks all chunks and asserts that the free granules of each group are those of its chunks.
    fn check(&self) -> bool {
        for group in [Group::Movable, Group::Fixed] {
            let chunks = || self.chunks.iter().flatten().filter(|chunk| chunk.group == group);
            let free: usize = chunks().map(|chunk| chunk.free).sum();
            assert!(free == self.free[group as usize], "{group:?}: {free} free, {:?} counted", self.free);
            for chunk in chunks() {
                let gaps: usize = chunk.taken.gaps().map(|(_, len)| len).sum();
                assert!(gaps == chunk.free, "a chunk has {gaps} free granules, {} are counted", chunk.free);
                assert!(
                    chunk.noted.ones().all(|granule| chunk.taken.is_set(granule)),
                    "a note without object"
                );
            }
        }
        true
    }

    /// Updates the recorded room of a chunk, after every change.
    fn refresh(&mut self, at: usize) {
        debug_assert!(
            self.rooms.iter().all(|rooms| rooms.len() == self.chunks.len()),
            "each chunk has a place among the rooms of each group"
        );
        let chunk = self.chunks[at].as_ref();
        for group in [Group::Movable, Group::Fixed] {
            let takes_in = |chunk: &&Chunk| chunk.group == group && !chunk.is_draining;
            self.rooms[group as usize][at] = chunk.filter(takes_in).map_or(0, |chunk| chunk.longest as u32);
        }
    }
}

impl Chunk {
    fn is_open(&self) -> bool {
        self.group == Group::Movable && !self.is_draining
    }

    fn address(&self, granule: usize) -> Option<NonNull<u8>> {
        NonNull::new(self.region.start().as_ptr().wrapping_add(granule * GRANULE_BYTES))
    }

    /// Requires: `longest >= wanted`.
    fn take(&mut self, at: usize, wanted: usize) -> Spot {
        let (first, _) = self.taken.fit(wanted);
        let first = first.expect("the longest run is known");
        debug_assert!((first..first + wanted).all(|granule| !self.taken.is_set(granule)), "given out twice");
        self.taken.fill(first, wanted, !terrane_base::planted!(GiveOutTwice));
        self.free -= wanted;
        self.longest = self.taken.fit(1).1;
        let start = self.address(first).expect("a region has no null address");
        Spot { start, chunk: at as u32, first: first as u32, granules: wanted as u32 }
    }

    fn give_back(&mut self, spot: &Spot) {
        let (first, len) = (spot.first as usize, spot.granules as usize);
        debug_assert!(!self.noted.is_set(first), "what others may find is not given back");
        debug_assert!((first..first + len).all(|granule| self.taken.is_set(granule)), "taken before");
        self.taken.fill(first, len, false);
        self.free += len;
        self.longest = self.taken.fit(1).1;
        debug_assert!(self.longest <= self.free && self.free <= self.taken.len(), "free granules of a chunk");
    }
}
