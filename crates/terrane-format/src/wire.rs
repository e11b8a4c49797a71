//! Little-endian fields, read one after the other from bytes that nobody vouches for.

use terrane_base::{Error, Result, varint};

/// A position in untrusted bytes; every read is checked and names the structure when it fails.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    what: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Fields { what, bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Bytes not yet read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
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

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn varint(&mut self) -> Result<u32> {
        let (value, len) = varint::get(&self.bytes[self.at..]).ok_or_else(|| {
            Error::corrupt(format!("{} holds a broken number at byte {}", self.what, self.at))
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

/// Bytes that `a` and `b` have in common from the front.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let mut at = 0;
    while let (Some(x), Some(y)) = (u64_at(&a[at..], 0), u64_at(&b[at..], 0)) {
        let difference = x ^ y;
        if difference != 0 {
            return at + (difference.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < len && a[at] == b[at] {
        at += 1;
    }
    at
}

/// The first 8 bytes of `key` as a big-endian number, padded with zeros: where two heads differ, they order as
/// their keys do.
#[inline]
pub(crate) fn head(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(bytes)
}

/// [`head`] of what `key` has behind its first `start` bytes. Requires: `start <= key.len()`.
#[inline]
pub(crate) fn head_behind(key: &[u8], start: usize) -> u64 {
    let rest = &key[start..];
    if let Some(first) = rest.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    // The last 8 bytes of the key end with the rest; what is in front of it is shifted out.
    match key.last_chunk() {
        Some(last) if !rest.is_empty() => u64::from_be_bytes(*last) << (64 - 8 * rest.len()),
        _ => head(rest),
    }
}

/// The structure's checksum stands in its last four bytes: checks it and returns the bytes in front of it.
pub(crate) fn checked_body<'a>(what: &str, seed: u32, bytes: &'a [u8]) -> Result<&'a [u8]> {
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
