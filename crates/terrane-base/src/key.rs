//! Limits of user bytes, and how keys compare. Keys are ordered as unsigned bytes, shorter first where one is
//! a prefix of the other.
//!
//! A search over sorted keys compares *heads*: the eight bytes after the common prefix, as one number.

use crate::{Collation, Error, Result};

/// Longest key, in bytes. The empty key is allowed.
pub const KEY_BYTES_MAX: usize = 64 * 1024;
/// Longest value, in bytes. The empty value is allowed.
pub const VALUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest encoded batch, in bytes, before the limit that follows from the memory budget.
pub const BATCH_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Checks a key against [`KEY_BYTES_MAX`].
///
/// # Errors
/// `Invalid` if the key is too long.
#[inline]
pub fn check_key(key: &[u8]) -> Result<()> {
    if key.len() > KEY_BYTES_MAX { Err(too_long("key", key.len(), KEY_BYTES_MAX)) } else { Ok(()) }
}

/// Checks a value against [`VALUE_BYTES_MAX`].
///
/// # Errors
/// `Invalid` if the value is too long.
#[inline]
pub fn check_value(value: &[u8]) -> Result<()> {
    if value.len() > VALUE_BYTES_MAX { Err(too_long("value", value.len(), VALUE_BYTES_MAX)) } else { Ok(()) }
}

/// Checks the ends of a range of keys that is to be deleted.
///
/// # Errors
/// `Invalid` if one of them is too long, or `start` is not less than `end`.
pub fn check_range(start: &[u8], end: &[u8]) -> Result<()> {
    check_range_ordered(start, end, Collation::bytes())
}

/// [`check_range`] of keys that are ordered so.
///
/// # Errors
/// As [`check_range`].
pub fn check_range_ordered(start: &[u8], end: &[u8], collation: &Collation) -> Result<()> {
    check_key(start)?;
    check_key(end)?;
    if collation.lt(start, end) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "delete of the range from \"{}\" to before \"{}\": a range begins before its end",
        start.escape_ascii(),
        end.escape_ascii()
    )))
}

/// The least key within the limit that is not less than `key`, which may be beyond it; `None` if there is
/// none.
#[must_use]
pub fn at_or_after(key: &[u8]) -> Option<Vec<u8>> {
    if key.len() <= KEY_BYTES_MAX {
        return Some(key.to_vec());
    }
    prefix_end(&key[..KEY_BYTES_MAX])
}

/// The least key that is greater than every key that begins with `prefix`; `None` if all bytes of it are 255.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=kept].to_vec();
    end[kept] += 1;
    Some(end)
}

/// The least key that is greater than `key`. It may be one byte longer than a user's key can be.
#[must_use]
pub fn successor(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

/// Bytes that `left` and `right` have in common from the front.
#[inline]
#[must_use]
pub fn common_len(left: &[u8], right: &[u8]) -> usize {
    let len = left.len().min(right.len());
    let mut at = 0;
    while let (Some(one), Some(other)) = (left[at..].first_chunk(), right[at..].first_chunk()) {
        let differences = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if differences != 0 {
            return at + (differences.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < len && left[at] == right[at] {
        at += 1;
    }
    at
}

/// The first 8 bytes of `key` as a big-endian number, padded with zeros: where two heads differ, they order
/// as their keys do.
#[inline]
#[must_use]
pub fn head(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(bytes)
}

/// [`head`] of `key` without its first `start` bytes. Requires: `start <= key.len()`.
#[inline]
#[must_use]
pub fn head_behind(key: &[u8], start: usize) -> u64 {
    let rest = &key[start..];
    if let Some(first) = rest.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    // The last 8 bytes of the key end with the rest; the bytes before it are shifted out.
    match key.last_chunk() {
        Some(last) if !rest.is_empty() => u64::from_be_bytes(*last) << (64 - 8 * rest.len()),
        _ => head(rest),
    }
}

#[cold]
fn too_long(what: &str, bytes: usize, limit: usize) -> Error {
    Error::invalid(format!("{what} of {bytes} bytes: the limit is {limit} bytes; store it in pieces"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of up to 19 bytes that often have much in common.
    fn keys() -> Vec<Vec<u8>> {
        let bytes = |len: usize, other: usize| (0..len).map(move |at| if at == other { 7 } else { 200 });
        (0..20).flat_map(|len| (0..=len).map(move |other| bytes(len, other).collect())).collect()
    }

    #[test]
    fn the_end_of_a_prefix_is_the_least_key_behind_all_that_begin_with_it() {
        assert_eq!(prefix_end(b"ab").as_deref(), Some(&b"ac"[..]));
        assert_eq!(prefix_end(b"a\xff\xff").as_deref(), Some(&b"b"[..]));
        assert_eq!((prefix_end(b""), prefix_end(b"\xff")), (None, None));
        let longest = [7; KEY_BYTES_MAX];
        assert_eq!(at_or_after(&longest).as_deref(), Some(&longest[..]));
        let end = at_or_after(&successor(&longest));
        assert_eq!(end, prefix_end(&longest));
        assert_eq!(at_or_after(&[0xff; KEY_BYTES_MAX + 1]), None);
    }

    #[test]
    fn lengths_in_common_are_those_of_a_loop_over_bytes() {
        for left in keys() {
            for right in keys() {
                let wanted = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
                assert_eq!(common_len(&left, &right), wanted, "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn heads_are_the_bytes_behind_the_start_padded_with_zeros() {
        for key in keys() {
            for start in 0..=key.len() {
                let mut padded = key[start..].to_vec();
                padded.resize(8.max(padded.len()), 0);
                let wanted = padded[..8].iter().fold(0, |head, byte| head << 8 | u64::from(*byte));
                assert_eq!(head_behind(&key, start), wanted, "{key:?} from {start}");
                assert_eq!(head(&key[start..]), wanted, "{key:?} from {start}");
            }
        }
    }
}
