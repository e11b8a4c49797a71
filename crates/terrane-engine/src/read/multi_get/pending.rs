//! The keys that have no answer yet: some of a group, by their places in it, and those that memory does not
//! answer.

use crate::read::multi_get::fetch::Missing;
use crate::read::multi_get::group::GROUP;
use crate::read::multi_get::pointers::MissingValue;

/// The keys of a group that are not answered yet.
#[derive(Clone, Copy)]
pub(super) struct Open {
    at: [u8; GROUP],
    pub(super) len: usize,
}

impl Open {
    pub(super) fn all(len: usize) -> Self {
        Open { at: std::array::from_fn(|at| at as u8), len }
    }

    pub(super) fn none() -> Self {
        Open { at: [0; GROUP], len: 0 }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.at[..self.len].iter().map(|at| usize::from(*at))
    }

    #[inline]
    pub(super) fn push(&mut self, at: usize) {
        debug_assert!(self.iter().all(|listed| listed != at), "a key is listed once");
        self.at[self.len] = at as u8;
        self.len += 1;
    }
}

/// The keys that memory does not answer.
#[derive(Default)]
pub(super) struct Rest {
    /// The missing parts, which must be fetched.
    pub(super) missing: Vec<Missing>,
    /// Those whose values must be fetched.
    pub(super) values: Vec<MissingValue>,
    /// Those whose newest version is an operand, by index and hash.
    pub(super) chains: Vec<(usize, u64)>,
}

impl Rest {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys.
    pub(super) fn len(&self) -> usize {
        self.missing.len() + self.values.len() + self.chains.len()
    }
}
