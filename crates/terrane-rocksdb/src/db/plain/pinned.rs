//! Values that a caller holds, and the handles of values that it has destroyed: a thread keeps some of them
//! for its next reads.

use std::cell::Cell;
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::db::plain::multi_get::MultiGetValues;
use crate::ffi::types::{Out, put};

/// Most handles that a thread keeps, and most memory for a value that each of them does.
const SPARE_HANDLES_MAX: usize = 128;
const KEPT_BYTES_MAX: usize = 4096;

thread_local! {
    static SPARE_HANDLES: SpareHandles = const { SpareHandles::new() };
}

/// A value that the caller holds until it destroys it.
#[derive(Default)]
pub(crate) struct Pinned {
    /// The value, if it belongs to this handle alone. A handle that waits to be given out again keeps this
    /// memory.
    pub(super) bytes: Vec<u8>,
    /// One of several that were read together.
    among: Option<(Arc<MultiGetValues>, usize)>,
    /// The next one of those that wait to be given out again.
    next: Option<Box<Pinned>>,
}

/// Handles that were destroyed on a thread: a multi-get gives out as many as it has keys.
struct SpareHandles {
    first: Cell<Option<Box<Pinned>>>,
    count: Cell<usize>,
}

impl SpareHandles {
    const fn new() -> SpareHandles {
        SpareHandles { first: Cell::new(None), count: Cell::new(0) }
    }

    #[inline]
    fn pop(&self) -> Option<Box<Pinned>> {
        let mut handle = self.first.take()?;
        self.first.set(handle.next.take());
        self.count.set(self.count.get() - 1);
        Some(handle)
    }

    /// Keeps a handle, which is the next one to none.
    #[inline]
    fn push(&self, mut handle: Box<Pinned>) {
        let count = self.count.get();
        if count >= SPARE_HANDLES_MAX {
            return Pinned::free(handle);
        }
        let none = std::mem::replace(&mut handle.next, self.first.take());
        debug_assert!(none.is_none(), "a handle that was given out has left the list");
        // Known to be nothing: forgotten, so that no code frees it here, on the way of each read.
        std::mem::forget(none);
        self.first.set(Some(handle));
        self.count.set(count + 1);
    }
}

impl Pinned {
    pub(crate) fn alone(value: Vec<u8>) -> Box<Pinned> {
        let mut handle = Pinned::spare();
        handle.bytes = value;
        handle
    }

    /// The value of this index, which is there.
    pub(crate) fn one_of(values: Arc<MultiGetValues>, index: usize) -> Box<Pinned> {
        let mut handle = Pinned::spare();
        handle.among = Some((values, index));
        handle
    }

    /// Gives each place whose key has a value a handle with a copy of it.
    pub(crate) fn copies_of<'p, 'v>(
        mut values: impl Iterator<Item = (&'p mut MaybeUninit<Option<Box<Pinned>>>, Option<&'v [u8]>)>,
    ) {
        // A thread that is about to end keeps none.
        let none = SpareHandles::new();
        let mut copy = |spare: &SpareHandles| {
            for (place, value) in &mut values {
                place.write(value.map(|value| {
                    let mut handle = spare.pop().unwrap_or_default();
                    handle.bytes.extend_from_slice(value);
                    handle
                }));
            }
        };
        if SPARE_HANDLES.try_with(&mut copy).is_err() {
            copy(&none);
        }
    }

    /// A handle without a value: one that was given back, or a new one.
    #[inline]
    pub(super) fn spare() -> Box<Pinned> {
        SPARE_HANDLES.try_with(SpareHandles::pop).ok().flatten().unwrap_or_else(Pinned::fresh)
    }

    #[cold]
    fn fresh() -> Box<Pinned> {
        Box::default()
    }

    #[cold]
    fn free(self: Box<Self>) {
        drop(self);
    }

    /// Takes a handle back, with what memory it may keep for the next value.
    #[inline]
    pub(super) fn give_back(mut self: Box<Self>) {
        if self.among.is_some() || self.bytes.capacity() > KEPT_BYTES_MAX {
            self.give_back_memory();
        }
        self.bytes.clear();
        // A thread that is about to end keeps none.
        let _ = SPARE_HANDLES.try_with(|spare| spare.push(self));
    }

    /// Frees what a spare handle does not keep.
    #[cold]
    fn give_back_memory(&mut self) {
        self.among = None;
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        match &self.among {
            None => &self.bytes,
            Some((values, index)) => Pinned::value_among(values, *index),
        }
    }

    #[cold]
    fn value_among(values: &MultiGetValues, index: usize) -> &[u8] {
        values.get(index).unwrap_or_default()
    }
}

fn lent(value: Option<&Pinned>, len: Out<'_, usize>) -> *const c_char {
    let value = value.map(Pinned::value);
    put(len, value.map_or(0, <[u8]>::len));
    value.map_or(std::ptr::null(), |value| value.as_ptr().cast())
}

export! {
    fn rocksdb_pinnableslice_value(value: Option<&Pinned>, len: Out<'_, usize>) -> *const c_char {
        lent(value, len)
    }

    fn rocksdb_pinnableslice_destroy(value: Option<Box<Pinned>>) {
        value.into_iter().for_each(Pinned::give_back);
    }
}
