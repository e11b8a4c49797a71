//! jemalloc as a part of the program itself: a program of its own, because it defines a function for its
//! whole process.
#![expect(unsafe_code, reason = "stands for a function of jemalloc")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

static PURGES: AtomicU32 = AtomicU32::new(0);

/// The function of a program that takes jemalloc as its allocator (`tikv-jemallocator`). The dynamic linker
/// does not know it.
///
/// # Safety
/// `name` ends with a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn _rjem_mallctl(
    name: *const c_char,
    old: *mut c_void,
    old_len: *mut usize,
    new: *mut c_void,
    new_len: usize,
) -> c_int {
    // SAFETY: the caller promises it.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"arena.4096.purge");
    assert!(old.is_null() && old_len.is_null() && new.is_null() && new_len == 0, "nothing is read or set");
    PURGES.fetch_add(1, Ordering::Relaxed);
    0
}

#[test]
fn the_jemalloc_of_the_program_purges_all_its_arenas() {
    for times in 1..=3 {
        terrane_device::return_freed_memory();
        assert_eq!(PURGES.load(Ordering::Relaxed), times, "each return of freed memory is one purge");
    }
}
