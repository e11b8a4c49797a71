//! Numbers drawn from a seed, and the mixing of numbers into a hash.

/// A stream of numbers: SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct Numbers(u64);

impl Numbers {
    /// The stream of `seed`.
    #[must_use]
    pub(crate) fn new(seed: u64) -> Self {
        Numbers(seed)
    }

    /// The stream number `part` of `seed`: what one part of a world draws does not move what another one
    /// draws.
    #[must_use]
    pub(crate) fn part(seed: u64, part: u64) -> Self {
        Numbers(mix(seed ^ mix(part.wrapping_add(0x5851_f42d_4c95_7f2d))))
    }

    /// A stream that depends on where this one stands and does not move it.
    #[must_use]
    pub(crate) fn aside(&self) -> Self {
        Numbers(mix(self.0 ^ 0x6a09_e667_f3bc_c908))
    }

    /// A number uniform over all of `u64`.
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which is at least 1.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// True once in `count` draws.
    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// One of `items`, which are not empty.
    pub(crate) fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// A number below `bound`, small ones more likely: each halving of the bound as likely as the next.
    pub(crate) fn skewed(&mut self, bound: u64) -> u64 {
        let bits = 64 - bound.max(1).leading_zeros();
        let shift = self.below(u64::from(bits)) as u32;
        self.below((bound >> shift).max(1))
    }
}

/// Mixes all bits of a number into all others.
#[must_use]
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A hash of everything that happened, in order: 128 bits in two lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    lanes: [u64; 2],
}

impl Default for Trace {
    fn default() -> Self {
        Trace { lanes: [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344] }
    }
}

impl Trace {
    /// Takes in one number.
    pub(crate) fn note(&mut self, number: u64) {
        self.lanes[0] = mix(self.lanes[0] ^ number);
        self.lanes[1] = mix(self.lanes[1].rotate_left(17).wrapping_add(number));
    }

    /// Takes in bytes.
    pub(crate) fn note_bytes(&mut self, bytes: &[u8]) {
        self.note(hash(bytes));
    }

    /// The hash so far.
    #[must_use]
    pub fn value(&self) -> u128 {
        u128::from(self.lanes[0]) << 64 | u128::from(self.lanes[1])
    }
}

/// A hash of bytes.
#[must_use]
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}
