//! A shared value that readers load with one pointer and writers replace whole.
//!
//! Ownership rules:
//! 1. The cell's pointer is that of an `Arc` and never null while the cell lives; the cell has one count of it.
//! 2. Readers use what they load only while their epoch guard lives, unless they take a count of their own.
//! 3. The cell's count of a replaced value is given up after every guard that existed at the swap is gone.
//! 4. Dropping the cell needs `&mut`, so no reader can load from it any more.
#![expect(unsafe_code, reason = "the value is reached through an epoch-protected pointer")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use terrane_base::epoch::{Atomic, Guard, Shared};

/// A value that is read under an epoch and replaced as a whole.
pub(crate) struct EpochCell<T: Send + Sync + 'static> {
    pointer: Atomic<T>,
}

impl<T: Send + Sync + 'static> EpochCell<T> {
    /// A cell that holds `value`.
    pub(crate) fn new(value: T) -> Self {
        EpochCell { pointer: Atomic::from(Arc::into_raw(Arc::new(value))) }
    }

    /// The current value, alive while `guard` is.
    #[inline]
    pub(crate) fn load<'g>(&self, guard: &'g Guard) -> &'g T {
        // Acquire: pairs with the release in `replace`, so what the value points at is seen too.
        let shared = self.pointer.load(Ordering::Acquire, guard);
        // SAFETY: not null by rule 1, alive by rules 2 and 3.
        unsafe { shared.deref() }
    }

    /// The current value, alive as long as it is wanted.
    #[inline]
    pub(crate) fn share(&self, guard: &Guard) -> Arc<T> {
        let value: *const T = self.load(guard);
        // SAFETY: the pointer is that of an `Arc` by rule 1, and the guard keeps the cell's count by rule 3.
        unsafe {
            Arc::increment_strong_count(value);
            Arc::from_raw(value)
        }
    }

    /// Makes `next` the current value.
    pub(crate) fn replace(&self, next: T) {
        let guard = terrane_base::epoch::pin();
        let next = Shared::from(Arc::into_raw(Arc::new(next)));
        let old = self.pointer.swap(next, Ordering::AcqRel, &guard).as_raw();
        // SAFETY: `old` is that of an `Arc` by rule 1, unlinked by the swap; its count is given up once, here, by rule 3.
        unsafe { guard.defer_unchecked(move || drop(Arc::from_raw(old))) };
        // Values here hold memtables and extents: get them freed soon instead of after more garbage has come.
        guard.flush();
    }
}

impl<T: Send + Sync + 'static> Drop for EpochCell<T> {
    fn drop(&mut self) {
        let guard = terrane_base::epoch::pin();
        let last = self.pointer.load(Ordering::Relaxed, &guard).as_raw();
        // SAFETY: rule 4: nobody can load the pointer; it is that of an `Arc` whose count is the cell's, by rule 1.
        drop(unsafe { Arc::from_raw(last) });
    }
}
