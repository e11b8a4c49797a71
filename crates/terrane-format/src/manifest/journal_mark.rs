//! The mark of a directory that has the journal of a database whose other parts lie elsewhere: one line of
//! text.

use terrane_base::{Error, Result};

use crate::checksum::crc32c;

/// Longest mark.
pub const MARK_BYTES_MAX: usize = 4096;

const FRONT: &str = "terrane journal ";

/// The content of the file `REMOTE`.
///
/// ```text
/// terrane journal ID before ID of file:///srv/db check 89abcdef
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalMark {
    /// Drawn at each opening for writing; the manifest names it.
    pub journal: u128,
    /// The one before, in case the opening did not get as far as the manifest; 0 if there was none.
    pub before: u128,
    /// Where the other parts lie, for messages.
    pub address: String,
}

impl JournalMark {
    /// Encodes the content of `REMOTE`.
    #[must_use]
    pub fn encode(&self) -> String {
        let JournalMark { journal, before, address } = self;
        let front = format!("{FRONT}{journal:032x} before {before:032x} of {address}");
        let checksum = crc32c(0, front.as_bytes());
        format!("{front} check {checksum:08x}\n")
    }

    /// Decodes the content of `REMOTE`.
    ///
    /// # Errors
    /// `Corrupt`, without a place, if [`JournalMark::encode`] cannot have made it.
    pub fn decode(bytes: &[u8]) -> Result<JournalMark> {
        Self::parse(bytes).filter(|mark| mark.encode().as_bytes() == bytes).ok_or_else(|| {
            let found = bytes[..bytes.len().min(MARK_BYTES_MAX)].escape_ascii();
            Error::corrupt(format!("REMOTE is damaged: expected one checksummed line, found \"{found}\""))
        })
    }

    fn parse(bytes: &[u8]) -> Option<JournalMark> {
        let rest = str::from_utf8(bytes).ok()?.strip_prefix(FRONT)?;
        let (journal, rest) = rest.split_once(" before ")?;
        let (before, rest) = rest.split_once(" of ")?;
        let (address, _) = rest.rsplit_once(" check ")?;
        let id = |text| u128::from_str_radix(text, 16).ok();
        Some(JournalMark { journal: id(journal)?, before: id(before)?, address: address.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_comes_back_and_no_other_bytes_do() {
        for address in ["s3://bucket/db", "", "a check b of c before d\n"] {
            let mark = JournalMark { journal: 5 << 100, before: 7, address: address.into() };
            let line = mark.encode().into_bytes();
            assert_eq!(JournalMark::decode(&line).expect("whole"), mark);
            for at in 0..line.len() * 8 {
                let mut damaged = line.clone();
                damaged[at / 8] ^= 1 << (at % 8);
                assert!(JournalMark::decode(&damaged).is_err(), "bit {at} of {address:?}");
            }
            for len in 0..line.len() {
                assert!(JournalMark::decode(&line[..len]).is_err(), "cut at {len} of {address:?}");
            }
        }
    }
}
