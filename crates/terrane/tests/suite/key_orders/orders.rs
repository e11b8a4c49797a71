//! Three key orders, and keys for the model, which compare directly and not by their encoding.

use std::cmp::Ordering;
use std::sync::Arc;

use proptest::prelude::*;
use terrane::{Comparator, Error, Functions, KeyOrder, KeyOrders, MergeOperator, MergeOperators, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhichOrder {
    Reverse,
    Numbers,
    Letters,
    /// By comparators.
    Shortest,
    Decimal,
    Backward,
}

/// A key with the order that it is compared by.
#[derive(Clone, Debug)]
pub(crate) struct Key(WhichOrder, Vec<u8>);

impl Key {
    /// As the table shows it.
    pub(crate) fn shown(&self) -> Vec<u8> {
        if self.0 == WhichOrder::Letters { self.1.to_ascii_lowercase() } else { self.1.clone() }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match self.0 {
            WhichOrder::Reverse => other.1.cmp(&self.1),
            WhichOrder::Numbers => number(&self.1).cmp(&number(&other.1)),
            WhichOrder::Letters => self.1.to_ascii_lowercase().cmp(&other.1.to_ascii_lowercase()),
            // Keys that are equal to it are two if their bytes differ.
            _ => self.0.compare(&self.1, &other.1).then_with(|| self.1.cmp(&other.1)),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

fn number(key: &[u8]) -> u64 {
    u64::from_le_bytes(key.try_into().expect("keys of numbers have 8 bytes"))
}

impl WhichOrder {
    pub(crate) fn name(self) -> &'static str {
        match self {
            WhichOrder::Reverse => "reverse",
            WhichOrder::Numbers => "test.numbers",
            WhichOrder::Letters => "test.letters",
            WhichOrder::Shortest => "test.shortest",
            WhichOrder::Decimal => "test.decimal",
            WhichOrder::Backward => "test.backward",
        }
    }

    /// The comparison of those that are one.
    fn compare(self, left: &[u8], right: &[u8]) -> Ordering {
        let value = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok());
        match self {
            WhichOrder::Shortest => left.len().cmp(&right.len()).then_with(|| left.cmp(right)),
            WhichOrder::Decimal => value(left).cmp(&value(right)),
            _ => left.iter().rev().cmp(right.iter().rev()).reverse(),
        }
    }

    fn is_comparator(self) -> bool {
        matches!(self, WhichOrder::Shortest | WhichOrder::Decimal | WhichOrder::Backward)
    }

    pub(crate) fn of(self, key: &[u8]) -> Key {
        Key(self, key.to_vec())
    }

    /// Keys that are often prefixes of each other, or close.
    pub(crate) fn key(self) -> BoxedStrategy<Vec<u8>> {
        let byte = prop_oneof![4 => b'a'..b'd', 1 => Just(0u8), 1 => Just(255u8)];
        match self {
            WhichOrder::Reverse | WhichOrder::Shortest | WhichOrder::Backward => {
                proptest::collection::vec(byte, 0..5).boxed()
            }
            WhichOrder::Decimal => {
                let number = prop_oneof![8 => 0u64..120, 1 => any::<u64>()];
                let text =
                    (number, 0..3usize).prop_map(|(number, zeros)| format!("{}{number}", "0".repeat(zeros)));
                prop_oneof![9 => text, 1 => Just(String::from("no number"))]
                    .prop_map(String::into_bytes)
                    .boxed()
            }
            WhichOrder::Letters => {
                let letter = prop_oneof![3 => b'a'..b'd', 2 => b'A'..b'D', 1 => Just(b'_')];
                proptest::collection::vec(letter, 0..5).boxed()
            }
            WhichOrder::Numbers => {
                let number = prop_oneof![0u64..20, 250u64..600, any::<u64>(), Just(u64::MAX)];
                number.prop_map(|number| number.to_le_bytes().to_vec()).boxed()
            }
        }
    }

    /// The test whether a shown key begins with `prefix`, if such keys lie together.
    pub(crate) fn begins_with(self, prefix: &[u8]) -> Option<impl Fn(&[u8]) -> bool> {
        let prefix = self.of(prefix).shown();
        (self != WhichOrder::Numbers && !self.is_comparator())
            .then_some(move |key: &[u8]| key.starts_with(&prefix))
    }
}

pub(crate) fn functions() -> Functions {
    let orders = KeyOrders::new().with(Arc::new(Numbers)).unwrap().with(Arc::new(Letters)).unwrap();
    let orders = orders.with(Arc::new(Failing)).unwrap();
    let compared = [WhichOrder::Shortest, WhichOrder::Decimal, WhichOrder::Backward];
    let add = |orders: KeyOrders, which| orders.with_comparator(Arc::new(Compared(which))).unwrap();
    let orders = compared.into_iter().fold(orders, add);
    let orders = orders.with_comparator(Arc::new(FailingComparator)).unwrap();
    let operators = MergeOperators::new().with(Arc::new(WithKey)).unwrap();
    Functions { operators, orders, ..Functions::default() }
}

/// Orders of the other kind under the names of two of [`functions`].
pub(crate) fn swapped() -> KeyOrders {
    let letters = Renamed(WhichOrder::Letters.name());
    let decimal = Renamed(WhichOrder::Decimal.name());
    KeyOrders::new().with_comparator(Arc::new(letters)).unwrap().with(Arc::new(decimal)).unwrap()
}

/// Any name, for an order of either kind.
#[derive(Debug)]
struct Renamed(&'static str);

impl Comparator for Renamed {
    fn name(&self) -> &str {
        self.0
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        left.cmp(right)
    }
}

impl KeyOrder for Renamed {
    fn name(&self) -> &str {
        self.0
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

/// Numbers of 8 bytes, the least byte first.
#[derive(Debug)]
pub(crate) struct Numbers;

impl KeyOrder for Numbers {
    fn name(&self) -> &str {
        WhichOrder::Numbers.name()
    }

    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let bytes: [u8; 8] = key.try_into().map_err(|_| Error::invalid("a key of 8 bytes is expected"))?;
        out.extend_from_slice(&u64::from_le_bytes(bytes).to_be_bytes());
        Ok(())
    }

    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let bytes: [u8; 8] =
            encoded.try_into().map_err(|_| Error::corrupt("a key of 8 bytes is expected"))?;
        out.extend_from_slice(&u64::from_be_bytes(bytes).to_le_bytes());
        Ok(())
    }
}

/// Letters of either case are the same; lower case is shown.
#[derive(Debug)]
pub(crate) struct Letters;

impl KeyOrder for Letters {
    fn name(&self) -> &str {
        WhichOrder::Letters.name()
    }

    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.extend(key.iter().map(u8::to_ascii_lowercase));
        Ok(())
    }

    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(encoded);
        Ok(())
    }

    fn encode_prefix(&self, prefix: &[u8], out: &mut Vec<u8>) -> bool {
        out.extend(prefix.iter().map(u8::to_ascii_lowercase));
        true
    }
}

/// Panics for keys that end with an x when they are encoded, and with a y when they are decoded.
#[derive(Debug)]
pub(crate) struct Failing;

impl KeyOrder for Failing {
    fn name(&self) -> &str {
        "test.failing"
    }

    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        assert!(key.last() != Some(&b'x'), "a key that cannot be encoded");
        out.extend_from_slice(key);
        Ok(())
    }

    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        assert!(encoded.last() != Some(&b'y'), "a key that cannot be decoded");
        out.extend_from_slice(encoded);
        Ok(())
    }
}

/// An order that is a comparison.
#[derive(Debug)]
struct Compared(WhichOrder);

impl Comparator for Compared {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        self.0.compare(left, right)
    }
}

/// As bytes, but panics at a key that ends with an x.
#[derive(Debug)]
struct FailingComparator;

impl Comparator for FailingComparator {
    fn name(&self) -> &str {
        "test.failing-comparator"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        assert!(left.last() != Some(&b'x') && right.last() != Some(&b'x'), "a key that cannot be compared");
        left.cmp(right)
    }
}

/// Appends operands to the value, or to the key if there is no value.
#[derive(Debug)]
struct WithKey;

impl MergeOperator for WithKey {
    fn name(&self) -> &str {
        "test.with-key"
    }

    fn full(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(base.unwrap_or(key));
        operands.iter().for_each(|operand| out.extend_from_slice(operand));
        Ok(())
    }

    fn partial(&self, _key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> Result<bool> {
        operands.iter().for_each(|operand| out.extend_from_slice(operand));
        Ok(true)
    }
}
