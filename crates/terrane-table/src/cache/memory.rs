//! Memory layout of objects: one run for each, with the header first and then the bytes that it refers to.
//! The parts that a search reads are adjacent, on one page. It lies in the arena; in one of the process's
//! [buffers](terrane_device::Buffer) if it is too large for that, or is used once; or on the heap, where the
//! cache has no arena.
//!
//! ```text
//! data    Object | bytes of the block
//! index   Object | bytes of the index, places of its rows, heads of its keys | slots of its blocks
//! filter  Object | lines
//! ranges  Object
//! ```
//!
//! Range deletes are separate allocations on the heap.
//!
//! Each part begins at a cache line.
//!
//! Rules of access:
//! 1. The creator of an object writes header and parts before any other thread has a reference.
//! 2. Parts never change; swip slots change only by the protocol of swips. A [`Tail`] or [`SwipSlots`] never
//!    leaves its object.
//! 3. An object lives while there is a reference. The thread that drops the last one drops the payload and
//!    then frees the memory: first heap or buffer, or the arena through the charge, and only then the
//!    accounting.

#![expect(unsafe_code, reason = "places the parts of an object in one run of memory")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::{self, NonNull};

use terrane_base::prefetch::LINE_BYTES;
use terrane_base::sync::atomic::Ordering;
use terrane_device::{buffer_capacity, keep_buffer, take_buffer};
use terrane_format::block::Block;
use terrane_format::filter::Filter;
use terrane_format::index::{self, IndexBlock};
use terrane_format::range_deletes::{Fragment, Fragments};

use super::object::{Charge, Index, Object, Payload, SwipSlot};
use crate::swip::Reference;

/// Bytes of an object's header.
pub(super) const HEAD_BYTES: usize = size_of::<Object>().next_multiple_of(LINE_BYTES);

/// Bytes of an object whose parts have these lengths.
fn object_bytes(parts: &[usize]) -> usize {
    parts.iter().fold(HEAD_BYTES, |sum, len| sum.saturating_add(len.next_multiple_of(LINE_BYTES)))
}

/// Bytes of a cached data block of `raw_len` bytes.
pub(crate) fn block_bytes(raw_len: usize) -> usize {
    object_bytes(&[raw_len])
}

/// Bytes of a cached filter of `len` bytes.
pub(crate) fn filter_bytes(len: usize) -> usize {
    object_bytes(&[len])
}

/// Bytes of a cached index block of `len` bytes for `blocks` data blocks.
pub(crate) fn index_bytes(len: usize, blocks: usize) -> usize {
    let [bytes, places, heads] = index::part_lens(len, blocks);
    object_bytes(&[bytes, places, heads, blocks.saturating_mul(size_of::<SwipSlot>())])
}

/// Upper bound of the bytes of cached range deletes: this many fragments, which take `len` bytes in their
/// extent.
pub(crate) fn ranges_bytes(len: usize, fragments: usize) -> usize {
    // Start, end and numbers are three heap allocations.
    const FRAGMENT_BYTES: usize = size_of::<Fragment>() + 3 * 16;
    HEAD_BYTES.saturating_add(len).saturating_add(fragments.saturating_mul(FRAGMENT_BYTES))
}

/// The bytes after an object's header.
#[derive(Debug)]
pub(crate) struct Tail {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: rule 2: bytes that never change.
unsafe impl Send for Tail {}
// SAFETY: as above.
unsafe impl Sync for Tail {}

impl AsRef<[u8]> for Tail {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: rules 1 and 2: written, never changed, and there as long as the object that this is a part
        // of.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

/// The swip slots after an index block's header.
#[derive(Debug)]
pub(crate) struct SwipSlots {
    start: NonNull<SwipSlot>,
    len: usize,
}

// SAFETY: slots are `Send` and `Sync`, and this owns them.
unsafe impl Send for SwipSlots {}
// SAFETY: as above.
unsafe impl Sync for SwipSlots {}

impl Deref for SwipSlots {
    type Target = [SwipSlot];

    #[inline]
    fn deref(&self) -> &[SwipSlot] {
        // SAFETY: rules 1 and 2, as for a tail.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for SwipSlots {
    fn drop(&mut self) {
        debug_assert!(self.start.as_ptr().is_aligned(), "slots that were made begin at a cache line");
        // SAFETY: made by `Space::slots`, dropped once, with the payload and before its memory goes.
        unsafe { ptr::drop_in_place(ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.len)) }
    }
}

/// A counted reference to an object.
#[derive(Debug)]
pub(crate) struct ObjectRef(NonNull<Object>);

// SAFETY: objects are `Send` and `Sync`, and references are counted by an atomic.
unsafe impl Send for ObjectRef {}
// SAFETY: as above.
unsafe impl Sync for ObjectRef {}

impl Deref for ObjectRef {
    type Target = Object;

    #[inline]
    fn deref(&self) -> &Object {
        // SAFETY: rule 3.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for ObjectRef {
    fn clone(&self) -> Self {
        // Relaxed: the caller has a reference already.
        let before = self.references.fetch_add(1, Ordering::Relaxed);
        debug_assert!(before > 0, "an object that is gone is referred to again");
        ObjectRef(self.0)
    }
}

impl Drop for ObjectRef {
    fn drop(&mut self) {
        // AcqRel: the accesses of other threads happen before the object is dropped.
        let before = self.references.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before > 0, "a reference is dropped twice");
        if before == 1 {
            // SAFETY: that was the last reference.
            unsafe { free(self.0) }
        }
    }
}

// SAFETY: the pointer is that of a counted reference, and the object lives while the count is not 0.
unsafe impl Reference<Object> for ObjectRef {
    fn into_raw(self) -> *const Object {
        debug_assert!(
            self.references.load(Ordering::Relaxed) > 0,
            "the swip would hold an object without a counted reference"
        );
        let pointer = self.0.as_ptr().cast_const();
        std::mem::forget(self);
        pointer
    }

    unsafe fn from_raw(pointer: *const Object) -> Self {
        // SAFETY: from `into_raw`, hence not null.
        ObjectRef(unsafe { NonNull::new_unchecked(pointer.cast_mut()) })
    }

    unsafe fn another(pointer: *const Object) -> Self {
        // SAFETY: from `into_raw`, and something keeps the object.
        unsafe { (*pointer).references.fetch_add(1, Ordering::Relaxed) };
        // SAFETY: the reference that was just counted.
        unsafe { Self::from_raw(pointer) }
    }
}

/// Drops an object and frees its memory.
///
/// # Safety
/// No reference to the object is left, and this is called once.
unsafe fn free(object: NonNull<Object>) {
    // SAFETY: exclusive by the caller's promise. The charge outlives the payload: it owns the memory of both.
    let (charge, home) = unsafe {
        let object = &mut *object.as_ptr();
        (object.charge.take(), object.home)
    };
    // SAFETY: the object was written when it was made; a dropped object is not used again.
    unsafe { ptr::drop_in_place(object.as_ptr()) };
    match home {
        Home::Arena => {}
        // SAFETY: allocated by `build` with this layout.
        Home::Heap(bytes) => unsafe { dealloc(object.as_ptr().cast(), layout(bytes as usize)) },
        // SAFETY: `build` took it, and it is not used again.
        Home::Buffer => unsafe { keep_buffer(buffer_around(object.cast())) },
    }
    drop(charge);
}

/// The owner to which an object's memory returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// The charge has its spot in the arena.
    Arena,
    /// An allocation of so many bytes.
    Heap(u32),
    /// One of the process's buffers, whose parts lie in the line before the object.
    Buffer,
}

/// The parts of a buffer that an object lies in.
struct BufferParts {
    start: *mut u8,
    len: usize,
    capacity: usize,
}

const _: () = assert!(size_of::<BufferParts>() <= LINE_BYTES);

/// Bytes of memory that an object of `bytes` takes in one of the process's buffers.
pub(super) fn bytes_in_buffer(bytes: usize) -> usize {
    buffer_capacity(bytes.saturating_add(2 * LINE_BYTES))
}

/// Room for an object of `bytes` in one of the process's buffers. An allocation for each would leave a piece
/// in the allocator that the next one does not fit: until version 2.38 glibc looks for aligned memory in
/// pieces that are longer than the request.
fn in_buffer(bytes: usize) -> NonNull<u8> {
    let mut buffer = ManuallyDrop::new(take_buffer(bytes + 2 * LINE_BYTES));
    let (start, len, capacity) = (buffer.as_mut_ptr(), buffer.len(), buffer.capacity());
    let skipped = LINE_BYTES + start.align_offset(LINE_BYTES);
    assert!(skipped + bytes <= len, "a buffer of {len} bytes for an object of {bytes}");
    // SAFETY: within the buffer, a line before its object, and aligned as a line is.
    unsafe {
        start.add(skipped - LINE_BYTES).cast::<BufferParts>().write(BufferParts { start, len, capacity })
    };
    // SAFETY: within the buffer, which is not null.
    unsafe { NonNull::new_unchecked(start.add(skipped)) }
}

/// The buffer around an object.
///
/// # Safety
/// The object lies where [`in_buffer`] said; this is called once, and the object is not used any more.
unsafe fn buffer_around(object: NonNull<u8>) -> Vec<u8> {
    // SAFETY: `in_buffer` wrote them there.
    let parts = unsafe { object.sub(LINE_BYTES).cast::<BufferParts>().read() };
    // SAFETY: the parts of a buffer that nothing has dropped, whose bytes were written.
    unsafe { Vec::from_raw_parts(parts.start, parts.len, parts.capacity) }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, LINE_BYTES).expect("objects are shorter than isize::MAX")
}

/// The unused rest of an object's memory while the object is created.
struct Space {
    next: NonNull<u8>,
    left: usize,
}

impl Space {
    /// Takes `len` bytes and the rest of their last cache line.
    fn take(&mut self, len: usize) -> NonNull<u8> {
        let taken = len.next_multiple_of(LINE_BYTES);
        assert!(taken <= self.left, "an object's memory was reserved for its parts");
        let start = self.next;
        self.left -= taken;
        // SAFETY: within the memory, as was just checked.
        self.next = unsafe { start.add(taken) };
        start
    }

    fn tail(&mut self, bytes: &[u8]) -> Tail {
        let start = self.take(bytes.len());
        debug_assert!(
            start.addr().get().is_multiple_of(LINE_BYTES),
            "a part that begins within a line is not what a search prefetches"
        );
        // SAFETY: the range was taken for this, and no other thread has it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start.as_ptr(), bytes.len()) };
        Tail { start, len: bytes.len() }
    }

    fn slots(&mut self, len: usize) -> SwipSlots {
        let start = self.take(len * size_of::<SwipSlot>()).cast::<SwipSlot>();
        debug_assert!(start.as_ptr().is_aligned(), "slots begin at a cache line");
        for at in 0..len {
            // SAFETY: within the range that was taken for this, which begins with a cache line and so is
            // aligned.
            unsafe { start.add(at).write(SwipSlot::default()) };
        }
        SwipSlots { start, len }
    }
}

/// Creates an object of `bytes`: in the spot of its charge. In a buffer if the cache has an arena and this
/// object no spot, because it is too large; or if it is not charged, because then it is used once. Else on
/// the heap.
fn build(bytes: usize, charge: Option<Charge>, payload: impl FnOnce(&mut Space) -> Payload) -> ObjectRef {
    let spot = charge.as_ref().and_then(|charge| charge.spot.as_ref());
    let (start, len, home) = match (spot, u32::try_from(bytes)) {
        (Some(spot), _) => (spot.start, spot.bytes(), Home::Arena),
        (None, Ok(heap_bytes)) if charge.as_ref().is_some_and(|charge| !charge.cache.has_arena()) => {
            // SAFETY: an object is not empty.
            let Some(start) = NonNull::new(unsafe { alloc(layout(bytes)) }) else {
                handle_alloc_error(layout(bytes))
            };
            (start, bytes, Home::Heap(heap_bytes))
        }
        _ => (in_buffer(bytes), bytes, Home::Buffer),
    };
    assert!(len >= bytes, "a spot of {len} bytes for an object of {bytes}");
    debug_assert!(start.addr().get().is_multiple_of(LINE_BYTES), "each part begins at a cache line");
    let mut space = Space { next: start, left: len };
    let object = space.take(HEAD_BYTES).cast::<Object>();
    let payload = payload(&mut space);
    // SAFETY: room for a header, aligned to a cache line, which no other thread has.
    unsafe { object.write(Object::new(payload, charge, home)) };
    ObjectRef(object)
}

/// A copy of a data block as an object.
pub(crate) fn block(block: &Block<impl AsRef<[u8]>>, charge: Option<Charge>) -> ObjectRef {
    build(block_bytes(block.bytes().len()), charge, |space| {
        Payload::Data(block.place(|bytes| space.tail(bytes)))
    })
}

/// A copy of a filter as an object.
pub(crate) fn filter(filter: &Filter<impl AsRef<[u8]>>, charge: Option<Charge>) -> ObjectRef {
    build(filter_bytes(filter.lines_len()), charge, |space| {
        Payload::Filter(filter.place(|bytes| space.tail(bytes)))
    })
}

/// A copy of an index block as an object, with empty swip slots.
pub(crate) fn index(rows: &IndexBlock<impl AsRef<[u8]>>, charge: Option<Charge>) -> ObjectRef {
    build(index_bytes(rows.bytes_len(), rows.len()), charge, |space| {
        let placed = rows.place(|bytes| space.tail(bytes));
        let slots = space.slots(rows.len());
        Payload::Index(Index { rows: placed, slots })
    })
}

/// Range deletes as an object.
pub(crate) fn ranges(fragments: Fragments, charge: Option<Charge>) -> ObjectRef {
    build(HEAD_BYTES, charge, |_| Payload::Ranges(Box::new(fragments)))
}

impl Object {
    /// A copy of the object in another spot, with a charge of its own; `None` if it cannot be moved.
    pub(super) fn copy(&self, charge: Charge) -> Option<ObjectRef> {
        match &self.payload {
            Payload::Data(data) => Some(block(data, Some(charge))),
            Payload::Filter(lines) => Some(filter(lines, Some(charge))),
            Payload::Index(_) | Payload::Ranges(_) => None,
        }
    }
}
