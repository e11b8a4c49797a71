//! CRC-32C with a seed, so that bytes that are valid in one place are not valid in another.
//! `docs/format/README.md` lists the uses.

/// CRC-32C (Castagnoli) of `bytes`, starting from `seed`; seed 0 gives the plain checksum.
#[inline]
#[must_use]
pub fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(seed, bytes)
}

/// CRC-32C of single bytes, without the inversions at both ends: the step of the checksum by one byte.
const STEPS: [u32; 256] = steps();
/// By the highest byte of a step, which no two steps share: the byte that it is the step of.
const BYTES_OF_STEPS: [u8; 256] = bytes_of_steps();

const fn steps() -> [u32; 256] {
    /// The polynomial of Castagnoli, lowest bit first.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut steps = [0u32; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut step, mut bit) = (byte as u32, 0);
        while bit < 8 {
            step = (step >> 1) ^ if step & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        steps[byte] = step;
        byte += 1;
    }
    steps
}

const fn bytes_of_steps() -> [u8; 256] {
    let mut bytes = [0u8; 256];
    let mut byte = 0;
    while byte < 256 {
        bytes[(STEPS[byte] >> 24) as usize] = byte as u8;
        byte += 1;
    }
    bytes
}

/// A byte that is another one than was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongByte {
    /// Its place.
    pub at: usize,
    /// The bits of it that changed.
    pub bits: u8,
}

/// All single bytes that explain, each by itself, why `len` bytes have the checksum `found` instead of
/// `expected`. Places descend. Of other damage than one byte, a place in 2^24 looks so by chance.
///
/// The checksum is linear: a wrong byte changes it by the byte's own step, taken on through the bytes behind
/// it. So the difference is taken back byte by byte, until it is the step of one byte.
pub fn wrong_bytes(found: u32, expected: u32, len: usize) -> impl Iterator<Item = WrongByte> {
    let mut difference = found ^ expected;
    (0..if difference == 0 { 0 } else { len }).rev().filter_map(move |at| {
        let byte = BYTES_OF_STEPS[(difference >> 24) as usize];
        difference = ((difference ^ STEPS[byte as usize]) << 8) | u32::from(byte);
        debug_assert!(difference != 0, "a step back is one to one, and only no difference comes from none");
        u8::try_from(difference).ok().map(|bits| WrongByte { at, bits })
    })
}
