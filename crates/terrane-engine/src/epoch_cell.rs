//! A shared value that readers load with one pointer and writers replace whole.
//!
//! Ownership rules:
//! 1. The cell's pointer is never null while the cell lives; it is only ever swapped for another owned value.
//! 2. Readers use what they load only while their epoch guard lives.
//! 3. A replaced value is destroyed after every guard that existed at the swap is gone.
//! 4. Dropping the cell needs `&mut`, so no reader can load from it any more.
#![expect(unsafe_code, reason = "the value is reached through an epoch-protected pointer")]

use std::sync::atomic::Ordering;

use terrane_base::epoch::{Atomic, Guard, Owned};

/// A value that is read under an epoch and replaced as a whole.
pub(crate) struct EpochCell<T: Send + Sync + 'static> {
    pointer: Atomic<T>,
}

impl<T: Send + Sync + 'static> EpochCell<T> {
    /// A cell that holds `value`.
    pub(crate) fn new(value: T) -> Self {
        EpochCell { pointer: Atomic::new(value) }
    }

    /// The current value, alive while `guard` is.
    #[inline]
    pub(crate) fn load<'g>(&self, guard: &'g Guard) -> &'g T {
        // Acquire: pairs with the release in `replace`, so what the value points at is seen too.
        let shared = self.pointer.load(Ordering::Acquire, guard);
        // SAFETY: not null by rule 1, alive by rules 2 and 3.
        unsafe { shared.deref() }
    }

    /// Makes `next` the current value.
    pub(crate) fn replace(&self, next: T) {
        let guard = terrane_base::epoch::pin();
        let old = self.pointer.swap(Owned::new(next), Ordering::AcqRel, &guard);
        // SAFETY: `old` is unlinked by the swap and destroyed once, here, by rule 3.
        unsafe { guard.defer_destroy(old) };
        // Values here hold memtables and extents: get them freed soon instead of after more garbage has come.
        guard.flush();
    }
}

impl<T: Send + Sync + 'static> Drop for EpochCell<T> {
    fn drop(&mut self) {
        let pointer = std::mem::replace(&mut self.pointer, Atomic::null());
        // SAFETY: rule 4: nobody can load the pointer; it is not null by rule 1.
        drop(unsafe { pointer.into_owned() });
    }
}
