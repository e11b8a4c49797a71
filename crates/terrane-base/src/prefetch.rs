//! Prefetching memory. A batch of lookups prefetches the next line of each before it continues with the
//! first, so that their cache misses overlap.
//!
//! A prefetch reads nothing as far as the program can tell: any address is fine, a wrong one costs a little
//! time.
#![expect(unsafe_code, reason = "the processor's prefetch instruction")]

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;

/// Asks for the cache line at `address`.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch never faults and changes nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Asks for the first `lines` cache lines from `start` on.
#[inline(always)]
pub fn prefetch_lines<T>(start: *const T, lines: usize) {
    for line in 0..lines {
        prefetch(start.cast::<u8>().wrapping_add(line * LINE_BYTES));
    }
}
