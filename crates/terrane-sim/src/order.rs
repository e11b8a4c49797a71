//! Key orders for tables of a run, each with the comparison by which the model sorts. The comparisons do not
//! use the engine's encodings.
//!
//! * The order of bytes; and the same order with an encoding that doubles every byte, so that a key that is
//!   not encoded or not decoded is found.
//! * The reverse one.
//! * Two comparators that no encoding can replace: by length alone, which leaves most of the order to the
//!   bytes of keys that it calls equal, and by the decimal number in a key's text, then from the last byte to
//!   the first.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use terrane::{Comparator, Db, Env, Error, KeyOrder, KeyOrders, Options, Result};
use terrane_base::Rng;
use terrane_device::Disk;

use crate::op::all_keys;

/// The option that names one.
pub(crate) const KEY_ORDER: &str = "key_order";

/// In which order the keys of a table lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    #[default]
    Bytes,
    Halves,
    Reverse,
    Length,
    Numbers,
}

impl Order {
    const ALL: [Order; 5] = [Order::Bytes, Order::Halves, Order::Reverse, Order::Length, Order::Numbers];

    /// As tables name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Order::Bytes => "bytewise",
            Order::Halves => "sim.halves",
            Order::Reverse => "reverse",
            Order::Length => "sim.length",
            Order::Numbers => "sim.numbers",
        }
    }

    /// The one that options ask for; that of bytes if they ask for none.
    pub(crate) fn of(options: &[(String, String)]) -> Option<Order> {
        let name = options.iter().rev().find(|(name, _)| name == KEY_ORDER).map(|(_, value)| value)?;
        Some(Order::ALL.into_iter().find(|order| order.name() == name).expect("the orders of a run"))
    }

    /// Returns true if it is a comparison: its keys with one prefix lie anywhere.
    pub(crate) fn is_compared(self) -> bool {
        matches!(self, Order::Length | Order::Numbers)
    }

    /// How two keys relate. What a comparator calls equal lies in the order of bytes.
    pub(crate) fn cmp(self, left: &[u8], right: &[u8]) -> Ordering {
        match self {
            Order::Bytes | Order::Halves => left.cmp(right),
            Order::Reverse => right.cmp(left),
            Order::Length => by_length(left, right).then_with(|| left.cmp(right)),
            Order::Numbers => by_numbers(left, right).then_with(|| left.cmp(right)),
        }
    }

    /// Returns true if a key lies in a range.
    pub(crate) fn holds(self, (lower, upper): (Bound<&[u8]>, Bound<&[u8]>), key: &[u8]) -> bool {
        let is_above = match lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => self.cmp(lower, key).is_le(),
            Bound::Excluded(lower) => self.cmp(lower, key).is_lt(),
        };
        let is_below = match upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => self.cmp(key, upper).is_le(),
            Bound::Excluded(upper) => self.cmp(key, upper).is_lt(),
        };
        is_above && is_below
    }

    /// The keys that a run may have from one to before another one. `None` if that is nothing.
    pub(crate) fn keys_between(self, from: &[u8], to: &[u8]) -> Option<Vec<Vec<u8>>> {
        let range = (Bound::Included(from), Bound::Excluded(to));
        let keys: BTreeSet<_> = all_keys().filter(|key| self.holds(range, key)).collect();
        self.cmp(from, to).is_lt().then(|| keys.into_iter().collect())
    }
}

fn by_length(left: &[u8], right: &[u8]) -> Ordering {
    left.len().cmp(&right.len())
}

fn by_numbers(left: &[u8], right: &[u8]) -> Ordering {
    number_in(left).cmp(&number_in(right)).then_with(|| left.iter().rev().cmp(right.iter().rev()))
}

/// The number that the decimal digits of a text make; the greatest that there is if it is greater.
fn number_in(text: &[u8]) -> u64 {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
}

/// A key where it lies among those of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    order: Order,
    key: Vec<u8>,
}

impl Placed {
    pub(crate) fn new(order: Order, key: &[u8]) -> Self {
        Placed { order, key: key.to_vec() }
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }
}

impl Ord for Placed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.cmp(&self.key, &other.key)
    }
}

impl PartialOrd for Placed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The option of a table that has an order that is encoded.
pub(crate) fn draw_encoded(numbers: &mut Rng) -> (String, String) {
    option(if numbers.one_in(2) { Order::Reverse } else { Order::Halves })
}

/// The option of a table, or of a database, that has a comparator.
pub(crate) fn draw_compared(numbers: &mut Rng) -> (String, String) {
    option(if numbers.one_in(2) { Order::Length } else { Order::Numbers })
}

/// The option that names an order.
pub(crate) fn option(order: Order) -> (String, String) {
    (KEY_ORDER.to_owned(), order.name().to_owned())
}

/// Opens a database of a run.
///
/// # Errors
/// As [`Db::open_with_functions_on`].
pub(crate) fn open(disk: Arc<dyn Disk>, path: impl AsRef<Path>, options: &Options, env: Env) -> Result<Db> {
    Db::open_with_functions_on(disk, path, options, env, orders()?)
}

/// The orders that tables of a run may name.
pub(crate) fn orders() -> Result<KeyOrders> {
    let compared = |order, function| Arc::new(Compared { order, function });
    KeyOrders::new()
        .with(Arc::new(Halves))?
        .with_comparator(compared(Order::Length, by_length))?
        .with_comparator(compared(Order::Numbers, by_numbers))
}

/// One that compares.
#[derive(Debug)]
struct Compared {
    order: Order,
    function: fn(&[u8], &[u8]) -> Ordering,
}

impl Comparator for Compared {
    fn name(&self) -> &str {
        self.order.name()
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        (self.function)(left, right)
    }
}

/// The upper half of a byte, then the lower one.
#[derive(Debug)]
struct Halves;

impl KeyOrder for Halves {
    fn name(&self) -> &str {
        Order::Halves.name()
    }

    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.encode_prefix(key, out);
        Ok(())
    }

    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let (pairs, rest) = encoded.as_chunks::<2>();
        if !rest.is_empty() || encoded.iter().any(|half| *half > 15) {
            return Err(Error::corrupt("a key that is not made of halves"));
        }
        out.extend(pairs.iter().map(|[upper, lower]| upper << 4 | lower));
        Ok(())
    }

    fn encode_prefix(&self, prefix: &[u8], out: &mut Vec<u8>) -> bool {
        out.extend(prefix.iter().flat_map(|byte| [byte >> 4, byte & 15]));
        true
    }
}
