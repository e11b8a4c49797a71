//! A filter for people to read.

use super::{Filter, TRAILER_BYTES, VERSION};
use crate::dump::{self, Field};

/// The fields of a filter.
#[must_use]
pub fn describe(bytes: &[u8]) -> Vec<Field> {
    let filter = match Filter::decode(bytes) {
        Ok(filter) => filter,
        Err(error) => return vec![dump::broken(0, bytes.len(), error)],
    };
    let ones: u32 = filter.lines.iter().map(|byte| byte.count_ones()).sum();
    let bits = filter.lines.len() * 8;
    let trailer = bytes.len() - TRAILER_BYTES;
    let checksum = crate::wire::u32_at(bytes, trailer + 6).unwrap_or(0);
    vec![
        Field::new(0, trailer, "lines", format!("{} lines, {ones} of {bits} bits set", filter.lines().len())),
        Field::new(trailer, 4, "keys", filter.keys),
        Field::new(trailer + 4, 1, "probes", filter.probes),
        Field::new(trailer + 5, 1, "version", VERSION),
        Field::new(trailer + 6, 4, "checksum", format!("{checksum:08x}")),
    ]
}
