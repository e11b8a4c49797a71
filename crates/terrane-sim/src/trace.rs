//! Hashes of what happened: of bytes, and of a whole run in order.

use terrane_base::rng::mix;

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
