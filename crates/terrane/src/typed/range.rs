//! Ranges of typed keys.

use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::KeyOf;

/// A range of keys of type `K`: each of Rust's ranges, and pairs of bounds, of any [`KeyOf`] it.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// use terrane::typed::TypedTable;
/// let db = terrane::Db::open_in_memory()?;
/// let squares: TypedTable<i32, i64> = TypedTable::new(db.table_or_create("squares")?)?;
/// for number in -10..=10 {
///     squares.put(number, i64::from(number).pow(2))?;
/// }
/// assert_eq!(squares.range(-3..3).count(), 6);
/// assert_eq!(squares.range(..=0).count(), 11);
/// assert_eq!(squares.range(..).count(), 21);
/// # Ok(())
/// # }
/// ```
pub trait TypedBounds<K> {
    /// The lower bound, encoded.
    ///
    /// ```
    /// use std::ops::Bound;
    /// use terrane::typed::TypedBounds;
    /// assert_eq!(TypedBounds::<u8>::lower(&(7..9)), Bound::Included(vec![7]));
    /// ```
    fn lower(&self) -> Bound<Vec<u8>>;

    /// The upper bound, encoded.
    ///
    /// ```
    /// use std::ops::Bound;
    /// use terrane::typed::TypedBounds;
    /// assert_eq!(TypedBounds::<u8>::upper(&(7..9)), Bound::Excluded(vec![9]));
    /// ```
    fn upper(&self) -> Bound<Vec<u8>>;
}

impl<K> TypedBounds<K> for RangeFull {
    fn lower(&self) -> Bound<Vec<u8>> {
        Bound::Unbounded
    }

    fn upper(&self) -> Bound<Vec<u8>> {
        Bound::Unbounded
    }
}

fn encoded<K, Q: KeyOf<K>>(bound: Bound<&Q>) -> Bound<Vec<u8>> {
    bound.map(|key| {
        let mut bytes = Vec::new();
        key.add(&mut bytes);
        bytes
    })
}

/// Ranges of keys, by their bounds.
macro_rules! ranges {
    ($($range:ty),*) => {
        $(impl<K, Q: KeyOf<K>> TypedBounds<K> for $range {
            fn lower(&self) -> Bound<Vec<u8>> {
                encoded(RangeBounds::<Q>::start_bound(self))
            }

            fn upper(&self) -> Bound<Vec<u8>> {
                encoded(RangeBounds::<Q>::end_bound(self))
            }
        })*
    };
}

ranges!(Range<Q>, RangeInclusive<Q>, RangeFrom<Q>, RangeTo<Q>, RangeToInclusive<Q>, (Bound<Q>, Bound<Q>));
