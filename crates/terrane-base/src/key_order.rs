//! Key orders other than bytewise: a key is encoded so that the encoded bytes compare as the keys do.
//!
//! An order is a pair of functions, not a comparison: [`KeyOrder::encode`] turns a key into the bytes that
//! the engine stores, and [`KeyOrder::decode`] turns those into the key. So everything after the encoding,
//! from the memtable to range deletes and transactions, compares bytes, and no order can make it
//! inconsistent. `docs/design/0021-key-order.md` compares this with a comparison callback.
//!
//! If a program has no such pair, an order may be a comparator ([`KeyOrders::with_comparator`]): its encoding
//! is the key with a mark after it, and the engine compares by [`crate::collation`]. The rest of this page
//! holds for it as well.
//!
//! A table names its order; the name is stored with the table, and a table whose order is not available is
//! not opened. The built-in order is `reverse`; [`KeyOrders`] passes others at opening.
//!
//! # Contract
//! 1. Both are functions: the same bytes always make the same, in every version of the program that opens the
//!    table. They may be called any number of times, on any thread, and must not use the database: what would
//!    change it or wait for it is refused ([`crate::callback`]).
//! 2. Keys are in the order of their encodings, as unsigned bytes, shorter first where one is the beginning
//!    of the other.
//! 3. Keys with the same encoding are the same key, whatever their bytes. Reads return the key that `decode`
//!    returns, and that key has the same encoding.
//! 4. If a key cannot be decoded, because the order changed, its readers get an error; nothing else happens.
//!
//! A panic is caught and is an error of the operation that called the function.

mod given;
mod in_order;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::{Collation, Error, Result, callback};

pub use given::{ComparatorSource, KeyOrders};
pub use in_order::{FilterInOrder, OperatorInOrder};

/// Name of the order of bytes, which needs no encoding.
pub const BYTEWISE: &str = "bytewise";
/// Name of the built-in order of bytes from the greatest to the least.
pub const REVERSE: &str = "reverse";

/// How keys are ordered. See the [module](self) for the contract.
///
/// ```
/// # use terrane_base::{Error, KeyOrder, Result};
/// /// Numbers as text: by value, without an order of bytes of their own.
/// #[derive(Debug)]
/// struct Numeric;
///
/// impl KeyOrder for Numeric {
///     fn name(&self) -> &str {
///         "numeric"
///     }
///
///     fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
///         let text = std::str::from_utf8(key).map_err(|_| Error::invalid("a key is a number"))?;
///         let number: u64 = text.parse().map_err(|_| Error::invalid("a key is a number"))?;
///         out.extend_from_slice(&number.to_be_bytes());
///         Ok(())
///     }
///
///     fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
///         let bytes = encoded.try_into().map_err(|_| Error::corrupt("8 bytes encode a key"))?;
///         out.extend_from_slice(u64::from_be_bytes(bytes).to_string().as_bytes());
///         Ok(())
///     }
/// }
///
/// let (mut nine, mut ten) = (Vec::new(), Vec::new());
/// Numeric.encode(b"9", &mut nine)?;
/// Numeric.encode(b"10", &mut ten)?;
/// assert!(nine < ten);
/// # Ok::<(), terrane_base::Error>(())
/// ```
pub trait KeyOrder: Send + Sync + fmt::Debug {
    /// The name that is stored with tables: 1 to 64 bytes without control characters.
    fn name(&self) -> &str;

    /// Appends to `out` the bytes that stand for `key`.
    ///
    /// # Errors
    /// Whatever is wrong with the key; the caller gets it as `Invalid`.
    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()>;

    /// Appends to `out` the key that `encoded` stands for.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes; the reader gets it as `Corrupt`.
    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()>;

    /// Appends to `out` the bytes with which the encodings of those keys begin, and of no others, that begin
    /// with `prefix`, and returns true; false if there are no such bytes: then such keys do not lie together.
    fn encode_prefix(&self, prefix: &[u8], out: &mut Vec<u8>) -> bool {
        let _ = (prefix, out);
        false
    }
}

/// An order with its checked name; it catches the function's panics.
#[derive(Debug)]
pub struct Order {
    name: String,
    function: Arc<dyn KeyOrder>,
    collation: Collation,
}

impl Order {
    /// The name that is stored with tables.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How what this order encodes is compared: as bytes, or by its comparator.
    #[must_use]
    pub fn collation(&self) -> &Collation {
        &self.collation
    }

    /// The bytes that stand for `key`.
    ///
    /// # Errors
    /// `Invalid`, naming the order; `Poisoned` after its comparator panicked.
    pub fn encode(&self, key: &[u8]) -> Result<Vec<u8>> {
        let mut encoded = Vec::with_capacity(key.len() + key.len() / 8 + 8);
        self.append(key, &mut encoded).map(|()| encoded)
    }

    /// Appends the bytes that stand for `key` to `out`; after an error what it appended means nothing.
    ///
    /// # Errors
    /// As [`Order::encode`].
    pub fn append(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.collation.check().map_err(|error| self.named(error))?;
        match callback::call(|| self.function.encode(key, out)) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.named(error.with_kind(crate::Kind::Invalid))),
            Err(_) => Err(self.named(Error::invalid("encoding a key panicked"))),
        }
    }

    /// Puts the key that `encoded` stands for in the place of `key`.
    ///
    /// # Errors
    /// `Corrupt`, naming the order; `Poisoned` after its comparator panicked.
    pub fn decode_into(&self, encoded: &[u8], key: &mut Vec<u8>) -> Result<()> {
        key.clear();
        self.collation.check().map_err(|error| self.named(error))?;
        let done = callback::call(|| self.function.decode(encoded, key));
        match done {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.named(error.with_kind(crate::Kind::Corrupt))),
            Err(_) => Err(self.named(Error::corrupt("decoding a key panicked"))),
        }
    }

    /// The key that `encoded` stands for.
    ///
    /// # Errors
    /// As [`Order::decode_into`].
    pub fn decode(&self, encoded: &[u8]) -> Result<Vec<u8>> {
        let mut key = Vec::with_capacity(encoded.len());
        self.decode_into(encoded, &mut key).map(|()| key)
    }

    /// The bytes with which the encodings of the keys that begin with `prefix` begin.
    ///
    /// # Errors
    /// `Invalid`, naming the order, if such keys do not lie together.
    pub fn encode_prefix(&self, prefix: &[u8]) -> Result<Vec<u8>> {
        let mut encoded = Vec::new();
        let done = callback::call(|| self.function.encode_prefix(prefix, &mut encoded));
        if let Ok(true) = done {
            return Ok(encoded);
        }
        Err(self.named(Error::invalid("keys with a common prefix do not lie together: scan a range instead")))
    }

    #[cold]
    fn named(&self, error: Error) -> Error {
        error.context(format!("key order {:?}", self.name))
    }
}

/// A key as the table keeps it: itself where its order is that of bytes.
///
/// # Errors
/// As [`Order::encode`].
pub fn encoded<'k>(order: Option<&Order>, key: &'k [u8]) -> Result<Cow<'k, [u8]>> {
    match order {
        None => Ok(Cow::Borrowed(key)),
        Some(order) => order.encode(key).map(Cow::Owned),
    }
}

/// Keys that a comparator orders: after each is the mark of a key (see [`crate::collation`]).
#[derive(Debug)]
struct Marked;

const AT_KEY: u8 = 0;

impl KeyOrder for Marked {
    fn name(&self) -> &str {
        "a comparator"
    }

    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(key);
        out.push(AT_KEY);
        Ok(())
    }

    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match encoded.split_last() {
            Some((&AT_KEY, key)) => {
                out.extend_from_slice(key);
                Ok(())
            }
            _ => Err(Error::corrupt("bytes that are not a key under a comparator")),
        }
    }
}

/// Keys whose order is not available, as they are stored.
#[derive(Debug)]
struct AsKept;

impl KeyOrder for AsKept {
    fn name(&self) -> &str {
        "an order that is not registered"
    }

    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(key);
        Ok(())
    }

    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(encoded);
        Ok(())
    }
}

/// From the greatest key to the least. Each byte is inverted, which turns the order of bytes around; a longer
/// key must come before its own beginning, so a key ends with two bytes that are greater than any that follow
/// in it:
///
/// ```text
/// key = unit* ff ff        unit of byte b = !b, but of 00: ff 00
/// ```
#[derive(Debug)]
struct Reverse;

const END: [u8; 2] = [0xff, 0xff];

impl KeyOrder for Reverse {
    fn name(&self) -> &str {
        REVERSE
    }

    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.encode_prefix(key, out);
        out.extend_from_slice(&END);
        Ok(())
    }

    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let broken = || Error::corrupt("bytes that are not a key in this order");
        let mut units = encoded.strip_suffix(&END).ok_or_else(broken)?.iter();
        while let Some(unit) = units.next() {
            match unit {
                0xff if units.next() != Some(&0) => return Err(broken()),
                0xff => out.push(0),
                unit => out.push(!unit),
            }
        }
        Ok(())
    }

    fn encode_prefix(&self, prefix: &[u8], out: &mut Vec<u8>) -> bool {
        for byte in prefix {
            match byte {
                0 => out.extend_from_slice(&[0xff, 0]),
                byte => out.push(!byte),
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Comparator;

    fn reverse() -> Arc<Order> {
        KeyOrders::new().find(REVERSE).expect("built in")
    }

    /// All keys of up to four bytes out of a few, the least and the greatest among them.
    fn keys() -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
        let mut longest = keys.clone();
        for _ in 0..4 {
            let longer =
                longest.iter().flat_map(|key| [0, 1, 0xfe, 0xff].map(|byte| [&key[..], &[byte]].concat()));
            longest = longer.collect();
            keys.extend_from_slice(&longest);
        }
        keys
    }

    #[test]
    fn reverse_is_the_order_of_bytes_turned_around() {
        let (order, mut keys) = (reverse(), keys());
        keys.sort();
        let encoded: Vec<_> = keys.iter().map(|key| order.encode(key).expect("any key")).collect();
        assert!(encoded.windows(2).all(|pair| pair[0] > pair[1]));
        for (key, encoded) in keys.iter().zip(&encoded) {
            assert_eq!(&order.decode(encoded).expect("was encoded"), key);
        }
    }

    #[test]
    fn prefixes_of_the_reverse_order_lie_together() {
        let (order, keys) = (reverse(), keys());
        for prefix in keys.iter().filter(|key| key.len() < 3) {
            let start = order.encode_prefix(prefix).expect("they lie together");
            for key in &keys {
                let begins = order.encode(key).expect("any key").starts_with(&start);
                assert_eq!(begins, key.starts_with(prefix), "{prefix:?} {key:?}");
            }
        }
    }

    #[test]
    fn bytes_that_encode_no_key_are_refused() {
        for bytes in [&b""[..], b"\xff", b"a", b"\xff\xff\xff", b"\xff\x01\xff\xff", b"\xff\xff\xff\xff"] {
            let error = reverse().decode(bytes).expect_err("no key");
            assert!(error.kind() == crate::Kind::Corrupt && error.to_string().contains("reverse"), "{error}");
        }
        assert!(KeyOrders::new().find("mine").expect_err("not given").to_string().contains("mine"));
        assert!(KeyOrders::new().with(Arc::new(Reverse)).is_err());
    }

    #[test]
    fn a_comparator_is_an_order_whose_keys_have_a_mark() {
        #[derive(Debug)]
        struct Longest;
        impl Comparator for Longest {
            fn name(&self) -> &str {
                "longest first"
            }
            fn compare(&self, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
                right.len().cmp(&left.len()).then_with(|| left.cmp(right))
            }
        }
        let orders = KeyOrders::new().with_comparator(Arc::new(Longest)).expect("a free name");
        assert!(orders.clone().with_comparator(Arc::new(Longest)).is_err(), "the name is taken");
        let order = orders.find("longest first").expect("given");
        let [long, short] = [b"aa".as_slice(), b"b"].map(|key| order.encode(key).expect("any key"));
        assert!(order.collation().lt(&long, &short));
        assert_eq!(order.decode(&long).expect("was encoded"), b"aa");
        let behind = order.collation().successor(&long);
        assert_eq!(order.decode(&behind).expect_err("behind a key").kind(), crate::Kind::Corrupt);
        assert!(order.encode_prefix(b"a").is_err(), "nothing says where they lie");
        assert_eq!(orders.collation("longest first"), *order.collation());
        assert!(orders.collation("shortest first").is_missing() && reverse().collation().is_bytes());
    }
}
