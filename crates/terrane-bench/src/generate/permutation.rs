//! Bijections of key numbers: no number is lost, none comes twice.
//!
//! Both are built of steps that can be undone: xor with one's own high bits, and multiplication by an odd
//! number modulo a power of two.

/// Scatters numbers below 2^63 over the numbers below 2^63.
#[inline]
#[must_use]
pub fn scatter(number: u64) -> u64 {
    const MASK: u64 = (1 << 63) - 1;
    let mut x = number & MASK;
    x ^= x >> 32;
    x = x.wrapping_mul(0x6f35_7bd9_1a4c_8e2d) & MASK;
    x ^= x >> 29;
    x = x.wrapping_mul(0x1b87_3593_cc9e_2d51) & MASK;
    x ^ (x >> 32)
}

/// FNV-1a of 64 bits over the eight bytes of a number, low byte first, with the sign taken off as YCSB does.
#[inline]
#[must_use]
pub fn fnv(number: u64) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in number.to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash as i64).unsigned_abs()
}

/// A random order of the numbers below a bound: a function of the seed, without a table.
#[derive(Clone, Debug)]
pub struct Permutation {
    bound: u64,
    mask: u64,
    shift: u32,
    keys: [u64; 3],
}

impl Permutation {
    /// The order of the numbers below `bound` that belongs to `seed`.
    #[must_use]
    pub fn new(bound: u64, seed: u64) -> Self {
        let mut random = super::random::Random::new(seed);
        let bits = (64 - bound.saturating_sub(1).leading_zeros()).max(2);
        let mask = u64::MAX >> (64 - bits);
        Permutation { bound, mask, shift: bits.div_ceil(2), keys: std::array::from_fn(|_| random.next_u64()) }
    }

    /// The number at a place below the bound.
    #[inline]
    #[must_use]
    pub fn at(&self, place: u64) -> u64 {
        debug_assert!(place < self.bound, "place {place} of {}", self.bound);
        // The steps permute the next power of two; a number outside the bound is sent on until it is inside.
        // That walks the cycle of `place`, so no two places meet; it takes fewer than two rounds on average.
        let mut number = place;
        loop {
            number = self.round(number);
            if number < self.bound {
                return number;
            }
        }
    }

    #[inline]
    fn round(&self, mut x: u64) -> u64 {
        for key in self.keys {
            x = x.wrapping_add(key) & self.mask;
            x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ (key << 1)) & self.mask;
            x ^= x >> self.shift;
        }
        x
    }
}
