//! The tier: a cache on local disk between the cache in memory and the bucket.
//!
//! It has *frames* of [`FRAME_PAYLOAD_BYTES`] of objects that are never changed. A miss costs one request and
//! brings whole frames; a hit costs none. The tier keeps what it has over restarts. Why it is so:
//! `docs/design/0040-elastic.md`; bytes: `docs/format/tier.md`.
//!
//! * `header.rs`: bytes of headers. * `files.rs`: the files. * `index.rs`: which frame goes next.
//!   * `queue.rs`: frames that wait to be written. * `open.rs`: settings, opening.
//!
//! 1. Nothing of the tier is trusted: a frame has its identity and a checksum, and any bytes that are not
//!    exactly the wanted frame are a miss.
//! 2. A slot is written only after its frame left the index, and a reader looks again behind its read whether
//!    the frame is still there. So no reader returns bytes that were exchanged under it.
//! 3. Readers write nothing: what they fetched goes into a queue of bounded bytes, and is dropped if it is
//!    full. One thread writes.
//! 4. No lock is held while the device works.
//! 5. An error of the device turns the tier off until the next opening: reads go on from the bucket.

mod files;
mod header;
mod index;
mod open;
mod queue;

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use terrane_base::env::Joiner;
use terrane_base::sync::{Condvar, Mutex};
use terrane_base::{Error, Result};

use files::Files;
pub use header::{FRAME_PAYLOAD_BYTES, ObjectKey};
use header::{FrameKey, HEADER_BYTES};
use index::{Index, StoredFrame};
pub use open::TierSettings;
pub(crate) use open::try_directory;
use queue::Queue;

/// Counts of a tier since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierCounts {
    /// Reads that it answered.
    pub hits: u64,
    /// Reads that it did not answer.
    pub misses: u64,
    /// Bytes that it answered with.
    pub bytes_read: u64,
    /// Bytes of frames that were written.
    pub bytes_written: u64,
    /// Bytes that were not written, because the queue was full.
    pub bytes_dropped: u64,
    /// Frames that were not what the index said: torn, damaged or exchanged.
    pub frames_damaged: u64,
    /// Frames that left for others.
    pub frames_evicted: u64,
    /// Frames that it has.
    pub frames: u64,
    /// Slots for frames.
    pub slots: u64,
    /// True if an error turned it off.
    pub is_off: bool,
}

/// A cache of ranges of objects in a directory. Closed by its drop, which writes what waits.
pub struct Tier {
    shared: Arc<Shared>,
    writer: Mutex<Option<Box<dyn Joiner>>>,
}

impl std::fmt::Debug for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tier").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Shared {
    /// `None` if the tier could not be opened.
    files: Option<Files>,
    state: Mutex<State>,
    /// Something waits to be written, or the tier closes.
    work: Condvar,
    /// Nothing waits any more.
    idle: Condvar,
}

#[derive(Debug)]
struct State {
    index: Index,
    queue: Queue,
    counts: TierCounts,
    /// The error that turned the tier off.
    off: Option<Error>,
    is_closing: bool,
}

/// Where one piece of a range is.
#[derive(Debug)]
enum Piece {
    Waiting(Bytes),
    Stored(StoredFrame),
}

/// A range of an object of which the tier has every frame, as far as its index says.
#[derive(Debug)]
pub struct Found {
    shared: Arc<Shared>,
    range: Range<u64>,
    pieces: Vec<Piece>,
}

/// The frames in which a range of an object lies.
fn frames_of(range: &Range<u64>) -> Range<u32> {
    debug_assert!(range.start < range.end, "a range has a byte");
    (range.start / FRAME_PAYLOAD_BYTES) as u32..range.end.div_ceil(FRAME_PAYLOAD_BYTES) as u32
}

/// The range of whole frames in which a range of an object of so many bytes lies.
#[must_use]
pub fn widened(range: &Range<u64>, object_bytes: u64) -> Range<u64> {
    let start = range.start / FRAME_PAYLOAD_BYTES * FRAME_PAYLOAD_BYTES;
    let end = (range.end.div_ceil(FRAME_PAYLOAD_BYTES) * FRAME_PAYLOAD_BYTES).min(object_bytes);
    start..end.max(range.end)
}

impl Tier {
    /// Looks for a range of an object. Work in memory only; the read may still find that a frame is damaged.
    #[must_use]
    pub fn find(&self, object: &ObjectKey, range: &Range<u64>) -> Option<Found> {
        let found = self.find_again(object, range);
        if found.is_none() {
            self.shared.state.lock().counts.misses += 1;
        }
        found
    }

    /// [`Tier::find`] for a read whose miss was counted.
    pub(crate) fn find_again(&self, object: &ObjectKey, range: &Range<u64>) -> Option<Found> {
        if range.is_empty() {
            return None;
        }
        let state = self.shared.state.lock();
        if state.off.is_some() {
            return None;
        }
        let piece = |frame: u32| {
            let key = FrameKey { object: *object, frame };
            let start = u64::from(frame) * FRAME_PAYLOAD_BYTES;
            let needed = (range.end - start).min(FRAME_PAYLOAD_BYTES);
            let piece = match state.queue.find(&key) {
                Some(bytes) => Piece::Waiting(bytes.clone()),
                None => Piece::Stored(state.index.find(&key)?),
            };
            let len = match &piece {
                Piece::Waiting(bytes) => bytes.len() as u64,
                Piece::Stored(place) => place.header.len.into(),
            };
            (needed <= len).then_some(piece)
        };
        let pieces: Option<Vec<Piece>> = frames_of(range).map(piece).collect();
        Some(Found { shared: self.shared.clone(), range: range.clone(), pieces: pieces? })
    }

    /// Gives the tier bytes of an object, from `start` on, which is the start of a frame; `object_bytes` are
    /// those of the whole object. Waits for nothing: what finds no room in the queue is dropped.
    pub fn offer(&self, object: &ObjectKey, start: u64, bytes: &Bytes, object_bytes: u64) {
        assert_eq!(start % FRAME_PAYLOAD_BYTES, 0, "frames begin at their boundaries");
        let end = start + bytes.len() as u64;
        let mut at = start;
        while at < end {
            let until = (at + FRAME_PAYLOAD_BYTES).min(end);
            // A part of a frame would hide that the rest is missing.
            if until - at == FRAME_PAYLOAD_BYTES || until == object_bytes {
                let key = FrameKey { object: *object, frame: (at / FRAME_PAYLOAD_BYTES) as u32 };
                self.shared.offer_frame(key, bytes.slice((at - start) as usize..(until - start) as usize));
            }
            at = until;
        }
    }

    /// Gives the tier a whole object whose parts lie one behind the other. Waits for nothing.
    pub fn offer_object(&self, object: &ObjectKey, parts: &[Bytes]) {
        let mut state = self.shared.state.lock();
        if state.off.is_some() || state.is_closing {
            return;
        }
        let dropped = state.queue.push_object(*object, parts);
        state.counts.bytes_dropped += dropped;
        drop(state);
        self.shared.work.notify_one();
    }

    /// Forgets an object that was deleted: its slots are filled first.
    pub fn forget(&self, object: &ObjectKey) {
        let mut state = self.shared.state.lock();
        state.queue.forget(object);
        state.index.forget_object(object);
    }

    /// Waits until nothing waits to be written.
    pub fn settle(&self) {
        let mut state = self.shared.state.lock();
        while !state.queue.is_idle() {
            self.shared.idle.wait(&mut state);
        }
    }

    /// Its counts so far.
    #[must_use]
    pub fn counts(&self) -> TierCounts {
        let state = self.shared.state.lock();
        TierCounts {
            frames: state.index.len() as u64,
            frames_evicted: state.index.evicted(),
            is_off: state.off.is_some(),
            ..state.counts
        }
    }

    /// The error that turned it off.
    #[must_use]
    pub fn off(&self) -> Option<Error> {
        self.shared.state.lock().off.clone()
    }
}

impl Found {
    /// Reads the range; `None` if a frame is not there after all.
    #[must_use]
    pub fn read(self) -> Option<Bytes> {
        let Found { shared, range, pieces } = self;
        let mut bytes = BytesMut::with_capacity((range.end - range.start) as usize);
        for (piece, frame) in pieces.iter().zip(frames_of(&range)) {
            let start = u64::from(frame) * FRAME_PAYLOAD_BYTES;
            let from = range.start.saturating_sub(start) as usize;
            let to = (range.end - start).min(FRAME_PAYLOAD_BYTES) as usize;
            match piece {
                Piece::Waiting(waiting) => bytes.extend_from_slice(&waiting[from..to]),
                Piece::Stored(place) => {
                    let Some(frame) = shared.read_frame(place) else {
                        shared.state.lock().counts.misses += 1;
                        return None;
                    };
                    bytes.extend_from_slice(&frame[HEADER_BYTES + from..HEADER_BYTES + to]);
                }
            }
        }
        let mut state = shared.state.lock();
        state.counts.hits += 1;
        state.counts.bytes_read += bytes.len() as u64;
        Some(bytes.freeze())
    }
}

impl Shared {
    /// Reads a frame with its header; `None` if it is not there any more, or is damaged.
    fn read_frame(&self, place: &StoredFrame) -> Option<Vec<u8>> {
        let read = self.files.as_ref()?.read(place);
        let mut state = self.state.lock();
        match read {
            // Its slot may have been given to another frame while it was read.
            Ok(frame) => match (state.index.used(place), frame) {
                (true, Some(frame)) => Some(frame),
                (true, None) => {
                    state.index.forget(place);
                    state.counts.frames_damaged += 1;
                    None
                }
                (false, _) => None,
            },
            Err(error) => {
                self.turn_off(&mut state, error);
                None
            }
        }
    }

    fn offer_frame(&self, key: FrameKey, bytes: Bytes) {
        let mut state = self.state.lock();
        if state.off.is_some() || state.is_closing || state.index.find(&key).is_some() {
            return;
        }
        let dropped = state.queue.push(key, bytes);
        state.counts.bytes_dropped += dropped;
        drop(state);
        self.work.notify_one();
    }

    #[cold]
    fn turn_off(&self, state: &mut State, error: Error) {
        if state.off.is_some() {
            return;
        }
        open::warn_off(&error);
        state.off = Some(error);
        state.index = Index::new(0, Vec::new());
        state.queue.clear();
        self.idle.notify_all();
    }

    /// The loop of the thread that writes.
    fn write_all(&self) {
        let mut state = self.state.lock();
        loop {
            match state.queue.next() {
                Some((key, bytes)) => {
                    drop(state);
                    self.write_frame(key, &bytes);
                    state = self.state.lock();
                    state.queue.written(&key);
                }
                None => {
                    self.idle.notify_all();
                    if state.is_closing {
                        return;
                    }
                    self.work.wait(&mut state);
                }
            }
        }
    }

    fn write_frame(&self, key: FrameKey, bytes: &Bytes) {
        debug_assert!(!bytes.is_empty(), "a frame has a byte");
        let Some(files) = &self.files else { return };
        let admitted = {
            let mut state = self.state.lock();
            match state.index.admit(key, bytes.len() as u32) {
                Some(admitted) if state.off.is_none() => admitted,
                _ => return,
            }
        };
        let outcome: Result<()> = files.write(admitted.slot, &admitted.header, bytes);
        let mut state = self.state.lock();
        match outcome {
            _ if state.off.is_some() => {}
            Ok(()) => {
                state.index.written(&admitted);
                state.counts.bytes_written += bytes.len() as u64;
            }
            Err(error) => self.turn_off(&mut state, error),
        }
    }
}

impl Drop for Tier {
    fn drop(&mut self) {
        self.shared.state.lock().is_closing = true;
        self.shared.work.notify_all();
        if let Some(writer) = self.writer.lock().take() {
            writer.join();
            open::log_counts(&self.counts());
        }
    }
}
