//! Arguments of C callers as Rust values. No other module makes a reference of a pointer that a C caller
//! gave.
//!
//! The functions here are unsafe. The macro [`export!`](crate::export) and those of the generated modules
//! call them, at the beginning of an exported function, so handwritten code gets slices and strings only.
//! Exported functions declare their arguments by these names:
//!
//! | declared | in C | in the body |
//! |---|---|---|
//! | `key: Bytes<'_>, len: usize` | `const char*`, `size_t` | `&[u8]`; empty for null |
//! | `key: BytesOrNull<'_>, len: usize` | the same | `Option<&[u8]>` |
//! | `list: List<'_, T>[count]` | `const T*`, `count` is another argument | `&[T]`; empty for null |
//! | `keys: List<'_, Bytes<'_>>[count], lens: List<'_, usize>` | two lists | `Vec<&[u8]>` |
//! | `places: OutList<'_, T>[count]` | `T*` | `&mut [MaybeUninit<T>]`; empty for null |
//! | `name: Text<'_>` | `const char*` | [`Text`] |
//! | `memory: Returned<T>` | `T*` | [`Returned`] |
//! | `list: ReturnedList<T>[count]` | `T**` | [`ReturnedList`] |
//! | `error: ErrPtr<'_>`, the last one | `char**` | the body returns a `Result` |
//!
//! All else passes as it is declared: numbers, and `Option<&T>`, `Option<&mut T>`, `Option<Box<T>>` for a
//! handle that this library made and no caller has freed, or null. [`Text`] and [`LentSlice`] may be
//! elements of lists.
//!
//! # Invariants
//! 1. A value of a type of this module is made of a pointer by its unsafe function `from_c`, or it is an
//!    element of a list that [`list`] made: both ask the C caller for all that its safe methods need.
//! 2. What a C caller lends, it lends until the exported function returns.
#![expect(unsafe_code, reason = "makes slices and strings of pointers of C callers")]

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::ffi::failure::{Failure, Result};
use crate::ffi::types::{Absent, lasting_text};

/// The bytes at a pointer; none for null.
///
/// # Safety
/// `data` is null, or `len` bytes from there are readable and do not change while `'a` lasts.
#[inline]
pub(crate) unsafe fn bytes<'a>(data: *const u8, len: usize) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises; of no bytes any pointer but null is one.
    unsafe { std::slice::from_raw_parts(data, len) }
}

/// The bytes at a pointer, if it is not null.
///
/// # Safety
/// As for [`bytes`].
#[inline]
pub(crate) unsafe fn bytes_or_null<'a>(data: *const u8, len: usize) -> Option<&'a [u8]> {
    // SAFETY: as the caller promises.
    (!data.is_null()).then(|| unsafe { bytes(data, len) })
}

/// The elements at a pointer; none for null or a negative count.
///
/// # Safety
/// `first` is null, or `count` elements from there are readable and do not change while `'a` lasts, and each
/// is what its type asks for.
#[inline]
pub(crate) unsafe fn list<'a, T>(first: *const T, count: impl TryInto<usize>) -> &'a [T] {
    let count = count.try_into().unwrap_or(0);
    if first.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(first, count) }
}

/// Byte strings whose lengths are in a list beside them.
///
/// # Safety
/// Both lists are as for [`list`], and each pair of a pointer and a length as for [`bytes`].
#[inline]
pub(crate) unsafe fn byte_strings<'a>(
    first: *const *const u8,
    lens: *const usize,
    count: impl TryInto<usize>,
) -> Vec<&'a [u8]> {
    let count = count.try_into().unwrap_or(0);
    // SAFETY: as the caller promises.
    let (strings, lens) = unsafe { (list(first, count), list(lens, count)) };
    // SAFETY: as the caller promises.
    strings.iter().zip(lens).map(|(data, len)| unsafe { bytes(*data, *len) }).collect()
}

/// Places for results; none for null or a negative count.
///
/// # Safety
/// `first` is null, or `count` places from there are this function's alone while `'a` lasts.
#[inline]
pub(crate) unsafe fn places<'a, T>(first: *mut T, count: impl TryInto<usize>) -> &'a mut [MaybeUninit<T>] {
    let count = count.try_into().unwrap_or(0);
    // Of none the pointer may be any; one that is aligned, as each to bytes is, begins an empty slice.
    if first.is_null() || (count == 0 && align_of::<T>() > 1) {
        return &mut [];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts_mut(first.cast(), count) }
}

/// A string that ends with a zero, or null.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Text<'a>(*const c_char, PhantomData<&'a CStr>);

impl<'a> Text<'a> {
    /// # Safety
    /// `text` is null, or a string that ends with a zero and does not change while `'a` lasts.
    #[inline]
    pub(crate) unsafe fn from_c(text: *const c_char) -> Text<'a> {
        Text(text, PhantomData)
    }

    /// The string, or a failure for null.
    pub(crate) fn get(self) -> Result<&'a CStr> {
        if self.0.is_null() {
            return Err(Failure::invalid("a string is null"));
        }
        // SAFETY: invariant 1.
        Ok(unsafe { CStr::from_ptr(self.0) })
    }

    /// The string as UTF-8, or a failure.
    pub(crate) fn utf8(self) -> Result<&'a str> {
        self.get()?.to_str().map_err(|_| Failure::invalid("a name is not UTF-8"))
    }
}

/// `rocksdb_slice_t` as an element of a list of the caller: bytes that the caller lends.
#[repr(C)]
pub(crate) struct LentSlice<'a> {
    data: *const u8,
    size: usize,
    lent: PhantomData<&'a [u8]>,
}

impl<'a> LentSlice<'a> {
    /// The bytes; none for null.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        // SAFETY: invariant 1.
        unsafe { bytes(self.data, self.size) }
    }
}

/// Memory of the C library that a caller gives back, or null.
pub(crate) struct Returned<T>(*mut T);

impl<T> Returned<T> {
    /// # Safety
    /// `memory` is null, or comes from the C library's allocator, and no other pointer to it is in use.
    #[inline]
    pub(crate) unsafe fn from_c(memory: *mut T) -> Returned<T> {
        Returned(memory)
    }

    /// Frees it.
    pub(crate) fn free(self) {
        // SAFETY: `from_c` asks for it, and it is freed once: `self` ends here.
        unsafe { libc::free(self.0.cast()) };
    }
}

/// A list in memory of the C library that a caller gives back with its elements, or null.
pub(crate) struct ReturnedList<T> {
    first: *mut *mut T,
    count: usize,
}

impl<T> ReturnedList<T> {
    /// # Safety
    /// `first` is null, or a list of `count` pointers in memory of the C library. No other pointer to it or
    /// to its elements is in use. Each element is null or what this library put there: a string of the C
    /// library's allocator if `T` is `c_char`, else a box of a `T`.
    pub(crate) unsafe fn from_c(first: *mut *mut T, count: impl TryInto<usize>) -> ReturnedList<T> {
        ReturnedList { first, count: count.try_into().unwrap_or(0) }
    }

    fn free_with(self, free: impl Fn(*mut T)) {
        // SAFETY: `from_c` asks for it.
        unsafe { list(self.first.cast_const(), self.count) }.iter().for_each(|element| free(*element));
        // SAFETY: `from_c` asks for memory of the C library; it is freed once, behind its elements.
        unsafe { libc::free(self.first.cast()) };
    }
}

impl ReturnedList<c_char> {
    /// Frees the strings and the list of them.
    pub(crate) fn free_strings(self) {
        // SAFETY: `from_c` asks for strings of the C library's allocator.
        self.free_with(|string| unsafe { libc::free(string.cast()) });
    }
}

/// A type whose values go out in boxes, as handles.
pub(crate) trait Handle {}

impl<T: Handle> ReturnedList<T> {
    /// Frees the handles and the list of them.
    pub(crate) fn free_handles(self) {
        self.free_with(|handle| {
            if !handle.is_null() {
                // SAFETY: `from_c` asks for handles that this library made of boxes.
                drop(unsafe { Box::from_raw(handle) });
            }
        });
    }
}

/// `char** errptr`: where a failure is put; what was there is freed.
pub(crate) struct ErrPtr<'a>(Option<&'a mut *mut c_char>);

impl<'a> ErrPtr<'a> {
    /// # Safety
    /// `place` is null, or a place that is this function's alone while `'a` lasts, and that holds null or a
    /// string of the C library's allocator.
    #[inline]
    pub(crate) unsafe fn from_c(place: *mut *mut c_char) -> ErrPtr<'a> {
        // SAFETY: as the caller promises.
        ErrPtr(unsafe { place.as_mut() })
    }

    /// Runs `body`; its failure, or its panic, is put into the place, and the absent result returned.
    #[inline]
    pub(crate) fn report<R: Absent>(mut self, body: impl FnOnce() -> Result<R>) -> R {
        // A failure is put before the caught part ends, so that a result alone passes out of there: a
        // choice of two would pass through memory.
        let caught = catch_unwind(AssertUnwindSafe(|| match body() {
            Ok(result) => result,
            Err(failure) => self.put(&failure),
        }));
        match caught {
            Ok(result) => result,
            Err(_) => self.put(&Failure::panicked()),
        }
    }

    #[cold]
    #[inline(never)]
    fn put<R: Absent>(&mut self, failure: &Failure) -> R {
        if let Some(place) = &mut self.0 {
            let text = lasting_text(failure.text());
            // SAFETY: `from_c` asks for null or a string that the C library allocated.
            unsafe { libc::free((**place).cast()) };
            **place = text;
        }
        R::absent()
    }
}
