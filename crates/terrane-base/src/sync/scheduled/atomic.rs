//! Atomic variables. Every operation that orders others passes a point; a relaxed one does not: it publishes
//! nothing, and counters would be most of all points.

pub use std::sync::atomic::{Ordering, compiler_fence, fence};

use crate::sync::points::{Point, point};

#[inline]
fn pass(kind: Point, ordering: Ordering) {
    if ordering != Ordering::Relaxed {
        point(kind);
    }
}

macro_rules! atomic {
    ($name:ident $(<$parameter:ident>)?, $value:ty) => {
        #[doc = concat!("`std::sync::atomic::", stringify!($name), "` behind points.")]
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name $(<$parameter>)? (std::sync::atomic::$name $(<$parameter>)?);

        #[expect(missing_docs, reason = "as in `std`")]
        impl $(<$parameter>)? $name $(<$parameter>)? {
            #[inline]
            pub const fn new(value: $value) -> Self {
                $name(std::sync::atomic::$name::new(value))
            }

            #[inline]
            pub fn load(&self, ordering: Ordering) -> $value {
                pass(Point::Load, ordering);
                self.0.load(ordering)
            }

            #[inline]
            pub fn store(&self, value: $value, ordering: Ordering) {
                pass(Point::Publish, ordering);
                self.0.store(value, ordering);
            }

            #[inline]
            pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                pass(Point::Publish, ordering);
                self.0.swap(value, ordering)
            }

            #[inline]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                pass(Point::Publish, success);
                self.0.compare_exchange(current, new, success, failure)
            }

            #[inline]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                pass(Point::Publish, success);
                // Never fails for no reason: a schedule is the same in every run.
                self.0.compare_exchange(current, new, success, failure)
            }

            #[inline]
            pub fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                pass(Point::Publish, set);
                self.0.fetch_update(set, fetch, change)
            }

            #[inline]
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            #[inline]
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }

            #[inline]
            pub const fn as_ptr(&self) -> *mut $value {
                self.0.as_ptr()
            }
        }

        impl $(<$parameter>)? Default for $name $(<$parameter>)? {
            fn default() -> Self {
                $name(Default::default())
            }
        }

        impl $(<$parameter>)? From<$value> for $name $(<$parameter>)? {
            fn from(value: $value) -> Self {
                $name::new(value)
            }
        }
    };
}

macro_rules! fetches {
    ($name:ident, $value:ty: $($fetch:ident)*) => {
        #[expect(missing_docs, reason = "as in `std`")]
        impl $name {
            $(#[inline]
            pub fn $fetch(&self, value: $value, ordering: Ordering) -> $value {
                pass(Point::Publish, ordering);
                self.0.$fetch(value, ordering)
            })*
        }
    };
}

macro_rules! integers {
    ($($name:ident $value:ty;)*) => {
        $(atomic!($name, $value);
        fetches!($name, $value: fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_max fetch_min);)*
    };
}

integers! {
    AtomicU8 u8;
    AtomicU16 u16;
    AtomicU32 u32;
    AtomicU64 u64;
    AtomicUsize usize;
    AtomicI64 i64;
}
atomic!(AtomicBool, bool);
fetches!(AtomicBool, bool: fetch_and fetch_or fetch_xor);
atomic!(AtomicPtr<T>, *mut T);
