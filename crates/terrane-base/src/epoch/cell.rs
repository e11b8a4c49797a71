//! A shared value that readers load with one pointer and writers replace whole.
//!
//! Ownership rules:
//! 1. The cell's pointer is that of an `Arc` and never null while the cell lives; the cell has one count of
//!    it.
//! 2. Readers use a loaded value only while their epoch guard lives, unless they take a count of their own.
//! 3. The cell's count of a replaced value is given up after every guard that existed at the swap is gone.
//! 4. A loaded value borrows the cell, so it is not dropped before; its last value then has no reader.
//! 5. Guards of one cell are of one collector, as those of [`pin`] are.
#![expect(unsafe_code, reason = "readers follow a pointer that an epoch protects")]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Atomic, Guard, Shared, pin};
use crate::sync::points::{Point, point};

/// A value that is read under an epoch and replaced as a whole.
pub struct EpochCell<T: Send + Sync + 'static> {
    pointer: Atomic<T>,
}

impl<T: Send + Sync + 'static> EpochCell<T> {
    /// A cell that holds `value`.
    #[must_use]
    pub fn new(value: T) -> Self {
        EpochCell { pointer: Atomic::from(Arc::into_raw(Arc::new(value))) }
    }

    /// The current value, alive while `guard` and the cell are.
    #[inline]
    pub fn load<'g>(&'g self, guard: &'g Guard) -> &'g T {
        point(Point::Load);
        // Acquire: pairs with the release in `replace`, so what the value points at is seen too.
        let shared = self.pointer.load(Ordering::Acquire, guard);
        // SAFETY: not null by rule 1, alive by rules 2 and 3.
        unsafe { shared.deref() }
    }

    /// The current value, alive as long as it is wanted.
    #[inline]
    pub fn share(&self, guard: &Guard) -> Arc<T> {
        point(Point::Load);
        // Acquire: as in `load`. Not through a reference to the value, which does not reach the count beside
        // it.
        let value = self.pointer.load(Ordering::Acquire, guard).as_raw();
        // SAFETY: the pointer is that of an `Arc` by rule 1, and the guard keeps the cell's count by rule 3.
        unsafe {
            Arc::increment_strong_count(value);
            Arc::from_raw(value)
        }
    }

    /// Makes `next` the current value.
    pub fn replace(&self, next: T) {
        let guard = pin();
        let next = Shared::from(Arc::into_raw(Arc::new(next)));
        point(Point::Publish);
        // AcqRel: Release pairs with the loads of readers, Acquire with the swap that stored the old value.
        let old = self.pointer.swap(next, Ordering::AcqRel, &guard).as_raw();
        assert!(!old.is_null(), "a cell without a value: a reader may load it");
        // SAFETY: `old` is that of an `Arc` by rule 1, unlinked by the swap; its count is given up once,
        // here, by rule 3.
        unsafe { guard.defer_unchecked(move || drop(Arc::from_raw(old))) };
        // Values hold memtables and extents: they are freed soon instead of after more garbage has come.
        guard.flush();
    }
}

impl<T: Send + Sync + 'static> Drop for EpochCell<T> {
    fn drop(&mut self) {
        let guard = pin();
        let last = self.pointer.load(Ordering::Relaxed, &guard).as_raw();
        // SAFETY: rule 4: no reader uses the value without a count; the pointer is that of an `Arc` whose
        // count is the cell's, by rule 1.
        drop(unsafe { Arc::from_raw(last) });
    }
}

impl<T: Send + Sync + fmt::Debug + 'static> fmt::Debug for EpochCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EpochCell").field(self.load(&pin())).finish()
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// A number twice, and a count of those that are gone.
    struct Twice(u64, Box<u64>, Arc<AtomicU64>);

    impl Twice {
        fn check(&self, least: u64) -> u64 {
            assert_eq!(self.0, *self.1);
            assert!(self.0 >= least, "{} after {least}", self.0);
            self.0
        }
    }

    impl Drop for Twice {
        fn drop(&mut self) {
            // A read from memory that was given back would differ, or be found by Miri.
            assert_eq!(self.0, *self.1);
            self.2.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn numbers() -> (Arc<AtomicU64>, impl Fn(u64) -> Twice) {
        let gone = Arc::new(AtomicU64::new(0));
        let counted = gone.clone();
        (gone, move |number| Twice(number, Box::new(number), counted.clone()))
    }

    /// Runs what was put off, until so many are gone.
    fn until_gone(gone: &AtomicU64, count: u64) {
        let clock = crate::env::Env::real().clock;
        for _ in 0..200_000 {
            pin().flush();
            if gone.load(Ordering::Relaxed) >= count {
                break;
            }
            clock.sleep(std::time::Duration::from_micros(500));
        }
        assert_eq!(gone.load(Ordering::Relaxed), count);
    }

    #[test]
    fn a_shared_value_outlives_the_cell() {
        let (gone, number) = numbers();
        let cell = EpochCell::new(number(1));
        let (first, again) = (cell.share(&pin()), cell.share(&pin()));
        assert!(Arc::ptr_eq(&first, &again));
        cell.replace(number(2));
        let guard = pin();
        let second = cell.load(&guard);
        cell.replace(number(3));
        assert_eq!((first.check(1), second.check(2), cell.load(&guard).check(3)), (1, 2, 3));
        drop(guard);
        until_gone(&gone, 1);
        let third = cell.share(&pin());
        drop((cell, again));
        assert_eq!((first.check(1), third.check(3)), (1, 3));
        assert_eq!(gone.load(Ordering::Relaxed), 1, "of the second alone no thread has a count");
        drop((first, third));
        until_gone(&gone, 3);
    }

    #[test]
    fn readers_see_whole_values_while_others_replace_them() {
        const VALUES: u64 = if cfg!(miri) { 30 } else { 3000 };
        let (gone, number) = numbers();
        let cell = EpochCell::new(number(0));
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    let (mut last, mut kept) = (0, None);
                    while last < VALUES {
                        let guard = pin();
                        last = cell.load(&guard).check(last);
                        let shared = cell.share(&guard);
                        drop(guard);
                        last = shared.check(last);
                        kept = Some(shared);
                    }
                    drop(kept);
                });
            }
            (1..=VALUES).for_each(|next| cell.replace(number(next)));
        });
        drop(cell);
        until_gone(&gone, VALUES + 1);
    }
}
