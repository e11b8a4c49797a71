//! Buffers of the whole process for bytes that are in use for a short time: bytes read from an extent,
//! decompressed bytes, the output of a job.
//!
//! An allocator with arenas for threads keeps what such buffers leave in each of them: sixty-four readers of
//! a database of 64 MiB left 20 MiB in those of glibc. Here a buffer that a thread has used is the next one
//! of any thread, so there are as many as were in use at once.
//!
//! ```text
//! class  = 4, 5, 6, 7, 8, 10, 12, 14, 16 KiB ..     the capacity of a buffer, exactly
//! part   = buffers of each class that are kept      [`PARTS`] of them, so that threads seldom meet at one
//! ```
//!
//! * *Short* buffers stay as they are, [`WARM_BYTES_MAX`] together. Of the others, those of at least
//!   [`COLD_BYTES`] give their pages back to the system and keep their addresses, as many as leave
//!   [`COLD_LEFT_BYTES_MAX`] behind; further ones and shorter ones go back to the allocator. When sixty-four
//!   readers load filters and index blocks at the same moment they have some megabytes in buffers, and an
//!   allocator would keep as much in the arena of each of them.
//! * *Long* ones, from [`LONG_BYTES`] on, always give their pages back and keep their addresses. If
//!   they went back to the allocator, glibc would from then on take memory as long as the longest of them
//!   from its arenas, and keep as much at the end of each.
//! * Of those of up to [`LATEST_LEN_MAX`] the ones that were kept last, [`LATEST_BYTES_MAX`] together, have
//!   their pages still: a job takes as many for the next extent as it has just kept, and each page of them
//!   would be a page fault.
//!
//! No thread waits for another one to take a buffer: where a thread is at a part, the next one is tried.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use terrane_base::sync::thread_number;

use crate::mapping;

/// The smallest buffer that is kept: shorter ones are what allocators are good at.
const SHORTEST_BYTES: usize = 4 << 10;
/// The longest buffer that is kept: the longest extent.
const LONGEST_BYTES: usize = 16 << 20;
/// Buffers of this length and more give their pages back.
const LONG_BYTES: usize = 128 << 10;
/// Short buffers of this length and more give their pages back where there are too many to stay as they are.
/// Of a shorter one hardly a page lies in it as a whole.
const COLD_BYTES: usize = 16 << 10;
/// Bytes of all short buffers that are kept with their pages.
const WARM_BYTES_MAX: usize = 2 << 20;
/// Long buffers of a class that a part keeps: they take addresses alone.
const LONG_KEPT_MAX: usize = 8;
/// Short buffers of a class that a part keeps without their pages: sixty-four readers have one of a class
/// each.
const COLD_KEPT_MAX: usize = 16;
/// Bytes of a short buffer without its pages that stay all the same, at most: its ends lie in pages that it
/// does not have alone.
const COLD_LEFT_BYTES: usize = 2 * mapping::PAGE_BYTES;
/// Bytes that stay so of all short buffers that are kept without their pages: those of sixty-four readers in
/// four classes at once.
const COLD_LEFT_BYTES_MAX: usize = 2 << 20;
/// Bytes of the long buffers that keep their pages. A job that reads an extent ahead leaves two of 256 and
/// 320 KiB, and its next extent takes them: there is room for those of another job meanwhile.
const LATEST_BYTES_MAX: usize = 1 << 20;
/// The longest buffer that keeps its pages: a longer one would leave no room for others.
const LATEST_LEN_MAX: usize = LATEST_BYTES_MAX / 2;
/// Classes between a power of two and the next one.
const STEPS: usize = 4;
const CLASSES: usize = (LONGEST_BYTES / SHORTEST_BYTES).ilog2() as usize * STEPS + 1;
const PARTS: usize = 4;

/// Kept buffers, by class.
#[derive(Debug)]
struct Part {
    /// Short ones with their pages.
    warm: [Vec<Vec<u8>>; CLASSES],
    /// Short and long ones whose pages were given back.
    cold: [Vec<Vec<u8>>; CLASSES],
}

impl Part {
    const fn new() -> Part {
        Part { warm: [const { Vec::new() }; CLASSES], cold: [const { Vec::new() }; CLASSES] }
    }
}

/// See the [module](self).
#[derive(Debug)]
struct Buffers {
    parts: [Mutex<Part>; PARTS],
    /// Bytes of the short buffers in all parts that have their pages.
    warm_bytes: AtomicUsize,
    /// Short buffers in all parts whose pages were given back.
    cold_short: AtomicUsize,
    /// Long buffers that have their pages, in the order in which they were kept: a few, of any class. In no
    /// part.
    latest: Mutex<VecDeque<Vec<u8>>>,
}

static BUFFERS: Buffers = Buffers::new();

/// A buffer of `len` bytes of any content.
#[must_use]
pub fn take_buffer(len: usize) -> Vec<u8> {
    BUFFERS.take(len)
}

/// Bytes of the buffer that [`take_buffer`] gives for `len`: what it holds of the process's memory.
#[must_use]
pub fn buffer_capacity(len: usize) -> usize {
    let capacity = class_for(len).map_or(len, bytes_of);
    debug_assert!(capacity >= len, "a buffer of {capacity} bytes for {len}");
    capacity
}

/// Keeps a buffer for a later [`take_buffer`] of any thread, or frees it.
pub fn keep_buffer(buffer: Vec<u8>) {
    BUFFERS.keep(buffer);
}

impl Buffers {
    const fn new() -> Buffers {
        let parts = [const { Mutex::new(Part::new()) }; PARTS];
        Buffers {
            parts,
            warm_bytes: AtomicUsize::new(0),
            cold_short: AtomicUsize::new(0),
            latest: Mutex::new(VecDeque::new()),
        }
    }

    fn take(&self, len: usize) -> Vec<u8> {
        let Some(class) = class_for(len) else { return vec![0; len] };
        let mut buffer = self.kept(class).unwrap_or_else(|| vec![0; bytes_of(class)]);
        // What the buffer was used for last may have been shorter.
        buffer.resize(len, 0);
        buffer
    }

    fn keep(&self, buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        let Some(class) = class_for(bytes).filter(|class| bytes_of(*class) == bytes) else { return };
        if (LONG_BYTES..=LATEST_LEN_MAX).contains(&bytes) {
            self.keep_latest(buffer);
        } else if bytes >= LONG_BYTES {
            let _ = self.keep_addresses(buffer);
        } else if self.is_room_for(bytes) || self.give_up_another(class) && self.is_room_for(bytes) {
            self.part_to_fill().warm[class].push(buffer);
        } else {
            self.keep_cold(buffer);
        }
    }

    /// Keeps the addresses of a short buffer for which there is no room with its pages.
    fn keep_cold(&self, buffer: Vec<u8>) {
        debug_assert!(buffer.capacity() < LONG_BYTES, "long buffers have rules of their own");
        // Before the system is asked to take pages of a buffer that is freed as a whole.
        if buffer.capacity() >= COLD_BYTES && self.is_room_for_cold() && !self.keep_addresses(buffer) {
            self.cold_short.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Counts a short buffer without its pages if all of them may be one more.
    fn is_room_for_cold(&self) -> bool {
        let fit = |cold: usize| (cold < COLD_LEFT_BYTES_MAX / COLD_LEFT_BYTES).then_some(cold + 1);
        // Relaxed: a number and nothing else.
        self.cold_short.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fit).is_ok()
    }

    /// Keeps a long buffer with its pages, and those of older ones no longer.
    fn keep_latest(&self, buffer: Vec<u8>) {
        debug_assert!((LONG_BYTES..=LATEST_LEN_MAX).contains(&buffer.capacity()), "one of a few");
        let mut newer = Some(buffer);
        loop {
            let mut latest = self.latest.lock();
            latest.extend(newer.take());
            let bytes: usize = latest.iter().map(Vec::capacity).sum();
            if bytes <= LATEST_BYTES_MAX {
                return;
            }
            let oldest = latest.pop_front();
            // The system takes pages without the lock.
            drop(latest);
            let _ = oldest.is_some_and(|buffer| self.keep_addresses(buffer));
        }
    }

    /// Gives the pages of a buffer back and keeps its addresses; frees it and returns false if enough of its
    /// class are kept, or the system does not take pages.
    fn keep_addresses(&self, mut buffer: Vec<u8>) -> bool {
        let bytes = buffer.capacity();
        let class = class_for(bytes).expect("a buffer that is kept is of a class");
        debug_assert!(bytes >= COLD_BYTES, "most pages of a buffer of {bytes} bytes are not its own");
        if !mapping::forget(&mut buffer) {
            return false;
        }
        let most = if bytes >= LONG_BYTES { LONG_KEPT_MAX } else { COLD_KEPT_MAX };
        let mut part = self.part_to_fill();
        if part.cold[class].len() < most {
            part.cold[class].push(buffer);
            return true;
        }
        // The buffer is freed without the lock.
        drop(part);
        false
    }

    /// Counts a short buffer if all of them may have so many bytes more.
    fn is_room_for(&self, bytes: usize) -> bool {
        let fit = |warm: usize| warm.checked_add(bytes).filter(|warm| *warm <= WARM_BYTES_MAX);
        // Relaxed: a number and nothing else.
        self.warm_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fit).is_ok()
    }

    /// Gives up a short buffer of another class, so that those of an unused size make room.
    fn give_up_another(&self, class: usize) -> bool {
        let Some(mut part) = self.free_part() else { return false };
        let short = (0..CLASSES).filter(|other| *other != class && bytes_of(*other) < LONG_BYTES);
        let given = short.rev().find_map(|other| part.warm[other].pop());
        drop(part);
        let Some(given) = given else { return false };
        self.warm_bytes.fetch_sub(given.capacity(), Ordering::Relaxed);
        self.keep_cold(given);
        true
    }

    /// A kept buffer of a class, from a part that no other thread is at.
    fn kept(&self, class: usize) -> Option<Vec<u8>> {
        if let Some(latest) = self.latest_of(class) {
            return Some(latest);
        }
        let Some(found) = self.parts_from_own().find_map(|part| part.try_lock()?.warm[class].pop()) else {
            return self.kept_cold(class);
        };
        let bytes = found.capacity();
        let warm = self.warm_bytes.fetch_sub(bytes, Ordering::Relaxed);
        assert!(warm >= bytes, "a buffer of {bytes} bytes leaves {warm} bytes of kept ones");
        Some(found)
    }

    /// A kept buffer of a class whose pages were given back.
    fn kept_cold(&self, class: usize) -> Option<Vec<u8>> {
        let found = self.parts_from_own().find_map(|part| part.try_lock()?.cold[class].pop())?;
        if found.capacity() < LONG_BYTES {
            let cold = self.cold_short.fetch_sub(1, Ordering::Relaxed);
            assert!(cold > 0, "a short buffer without pages was kept and not counted");
        }
        Some(found)
    }

    /// The long buffer of a class that was kept last with its pages, if no other thread is at these.
    fn latest_of(&self, class: usize) -> Option<Vec<u8>> {
        if !(LONG_BYTES..=LATEST_LEN_MAX).contains(&bytes_of(class)) {
            return None;
        }
        let mut latest = self.latest.try_lock()?;
        let at = latest.iter().rposition(|buffer| buffer.capacity() == bytes_of(class))?;
        latest.remove(at)
    }

    /// A part to put a buffer into: that of the calling thread, if other threads are at all of them.
    fn part_to_fill(&self) -> MutexGuard<'_, Part> {
        self.free_part().unwrap_or_else(|| self.parts[thread_number() % PARTS].lock())
    }

    /// A part that no other thread is at.
    fn free_part(&self) -> Option<MutexGuard<'_, Part>> {
        self.parts_from_own().find_map(Mutex::try_lock)
    }

    /// All parts, that of the calling thread first.
    fn parts_from_own(&self) -> impl Iterator<Item = &Mutex<Part>> {
        let own = thread_number();
        (own..own + PARTS).map(|at| &self.parts[at % PARTS])
    }
}

/// The class of the shortest buffers of at least `len` bytes; `None` if buffers as short or as long are not
/// kept.
fn class_for(len: usize) -> Option<usize> {
    if !(SHORTEST_BYTES / 2..=LONGEST_BYTES).contains(&len) {
        return None;
    }
    let len = len.max(SHORTEST_BYTES);
    let power = len.ilog2();
    let step_bits = power - STEPS.ilog2();
    let steps = (len - (1 << power)).div_ceil(1 << step_bits);
    Some((power - SHORTEST_BYTES.ilog2()) as usize * STEPS + steps)
}

/// Bytes of the buffers of a class.
fn bytes_of(class: usize) -> usize {
    let power = SHORTEST_BYTES << (class / STEPS);
    power + power / STEPS * (class % STEPS)
}

/// Bytes that lie in one of the process's buffers for as long as this lives.
#[derive(Debug, Default)]
pub struct Buffer(Vec<u8>);

impl Buffer {
    /// An empty buffer that can take `bytes` before it is moved.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Buffer {
        let class = class_for(bytes);
        let kept = class.and_then(|class| BUFFERS.kept(class));
        let mut buffer = kept.unwrap_or_else(|| Vec::with_capacity(class.map_or(bytes, bytes_of)));
        // Its pages are allocated as far as it is written.
        buffer.clear();
        Buffer(buffer)
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Buffer {
        Buffer(bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        keep_buffer(std::mem::take(&mut self.0));
    }
}

#[cfg(test)]
mod tests;
