//! The file `ORIGINS`: which databases wrote the extents that a copy began with.
//!
//! ```text
//! terrane origins 0123456789abcdef0123456789abcdef check 687d45cb
//! ```
//!
//! One line of text: the ids of the databases, the oldest first, and CRC-32C of everything before ` check`.

use std::fmt::Write as _;

use terrane_base::{Error, Result};

use super::DatabaseId;
use crate::checksum::crc32c;

/// Most ids in a file: of a copy of a copy, and so on, the last ones count.
pub const ORIGINS_MAX: usize = 64;
/// Bytes of the file at most.
pub const ORIGINS_BYTES_MAX: usize = FRONT.len() + ORIGINS_MAX * 33 + 16;

const FRONT: &str = "terrane origins";
const SEED: u32 = u32::from_le_bytes(*b"ORGS");

/// The content of the file.
#[must_use]
pub fn encode(ids: &[DatabaseId]) -> String {
    let mut line = FRONT.to_owned();
    for id in &ids[ids.len().saturating_sub(ORIGINS_MAX)..] {
        let _ = write!(line, " {id}");
    }
    let checksum = crc32c(SEED, line.as_bytes());
    let _ = writeln!(line, " check {checksum:08x}");
    debug_assert!(line.len() <= ORIGINS_BYTES_MAX, "{} bytes cannot be read again", line.len());
    line
}

/// The ids in the file.
///
/// # Errors
/// `Corrupt` if [`encode`] cannot have made it.
pub fn decode(bytes: &[u8]) -> Result<Vec<DatabaseId>> {
    let ids = parse(bytes).filter(|ids| encode(ids).as_bytes() == bytes);
    ids.ok_or_else(|| {
        let shown = bytes[..bytes.len().min(64)].escape_ascii();
        Error::corrupt(format!("ORIGINS is damaged: expected one checksummed line, found \"{shown}\""))
    })
}

fn parse(bytes: &[u8]) -> Option<Vec<DatabaseId>> {
    let text = str::from_utf8(bytes).ok()?.strip_prefix(FRONT)?;
    let (ids, _) = text.split_once(" check")?;
    let ids = ids.split_ascii_whitespace().map(|id| u128::from_str_radix(id, 16).ok().map(DatabaseId));
    ids.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_and_every_cut_and_flip_is_seen() {
        for ids in [vec![], vec![DatabaseId(7)], vec![DatabaseId(u128::MAX), DatabaseId(0)]] {
            let line = encode(&ids);
            assert_eq!(decode(line.as_bytes()).unwrap(), ids);
            assert!((0..line.len()).all(|len| decode(&line.as_bytes()[..len]).is_err()));
            for at in 0..line.len() {
                let mut changed = line.clone().into_bytes();
                changed[at] ^= 4;
                assert!(decode(&changed).is_err(), "byte {at}");
            }
        }
        assert_eq!(
            encode(&[DatabaseId(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef)]),
            "terrane origins 0123456789abcdef0123456789abcdef check 687d45cb\n"
        );
    }

    #[test]
    fn of_too_many_the_last_ones_stay() {
        let ids: Vec<DatabaseId> = (0..100).map(DatabaseId).collect();
        let line = encode(&ids);
        assert!(line.len() <= ORIGINS_BYTES_MAX);
        assert_eq!(decode(line.as_bytes()).unwrap(), ids[100 - ORIGINS_MAX..]);
    }
}
