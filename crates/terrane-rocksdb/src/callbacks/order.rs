//! The order of the keys of a column family, for comparisons outside the engine.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use terrane::Comparator as _;
use terrane_base::ordered_map::Compare;

use crate::callbacks::comparator::{BYTEWISE, UserComparator};

/// The order of bytes, or that of a comparator. It agrees with the engine's: keys that a comparator calls
/// equal though their bytes differ lie in the order of their bytes.
#[derive(Clone, Default)]
pub(crate) struct Order(Option<Arc<UserComparator>>);

impl Order {
    /// That of a comparator, or that of bytes.
    pub(crate) fn of(comparator: Option<&Arc<UserComparator>>) -> Order {
        Order(comparator.cloned())
    }

    /// The name of the comparator.
    pub(crate) fn name(&self) -> &str {
        self.0.as_ref().map_or(BYTEWISE, |comparator| comparator.name())
    }

    /// How two keys relate.
    #[inline]
    pub(crate) fn cmp(&self, left: &[u8], right: &[u8]) -> Ordering {
        match &self.0 {
            Some(comparator) if left != right => {
                comparator.compare(left, right).then_with(|| left.cmp(right))
            }
            _ => left.cmp(right),
        }
    }

    /// Returns true if the other one is the same: comparators are, that have one name.
    #[inline]
    pub(crate) fn is(&self, other: &Order) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(left), Some(right)) => Arc::ptr_eq(left, right) || left.name() == right.name(),
            _ => false,
        }
    }
}

impl Compare for Order {
    #[inline]
    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        self.cmp(left, right)
    }

    #[inline]
    fn is_bytes(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_ref().map_or("bytes", |comparator| comparator.name()))
    }
}
