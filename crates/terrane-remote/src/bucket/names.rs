//! Which names are possible, and how objects are named in messages.

use terrane_base::{Error, Result};

/// Most bytes of a name: what S3 allows.
pub const NAME_BYTES_MAX: usize = 1024;

/// Most objects that one list returns.
pub const LISTED_MAX: usize = 4_000_000;

/// Checks a name: parts of letters, digits, `.`, `_` and `-` with one slash between them, none of them `.` or
/// `..`.
///
/// # Errors
/// `Invalid`, with the name.
pub fn check(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(is_plain);
    if name.len() <= NAME_BYTES_MAX && name.split('/').all(is_part) {
        return Ok(());
    }
    let message = format!(
        "object name {name:?}: use parts of letters, digits, '.', '_' and '-' with one slash between them, \
         {NAME_BYTES_MAX} bytes at most"
    );
    Err(Error::invalid(message))
}

/// Where an object lies, for messages.
#[must_use]
pub fn place(url: &str, name: &str) -> String {
    format!("{}/{name}", url.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_possible() {
        for name in ["a", "db/data/0000000001-0000000001-0000", "x.y_z-1/..a"] {
            check(name).expect(name);
        }
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for name in ["", "/", "a/", "/a", "a//b", ".", "a/../b", "a b", "a%2f", "ä", long.as_str()] {
            check(name).expect_err(name);
        }
    }
}
