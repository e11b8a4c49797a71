//! The bytes of a value, from the number of its key and a version, so that a reader can check what it gets.
//!
//! ```text
//! value = key number, scrambled, 8 bytes | version, scrambled, 4 bytes | noise | filler
//! ```
//!
//! The head and the noise are incompressible; together they are the share `entropy` of the value (less the
//! few bytes with which compressors note a run), the filler is one byte again and again. The noise is a
//! window of a pool whose place follows from number, version and length, so every byte of a value can be
//! checked, and its length where there is noise. A value shorter than its head is cut. A value whose head is
//! more than its share of entropy compresses less than was asked.

use std::sync::Arc;

use super::random::Random;

const HEAD: usize = 12;
/// Bytes that a compressor needs for a run: LZ4 four (token, offset, first byte), Zstandard about two.
const RUN_COST: usize = 3;
/// Places at which a window may begin; a power of two.
const PLACES: usize = 1 << 20;
const FILLER: u8 = b'.';
/// Odd, so that numbers and versions remain distinct.
const SCRAMBLE_NUMBER: u64 = 0x9fb2_1c65_1e98_df25;
/// Its inverse modulo 2^64.
const UNSCRAMBLE_NUMBER: u64 = inverse(SCRAMBLE_NUMBER);
const SCRAMBLE_VERSION: u32 = 0x85eb_ca6b;

/// Writes and checks values; one for each thread. Copies share the noise, a megabyte.
#[derive(Clone, Debug)]
pub struct Values {
    noise: Arc<[u8]>,
    value: Vec<u8>,
    entropy: f64,
}

impl Values {
    /// Values of up to `longest` bytes, of which compression leaves about the share `entropy` (0 to 1).
    ///
    /// A reader that checks values must use the writer's seed and entropy, and any `longest` that is large
    /// enough.
    #[must_use]
    pub fn new(seed: u64, longest: usize, entropy: f64) -> Self {
        let mut random = Random::new(seed);
        let words = (PLACES + longest).div_ceil(8);
        let noise: Vec<u8> = (0..words).flat_map(|_| random.next_u64().to_le_bytes()).collect();
        Values { noise: noise.into(), value: vec![FILLER; longest], entropy: entropy.clamp(0.0, 1.0) }
    }

    /// The value of a key in a version (of which the low 32 bits count), `len` bytes long.
    ///
    /// # Panics
    /// `len` is more than the longest.
    #[inline]
    pub fn write(&mut self, number: u64, version: u64, len: usize) -> &[u8] {
        let head = Self::head(number, version as u32);
        let noisy = self.noisy(len);
        let value = &mut self.value[..len];
        if len < HEAD {
            value.copy_from_slice(&head[..len]);
            return value;
        }
        value[..HEAD].copy_from_slice(&head);
        let place = Self::place(&head, len);
        value[HEAD..noisy].copy_from_slice(&self.noise[place..place + noisy - HEAD]);
        value[noisy..].fill(FILLER);
        value
    }

    /// Returns true if a value is one that [`Values::write`] makes for this key, in any version.
    #[must_use]
    pub fn check(&self, number: u64, value: &[u8]) -> bool {
        let number_bytes = number.wrapping_mul(SCRAMBLE_NUMBER).to_le_bytes();
        if value.len() < HEAD {
            let known = value.len().min(number_bytes.len());
            return value[..known] == number_bytes[..known];
        }
        let (head, _) = value.split_first_chunk::<HEAD>().expect("it is at least as long as the head");
        let noisy = self.noisy(value.len());
        let place = Self::place(head, value.len());
        let Some(noise) = self.noise.get(place..place + noisy - HEAD) else { return false };
        head[..8] == number_bytes
            && value[HEAD..noisy] == *noise
            && value[noisy..].iter().all(|b| *b == FILLER)
    }

    /// The number of the key that a value was written for; `None` for a value shorter than its head.
    #[must_use]
    pub fn number_of(value: &[u8]) -> Option<u64> {
        let head = value.first_chunk::<HEAD>()?;
        let scrambled = u64::from_le_bytes(*head.first_chunk().expect("it is longer than a number"));
        Some(scrambled.wrapping_mul(UNSCRAMBLE_NUMBER))
    }

    /// Bytes of head and noise of a value.
    #[inline]
    fn noisy(&self, len: usize) -> usize {
        let share = (len as f64 * self.entropy).round() as usize;
        // Without a run no bytes are needed for one.
        let noisy = if share >= len { len } else { share.saturating_sub(RUN_COST) };
        noisy.max(HEAD).min(len)
    }

    #[inline]
    fn head(number: u64, version: u32) -> [u8; HEAD] {
        let number = number.wrapping_mul(SCRAMBLE_NUMBER);
        // Most values have the same few versions: mixed with the number, those are noise, too.
        let version = version.wrapping_mul(SCRAMBLE_VERSION) ^ (number >> 29) as u32;
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&number.to_le_bytes());
        head[8..].copy_from_slice(&version.to_le_bytes());
        head
    }

    /// Where the window of a value begins.
    #[inline]
    fn place(head: &[u8; HEAD], len: usize) -> usize {
        let (number, version) = head.split_at(8);
        let number = u64::from_le_bytes(number.try_into().expect("8 bytes"));
        let version = u32::from_le_bytes(version.try_into().expect("4 bytes"));
        let mixed = (number ^ (u64::from(version) << 17) ^ len as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mixed >> 32) as usize & (PLACES - 1)
    }
}

/// The inverse of an odd number modulo 2^64, by Newton's method: each step doubles the bits that are right.
const fn inverse(odd: u64) -> u64 {
    let mut guess = odd;
    let mut step = 0;
    while step < 6 {
        guess = guess.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(guess)));
        step += 1;
    }
    guess
}
