//! CRC-32C with a seed, so that bytes that are valid in one place are not valid in another.
//! `docs/format/README.md` lists the uses.

/// CRC-32C (Castagnoli) of `bytes`, starting from `seed`; seed 0 gives the plain checksum.
#[inline]
#[must_use]
pub fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(seed, bytes)
}
