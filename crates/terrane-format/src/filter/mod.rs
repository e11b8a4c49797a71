//! Filters: can this key be present? A blocked Bloom filter (Putze, Sanders, Singler 2007): one cache line
//! gives the answer.
//!
//! ```text
//! filter = line* (name name_len:u8)? keys:u32 probes:u8 version:u8 checksum:u32
//! line   = 512 bits; bit n is bit n % 8 of byte n / 8
//! ```
//!
//! The high half of a key's hash selects the line, the low half the bits in it: for each probe it is
//! multiplied by an odd constant, and its top nine bits are the bit. `docs/design/0003-filter.md` says why
//! neither ribbon nor binary fuse filters are used.

mod describe;

pub use describe::describe;

use terrane_base::prefetch::prefetch;
use terrane_base::prefix_extractor::NAME_BYTES_MAX;
use terrane_base::{Error, Result};

use crate::wire;

/// Version of a filter of keys.
pub const VERSION: u8 = 1;
/// Version of a filter of keys and of their prefixes: it names the extractor.
pub const VERSION_PREFIXED: u8 = 2;
/// Most bits per key that are useful; a larger number is treated as this one.
pub const BITS_PER_KEY_MAX: u32 = 32;

/// Bytes of a line: a cache line.
const LINE_BYTES: usize = 64;
const LINE_BITS: usize = 8 * LINE_BYTES;
/// Bytes behind the lines: keys, probes, version, checksum.
const TRAILER_BYTES: usize = 4 + 1 + 1 + 4;
const PROBES_MAX: u8 = 16;
const SEED: u32 = u32::from_le_bytes(*b"FLTR");
/// Seed of prefix hashes: a key and a prefix with the same bytes are two members.
const PREFIX_SEED: u64 = u64::from_le_bytes(*b"prefixes");
/// 2^32 over the golden ratio, odd: successive products spread over the high bits.
const SPREAD: u32 = 0x9e37_79b9;

/// The hash of a user key, for building and for querying filters.
#[inline]
#[must_use]
pub fn hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

/// The hash of a prefix of user keys. Filters hold prefixes beside keys.
#[inline]
#[must_use]
pub fn prefix_hash(prefix: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(prefix, PREFIX_SEED)
}

/// The id of the extractor with this name; see [`Filter::prefixes`].
#[must_use]
pub fn extractor_id(name: &str) -> u64 {
    hash(name.as_bytes())
}

/// Bytes of a filter of `keys` keys at `bits_per_key`; 0 if there is no filter.
#[must_use]
pub fn encoded_len(keys: usize, bits_per_key: u32) -> usize {
    match line_count(keys, bits_per_key) {
        0 => 0,
        lines => lines * LINE_BYTES + TRAILER_BYTES,
    }
}

/// Extra bytes of a filter that names the extractor of its prefixes.
#[must_use]
pub fn name_len(extractor: Option<&str>) -> usize {
    extractor.map_or(0, |name| name.len() + 1)
}

/// Appends a filter of the keys with these hashes to `out`; duplicate keys only waste bits.
///
/// Appends nothing if `bits_per_key` is 0 or there is no key.
pub fn build(hashes: &[u64], bits_per_key: u32, out: &mut Vec<u8>) {
    build_with(hashes, None, bits_per_key, out);
}

/// As [`build`]. With an extractor's name, `hashes` also contains the hashes of the prefixes of all keys
/// ([`prefix_hash`]). Requires: a valid extractor name.
pub fn build_with(hashes: &[u64], extractor: Option<&str>, bits_per_key: u32, out: &mut Vec<u8>) {
    let lines = line_count(hashes.len(), bits_per_key);
    if lines == 0 {
        return;
    }
    let probes = probes_for(bits_per_key);
    let start = out.len();
    out.resize(start + lines * LINE_BYTES, 0);
    let (lines, _) = out[start..].as_chunks_mut::<LINE_BYTES>();
    for hash in hashes {
        let line = &mut lines[line_of(*hash, lines.len())];
        for bit in bits_of(*hash, probes) {
            line[bit / 8] |= 1 << (bit % 8);
        }
    }
    if let Some(name) = extractor {
        assert!((1..=NAME_BYTES_MAX).contains(&name.len()), "names of extractors are checked");
        out.extend_from_slice(name.as_bytes());
        out.push(name.len() as u8);
    }
    out.extend_from_slice(&(hashes.len() as u32).to_le_bytes());
    out.push(probes);
    out.push(if extractor.is_some() { VERSION_PREFIXED } else { VERSION });
    let checksum = crate::checksum::crc32c(SEED, &out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// A checked filter. The owner decides in which memory its lines lie; if they are aligned, each query touches
/// one cache line.
#[derive(Debug)]
pub struct Filter<B = Vec<u8>> {
    lines: B,
    keys: u32,
    probes: u8,
    /// The extractor's id, if the filter holds prefixes.
    prefixes: Option<u64>,
}

impl Filter {
    /// Checks and decodes a filter.
    ///
    /// # Errors
    /// `Corrupt` if the checksum, the version or the shape is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Filter> {
        Ok(Filter::check(bytes)?.place(<[u8]>::to_vec))
    }

    /// As [`Filter::decode`], of a filter that stays where it is.
    ///
    /// # Errors
    /// As [`Filter::decode`].
    pub fn check(bytes: &[u8]) -> Result<Filter<&[u8]>> {
        let body = wire::checked_body("filter", SEED, bytes)?;
        let Some((lines, trailer)) = body.split_last_chunk::<{ TRAILER_BYTES - 4 }>() else {
            return Err(Error::corrupt(format!("filter of {} bytes is cut", bytes.len())));
        };
        let [keys @ .., probes, version] = *trailer;
        let (lines, name) = match version {
            VERSION => (lines, None),
            VERSION_PREFIXED => split_name(lines).map(|(lines, name)| (lines, Some(name)))?,
            _ => {
                return Err(Error::corrupt(format!(
                    "filter version: expected {VERSION} or {VERSION_PREFIXED}, found {version}"
                )));
            }
        };
        let (lines, rest) = lines.as_chunks::<LINE_BYTES>();
        if lines.is_empty() || !rest.is_empty() || !(1..=PROBES_MAX).contains(&probes) {
            return Err(Error::corrupt(format!("filter of {} bytes with {probes} probes", bytes.len())));
        }
        let (keys, prefixes) = (u32::from_le_bytes(keys), name.map(extractor_id));
        Ok(Filter { lines: lines.as_flattened(), keys, probes, prefixes })
    }

    /// Bytes of memory that the filter holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Filter>() + self.lines.capacity()
    }
}

impl<B: AsRef<[u8]>> Filter<B> {
    /// The same filter in other memory. Requires: `place` returns the bytes that it is given.
    #[must_use]
    pub fn place<C: AsRef<[u8]>>(&self, place: impl FnOnce(&[u8]) -> C) -> Filter<C> {
        let lines = place(self.lines.as_ref());
        debug_assert!(lines.as_ref() == self.lines.as_ref(), "lines do not change with their place");
        Filter { lines, keys: self.keys, probes: self.probes, prefixes: self.prefixes }
    }

    /// Bytes of the lines.
    #[must_use]
    pub fn lines_len(&self) -> usize {
        self.lines.as_ref().len()
    }

    #[inline]
    fn lines(&self) -> &[[u8; LINE_BYTES]] {
        self.lines.as_ref().as_chunks().0
    }

    /// Returns true if the key with this [`hash()`] may be in the filter; `false` is certain.
    #[inline]
    #[must_use]
    pub fn may_contain(&self, hash: u64) -> bool {
        let line = &self.lines()[line_of(hash, self.lines().len())];
        bits_of(hash, self.probes).all(|bit| line[bit / 8] >> (bit % 8) & 1 == 1)
            && !terrane_base::planted!(FilterDenies)
    }

    /// Prefetches the line that [`Filter::may_contain`] will read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&raw const self.lines()[line_of(hash, self.lines().len())]);
    }

    /// The [`extractor_id`] of the extractor, if the filter also holds the prefixes of all keys.
    #[inline]
    #[must_use]
    pub fn prefixes(&self) -> Option<u64> {
        self.prefixes
    }

    /// The number of keys and prefixes from which the filter was built.
    #[must_use]
    pub fn keys(&self) -> u32 {
        self.keys
    }
}

/// Offset, from the first line, of the line with the bits of a hash in a filter of `encoded_len` bytes; for a
/// prefetch before the filter is loaded.
#[inline]
#[must_use]
pub fn line_offset(hash: u64, encoded_len: usize) -> usize {
    line_of(hash, encoded_len.saturating_sub(TRAILER_BYTES) / LINE_BYTES) * LINE_BYTES
}

// Everything after the lines is shorter than a line, so the number of lines follows from the whole length.
const _: () = assert!(TRAILER_BYTES + 1 + NAME_BYTES_MAX < LINE_BYTES);

/// Splits the extractor's name off the end of `lines`.
fn split_name(lines: &[u8]) -> Result<(&[u8], &str)> {
    let broken = || Error::corrupt("filter: the name of its prefix extractor is not valid");
    let (len, lines) = lines.split_last().ok_or_else(broken)?;
    let len = usize::from(*len);
    if !(1..=NAME_BYTES_MAX).contains(&len) {
        return Err(broken());
    }
    let at = lines.len().checked_sub(len).ok_or_else(broken)?;
    let (lines, name) = lines.split_at(at);
    Ok((lines, std::str::from_utf8(name).map_err(|_| broken())?))
}

fn line_count(keys: usize, bits_per_key: u32) -> usize {
    (keys * bits_per_key.min(BITS_PER_KEY_MAX) as usize).div_ceil(LINE_BITS)
}

/// Number of probes with the fewest false positives: fewer than the ln 2 per bit of a plain Bloom filter,
/// because lines fill unevenly.
fn probes_for(bits_per_key: u32) -> u8 {
    (bits_per_key * 3 / 5).clamp(1, u32::from(PROBES_MAX)) as u8
}

#[inline]
fn line_of(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

#[inline]
fn bits_of(hash: u64, probes: u8) -> impl Iterator<Item = usize> {
    let mut mix = hash as u32;
    (0..probes).map(move |_| {
        mix = mix.wrapping_mul(SPREAD);
        (mix >> 23) as usize
    })
}
