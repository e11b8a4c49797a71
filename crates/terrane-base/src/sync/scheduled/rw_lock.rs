//! Lock for readers and writers.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use super::{address, until_taken, wake};
use crate::sync::points::CallSite;

/// `parking_lot::RwLock` in shape.
#[derive(Default)]
pub struct RwLock<T: ?Sized>(parking_lot::RwLock<T>);

impl<T> RwLock<T> {
    /// A new, unlocked lock.
    pub const fn new(value: T) -> Self {
        RwLock(parking_lot::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Locks beside other readers.
    #[track_caller]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        let guard = until_taken(
            address(self),
            CallSite::of_caller("lock to read"),
            || self.0.try_read(),
            || self.0.read(),
        );
        RwLockReadGuard { on: address(self), guard: ManuallyDrop::new(guard) }
    }

    /// Locks alone.
    #[track_caller]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        let guard = until_taken(
            address(self),
            CallSite::of_caller("lock to write"),
            || self.0.try_write(),
            || self.0.write(),
        );
        RwLockWriteGuard { on: address(self), guard: ManuallyDrop::new(guard) }
    }

    /// The value: no other thread can access it.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Holds a [`RwLock`] locked for reading.
pub struct RwLockReadGuard<'l, T: ?Sized> {
    on: usize,
    guard: ManuallyDrop<parking_lot::RwLockReadGuard<'l, T>>,
}

/// Holds a [`RwLock`] locked for writing.
pub struct RwLockWriteGuard<'l, T: ?Sized> {
    on: usize,
    guard: ManuallyDrop<parking_lot::RwLockWriteGuard<'l, T>>,
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: dropped here and nowhere else, and not used behind it.
        #[expect(unsafe_code, reason = "the guard is released before waiting threads are woken")]
        unsafe {
            ManuallyDrop::drop(&mut self.guard);
        }
        wake(self.on, true);
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: dropped here and nowhere else, and not used behind it.
        #[expect(unsafe_code, reason = "the guard is released before waiting threads are woken")]
        unsafe {
            ManuallyDrop::drop(&mut self.guard);
        }
        wake(self.on, true);
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}
