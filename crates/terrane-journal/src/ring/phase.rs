//! Phases of a slot; the low bits of its word.

pub(crate) const EMPTY: u64 = 0;
pub(crate) const FILLED: u64 = 1;
pub(crate) const COPY: u64 = 2;
pub(crate) const PLACED: u64 = 3;
pub(crate) const FAILED: u64 = 4;
pub(crate) const PUBLISHED: u64 = 5;
pub(crate) const HALTED: u64 = 6;
/// The owner sleeps: a thread that changes the word wakes it.
pub(super) const PARKED: u64 = 8;
/// The owner is asked to lead the group of its ticket. Set only together with FILLED, never with PARKED.
pub(super) const CALLED: u64 = 16;
pub(super) const BITS: u32 = 5;
