//! Keys of a batch's index: as the table keeps them, in the table's order.

use std::borrow::Borrow;
use std::cmp::Ordering;

use terrane_base::Collation;

/// A key and what orders it. A map of them is asked with a [`Placed`], without a copy.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) key: Vec<u8>,
    collation: Collation,
}

impl Kept {
    pub(crate) fn new(key: &[u8], collation: &Collation) -> Self {
        Kept { key: key.to_vec(), collation: collation.clone() }
    }
}

/// A key in its order, wherever it lies.
pub(crate) trait Placed {
    /// The key and what orders it.
    fn placed(&self) -> (&[u8], &Collation);
}

impl Placed for Kept {
    fn placed(&self) -> (&[u8], &Collation) {
        (&self.key, &self.collation)
    }
}

impl Placed for (&[u8], &Collation) {
    fn placed(&self) -> (&[u8], &Collation) {
        *self
    }
}

impl<'a> Borrow<dyn Placed + 'a> for Kept {
    fn borrow(&self) -> &(dyn Placed + 'a) {
        self
    }
}

impl Ord for dyn Placed + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        let ((key, collation), (other, _)) = (self.placed(), other.placed());
        collation.cmp(key, other)
    }
}

impl PartialOrd for dyn Placed + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Placed + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.placed().0 == other.placed().0
    }
}

impl Eq for dyn Placed + '_ {}

impl Ord for Kept {
    fn cmp(&self, other: &Self) -> Ordering {
        self.collation.cmp(&self.key, &other.key)
    }
}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Kept {}
