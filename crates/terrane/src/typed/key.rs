//! Keys as bytes that are ordered as the keys are.
//!
//! A part in front of another must say where it ends, so strings are escaped there: a byte 0 becomes 0, 255,
//! and the end is 0, 1. A string that another one begins with is less, since 0, 1 is less than all that may
//! follow in the longer one. At the end of a key a string is its bytes.

/// Types that can be encoded as a key, in a way that keeps their order.
///
/// For any two values, the encoded bytes compare as the values do, at the end of a key and in front of
/// another part, and no encoded part is the beginning of another one.
///
/// ```
/// use terrane::typed::{DecodeKey, EncodeKey};
///
/// #[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
/// struct Version { major: u16, minor: u16 }
///
/// impl EncodeKey for Version {
///     fn encode_part(&self, to: &mut Vec<u8>) {
///         (self.major, self.minor).encode_part(to);
///     }
/// }
///
/// impl DecodeKey for Version {
///     fn decode_part(from: &mut &[u8]) -> Option<Self> {
///         let (major, minor) = DecodeKey::decode_part(from)?;
///         Some(Version { major, minor })
///     }
/// }
///
/// let mut key = Vec::new();
/// Version { major: 1, minor: 12 }.encode(&mut key);
/// assert_eq!(key, [0, 1, 0, 12]);
/// assert_eq!(Version::decode(&key), Some(Version { major: 1, minor: 12 }));
/// ```
pub trait EncodeKey {
    /// Adds the bytes as a part of a key, which others may follow.
    ///
    /// ```
    /// use terrane::typed::EncodeKey;
    /// let mut key = Vec::new();
    /// "ab".encode_part(&mut key);
    /// assert_eq!(key, b"ab\x00\x01");
    /// ```
    fn encode_part(&self, to: &mut Vec<u8>);

    /// Adds the bytes as the end of a key; those of a part, unless the type has shorter ones.
    ///
    /// ```
    /// use terrane::typed::EncodeKey;
    /// let mut key = Vec::new();
    /// "ab".encode(&mut key);
    /// assert_eq!(key, b"ab");
    /// ```
    fn encode(&self, to: &mut Vec<u8>) {
        self.encode_part(to);
    }
}

/// Types that can be decoded from the bytes of a key.
///
/// ```
/// use terrane::typed::{DecodeKey, EncodeKey};
/// /// Years before and after the beginning of our era, in their order.
/// #[derive(Debug, PartialEq)]
/// struct Year(i16);
///
/// impl EncodeKey for Year {
///     fn encode_part(&self, to: &mut Vec<u8>) {
///         self.0.encode_part(to);
///     }
/// }
///
/// impl DecodeKey for Year {
///     fn decode_part(from: &mut &[u8]) -> Option<Self> {
///         i16::decode_part(from).map(Year)
///     }
/// }
///
/// let mut key = Vec::new();
/// Year(-44).encode(&mut key);
/// assert_eq!(Year::decode(&key), Some(Year(-44)));
/// ```
pub trait DecodeKey: EncodeKey + Sized {
    /// Takes a part off the front of `from`; `None` if that is not such a part.
    ///
    /// ```
    /// use terrane::typed::DecodeKey;
    /// let mut key: &[u8] = &[0, 7, 9];
    /// assert_eq!(u16::decode_part(&mut key), Some(7));
    /// assert_eq!(key, [9]);
    /// assert_eq!(u16::decode_part(&mut key), None);
    /// ```
    fn decode_part(from: &mut &[u8]) -> Option<Self>;

    /// The key that `bytes` encode to their end; `None` if they do not.
    ///
    /// ```
    /// use terrane::typed::DecodeKey;
    /// assert_eq!(u16::decode(&[0, 7]), Some(7));
    /// assert_eq!(u16::decode(&[0, 7, 9]), None);
    /// ```
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let key = Self::decode_part(&mut rest)?;
        rest.is_empty().then_some(key)
    }
}

/// A byte 0 within a part that has no fixed length, and its end.
const ESCAPED: [u8; 2] = [0, 255];
const END: [u8; 2] = [0, 1];

fn escape(bytes: &[u8], to: &mut Vec<u8>) {
    for (number, piece) in bytes.split(|byte| *byte == 0).enumerate() {
        if number > 0 {
            to.extend_from_slice(&ESCAPED);
        }
        to.extend_from_slice(piece);
    }
    to.extend_from_slice(&END);
}

fn unescape(from: &mut &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let zero = from.iter().position(|byte| *byte == 0)?;
        bytes.extend_from_slice(&from[..zero]);
        let mark = from.get(zero..zero + 2)?;
        let is_end = mark == END;
        if !is_end && mark != ESCAPED {
            return None;
        }
        *from = &from[zero + 2..];
        if is_end {
            return Some(bytes);
        }
        bytes.push(0);
    }
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*bytes)
}

impl<T: EncodeKey + ?Sized> EncodeKey for &T {
    fn encode_part(&self, to: &mut Vec<u8>) {
        (**self).encode_part(to);
    }

    fn encode(&self, to: &mut Vec<u8>) {
        (**self).encode(to);
    }
}

/// Numbers whose encoded bits are `$encode` of themselves.
macro_rules! numbers {
    ($($number:ty as $bits:ty: $encode:expr, $decode:expr;)*) => {
        $(
            impl EncodeKey for $number {
                fn encode_part(&self, to: &mut Vec<u8>) {
                    let encode: fn($number) -> $bits = $encode;
                    to.extend_from_slice(&encode(*self).to_be_bytes());
                }
            }

            impl DecodeKey for $number {
                fn decode_part(from: &mut &[u8]) -> Option<Self> {
                    let decode: fn($bits) -> $number = $decode;
                    take(from).map(<$bits>::from_be_bytes).map(decode)
                }
            }
        )*
    };
}

/// The sign bit of a number of this type.
macro_rules! sign {
    ($bits:ty) => {
        1 << (<$bits>::BITS - 1)
    };
}

/// Turns the sign bit of a positive float over, and all bits of a negative one.
macro_rules! ordered {
    ($bits:expr, $type:ty) => {
        if $bits & sign!($type) == 0 { $bits | sign!($type) } else { !$bits }
    };
}

/// Takes [`ordered`] back.
macro_rules! unordered {
    ($bits:expr, $type:ty) => {
        if $bits & sign!($type) == 0 { !$bits } else { $bits & !sign!($type) }
    };
}

numbers! {
    u8 as u8: |number| number, |bits| bits;
    u16 as u16: |number| number, |bits| bits;
    u32 as u32: |number| number, |bits| bits;
    u64 as u64: |number| number, |bits| bits;
    u128 as u128: |number| number, |bits| bits;
    i8 as u8: |number| number.cast_unsigned() ^ sign!(u8), |bits| (bits ^ sign!(u8)).cast_signed();
    i16 as u16: |number| number.cast_unsigned() ^ sign!(u16), |bits| (bits ^ sign!(u16)).cast_signed();
    i32 as u32: |number| number.cast_unsigned() ^ sign!(u32), |bits| (bits ^ sign!(u32)).cast_signed();
    i64 as u64: |number| number.cast_unsigned() ^ sign!(u64), |bits| (bits ^ sign!(u64)).cast_signed();
    i128 as u128: |number| number.cast_unsigned() ^ sign!(u128), |bits| (bits ^ sign!(u128)).cast_signed();
    f32 as u32: |number| ordered!(number.to_bits(), u32), |bits| f32::from_bits(unordered!(bits, u32));
    f64 as u64: |number| ordered!(number.to_bits(), u64), |bits| f64::from_bits(unordered!(bits, u64));
}

impl EncodeKey for bool {
    fn encode_part(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }
}

impl DecodeKey for bool {
    fn decode_part(from: &mut &[u8]) -> Option<Self> {
        match take(from)? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl EncodeKey for char {
    fn encode_part(&self, to: &mut Vec<u8>) {
        u32::from(*self).encode_part(to);
    }
}

impl DecodeKey for char {
    fn decode_part(from: &mut &[u8]) -> Option<Self> {
        u32::decode_part(from).and_then(char::from_u32)
    }
}

impl<const N: usize> EncodeKey for [u8; N] {
    fn encode_part(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self);
    }
}

impl<const N: usize> DecodeKey for [u8; N] {
    fn decode_part(from: &mut &[u8]) -> Option<Self> {
        take(from)
    }
}

impl EncodeKey for [u8] {
    fn encode_part(&self, to: &mut Vec<u8>) {
        escape(self, to);
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self);
    }
}

/// Types that are encoded as what they dereference to, and decoded from its bytes.
macro_rules! strings {
    ($($owned:ty as $borrowed:ty: $decode:expr;)*) => {
        $(
            impl EncodeKey for $owned {
                fn encode_part(&self, to: &mut Vec<u8>) {
                    <$borrowed>::encode_part(self, to);
                }

                fn encode(&self, to: &mut Vec<u8>) {
                    <$borrowed>::encode(self, to);
                }
            }

            impl DecodeKey for $owned {
                fn decode_part(from: &mut &[u8]) -> Option<Self> {
                    let decode: fn(Vec<u8>) -> Option<$owned> = $decode;
                    unescape(from).and_then(decode)
                }

                fn decode(bytes: &[u8]) -> Option<Self> {
                    let decode: fn(Vec<u8>) -> Option<$owned> = $decode;
                    decode(bytes.to_vec())
                }
            }
        )*
    };
}

strings! {
    Vec<u8> as [u8]: Some;
    String as str: |bytes| String::from_utf8(bytes).ok();
}

impl EncodeKey for str {
    fn encode_part(&self, to: &mut Vec<u8>) {
        self.as_bytes().encode_part(to);
    }

    fn encode(&self, to: &mut Vec<u8>) {
        self.as_bytes().encode(to);
    }
}

impl<T: EncodeKey> EncodeKey for Option<T> {
    fn encode_part(&self, to: &mut Vec<u8>) {
        self.is_some().encode_part(to);
        self.iter().for_each(|some| some.encode_part(to));
    }

    fn encode(&self, to: &mut Vec<u8>) {
        self.is_some().encode_part(to);
        self.iter().for_each(|some| some.encode(to));
    }
}

impl<T: DecodeKey> DecodeKey for Option<T> {
    fn decode_part(from: &mut &[u8]) -> Option<Self> {
        if bool::decode_part(from)? { T::decode_part(from).map(Some) } else { Some(None) }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let is_some = bool::decode_part(&mut rest)?;
        if is_some { T::decode(rest).map(Some) } else { rest.is_empty().then_some(None) }
    }
}

/// Tuples: `$part` in front of others, `$last` at the end.
macro_rules! tuples {
    ($($($part:ident $field:tt)* | $last:ident $at:tt;)*) => {
        $(
            impl<$($part: EncodeKey,)* $last: EncodeKey> EncodeKey for ($($part,)* $last,) {
                fn encode_part(&self, to: &mut Vec<u8>) {
                    $(self.$field.encode_part(to);)*
                    self.$at.encode_part(to);
                }

                fn encode(&self, to: &mut Vec<u8>) {
                    $(self.$field.encode_part(to);)*
                    self.$at.encode(to);
                }
            }

            impl<$($part: DecodeKey,)* $last: DecodeKey> DecodeKey for ($($part,)* $last,) {
                fn decode_part(from: &mut &[u8]) -> Option<Self> {
                    Some(($($part::decode_part(from)?,)* $last::decode_part(from)?,))
                }

                fn decode(bytes: &[u8]) -> Option<Self> {
                    let mut rest = bytes;
                    Some(($($part::decode_part(&mut rest)?,)* $last::decode(rest)?,))
                }
            }
        )*
    };
}

tuples! {
    A 0 | B 1;
    A 0 B 1 | C 2;
    A 0 B 1 C 2 | D 3;
}

#[cfg(test)]
mod tests;
