//! Random numbers for workloads: wyrand (Wang Yi, 2019), one 64-bit state, one wide multiplication a number.
//!
//! Not for anything but workloads. It passes BigCrush and PractRand; its period is 2^64.

const STEP: u64 = 0xa076_1d64_78bd_642f;
const TWIST: u64 = 0xe703_7ed1_a0b4_28db;

/// A seeded generator. The same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with its own sequence for each seed; neighbouring seeds are unrelated.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // The state runs through its period by equal steps, so the start is spread over it.
        Random(mix(mix(seed ^ TWIST, STEP), TWIST))
    }

    /// The next number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0, self.0 ^ TWIST)
    }

    /// A number below `bound`, each alike; 0 if `bound` is 0.
    ///
    /// The high half of a product, without the correction that would make it exact: the bias is `bound` /
    /// 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 to 1, 1 excluded, of 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// Both halves of the product of two numbers, folded.
#[inline]
fn mix(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ ((product >> 64) as u64)
}
