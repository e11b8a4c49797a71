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

/// The phases from which a ticket may step to each phase, as bits. The owner's steps, EMPTY to FILLED and
/// back, are not among them.
const FROM: [u32; 7] = {
    let mut from = [0; 7];
    from[COPY as usize] = 1 << FILLED;
    from[PLACED as usize] = 1 << FILLED | 1 << COPY;
    from[FAILED as usize] = 1 << FILLED | 1 << COPY;
    from[PUBLISHED as usize] = 1 << PLACED | 1 << FAILED;
    from[HALTED as usize] = 1 << PLACED | 1 << FAILED;
    from
};

/// Asserts that the word `old` is that of `ticket`, in a phase from which it may step to `phase`. A step that
/// comes twice or for another lap would tell an owner of a group that it is not in.
#[inline]
pub(super) fn check_step(ticket: u64, old: u64, phase: u64) {
    debug_assert!(old >> BITS == ticket, "the slot of ticket {ticket} has the word {old:#x}, of another lap");
    debug_assert!(
        FROM[phase as usize] >> (old & (PARKED - 1)) & 1 == 1,
        "ticket {ticket}: {old:#x} to phase {phase}"
    );
}
