//! Reads little-endian fields one after the other from untrusted bytes. What formats have in common:
//! `docs/format/README.md`.

use terrane_base::{Error, Result, varint};

/// A position in untrusted bytes; every read is checked and names the structure when it fails.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    what: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// Fields of a structure that errors call `what`.
    #[must_use]
    pub fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Fields { what, bytes, at: 0 }
    }

    /// Bytes read so far.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Bytes not yet read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// The next bytes, `len` of them.
    ///
    /// # Errors
    /// `Corrupt` if there are fewer.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..len) else {
            return Err(Error::corrupt(format!(
                "{} is cut at byte {}: expected {len} more bytes, found {}",
                self.what,
                self.at,
                rest.len()
            )));
        };
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// The next byte.
    ///
    /// # Errors
    /// `Corrupt` if the bytes end before.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// The next two bytes as a number.
    ///
    /// # Errors
    /// `Corrupt` if the bytes end before.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// The next four bytes as a number.
    ///
    /// # Errors
    /// `Corrupt` if the bytes end before.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// The next eight bytes as a number.
    ///
    /// # Errors
    /// `Corrupt` if the bytes end before.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// The next varint of up to 32 bits.
    ///
    /// # Errors
    /// `Corrupt` if the bytes end before, or hold no such number.
    pub fn varint(&mut self) -> Result<u32> {
        let (value, len) = varint::get(&self.bytes[self.at..]).ok_or_else(|| {
            Error::corrupt(format!("{} holds an invalid varint at byte {}", self.what, self.at))
        })?;
        self.at += len;
        Ok(value)
    }

    /// The next varint of up to 64 bits.
    ///
    /// # Errors
    /// `Corrupt` if the bytes end before, or hold no such number.
    pub fn varint_long(&mut self) -> Result<u64> {
        let (value, len) = varint::get_long(&self.bytes[self.at..]).ok_or_else(|| {
            Error::corrupt(format!("{} holds an invalid varint at byte {}", self.what, self.at))
        })?;
        self.at += len;
        Ok(value)
    }
}

/// The little-endian `u32` at `at`, if it lies within `bytes`.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The little-endian `u64` at `at`, if it lies within `bytes`.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Checks the checksum in the structure's last four bytes and returns the bytes before it.
///
/// # Errors
/// `Corrupt` if the structure is shorter, or the checksum is another one.
pub fn checked_body<'a>(what: &str, seed: u32, bytes: &'a [u8]) -> Result<&'a [u8]> {
    let Some((body, trailer)) = bytes.split_last_chunk() else {
        return Err(Error::corrupt(format!("{what} of {} bytes is cut", bytes.len())));
    };
    let found = crate::checksum::crc32c(seed, body);
    let expected = u32::from_le_bytes(*trailer);
    if found != expected && !terrane_base::planted!(IgnorePartChecksum) {
        return Err(Error::corrupt(format!(
            "{what} fails its checksum: expected {expected:08x}, found {found:08x}"
        )));
    }
    Ok(body)
}
