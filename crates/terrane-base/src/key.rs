//! Limits of user bytes. Keys are ordered as unsigned bytes, shorter first where one is a prefix of the other.

use crate::{Error, Result};

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
    check_key(start)?;
    check_key(end)?;
    if start < end {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "delete of the range from \"{}\" to before \"{}\": a range begins before its end",
        start.escape_ascii(),
        end.escape_ascii()
    )))
}

/// The least key within the limit that is not less than `key`, which may be beyond it; `None` if there is none.
#[must_use]
pub fn at_or_after(key: &[u8]) -> Option<Vec<u8>> {
    if key.len() <= KEY_BYTES_MAX {
        return Some(key.to_vec());
    }
    let kept = key[..KEY_BYTES_MAX].iter().rposition(|&byte| byte != 0xff)?;
    let mut next = key[..=kept].to_vec();
    next[kept] += 1;
    Some(next)
}

/// The least key that is greater than `key`. It may be one byte longer than a user's key can be.
#[must_use]
pub fn successor(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

#[cold]
fn too_long(what: &str, bytes: usize, limit: usize) -> Error {
    Error::invalid(format!("{what} of {bytes} bytes: the limit is {limit} bytes; store it in pieces"))
}
