//! Bytes read from the database.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

/// A value read from the database. Dereferences to its bytes, and compares with whatever holds bytes.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// let db = terrane::Db::open_in_memory()?;
/// db.put("k", "v")?;
/// let value = db.get("k")?.expect("it was put");
/// assert_eq!(value, "v");
/// assert_eq!(value, b"v");
/// assert_eq!(vec![b'v'], value);
/// assert!(value.starts_with(b"v") && value.len() == 1);
/// assert_eq!(std::str::from_utf8(&value), Ok("v"));
/// assert_eq!(db.get("k")?.as_deref(), Some(&b"v"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Value(Vec<u8>);

impl Value {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Value(bytes)
    }

    /// The bytes.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # db.put("k", "v")?;
    /// assert_eq!(db.get("k")?.expect("it was put").as_slice(), b"v");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, without a copy.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # db.put("k", "v")?;
    /// let bytes: Vec<u8> = db.get("k")?.expect("it was put").into_vec();
    /// assert_eq!(String::from_utf8(bytes).as_deref(), Ok("v"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Value {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<Value> for Vec<u8> {
    fn from(value: Value) -> Self {
        value.0
    }
}

impl From<Value> for Box<[u8]> {
    fn from(value: Value) -> Self {
        value.0.into_boxed_slice()
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Value(bytes)
    }
}

/// Compares values with another type, both ways.
macro_rules! compares_with {
    ($([$($of:tt)*] $other:ty),* $(,)?) => {
        $(
            impl $($of)* PartialEq<$other> for Value {
                fn eq(&self, other: &$other) -> bool {
                    let other: &[u8] = other.as_ref();
                    self.0 == other
                }
            }

            impl $($of)* PartialEq<Value> for $other {
                fn eq(&self, value: &Value) -> bool {
                    value == self
                }
            }

            impl $($of)* PartialOrd<$other> for Value {
                fn partial_cmp(&self, other: &$other) -> Option<Ordering> {
                    let other: &[u8] = other.as_ref();
                    Some(self.as_slice().cmp(other))
                }
            }

            impl $($of)* PartialOrd<Value> for $other {
                fn partial_cmp(&self, value: &Value) -> Option<Ordering> {
                    value.partial_cmp(self).map(Ordering::reverse)
                }
            }
        )*
    };
}

compares_with!(
    [] [u8],
    [] &[u8],
    [<const N: usize>] [u8; N],
    [<const N: usize>] &[u8; N],
    [] Vec<u8>,
    [] str,
    [] &str,
    [] String,
);

impl fmt::Debug for Value {
    /// As a byte string: `b"ab\x00"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::*;

    #[test]
    fn a_value_equals_its_bytes_in_every_form_both_ways() {
        let value = Value::new(b"ab".to_vec());
        assert_eq!(value, *b"ab");
        assert_eq!(value, b"ab");
        assert_eq!(value, b"ab"[..]);
        assert_eq!(value, &b"ab"[..]);
        assert_eq!(value, b"ab".to_vec());
        assert_eq!(value, "ab");
        assert_eq!(value, *"ab");
        assert_eq!(value, String::from("ab"));
        assert_eq!(*b"ab", value);
        assert_eq!(b"ab", value);
        assert_eq!(b"ab"[..], value);
        assert_eq!(&b"ab"[..], value);
        assert_eq!(b"ab".to_vec(), value);
        assert_eq!("ab", value);
        assert_eq!(*"ab", value);
        assert_eq!(String::from("ab"), value);
        assert_ne!(value, "a");
        assert_ne!("abc", value);
    }

    #[test]
    fn a_value_is_ordered_as_its_bytes_are() {
        let value = Value::new(b"b".to_vec());
        assert!(value > "a" && value < b"ba" && value >= *b"b");
        assert!("a" < value && b"ba" > value);
        assert!(value < Value::new(b"c".to_vec()));
    }

    #[test]
    fn maps_of_values_are_searched_by_bytes() {
        let value = Value::from(b"ab".to_vec());
        assert_eq!(HashMap::from([(value.clone(), 1)]).get(&b"ab"[..]), Some(&1));
        assert_eq!(BTreeMap::from([(value, 1)]).get(&b"ab"[..]), Some(&1));
    }

    #[test]
    fn a_value_is_shown_as_a_byte_string() {
        assert_eq!(format!("{:?}", Value::new(b"a\x00\"".to_vec())), r#"b"a\x00\"""#);
    }

    #[test]
    fn a_value_gives_its_bytes_away() {
        let value = Value::new(b"ab".to_vec());
        assert_eq!(value.to_vec(), b"ab");
        assert_eq!(Box::<[u8]>::from(value.clone()), b"ab".to_vec().into_boxed_slice());
        assert_eq!(Vec::from(value), b"ab");
    }
}
