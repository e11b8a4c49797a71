//! Types and memory that C and Rust pass to each other, and the code that catches panics.
//!
//! Pointers and lengths that come in are in [`arguments`](crate::ffi::arguments). Results that the caller
//! frees by `rocksdb_free` are allocated here by the C library ([`lasting`], [`lasting_text`],
//! [`lasting_list`], [`lasting_handle`]).
#![expect(unsafe_code, reason = "allocates and frees memory of the C library")]

use std::ffi::{c_char, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::ffi::failure::{Failure, Result};

/// Opaque pointer that a stub ignores.
pub(crate) type Pointer = *mut c_void;
/// A place for a result, or null; its content before the call has no meaning.
pub(crate) type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// `rocksdb_slice_t`: bytes that are lent, by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Slice {
    data: *const c_char,
    size: usize,
}

impl Slice {
    /// The bytes, for as long as the C interface says.
    pub(crate) fn of(bytes: &[u8]) -> Slice {
        Slice { data: bytes.as_ptr().cast(), size: bytes.len() }
    }

    /// Where the bytes begin; their number goes to a place.
    pub(crate) fn parts(self, len: Out<'_, usize>) -> *const c_char {
        put(len, self.size);
        self.data
    }
}

/// The result of a function that fails.
pub(crate) trait Absent {
    /// Zero or null.
    fn absent() -> Self;
}

macro_rules! absent {
    ($($kind:ty = $value:expr),*) => { $(
        impl Absent for $kind {
            fn absent() -> Self {
                $value
            }
        }
    )* };
}

absent!(() = (), u8 = 0, i32 = 0, u32 = 0, i64 = 0, u64 = 0, usize = 0, i8 = 0, f64 = 0.0, f32 = 0.0);

impl<T> Absent for *mut T {
    fn absent() -> Self {
        std::ptr::null_mut()
    }
}

impl<T> Absent for *const T {
    fn absent() -> Self {
        std::ptr::null()
    }
}

impl<T> Absent for Option<T> {
    fn absent() -> Self {
        None
    }
}

impl Absent for Slice {
    fn absent() -> Self {
        Slice { data: std::ptr::null(), size: 0 }
    }
}

/// Runs the body of an exported function that reports no error: a panic ends here.
#[inline]
pub(crate) fn guarded<R: Absent>(body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| R::absent())
}

/// Runs what can fail for several results at once: a panic is a failure.
pub(crate) fn caught<R>(body: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| Err(Failure::panicked()))
}

/// A copy of `bytes`, and a zero behind them, that the caller frees with `rocksdb_free`. Never null.
pub(crate) fn lasting(bytes: &[u8]) -> *mut c_char {
    // SAFETY: one byte more than `bytes` has is allocated, and so much is written.
    unsafe {
        let memory = libc::malloc(bytes.len() + 1).cast::<u8>();
        if memory.is_null() {
            std::alloc::handle_alloc_error(std::alloc::Layout::for_value(bytes));
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len());
        *memory.add(bytes.len()) = 0;
        memory.cast()
    }
}

/// A copy of `text`, as far as its first zero, that the caller frees with `rocksdb_free`.
pub(crate) fn lasting_text(text: &str) -> *mut c_char {
    lasting(text.as_bytes().split(|byte| *byte == 0).next().unwrap_or_default())
}

/// Pointers in memory of the C library, for the caller to free.
pub(crate) fn lasting_list<T>(pointers: &[*mut T]) -> *mut *mut T {
    let size = size_of_val(pointers);
    // SAFETY: so much is allocated as is written; memory of the C library is aligned for pointers.
    unsafe {
        let memory = libc::malloc(size.max(1)).cast::<*mut T>();
        if memory.is_null() {
            std::alloc::handle_alloc_error(std::alloc::Layout::for_value(pointers));
        }
        std::ptr::copy_nonoverlapping(pointers.as_ptr(), memory, pointers.len());
        memory
    }
}

/// Something that is held by count elsewhere, lent without a count: for handles that callers free as plain
/// memory.
pub(crate) struct Lent<'a, T>(*const T, PhantomData<&'a Arc<T>>);

impl<'a, T> Lent<'a, T> {
    /// Lends it.
    pub(crate) fn of(held: &'a Arc<T>) -> Lent<'a, T> {
        Lent(Arc::as_ptr(held), PhantomData)
    }

    /// It, held by count.
    pub(crate) fn held(&self) -> Arc<T> {
        // SAFETY: the pointer is that of a counted value, and the count that was lent from is borrowed for
        // `'a`. Where the handle went through C, its caller promises to use it no longer than what it was
        // got from.
        unsafe {
            Arc::increment_strong_count(self.0);
            Arc::from_raw(self.0)
        }
    }
}

/// A handle in memory of the C library, for the caller to free as such: what it holds is not dropped then,
/// and what it borrows is for the C caller to keep.
pub(crate) fn lasting_handle<T>(handle: T) -> Pointer {
    const { assert!(align_of::<T>() <= 16, "memory of the C library is aligned so far") };
    // SAFETY: so much is allocated as is written, and it is aligned.
    unsafe {
        let memory = libc::malloc(size_of::<T>().max(1)).cast::<T>();
        if memory.is_null() {
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<T>());
        }
        memory.write(handle);
        memory.cast()
    }
}

/// Writes a result where there is a place for it.
#[inline]
pub(crate) fn put<T>(place: Out<'_, T>, value: T) {
    if let Some(place) = place {
        place.write(value);
    }
}
