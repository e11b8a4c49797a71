//! Keys and values that callers give in parts.

use crate::ffi::types::{Bytes, List};

/// The parts of one byte string.
pub(crate) fn joined(parts: List<'_, Bytes<'_>>, lens: List<'_, usize>, count: i32) -> Vec<u8> {
    parts.with(lens, usize::try_from(count).unwrap_or(0)).concat()
}
