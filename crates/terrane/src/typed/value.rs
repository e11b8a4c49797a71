//! Values as bytes.

use std::borrow::Borrow;

use crate::Result;

/// Types that can be encoded as a value.
///
/// ```
/// use terrane::typed::EncodeValue;
/// struct Celsius(f32);
///
/// impl EncodeValue for Celsius {
///     fn encode_value(&self, to: &mut Vec<u8>) -> terrane::Result<()> {
///         if self.0 < -273.15 {
///             return Err(terrane::Error::invalid("it cannot be as cold as that"));
///         }
///         self.0.encode_value(to)
///     }
/// }
///
/// assert!(Celsius(-300.0).encode_value(&mut Vec::new()).is_err());
/// ```
pub trait EncodeValue {
    /// Adds the bytes.
    ///
    /// ```
    /// use terrane::typed::EncodeValue;
    /// let mut bytes = Vec::new();
    /// 7u16.encode_value(&mut bytes)?;
    /// assert_eq!(bytes, [7, 0]);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a value that its encoding cannot hold; none of the types here has one, but
    /// [`Json`](super::Json).
    fn encode_value(&self, to: &mut Vec<u8>) -> Result<()>;
}

/// Types that can be decoded from the bytes of a value.
///
/// ```
/// use terrane::typed::{DecodeValue, EncodeValue};
///
/// #[derive(Debug, PartialEq)]
/// struct Point { x: f32, y: f32 }
///
/// impl EncodeValue for Point {
///     fn encode_value(&self, to: &mut Vec<u8>) -> terrane::Result<()> {
///         self.x.encode_value(to)?;
///         self.y.encode_value(to)
///     }
/// }
///
/// impl DecodeValue for Point {
///     fn decode_value(bytes: Vec<u8>) -> Option<Self> {
///         let (x, y) = bytes.split_at_checked(4)?;
///         Some(Point { x: f32::decode_value(x.to_vec())?, y: f32::decode_value(y.to_vec())? })
///     }
/// }
///
/// let mut bytes = Vec::new();
/// Point { x: 1.5, y: -2.0 }.encode_value(&mut bytes)?;
/// assert_eq!(Point::decode_value(bytes), Some(Point { x: 1.5, y: -2.0 }));
/// # Ok::<(), terrane::Error>(())
/// ```
pub trait DecodeValue: EncodeValue + Sized {
    /// The value that `bytes` encode; `None` if they encode none.
    ///
    /// ```
    /// use terrane::typed::DecodeValue;
    /// assert_eq!(u16::decode_value(vec![7, 0]), Some(7));
    /// assert_eq!(u16::decode_value(vec![7]), None);
    /// ```
    fn decode_value(bytes: Vec<u8>) -> Option<Self>;
}

/// A value of type `V`, in a form that a caller has: a reference to a `V` or to what it borrows as, or a
/// number itself.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// use terrane::typed::TypedTable;
/// let db = terrane::Db::open_in_memory()?;
/// let names: TypedTable<u64, String> = TypedTable::new(db.table_or_create("names")?)?;
/// names.put(7, "ada")?; // as `&str`
/// names.put(8, &format!("{}", 8))?;
/// # Ok(())
/// # }
/// ```
pub trait ValueOf<V> {
    /// Adds the bytes: [`EncodeValue::encode_value`].
    ///
    /// ```
    /// use terrane::typed::ValueOf;
    /// let mut bytes = Vec::new();
    /// ValueOf::<String>::add_value(&"a", &mut bytes)?;
    /// assert_eq!(bytes, b"a");
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`EncodeValue::encode_value`].
    fn add_value(&self, to: &mut Vec<u8>) -> Result<()>;
}

impl<V: Borrow<T>, T: EncodeValue + ?Sized> ValueOf<V> for &T {
    fn add_value(&self, to: &mut Vec<u8>) -> Result<()> {
        self.encode_value(to)
    }
}

/// Types that callers pass by value.
macro_rules! by_value {
    ($($value:ty),*) => {
        $(impl ValueOf<$value> for $value {
            fn add_value(&self, to: &mut Vec<u8>) -> Result<()> {
                self.encode_value(to)
            }
        })*
    };
}

by_value!((), bool, char);

/// Numbers, little-endian.
macro_rules! numbers {
    ($($number:ty),*) => {
        $(
            impl EncodeValue for $number {
                fn encode_value(&self, to: &mut Vec<u8>) -> Result<()> {
                    to.extend_from_slice(&self.to_le_bytes());
                    Ok(())
                }
            }

            impl DecodeValue for $number {
                fn decode_value(bytes: Vec<u8>) -> Option<Self> {
                    bytes.try_into().ok().map(<$number>::from_le_bytes)
                }
            }

            by_value!($number);
        )*
    };
}

numbers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

/// Types whose bytes are `$bytes` of them.
macro_rules! values {
    ($([$($of:tt)*] $value:ty: |$self:ident| $bytes:expr, |$read:ident| $decoded:expr;)*) => {
        $(
            impl $($of)* EncodeValue for $value {
                fn encode_value(&self, to: &mut Vec<u8>) -> Result<()> {
                    let $self = self;
                    to.extend_from_slice($bytes);
                    Ok(())
                }
            }

            impl $($of)* DecodeValue for $value {
                fn decode_value($read: Vec<u8>) -> Option<Self> {
                    $decoded
                }
            }
        )*
    };
}

values! {
    [] (): |_nothing| &[], |bytes| bytes.is_empty().then_some(());
    [] bool: |flag| &[u8::from(*flag)], |bytes| match bytes[..] {
        [0] => Some(false),
        [1] => Some(true),
        _ => None,
    };
    [] char: |letter| &u32::from(*letter).to_le_bytes(), |bytes| u32::decode_value(bytes).and_then(char::from_u32);
    [] Vec<u8>: |bytes| bytes, |bytes| Some(bytes);
    [] String: |text| text.as_bytes(), |bytes| String::from_utf8(bytes).ok();
    [<const N: usize>] [u8; N]: |bytes| bytes, |bytes| bytes.try_into().ok();
}

impl EncodeValue for str {
    fn encode_value(&self, to: &mut Vec<u8>) -> Result<()> {
        to.extend_from_slice(self.as_bytes());
        Ok(())
    }
}

impl EncodeValue for [u8] {
    fn encode_value(&self, to: &mut Vec<u8>) -> Result<()> {
        to.extend_from_slice(self);
        Ok(())
    }
}
