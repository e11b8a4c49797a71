//! Keys in an order that is known only at run time, for maps: each has its order with it. A map is asked by
//! [`Sought`], without a copy.

use std::borrow::Borrow;
use std::cmp::Ordering;

use crate::callbacks::order::Order;

/// A key of a map.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) bytes: Vec<u8>,
    order: Order,
}

/// A key that a map is asked for.
pub(crate) struct Sought<'k>(pub(crate) &'k [u8], pub(crate) &'k Order);

/// What keys and what is asked for have in common.
pub(crate) trait Ordered {
    fn bytes(&self) -> &[u8];
    fn order(&self) -> &Order;
}

impl Key {
    pub(crate) fn new(bytes: &[u8], order: &Order) -> Key {
        Key { bytes: bytes.to_vec(), order: order.clone() }
    }
}

impl Ordered for Key {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn order(&self) -> &Order {
        &self.order
    }
}

impl Ordered for Sought<'_> {
    fn bytes(&self) -> &[u8] {
        self.0
    }

    fn order(&self) -> &Order {
        self.1
    }
}

impl<'k> Borrow<dyn Ordered + 'k> for Key {
    fn borrow(&self) -> &(dyn Ordered + 'k) {
        self
    }
}

impl Ord for dyn Ordered + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(self.bytes(), other.bytes())
    }
}

impl PartialOrd for dyn Ordered + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Ordered + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn Ordered + '_ {}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.cmp(&self.bytes, &other.bytes)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}
