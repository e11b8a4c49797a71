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

#[cold]
fn too_long(what: &str, bytes: usize, limit: usize) -> Error {
    Error::invalid(format!("{what} of {bytes} bytes: the limit is {limit} bytes; store it in pieces"))
}
