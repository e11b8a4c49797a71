//! Ranges of keys, in whatever form the program has them.

use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys: each of Rust's ranges of anything that borrows as bytes, and pairs of [`Bound`]s.
///
/// It is not [`RangeBounds`] itself, because `..` is a range of every type, so that a caller would have to
/// name one.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// use std::ops::Bound::{Excluded, Unbounded};
/// let db = terrane::Db::open_in_memory()?;
/// let table = db.default_table();
/// for key in ["a", "b", "c"] {
///     table.put(key, "v")?;
/// }
/// assert_eq!(table.range("a".."c").count(), 2);
/// assert_eq!(table.range(b"a"..=b"c").count(), 3);
/// assert_eq!(table.range(vec![b'b']..).count(), 2);
/// assert_eq!(table.range(..String::from("b")).count(), 1);
/// assert_eq!(table.range(..).count(), 3);
/// assert_eq!(table.range((Excluded("a"), Unbounded)).count(), 2);
/// # Ok(())
/// # }
/// ```
///
/// Both ends are of one type, so byte strings of different lengths are written as strings or as slices:
/// `"a".."bc"` or `"a".."bc"`. A function that is generic over [`RangeBounds`] passes its range on
/// as the pair of its bounds.
pub trait KeyBounds {
    /// The lower bound.
    ///
    /// ```
    /// use terrane::KeyBounds;
    /// assert_eq!(("a".."c").lower(), std::ops::Bound::Included(&b"a"[..]));
    /// ```
    fn lower(&self) -> Bound<&[u8]>;

    /// The upper bound.
    ///
    /// ```
    /// use terrane::KeyBounds;
    /// assert_eq!(("a".."c").upper(), std::ops::Bound::Excluded(&b"c"[..]));
    /// ```
    fn upper(&self) -> Bound<&[u8]>;
}

impl KeyBounds for RangeFull {
    fn lower(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }

    fn upper(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
}

impl<B: KeyBounds + ?Sized> KeyBounds for &B {
    fn lower(&self) -> Bound<&[u8]> {
        (**self).lower()
    }

    fn upper(&self) -> Bound<&[u8]> {
        (**self).upper()
    }
}

/// Ranges of keys, by their bounds.
macro_rules! ranges_of_keys {
    ($($range:ty),*) => {
        $(impl<K: AsRef<[u8]>> KeyBounds for $range {
            fn lower(&self) -> Bound<&[u8]> {
                RangeBounds::<K>::start_bound(self).map(AsRef::as_ref)
            }

            fn upper(&self) -> Bound<&[u8]> {
                RangeBounds::<K>::end_bound(self).map(AsRef::as_ref)
            }
        })*
    };
}

ranges_of_keys!(
    Range<K>,
    RangeInclusive<K>,
    RangeFrom<K>,
    RangeTo<K>,
    RangeToInclusive<K>,
    (Bound<K>, Bound<K>)
);
