//! Some keys of a group, by their places in it.

use crate::read::multi_get::lookup::GROUP;

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
        self.at[self.len] = at as u8;
        self.len += 1;
    }
}
