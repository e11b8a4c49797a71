//! Freed memory that the allocators of the process keep, given back to the system.
//!
//! * The C library's: `malloc_trim`. It does nothing where another allocator has taken the place of that one.
//! * jemalloc's, if the process has it: all its arenas purge their unused pages, which they keep for ten
//!   seconds otherwise. It may be preloaded or linked, and the names of its functions may have a prefix, as
//!   in Rust programs; so each name is asked of the dynamic linker, and then of the linker of the program.
//! * Others, as mimalloc and tcmalloc, return pages by rules of their own: nothing is called.
//!
//! Settings of an allocator, as how long it keeps pages and how many arenas it has, are not changed: they
//! hold for the whole process, and so belong to its program.
#![expect(unsafe_code, reason = "functions of allocators, found by name")]

/// Makes the allocators of the process return the pages of freed allocations to the system. They walk over
/// the pieces that they keep, at about a microsecond each, so only background threads call this.
pub fn return_freed_memory() {
    // Miri knows none of these functions.
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        // SAFETY: may be called from any thread at any time, and touches no memory in use. Whether it gave
        // something back is of no interest.
        #[cfg(target_env = "gnu")]
        let _ = unsafe { libc::malloc_trim(0) };
        jemalloc::purge();
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod jemalloc {
    use std::ffi::{CStr, c_char, c_int, c_void};
    use std::ptr::null_mut;

    /// jemalloc's door to its settings and counters.
    type Mallctl = unsafe extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;

    /// Names of that function: as it is, as Rust programs have it (`tikv-jemallocator`), as others have it.
    const NAMES: [&CStr; 3] = [c"mallctl", c"_rjem_mallctl", c"je_mallctl"];

    /// All arenas (`MALLCTL_ARENAS_ALL`) give the pages back that they do not use.
    const PURGE: &CStr = c"arena.4096.purge";

    /// Purges the arenas of each jemalloc that the process has: a program may have one for itself and another
    /// one for its C libraries.
    pub(super) fn purge() {
        // Looked up each time: a library with an allocator may be loaded and unloaded.
        for mallctl in find().into_iter().flatten() {
            // SAFETY: the name ends with a zero, and nothing is read or set: the other pointers may be null.
            // A version before 5 does not know the name and refuses it, which changes nothing.
            let _ = unsafe { mallctl(PURGE.as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
        }
    }

    fn find() -> [Option<Mallctl>; NAMES.len()] {
        let linked = linked();
        let mut found = [null_mut(); NAMES.len()];
        for ((found, name), linked) in found.iter_mut().zip(NAMES).zip(linked) {
            // SAFETY: the name ends with a zero.
            *found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            if found.is_null() {
                *found = linked;
            }
        }
        // SAFETY: each is null, which is `None`, or the address of a function that jemalloc's manual
        // describes with these arguments. No other library defines such names with another meaning.
        found.map(|address| unsafe { std::mem::transmute::<*mut c_void, Option<Mallctl>>(address) })
    }

    /// The functions of an allocator that is a part of the program itself, whose names the dynamic linker
    /// does not know; null where the program has no such part. The references are weak: nothing is linked
    /// because of them.
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    fn linked() -> [*mut c_void; NAMES.len()] {
        let (plain, of_rust, of_others): (*mut c_void, *mut c_void, *mut c_void);
        // SAFETY: reads three addresses that the linker has filled in.
        unsafe {
            std::arch::asm!(
                ".weak mallctl",
                ".weak _rjem_mallctl",
                ".weak je_mallctl",
                "mov {plain}, qword ptr [rip + mallctl@GOTPCREL]",
                "mov {of_rust}, qword ptr [rip + _rjem_mallctl@GOTPCREL]",
                "mov {of_others}, qword ptr [rip + je_mallctl@GOTPCREL]",
                plain = out(reg) plain,
                of_rust = out(reg) of_rust,
                of_others = out(reg) of_others,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        [plain, of_rust, of_others]
    }

    /// As above.
    #[cfg(all(target_arch = "aarch64", target_pointer_width = "64"))]
    fn linked() -> [*mut c_void; NAMES.len()] {
        let (plain, of_rust, of_others): (*mut c_void, *mut c_void, *mut c_void);
        // SAFETY: reads three addresses that the linker has filled in.
        unsafe {
            std::arch::asm!(
                ".weak mallctl",
                ".weak _rjem_mallctl",
                ".weak je_mallctl",
                "adrp {plain}, :got:mallctl",
                "ldr {plain}, [{plain}, :got_lo12:mallctl]",
                "adrp {of_rust}, :got:_rjem_mallctl",
                "ldr {of_rust}, [{of_rust}, :got_lo12:_rjem_mallctl]",
                "adrp {of_others}, :got:je_mallctl",
                "ldr {of_others}, [{of_others}, :got_lo12:je_mallctl]",
                plain = out(reg) plain,
                of_rust = out(reg) of_rust,
                of_others = out(reg) of_others,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        [plain, of_rust, of_others]
    }

    /// For other processors: an allocator of the program itself is not found.
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_pointer_width = "64")))]
    fn linked() -> [*mut c_void; NAMES.len()] {
        [null_mut(); NAMES.len()]
    }
}
