//! Where a point read puts its value: a vector that it appends to, or memory of a known size.
//!
//! A value that memory or a cached block has as it is goes straight to the target, by one copy. Everything
//! else (operands, values that expire, are elsewhere, or come from the store or the row cache) needs a buffer
//! that grows and may be cut.

use std::cell::Cell;
use std::mem::MaybeUninit;

use terrane_base::SeqKind;

/// See the [module](self).
pub(crate) trait ValueTarget {
    /// Bytes in the buffer that are not of the read.
    fn begin(&self) -> usize;

    /// Puts the bytes of the version that ends a read. Of a wrapped kind they are in the buffer afterwards.
    fn put(&mut self, kind: SeqKind, bytes: &[u8]);

    /// The buffer.
    fn buffer(&mut self) -> &mut Vec<u8>;
}

impl ValueTarget for Vec<u8> {
    #[inline]
    fn begin(&self) -> usize {
        self.len()
    }

    #[inline]
    fn put(&mut self, _kind: SeqKind, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn buffer(&mut self) -> &mut Vec<u8> {
        self
    }
}

/// Longer buffers are not kept.
const KEPT_BYTES_MAX: usize = 1 << 20;

thread_local! {
    /// A buffer of earlier reads of the thread.
    static KEPT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Memory of a caller. What does not fit is not put there.
pub(crate) struct SliceTarget<'s> {
    places: &'s mut [MaybeUninit<u8>],
    /// Length of the value that was put there, if any: then the read is at its end.
    placed: usize,
    /// The buffer, if the read needed one. Of a read that fails it is not kept.
    buffer: Option<Vec<u8>>,
}

impl<'s> SliceTarget<'s> {
    #[inline(always)]
    pub(crate) fn new(places: &'s mut [MaybeUninit<u8>]) -> Self {
        SliceTarget { places, placed: 0, buffer: None }
    }

    /// Ends a read; returns how long the value is, if one was found.
    #[inline(always)]
    pub(crate) fn finish(self, found: bool) -> Option<usize> {
        let SliceTarget { places, mut placed, buffer } = self;
        if let Some(value) = buffer {
            placed = finish_buffered(places, placed, value, found);
        }
        debug_assert!(found || placed == 0, "a read that finds nothing has put nothing");
        found.then_some(placed)
    }

    /// Puts bytes that are not the value itself, or do not fit.
    #[cold]
    #[inline(never)]
    fn put_aside(&mut self, bytes: &[u8]) {
        self.buffer().extend_from_slice(bytes);
    }

    /// Takes a buffer out of what the thread keeps, while it is in use: a merge operator of the user may read
    /// on this thread.
    #[cold]
    #[inline(never)]
    fn take_buffer(&mut self) -> &mut Vec<u8> {
        debug_assert!(self.buffer.is_none(), "a read has one buffer");
        self.buffer.insert(KEPT.try_with(Cell::take).unwrap_or_default())
    }
}

/// [`SliceTarget::finish`] of a read that took a buffer.
#[cold]
#[inline(never)]
fn finish_buffered(
    places: &mut [MaybeUninit<u8>],
    mut placed: usize,
    mut value: Vec<u8>,
    found: bool,
) -> usize {
    debug_assert!(value.is_empty() || placed == 0, "a value is in the buffer or in its place");
    // Of a read that took a buffer and did not need it, as one that found no row in the row cache, the value
    // went straight to its place.
    if found && !value.is_empty() {
        place(places, &value);
        placed = value.len();
    }
    if value.capacity() <= KEPT_BYTES_MAX {
        value.clear();
        // A thread that is about to end keeps none.
        let _ = KEPT.try_with(|kept| kept.set(value));
    }
    placed
}

/// Copies a value to where it fits; returns whether it does.
#[inline]
fn place(places: &mut [MaybeUninit<u8>], value: &[u8]) -> bool {
    let Some(places) = places.get_mut(..value.len()) else { return false };
    copy(places, value);
    true
}

/// A function of its own, whose arguments are known to lie apart: the compiler makes one `memcpy` of it.
#[inline(never)]
fn copy(places: &mut [MaybeUninit<u8>], value: &[u8]) {
    debug_assert!(places.len() == value.len(), "places that nothing is written to would count as written");
    for (place, byte) in places.iter_mut().zip(value) {
        place.write(*byte);
    }
}

impl ValueTarget for SliceTarget<'_> {
    #[inline]
    fn begin(&self) -> usize {
        0
    }

    #[inline]
    fn put(&mut self, kind: SeqKind, bytes: &[u8]) {
        if kind.is_wrapped() || !place(self.places, bytes) {
            return self.put_aside(bytes);
        }
        debug_assert!(self.placed == 0, "one version ends a read");
        self.placed = bytes.len();
    }

    #[inline]
    fn buffer(&mut self) -> &mut Vec<u8> {
        match self.buffer {
            Some(ref mut buffer) => buffer,
            None => self.take_buffer(),
        }
    }
}
