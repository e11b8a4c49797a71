//! The row of an iterator where it lies, which it does until the position moves.

use crate::ffi::types::Slice;

/// See the [module](self); empty slices where there is no row.
pub(crate) struct Shown {
    pub(crate) is_there: bool,
    pub(crate) key: Slice,
    pub(crate) value: Slice,
}

impl Shown {
    pub(crate) fn nothing() -> Shown {
        Shown { is_there: false, key: Slice::of(&[]), value: Slice::of(&[]) }
    }

    #[inline]
    pub(crate) fn of(row: Option<(&[u8], &[u8])>) -> Shown {
        let (key, value) = row.unwrap_or_default();
        Shown { is_there: row.is_some(), key: Slice::of(key), value: Slice::of(value) }
    }
}
