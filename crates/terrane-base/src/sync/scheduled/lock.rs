//! Mutex and condition variable.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::{address, until_taken, wake};
use crate::sync::points::{CallSite, Point, explorer, point};

/// The kind of a mutex in a [`CallSite`].
const LOCK: &str = "lock";

/// `parking_lot::Mutex` in shape.
#[derive(Default)]
pub struct Mutex<T: ?Sized>(parking_lot::Mutex<T>);

impl<T> Mutex<T> {
    /// A new, unlocked mutex.
    pub const fn new(value: T) -> Self {
        Mutex(parking_lot::Mutex::new(value))
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let guard =
            until_taken(address(self), CallSite::of_caller(LOCK), || self.0.try_lock(), || self.0.lock());
        MutexGuard { mutex: self, guard: ManuallyDrop::new(guard) }
    }

    /// Locks unless another thread holds the lock.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        point(Point::Lock);
        let guard = self.0.try_lock()?;
        Some(MutexGuard { mutex: self, guard: ManuallyDrop::new(guard) })
    }

    /// Locks unless the time is over first.
    #[track_caller]
    pub fn try_lock_for(&self, timeout: Duration) -> Option<MutexGuard<'_, T>> {
        point(Point::Lock);
        let Some(explorer) = explorer() else {
            let guard = self.0.try_lock_for(timeout)?;
            return Some(MutexGuard { mutex: self, guard: ManuallyDrop::new(guard) });
        };
        loop {
            if let Some(guard) = self.0.try_lock() {
                return Some(MutexGuard { mutex: self, guard: ManuallyDrop::new(guard) });
            }
            if !explorer.block(address(self), Some(timeout), CallSite::of_caller(LOCK)) {
                return None;
            }
        }
    }

    /// The value: no other thread can access it.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Holds a [`Mutex`] locked.
pub struct MutexGuard<'m, T: ?Sized> {
    mutex: &'m Mutex<T>,
    guard: ManuallyDrop<parking_lot::MutexGuard<'m, T>>,
}

impl<'m, T: ?Sized> MutexGuard<'m, T> {
    /// Lets go of the lock while `meanwhile` is done.
    #[track_caller]
    pub fn unlocked<R>(this: &mut Self, meanwhile: impl FnOnce() -> R) -> R {
        this.give_up();
        /// Takes the lock again, also after a panic: the guard will be dropped.
        struct Again<'g, 'm, T: ?Sized>(&'g mut MutexGuard<'m, T>, CallSite);
        impl<T: ?Sized> Drop for Again<'_, '_, T> {
            fn drop(&mut self) {
                self.0.take_again(self.1);
            }
        }
        let _again = Again(this, CallSite::of_caller(LOCK));
        meanwhile()
    }

    fn give_up(&mut self) {
        // SAFETY: the guard is there. `unlocked` puts one back with `take_again`, also when it unwinds;
        // `drop` never uses it again.
        #[expect(unsafe_code, reason = "a waiting guard releases its lock and takes it again")]
        unsafe {
            ManuallyDrop::drop(&mut self.guard);
        }
        wake(address(self.mutex), true);
    }

    fn take_again(&mut self, place: CallSite) {
        let mutex: &'m Mutex<T> = self.mutex;
        let guard = until_taken(address(mutex), place, || mutex.0.try_lock(), || mutex.0.lock());
        self.guard = ManuallyDrop::new(guard);
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Lets go of a lock while `meanwhile` is done.
#[track_caller]
pub fn unlocked<T, R>(guard: &mut MutexGuard<'_, T>, meanwhile: impl FnOnce() -> R) -> R {
    MutexGuard::unlocked(guard, meanwhile)
}

/// How a wait with a timeout ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Returns true if the time was over.
    #[must_use]
    pub fn timed_out(self) -> bool {
        self.0
    }
}

/// `parking_lot::Condvar` in shape.
#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    /// A new condition variable.
    pub const fn new() -> Self {
        Condvar(parking_lot::Condvar::new())
    }

    /// Waits until notified.
    #[track_caller]
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        self.block(guard, None);
    }

    /// Waits until notified, or until the time is over.
    #[track_caller]
    pub fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitTimeoutResult {
        WaitTimeoutResult(!self.block(guard, Some(timeout)))
    }

    /// Returns false if the time was over first.
    #[track_caller]
    fn block<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, timeout: Option<Duration>) -> bool {
        // A signal that comes between the look at the condition and the wait is lost, if nothing keeps it
        // away.
        point(Point::Lock);
        let place = CallSite::of_caller("condition variable");
        match (explorer(), timeout) {
            (Some(explorer), timeout) => {
                MutexGuard::unlocked(guard, || explorer.block(address(self), timeout, place))
            }
            (None, Some(timeout)) => !self.0.wait_for(&mut guard.guard, timeout).timed_out(),
            (None, None) => {
                self.0.wait(&mut guard.guard);
                true
            }
        }
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        point(Point::Lock);
        wake(address(self), false);
        self.0.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        point(Point::Lock);
        wake(address(self), true);
        self.0.notify_all();
    }
}
