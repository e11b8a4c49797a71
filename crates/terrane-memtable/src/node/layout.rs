//! The memory layout of nodes; part of [`node`](super).
#![expect(unsafe_code, reason = "initializes new memory of the arena")]

use terrane_base::sync::atomic::{AtomicU32, AtomicU64};

use super::Slot;

/// Longer prefixes stay in segment memory.
pub(super) const PREFIX_INLINE: usize = 8;

#[repr(C)]
pub(super) struct Head {
    pub(super) lock: AtomicU32,
    pub(super) prefix_len: u32,
    pub(super) count: AtomicU32,
    pub(super) keys4: AtomicU32,
    pub(super) prefix: Prefix,
    pub(super) terminal: Slot,
}

/// The bytes themselves up to [`PREFIX_INLINE`], else a pointer to them.
#[repr(C)]
pub(super) union Prefix {
    pub(super) inline: [u8; PREFIX_INLINE],
    pub(super) outside: *const u8,
}

#[repr(C, align(64))]
pub(super) struct Node4 {
    pub(super) head: Head,
    pub(super) slots: [Slot; 4],
}

#[repr(C, align(64))]
pub(super) struct Node16 {
    pub(super) head: Head,
    pub(super) keys: [AtomicU64; 2],
    pub(super) slots: [Slot; 16],
}

#[repr(C, align(64))]
pub(super) struct Node48 {
    pub(super) head: Head,
    pub(super) index: [AtomicU64; 32],
    pub(super) slots: [Slot; 48],
}

#[repr(C, align(64))]
pub(super) struct Node256 {
    pub(super) head: Head,
    pub(super) slots: [Slot; 256],
}

#[cfg(not(feature = "shuttle"))]
const _: () = {
    assert!(size_of::<Head>() == 32);
    assert!(size_of::<Node4>() == 64); // one cache line: most nodes are small
    assert!(size_of::<Node16>() == 192);
    assert!(size_of::<Node48>() == 704);
    assert!(size_of::<Node256>() == 2112);
};

/// # Safety
/// `head` is writable, aligned and unknown to other threads.
pub(super) unsafe fn init_head(head: *mut Head, prefix: &[u8]) {
    let field = match prefix.len() {
        len @ 0..=PREFIX_INLINE => {
            let mut inline = [0; PREFIX_INLINE];
            inline[..len].copy_from_slice(prefix);
            Prefix { inline }
        }
        _ => Prefix { outside: prefix.as_ptr() },
    };
    // SAFETY: by the caller's promise.
    unsafe {
        head.write(Head {
            lock: AtomicU32::new(0),
            prefix_len: prefix.len() as u32,
            count: AtomicU32::new(0),
            keys4: AtomicU32::new(0),
            prefix: field,
            terminal: Slot::empty(),
        });
    }
}

/// # Safety
/// As [`init_head`].
pub(super) unsafe fn init_slots<const N: usize>(slots: *mut [Slot; N]) {
    for index in 0..N {
        // SAFETY: within the array; by the caller's promise.
        unsafe { slots.cast::<Slot>().add(index).write(Slot::empty()) };
    }
}

/// # Safety
/// As [`init_head`].
pub(super) unsafe fn init_words<const N: usize>(words: *mut [AtomicU64; N]) {
    for index in 0..N {
        // SAFETY: within the array; by the caller's promise.
        unsafe { words.cast::<AtomicU64>().add(index).write(AtomicU64::new(0)) };
    }
}
