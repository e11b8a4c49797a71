//! The primitives of the schedule explorer `shuttle`, in the shape of the real ones.

pub use shuttle::sync::{Arc, atomic};
pub use shuttle::thread;

/// Lets go of a lock while `meanwhile` is done: where there are no threads, and the explorer has threads.
pub fn unlocked<T, R>(_guard: &mut MutexGuard<'_, T>, _meanwhile: impl FnOnce() -> R) -> R {
    unreachable!("an explored program has threads to wait for")
}

/// One turn of a spin loop: always gives way, or the explorer would never schedule the other side.
pub fn spin(_turn: u32) {
    thread::yield_now();
}

/// `parking_lot::Mutex` in shape, shuttle's inside.
#[derive(Debug, Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

/// Guard of [`Mutex`].
pub type MutexGuard<'a, T> = shuttle::sync::MutexGuard<'a, T>;

impl<T> Mutex<T> {
    /// A new, unlocked mutex.
    pub const fn new(value: T) -> Self {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().expect("lock poisoned")
    }

    /// Locks; a poisoned lock is a failed test already.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("lock poisoned")
    }

    /// Locks; the timeout never passes, so that a lock that is never released is detected.
    pub fn try_lock_for(&self, _timeout: std::time::Duration) -> Option<MutexGuard<'_, T>> {
        Some(self.lock())
    }

    /// Locks unless another thread holds the lock.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

/// `parking_lot::Condvar` in shape, shuttle's inside.
#[derive(Debug, Default)]
pub struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    /// A new condition variable.
    pub const fn new() -> Self {
        Condvar(shuttle::sync::Condvar::new())
    }

    /// Waits until notified.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        // SAFETY: the guard is moved out and a guard of the same mutex is moved back in before anyone
        // can see the gap; `wait` does not unwind between the two (a panic here ends the explored run).
        #[expect(unsafe_code, reason = "shuttle's condition variable takes the guard by value")]
        unsafe {
            let taken = std::ptr::read(guard);
            let back = self.0.wait(taken).expect("lock poisoned");
            std::ptr::write(guard, back);
        }
    }

    /// Waits until notified; the time never comes, so that a wake-up that is missing shows.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _timeout: std::time::Duration) {
        self.wait(guard);
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// `parking_lot::RwLock` in shape, shuttle's inside.
#[derive(Debug, Default)]
pub struct RwLock<T>(shuttle::sync::RwLock<T>);

/// Guard of [`RwLock::read`].
pub type RwLockReadGuard<'a, T> = shuttle::sync::RwLockReadGuard<'a, T>;

/// Guard of [`RwLock::write`].
pub type RwLockWriteGuard<'a, T> = shuttle::sync::RwLockWriteGuard<'a, T>;

impl<T> RwLock<T> {
    /// A new, unlocked lock.
    pub const fn new(value: T) -> Self {
        RwLock(shuttle::sync::RwLock::new(value))
    }

    /// Locks beside other readers; a poisoned lock is a failed test already.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().expect("lock poisoned")
    }

    /// Locks alone.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().expect("lock poisoned")
    }
}
