//! What passes between C and Rust.
//!
//! Arguments of exported functions have the types of this module; no Rust code makes them, only callers from
//! C do. So each stands for what RocksDB's header asks of a caller, and its methods are safe:
//!
//! * `Option<&T>`, `Option<&mut T>`, `Option<Box<T>>`: a handle that this library made and no caller has
//!   freed, or null.
//! * [`Bytes`], [`List`], [`OutList`]: the beginning of so many readable (writable) things as the count
//!   beside it says; null stands for none. [`Text`]: a string that ends with a zero. [`Out`]: a place for a
//!   result, or null.
//! * [`ErrPtr`]: null, or a place that holds null or a string of the C library's allocator.
//!
//! What goes out to be freed by `rocksdb_free` is allocated here by the C library ([`lasting`],
//! [`lasting_text`]).
#![expect(unsafe_code, reason = "pointers of C callers become slices and strings, memory is the C library's")]

use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::ffi::failure::{Failure, Result};

/// Any pointer that a stub takes no look at.
pub(crate) type Pointer = *mut c_void;
/// A place for a result, or null; what it holds before means nothing.
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

    /// The bytes that a caller lends.
    pub(crate) fn bytes(&self) -> &[u8] {
        Bytes(self.data.cast(), PhantomData).of(self.size)
    }
}

/// The beginning of bytes whose number stands beside it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a>(*const u8, PhantomData<&'a [u8]>);

impl<'a> Bytes<'a> {
    /// The bytes; none for null.
    #[inline]
    pub(crate) fn of(self, len: usize) -> &'a [u8] {
        if self.0.is_null() || len == 0 {
            return &[];
        }
        // SAFETY: the caller from C promises `len` readable bytes that no thread changes during the call.
        unsafe { std::slice::from_raw_parts(self.0, len) }
    }

    /// Whether it is a null pointer.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// The beginning of things whose number stands beside it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct List<'a, T>(*const T, PhantomData<&'a [T]>);

impl<'a, T> List<'a, T> {
    /// No things, where a function takes no list.
    pub(crate) fn none() -> Self {
        List(std::ptr::null(), PhantomData)
    }

    /// The things; none for null.
    #[inline]
    pub(crate) fn of(self, count: usize) -> &'a [T] {
        if self.0.is_null() || count == 0 {
            return &[];
        }
        // SAFETY: the caller from C promises `count` readable elements that no thread changes during the
        // call.
        unsafe { std::slice::from_raw_parts(self.0, count) }
    }
}

impl<'a> List<'a, Bytes<'a>> {
    /// Byte strings, with their lengths in a list beside them.
    pub(crate) fn with(self, lengths: List<'a, usize>, count: usize) -> Vec<&'a [u8]> {
        let pairs = self.of(count).iter().zip(lengths.of(count));
        pairs.map(|(bytes, len)| bytes.of(*len)).collect()
    }
}

/// The beginning of places for so many results as the count beside it says.
#[repr(transparent)]
pub(crate) struct OutList<'a, T>(*mut T, PhantomData<&'a mut [T]>);

impl<'a, T> OutList<'a, T> {
    /// The places; none for null.
    pub(crate) fn of(self, count: usize) -> &'a mut [MaybeUninit<T>] {
        if self.0.is_null() || count == 0 {
            return &mut [];
        }
        // SAFETY: the caller from C promises `count` places that are this function's alone during the call.
        unsafe { std::slice::from_raw_parts_mut(self.0.cast(), count) }
    }
}

/// A string that ends with a zero.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Text<'a>(*const c_char, PhantomData<&'a CStr>);

impl<'a> Text<'a> {
    /// The string, or a failure for null.
    pub(crate) fn get(self) -> Result<&'a CStr> {
        if self.0.is_null() {
            return Err(Failure::invalid("a string is null"));
        }
        // SAFETY: the caller from C promises a string that ends with a zero and that no thread changes during
        // the call.
        Ok(unsafe { CStr::from_ptr(self.0) })
    }

    /// The string as UTF-8, or a failure.
    pub(crate) fn utf8(self) -> Result<&'a str> {
        self.get()?.to_str().map_err(|_| Failure::invalid("a name is not UTF-8"))
    }
}

/// `char** errptr`: where a failure is put; what was there is freed.
#[repr(transparent)]
pub(crate) struct ErrPtr<'a>(Option<&'a mut *mut c_char>);

impl ErrPtr<'_> {
    /// Runs `body`; its failure, or its panic, is put into the place, and the absent result returned.
    #[inline]
    pub(crate) fn report<R: Absent>(self, body: impl FnOnce() -> Result<R>) -> R {
        match catch_unwind(AssertUnwindSafe(body)) {
            Ok(Ok(result)) => result,
            Ok(Err(failure)) => self.put(&failure),
            Err(_) => self.put(&Failure::panicked()),
        }
    }

    #[cold]
    fn put<R: Absent>(self, failure: &Failure) -> R {
        if let Some(place) = self.0 {
            // SAFETY: the place holds null or a string that the C library allocated: the caller from C
            // promises it.
            unsafe { libc::free((*place).cast()) };
            *place = lasting_text(failure.text());
        }
        R::absent()
    }
}

/// What a function returns when it fails.
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
/// memory. Callers use such a handle no longer than what it was got from.
pub(crate) struct Lent<T>(*const T);

impl<T> Lent<T> {
    /// Lends it.
    pub(crate) fn of(held: &Arc<T>) -> Lent<T> {
        Lent(Arc::as_ptr(held))
    }

    /// It, held by count.
    pub(crate) fn held(&self) -> Arc<T> {
        // SAFETY: the pointer is that of a counted value, which another handle of the C caller keeps alive
        // during the call.
        unsafe {
            Arc::increment_strong_count(self.0);
            Arc::from_raw(self.0)
        }
    }
}

/// A handle in memory of the C library, for the caller to free as such: what it holds is not dropped then.
pub(crate) fn lasting_handle<T>(handle: T) -> *mut T {
    const { assert!(align_of::<T>() <= 16, "memory of the C library is aligned so far") };
    // SAFETY: so much is allocated as is written, and it is aligned.
    unsafe {
        let memory = libc::malloc(size_of::<T>().max(1)).cast::<T>();
        if memory.is_null() {
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<T>());
        }
        memory.write(handle);
        memory
    }
}

/// Memory of the C library that a caller gives back, or null.
#[repr(transparent)]
pub(crate) struct Given<T>(*mut T);

impl<T> Given<T> {
    /// Frees it.
    pub(crate) fn free(self) {
        // SAFETY: the caller from C gives back what the C library allocated, once.
        unsafe { libc::free(self.0.cast()) };
    }
}

impl Given<*mut c_char> {
    /// Frees so many strings and the list of them.
    pub(crate) fn free_strings(self, count: usize) {
        for string in List(self.0.cast_const(), PhantomData).of(count) {
            Given(*string).free();
        }
        self.free();
    }
}

impl<T> Given<*mut T> {
    /// Frees so many handles and the list of them.
    pub(crate) fn free_handles(self, count: usize) {
        for handle in List(self.0.cast_const(), PhantomData).of(count) {
            if !handle.is_null() {
                // SAFETY: the caller from C gives back handles that this library made of boxes, once.
                drop(unsafe { Box::from_raw(*handle) });
            }
        }
        self.free();
    }
}

/// Writes a result where there is a place for it.
#[inline]
pub(crate) fn put<T>(place: Out<'_, T>, value: T) {
    if let Some(place) = place {
        place.write(value);
    }
}

/// Exports functions under their names. Those that take an [`ErrPtr`] named `error` have a body that returns
/// a `Result`.
macro_rules! export {
    ($( $(#[$meta:meta])* fn $name:ident ( $($arguments:tt)* ) $(-> $result:ty)? $body:block )*) => { $(
        export! { @ [$(#[$meta])*] $name [] [$($arguments)*] [$($result)?] $body }
    )* };
    (@ [$($meta:tt)*] $name:ident [$($done:tt)*] [error: ErrPtr<'_> $(,)?] [$($result:ty)?] $body:block) => {
        $($meta)*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($done)* error: $crate::ffi::types::ErrPtr<'_>) $(-> $result)? {
            error.report(move || -> $crate::ffi::failure::Result<_> { $body })
        }
    };
    (@ [$($meta:tt)*] $name:ident [$($done:tt)*] [$argument:ident : $kind:ty $(, $($rest:tt)*)?] [$($result:ty)?] $body:block) => {
        export! { @ [$($meta)*] $name [$($done)* $argument: $kind,] [$($($rest)*)?] [$($result)?] $body }
    };
    (@ [$($meta:tt)*] $name:ident [$($done:tt)*] [] [$($result:ty)?] $body:block) => {
        $($meta)*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($done)*) $(-> $result)? {
            $crate::ffi::types::guarded(move || $body)
        }
    };
}

export! {
    /// Tells this library from RocksDB's own, for programs that must not take the one for the other. No
    /// function of the interface: it is in no header.
    fn terrane_librocksdb() -> std::ffi::c_int {
        1
    }
}

export! {
    /// Frees what this library gave out.
    fn rocksdb_free(memory: Given<c_void>) {
        memory.free();
    }
}
