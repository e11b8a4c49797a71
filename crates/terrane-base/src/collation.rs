//! How the engine compares the keys of a table: as bytes, or by a comparator of the program.
//!
//! A [`Collation`] belongs to a table and is passed from its options to each memtable, extent and job. The
//! bytewise one costs one predictable branch. A [`Comparator`] is called for every comparison.
//!
//! Under a comparator the least key after a given one cannot be written down, but ends of range deletes and
//! exclusive bounds need it. So the engine stores the keys of such a table with a *mark* after them:
//!
//! ```text
//! kept = key mark:u8        mark 0: the key itself; 1 and more: behind it, before every greater key
//! ```
//!
//! The empty byte string comes before every key. Users' keys get and lose the mark where keys of other orders
//! are encoded and decoded ([`crate::key_order`]); all other code sees stored keys only, and only this module
//! reads marks.
//!
//! # Contract of a comparator
//! 1. It is a total order, the same one in every version of the program that opens the table. It may be
//!    called any number of times, on any thread, for any bytes that are a key or a bound, and must not use
//!    the database.
//! 2. Keys that it calls equal though their bytes differ are two adjacent keys, in the order of their bytes:
//!    code that finds keys by hash (filters, locks, the row cache) and code that compares agree about which
//!    keys are equal.
//!
//! A comparator that contradicts itself gets its rows in some order, or an error. A panic is caught: the
//! comparison continues bytewise, and from then on every operation that calls [`Collation::check`] is refused
//! until the database is opened again.

mod sort;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use crate::{Error, Result, callback, key};

/// A comparison of keys. See the [module](self) for the contract.
///
/// ```
/// # use std::cmp::Ordering;
/// # use terrane_base::Comparator;
/// /// Shorter keys first.
/// #[derive(Debug)]
/// struct ByLength;
/// impl Comparator for ByLength {
///     fn name(&self) -> &str {
///         "by-length"
///     }
///
///     fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
///         left.len().cmp(&right.len()).then_with(|| left.cmp(right))
///     }
/// }
///
/// assert_eq!(ByLength.compare(b"z", b"aa"), Ordering::Less);
/// ```
pub trait Comparator: Send + Sync + fmt::Debug {
    /// The name that is stored with tables: 1 to 64 bytes without control characters.
    fn name(&self) -> &str;

    /// Compares the keys `left` and `right`.
    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering;
}

/// In which order a table's keys lie. Cheap to clone.
///
/// ```
/// use std::cmp::Ordering;
/// use terrane_base::Collation;
/// assert_eq!(Collation::BYTES.cmp(b"a", b"b"), Ordering::Less);
/// assert_eq!(Collation::BYTES.successor(b"a"), b"a\0");
/// ```
#[derive(Clone, Default)]
pub struct Collation(Option<Arc<Compared>>);

/// A comparator under the name that was checked when it was given.
struct Compared {
    name: String,
    /// `None`: the comparator is not available.
    function: Option<Arc<dyn Comparator>>,
    has_failed: AtomicBool,
}

impl Collation {
    /// By bytes, shorter first where one key is the beginning of the other.
    pub const BYTES: Collation = Collation(None);

    /// [`Collation::BYTES`] as a reference.
    #[must_use]
    pub fn bytes() -> &'static Collation {
        static BYTES: Collation = Collation::BYTES;
        &BYTES
    }

    /// By a comparator, whose name was checked.
    pub(crate) fn by(function: Arc<dyn Comparator>) -> Self {
        let name = function.name().to_owned();
        Collation::of(name, Some(function))
    }

    /// A collation with the same comparator, as if it had not failed.
    pub(crate) fn renewed(&self) -> Self {
        match &self.0 {
            Some(compared) => Collation::of(compared.name.clone(), compared.function.clone()),
            None => Collation::BYTES,
        }
    }

    /// The collation of a table whose comparator is not available. Keys can be compared, but the result means
    /// nothing.
    #[must_use]
    pub fn missing(name: &str) -> Self {
        Collation::of(name.to_owned(), None)
    }

    fn of(name: String, function: Option<Arc<dyn Comparator>>) -> Self {
        Collation(Some(Arc::new(Compared { name, function, has_failed: AtomicBool::new(false) })))
    }

    /// Returns true if keys are ordered as bytes.
    #[inline]
    #[must_use]
    pub fn is_bytes(&self) -> bool {
        self.0.is_none()
    }

    /// Returns true if the comparator is not available, so that comparisons mean nothing.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.0.as_ref().is_some_and(|compared| compared.function.is_none())
    }

    /// The name of the comparator; `None` where keys are ordered as bytes.
    #[must_use]
    pub fn comparator(&self) -> Option<&str> {
        self.0.as_ref().map(|compared| &*compared.name)
    }

    /// Returns true if the comparator has not failed so far.
    ///
    /// # Errors
    /// `Poisoned`, naming the comparator, after it panicked: keys compared meanwhile may be in the wrong
    /// place.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            Some(compared) if compared.has_failed.load(atomic::Ordering::Acquire) => Err(compared.failed()),
            _ => Ok(()),
        }
    }

    /// Compares two stored keys.
    #[inline]
    #[must_use]
    pub fn cmp(&self, left: &[u8], right: &[u8]) -> Ordering {
        match &self.0 {
            None => left.cmp(right),
            Some(compared) => compared.cmp(left, right),
        }
    }

    /// Returns true if `left` comes before `right`.
    #[inline]
    #[must_use]
    pub fn lt(&self, left: &[u8], right: &[u8]) -> bool {
        match &self.0 {
            None => left < right,
            Some(compared) => compared.cmp(left, right) == Ordering::Less,
        }
    }

    /// Returns true if `left` comes before `right` or is the same key.
    #[inline]
    #[must_use]
    pub fn le(&self, left: &[u8], right: &[u8]) -> bool {
        match &self.0 {
            None => left <= right,
            Some(compared) => compared.cmp(left, right) != Ordering::Greater,
        }
    }

    /// Returns true if `key` lies within a lower bound.
    #[inline]
    #[must_use]
    pub fn is_above(&self, key: &[u8], lower: Bound<&[u8]>) -> bool {
        match lower {
            Bound::Included(bound) => self.le(bound, key),
            Bound::Excluded(bound) => self.lt(bound, key),
            Bound::Unbounded => true,
        }
    }

    /// Returns true if `key` lies within an upper bound.
    #[inline]
    #[must_use]
    pub fn is_below(&self, key: &[u8], upper: Bound<&[u8]>) -> bool {
        match upper {
            Bound::Included(bound) => self.le(key, bound),
            Bound::Excluded(bound) => self.lt(key, bound),
            Bound::Unbounded => true,
        }
    }

    /// The one of two keys, or of what has a key, that comes first; the left one of equal ones.
    #[must_use]
    pub fn min<K: AsRef<[u8]>>(&self, left: K, right: K) -> K {
        if self.lt(right.as_ref(), left.as_ref()) { right } else { left }
    }

    /// The greater of two keys, or of two items with keys; the right one of equal ones.
    #[must_use]
    pub fn max<K: AsRef<[u8]>>(&self, left: K, right: K) -> K {
        if self.lt(right.as_ref(), left.as_ref()) { left } else { right }
    }

    /// A number by which keys may be compared first: where two differ they order as the keys do.
    /// [`key::head`] of bytes, the same for all keys under a comparator.
    #[inline]
    #[must_use]
    pub fn head(&self, key: &[u8]) -> u64 {
        if self.is_bytes() { key::head(key) } else { 0 }
    }

    /// As [`Collation::head`], for keys whose first `start` bytes are the same. Requires: `start <=
    /// key.len()`.
    #[inline]
    #[must_use]
    pub fn head_behind(&self, key: &[u8], start: usize) -> u64 {
        if self.is_bytes() { key::head_behind(key, start) } else { 0 }
    }

    /// Number of leading bytes that all keys from `first` to `last` share; under a comparator these two keys
    /// do not tell.
    #[inline]
    #[must_use]
    pub fn common_len(&self, first: &[u8], last: &[u8]) -> usize {
        if self.is_bytes() { key::common_len(first, last) } else { 0 }
    }

    /// The least key that is greater than `key`. It may be one byte longer than a user's key can be.
    ///
    /// Under a comparator the successor is not a key of a user.
    #[must_use]
    pub fn successor(&self, key: &[u8]) -> Vec<u8> {
        if self.is_bytes() {
            return key::successor(key);
        }
        let mut next = key.to_vec();
        match next.last_mut() {
            Some(mark) => *mark = mark.saturating_add(1),
            // Before all keys; under a comparator no bytes are not the empty key.
            None => next.push(0),
        }
        next
    }

    /// The least key that can be named and is not less than any key before `end`.
    #[must_use]
    pub fn last_before<'k>(&self, end: &'k [u8]) -> Cow<'k, [u8]> {
        if self.is_bytes() {
            return Cow::Borrowed(end.strip_suffix(&[0]).unwrap_or(end));
        }
        match end.split_last() {
            Some((1.., key)) => Cow::Owned([key, &[0]].concat()),
            _ => Cow::Borrowed(end),
        }
    }
}

impl Compared {
    fn cmp(&self, left: &[u8], right: &[u8]) -> Ordering {
        let (left, right) = match (left.split_last(), right.split_last()) {
            (Some(left), Some(right)) => (left, right),
            // No bytes come before every key.
            (left, right) => return left.is_some().cmp(&right.is_some()),
        };
        self.cmp_users(left.1, right.1).then_with(|| left.1.cmp(right.1)).then_with(|| left.0.cmp(right.0))
    }

    fn cmp_users(&self, left: &[u8], right: &[u8]) -> Ordering {
        // A function's answer to one key twice is never asked for: many are not made for it.
        let Some(function) = self.function.as_ref().filter(|_| left != right) else { return Ordering::Equal };
        callback::call(|| function.compare(left, right)).unwrap_or_else(|_| {
            // Release: an operation that is refused by it sees the failure.
            self.has_failed.store(true, atomic::Ordering::Release);
            Ordering::Equal
        })
    }

    #[cold]
    fn failed(&self) -> Error {
        Error::new(
            crate::Kind::Poisoned,
            format!("comparator {:?} panicked: fix it and open the database again", self.name),
        )
    }
}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.comparator().unwrap_or(crate::key_order::BYTEWISE))
    }
}

/// Equal if it is the order of bytes, or a comparator of the same name.
impl PartialEq for Collation {
    fn eq(&self, other: &Self) -> bool {
        self.comparator() == other.comparator()
    }
}

impl Eq for Collation {}

#[cfg(test)]
mod tests {
    use super::*;

    /// By length, then from the last byte to the first.
    #[derive(Debug)]
    struct Backward;

    impl Comparator for Backward {
        fn name(&self) -> &str {
            "backward"
        }

        fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
            assert!(left != b"bad", "not for this one");
            left.len().cmp(&right.len()).then_with(|| left.iter().rev().cmp(right.iter().rev()))
        }
    }

    fn kept(key: &[u8]) -> Vec<u8> {
        [key, &[0]].concat()
    }

    #[test]
    fn stored_keys_follow_the_comparator_and_bounds_behind_a_key_come_before_the_next() {
        let collation = Collation::by(Arc::new(Backward));
        let keys: [&[u8]; 5] = [b"", b"z", b"ba", b"ab", b"aaa"];
        let mut all = vec![Vec::new()];
        all.extend(keys.iter().flat_map(|key| [kept(key), collation.successor(&kept(key))]));
        for (at, left) in all.iter().enumerate() {
            for (other, right) in all.iter().enumerate() {
                assert_eq!(collation.cmp(left, right), at.cmp(&other), "{left:?} {right:?}");
                assert_eq!(collation.lt(left, right), at < other);
                assert_eq!(collation.le(left, right), at <= other);
                assert_eq!(collation.min(left, right), &all[at.min(other)]);
                assert_eq!(collation.max(left, right), &all[at.max(other)]);
            }
        }
        assert_eq!(collation.last_before(&collation.successor(&kept(b"ab"))).into_owned(), kept(b"ab"));
        assert_eq!(collation.last_before(&kept(b"ab")).into_owned(), kept(b"ab"));
        assert_eq!((collation.head(b"ab"), collation.common_len(b"ab", b"ab")), (0, 0));
    }

    #[test]
    fn the_order_of_bytes_is_that_of_slices() {
        let keys: [&[u8]; 4] = [b"", b"\0", b"a", b"ab"];
        for pair in keys.windows(2) {
            assert_eq!(Collation::BYTES.cmp(pair[0], pair[1]), Ordering::Less);
            assert!(Collation::BYTES.lt(pair[0], pair[1]) && !Collation::BYTES.le(pair[1], pair[0]));
        }
        assert_eq!(Collation::BYTES.last_before(b"a\0").into_owned(), b"a");
        assert_eq!(Collation::BYTES.last_before(b"a").into_owned(), b"a");
    }

    #[test]
    fn a_panic_is_caught_and_remembered() {
        let collation = Collation::by(Arc::new(Backward));
        assert!(collation.check().is_ok());
        let _ = collation.cmp(&kept(b"bad"), &kept(b"abc"));
        let error = collation.check().expect_err("it panicked");
        assert!(error.to_string().contains("backward"), "{error}");
        assert!(collation.clone().check().is_err(), "clones are one");
    }

    #[test]
    fn keys_that_are_equal_to_the_comparator_are_two_if_their_bytes_differ() {
        #[derive(Debug)]
        struct NoCase;
        impl Comparator for NoCase {
            fn name(&self) -> &str {
                "no case"
            }
            fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
                left.to_ascii_lowercase().cmp(&right.to_ascii_lowercase())
            }
        }
        let collation = Collation::by(Arc::new(NoCase));
        assert_eq!(collation.cmp(&kept(b"A"), &kept(b"a")), Ordering::Less);
        assert_eq!(collation.cmp(&collation.successor(&kept(b"A")), &kept(b"a")), Ordering::Less);
        assert_ne!(collation, Collation::BYTES);
        assert_eq!(collation, Collation::missing("no case"));
        assert!(Collation::missing("no case").is_missing() && !collation.is_missing());
    }
}
