//! Swips: atomic pointers that are null or point at a cached object (pointer swizzling: Graefe et al.,
//! "In-Memory Performance for Big Data", VLDB 2014; Leis et al., "LeanStore", ICDE 2018).
//!
//! Ownership:
//! 1. A swip that is not null owns one strong reference to its object.
//! 2. A thread with a [`Guard`] may load the swip; the loaded object lives as long as the guard. No count is
//!    written.
//! 3. null -> p only by [`Swip::publish`], which moves a reference in. Any thread; the first one wins.
//! 4. p -> null only by [`Swip::clear`], p -> q only by [`Swip::exchange`]. The one thread whose exchange saw
//!    p owns the reference and retires it: it is dropped when every guard that existed at that moment is
//!    gone. A later guard finds the swip null or pointing elsewhere.
//! 5. A dropped swip retires as well: its object may have been loaded under a guard that outlives the swip.
//!
//! Memory ordering: `publish` releases the object's contents to the acquiring `load`. `clear` acquires,
//! because dropping touches the contents; its order against loads comes from the guard (entering and retiring
//! fence).

#![expect(unsafe_code, reason = "stores references in atomic pointers")]

use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

use terrane_base::sync::atomic::{AtomicPtr, Ordering};

/// Keeps objects that are loaded under it alive.
///
/// # Safety
/// An object given to `retire` is dropped only after every guard of the same type, made before the call, is
/// dropped; making a guard is ordered before the loads under it.
pub unsafe trait Guard {
    /// Drops `reference` when no guard that exists now is left.
    fn retire<R: Send + 'static>(&self, reference: R);
}

/// An owned, counted reference that can be converted to a pointer.
///
/// # Safety
/// A pointer from `into_raw` stays valid until it is passed to `from_raw`, once; the object lives as long as
/// there is any reference to it.
pub unsafe trait Reference<T>: Send + 'static {
    /// Converts the reference to a pointer.
    fn into_raw(self) -> *const T;

    /// Converts it back.
    ///
    /// # Safety
    /// `pointer` came from [`Reference::into_raw`] and was not converted back yet.
    unsafe fn from_raw(pointer: *const T) -> Self;

    /// One more reference.
    ///
    /// # Safety
    /// `pointer` came from [`Reference::into_raw`], and something keeps the object alive during the call.
    unsafe fn another(pointer: *const T) -> Self;
}

// SAFETY: these are the promises of `Arc` itself.
unsafe impl<T: Send + Sync + 'static> Reference<T> for Arc<T> {
    fn into_raw(self) -> *const T {
        Arc::into_raw(self)
    }

    unsafe fn from_raw(pointer: *const T) -> Self {
        // SAFETY: passed on.
        unsafe { Arc::from_raw(pointer) }
    }

    unsafe fn another(pointer: *const T) -> Self {
        // SAFETY: passed on: the count is not 0 while something keeps the object.
        unsafe {
            Arc::increment_strong_count(pointer);
            Arc::from_raw(pointer)
        }
    }
}

/// The guard in use: an epoch of the process-wide collector (Fraser, "Practical lock-freedom", 2004, chapter
/// 5). Never held across I/O or a callback of the user.
#[derive(Debug)]
pub struct Epoch(terrane_base::epoch::Guard);

/// Enters the epoch.
#[inline(always)]
#[must_use]
pub fn enter() -> Epoch {
    Epoch(terrane_base::epoch::pin())
}

impl Epoch {
    /// The guard of the process-wide collector that the epoch is.
    #[inline]
    #[must_use]
    pub fn guard(&self) -> &terrane_base::epoch::Guard {
        &self.0
    }

    /// Passes what this thread retired to the collector and drops what has become free.
    pub fn collect(&self) {
        self.0.flush();
    }
}

// SAFETY: `crossbeam_epoch` runs a deferred function once every thread that was pinned has unpinned. All
// epochs are made by `enter`, hence of one collector; another collector's guards would not protect.
unsafe impl Guard for Epoch {
    fn retire<R: Send + 'static>(&self, reference: R) {
        if terrane_base::planted!(FreeWhileSeen) {
            return drop(reference);
        }
        self.0.defer(move || drop(reference));
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Swip<T: Send + Sync + 'static, R: Reference<T> = Arc<T>> {
    pointer: AtomicPtr<T>,
    owns: PhantomData<R>,
}

impl<T: Send + Sync + 'static, R: Reference<T>> Default for Swip<T, R> {
    fn default() -> Self {
        Swip { pointer: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }
}

impl<T: Send + Sync + 'static, R: Reference<T>> Swip<T, R> {
    /// The object, if there is one.
    #[inline]
    pub fn load<'g, G: Guard>(&self, _guard: &'g G) -> Option<&'g T> {
        // Acquire: pairs with the Release of `publish` and `exchange`.
        let pointer = self.pointer.load(Ordering::Acquire);
        // SAFETY: rule 1 and 4: a pointer seen under the guard stays valid until the guard is dropped.
        unsafe { pointer.as_ref() }
    }

    /// The object with a reference of the caller's own, to keep it beyond the guard.
    #[inline]
    pub fn load_owned<G: Guard>(&self, _guard: &G) -> Option<R> {
        // Acquire: as in `load`. Not through `load`: a pointer derived from its reference may not free the
        // object.
        let pointer = self.pointer.load(Ordering::Acquire).cast_const();
        if pointer.is_null() {
            return None;
        }
        debug_assert!(pointer.is_aligned(), "a swip holds a pointer that a reference gave");
        // SAFETY: the pointer came from `into_raw`, and the guard keeps the swip's reference, also if the
        // swip is cleared meanwhile, from being dropped before there is another.
        Some(unsafe { R::another(pointer) })
    }

    /// Makes the swip point at `object`.
    ///
    /// # Errors
    /// Returns `object` if the swip points at one already.
    pub fn publish(&self, object: R) -> Result<(), R> {
        let pointer = object.into_raw().cast_mut();
        debug_assert!(!pointer.is_null(), "a null swip has no object");
        let exchanged =
            self.pointer.compare_exchange(ptr::null_mut(), pointer, Ordering::Release, Ordering::Relaxed);
        match exchanged {
            Ok(_) => Ok(()),
            // SAFETY: the exchange failed, so the reference made by `into_raw` is still ours.
            Err(_) => Err(unsafe { R::from_raw(pointer) }),
        }
    }

    /// Replaces `old` by `new`, and retires `old`. Returns false, without any change, if the swip does not
    /// point at `old` any more.
    pub fn exchange<G: Guard>(&self, guard: &G, old: &T, new: R) -> bool {
        let (expected, pointer) = (ptr::from_ref(old).cast_mut(), new.into_raw().cast_mut());
        debug_assert!(expected != pointer, "an object replaces itself: its reference would be retired");
        // Release: as in `publish`; Acquire: as in `clear`.
        let exchanged = self.pointer.compare_exchange(expected, pointer, Ordering::AcqRel, Ordering::Relaxed);
        match exchanged {
            // SAFETY: rule 4: this thread took the pointer out, so the swip's reference is now its own.
            Ok(old) => guard.retire(unsafe { R::from_raw(old) }),
            // SAFETY: the exchange failed, so the reference made by `into_raw` is still ours.
            Err(_) => drop(unsafe { R::from_raw(pointer) }),
        }
        exchanged.is_ok()
    }

    /// Makes the swip null and retires its object; returns true if there was one.
    pub fn clear<G: Guard>(&self, guard: &G) -> bool {
        // Acquire: pairs with the Release of `publish`, before the contents are dropped.
        let pointer = self.pointer.swap(ptr::null_mut(), Ordering::Acquire);
        if pointer.is_null() {
            return false;
        }
        debug_assert!(pointer.is_aligned(), "a swip holds a pointer that a reference gave");
        // SAFETY: rule 4: this thread took the pointer out, so the swip's reference is now its own.
        guard.retire(unsafe { R::from_raw(pointer) });
        true
    }
}

impl<T: Send + Sync + 'static, R: Reference<T>> Drop for Swip<T, R> {
    fn drop(&mut self) {
        // Most swips are null by now, and need no epoch.
        if !self.pointer.load(Ordering::Relaxed).is_null() {
            self.clear(&enter());
        }
    }
}
