//! The processor's instructions for persistent memory: flushes of a line, fences, and stores that bypass the
//! caches.
//!
//! Rules: an address is that of memory that the caller keeps mapped. A flush and a fence change no byte. A
//! streamed word counts as a relaxed atomic store that another thread makes at some moment before the
//! fence of this thread returns: so says nothing but what a program in Rust could do itself, and a load of
//! the word by another thread races with no plain store.
#![expect(unsafe_code, reason = "instructions of the processor")]

use std::ptr::NonNull;
#[cfg(any(miri, not(target_arch = "x86_64")))]
use std::sync::atomic::{AtomicU64, Ordering};

/// How lines are written back to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushInstruction {
    /// `clwb`: the line stays in the cache.
    Clwb,
    /// `clflushopt`: the line leaves the cache.
    Clflushopt,
    /// `clflush`: the line leaves the cache, and flushes wait for each other.
    Clflush,
    /// `dc cvap`: to the point of persistence of an Arm processor.
    DcCvap,
    /// The processor has none: nothing survives a loss of power.
    None,
}

impl FlushInstruction {
    /// The best one of this processor.
    #[must_use]
    pub fn detect() -> Self {
        if cfg!(miri) { FlushInstruction::None } else { detect() }
    }

    /// Starts to write back the line at `line`.
    #[inline]
    pub(super) fn flush(self, line: NonNull<u8>) {
        match self {
            // SAFETY: writes the line back and changes no byte; the address is mapped by the rules above.
            // The processor has the instruction: only `detect` makes these values of the enum.
            #[cfg(target_arch = "x86_64")]
            FlushInstruction::Clwb => unsafe {
                std::arch::asm!("clwb [{}]", in(reg) line.as_ptr(), options(nostack, preserves_flags));
            },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            FlushInstruction::Clflushopt => unsafe {
                std::arch::asm!("clflushopt [{}]", in(reg) line.as_ptr(), options(nostack, preserves_flags));
            },
            // SAFETY: as above; every processor of this family has it.
            #[cfg(target_arch = "x86_64")]
            FlushInstruction::Clflush => unsafe {
                std::arch::asm!("clflush [{}]", in(reg) line.as_ptr(), options(nostack, preserves_flags));
            },
            // SAFETY: as above. `dc cvap` by its encoding, because assemblers know it for newer processors
            // only.
            #[cfg(target_arch = "aarch64")]
            FlushInstruction::DcCvap => unsafe {
                std::arch::asm!("sys #3, c7, c12, #1, {}", in(reg) line.as_ptr(), options(nostack, preserves_flags));
            },
            _ => {
                let _ = line;
            }
        }
    }

    /// Waits for the flushes and streamed stores of this thread.
    #[inline]
    pub(super) fn fence(self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: orders memory accesses and changes nothing. `clflush` is ordered by `mfence` on every
        // processor, by `sfence` on those of one maker only.
        unsafe {
            if self == FlushInstruction::Clflush {
                std::arch::asm!("mfence", options(nostack, preserves_flags));
            } else {
                std::arch::asm!("sfence", options(nostack, preserves_flags));
            }
        }
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        // SAFETY: as above.
        unsafe {
            std::arch::asm!("dsb sy", options(nostack, preserves_flags));
        }
        #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
        std::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// True if streamed stores pass the caches, so that they need no flush.
pub(super) const STREAMS: bool = cfg!(all(target_arch = "x86_64", not(miri)));

/// Stores a word, in the order of bytes of the processor, past the caches where it can.
///
/// # Safety
/// `word` is the aligned address of 8 writable bytes that all threads access by atomic words only.
#[inline]
pub(super) unsafe fn stream_word(word: NonNull<u64>, value: u64) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the address is valid and aligned by the caller's promise; see the rules above for races.
    unsafe {
        std::arch::asm!("movnti [{}], {}", in(reg) word.as_ptr(), in(reg) value, options(nostack, preserves_flags));
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    // SAFETY: valid and aligned by the caller's promise. Relaxed: a fence orders it, see the rules above.
    unsafe {
        AtomicU64::from_ptr(word.as_ptr()).store(value, Ordering::Relaxed);
    }
}

/// Stores a line of 64 bytes past the caches where the processor can.
///
/// # Safety
/// As [`stream_word`], for a line; `line` is a multiple of 64.
#[inline]
pub(super) unsafe fn stream_line(line: NonNull<u64>, bytes: &[u8; 64]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the line is valid and aligned by the caller's promise; the bytes are read only. Every processor
    // of this family has SSE2. See the rules above for races.
    unsafe {
        std::arch::asm!(
            "movdqu {a}, [{from}]",
            "movdqu {b}, [{from} + 16]",
            "movdqu {c}, [{from} + 32]",
            "movdqu {d}, [{from} + 48]",
            "movntdq [{to}], {a}",
            "movntdq [{to} + 16], {b}",
            "movntdq [{to} + 32], {c}",
            "movntdq [{to} + 48], {d}",
            from = in(reg) bytes.as_ptr(),
            to = in(reg) line.as_ptr(),
            a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    for (index, word) in bytes.chunks_exact(8).enumerate() {
        let value = u64::from_ne_bytes(word.try_into().expect("a chunk of 8 bytes"));
        // SAFETY: within the line.
        unsafe { stream_word(line.add(index), value) };
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> FlushInstruction {
    /// `eax` and `ebx` of a leaf of `cpuid`, subleaf 0.
    fn cpuid(leaf: u32) -> (u32, u32) {
        let (mut eax, ebx): (u32, u64);
        // SAFETY: every processor of this family has the instruction; it changes registers only, and `rbx`,
        // which the compiler keeps for itself, is restored.
        unsafe {
            std::arch::asm!(
                "mov {saved:r}, rbx",
                "cpuid",
                "xchg {saved:r}, rbx",
                saved = out(reg) ebx,
                inout("eax") leaf => eax,
                inout("ecx") 0 => _,
                out("edx") _,
                options(nostack, preserves_flags),
            );
        }
        (eax, ebx as u32)
    }
    const CLFLUSHOPT: u32 = 1 << 23;
    const CLWB: u32 = 1 << 24;
    let features = if cpuid(0).0 >= 7 { cpuid(7).1 } else { 0 };
    match features {
        with if with & CLWB != 0 => FlushInstruction::Clwb,
        with if with & CLFLUSHOPT != 0 => FlushInstruction::Clflushopt,
        _ => FlushInstruction::Clflush,
    }
}

#[cfg(target_arch = "aarch64")]
fn detect() -> FlushInstruction {
    if std::arch::is_aarch64_feature_detected!("dpb") {
        FlushInstruction::DcCvap
    } else {
        FlushInstruction::None
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn detect() -> FlushInstruction {
    FlushInstruction::None
}
