//! The pseudo-random generator of tests, benchmarks and tools: SplitMix64 (Steele, Lea, Flood: Fast
//! splittable pseudorandom number generators, OOPSLA 2014).
//!
//! A seed gives the same numbers in every run and on every machine: saved scripts and corpora depend on that.
//! The engine itself draws numbers through the door `env::Random`. `xtask` compiles this file, not the crate:
//! it must work where the crates do not compile.

/// The state grows by this with each number.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator whose numbers depend on its seed alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(u64);

impl Rng {
    /// The generator of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// Generator number `part` of `seed`: what one part of a test draws does not move what another one draws.
    #[must_use]
    pub fn part(seed: u64, part: u64) -> Self {
        Rng(mix(seed ^ mix(part.wrapping_add(0x5851_f42d_4c95_7f2d))))
    }

    /// A generator that depends on the state of this one and leaves that as it is.
    #[must_use]
    pub fn fork(&self) -> Self {
        Rng(mix(self.0 ^ 0x6a09_e667_f3bc_c908))
    }

    /// A number, each of `u64` as likely as any other.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `bound`, which is at least 1. Small ones are more likely by `bound` / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// An index into something of `len` items, which is at least 1.
    #[inline]
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True once in `count` draws, on average.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// One of `items`, which are not empty.
    pub fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.index(items.len())]
    }

    /// A number below `bound`, small ones more likely: each halving of the bound as likely as the next.
    pub fn skewed(&mut self, bound: u64) -> u64 {
        let bits = 64 - bound.max(1).leading_zeros();
        let shift = self.below(u64::from(bits)) as u32;
        self.below((bound >> shift).max(1))
    }

    /// Puts `items` into any order (Fisher and Yates, 1938).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }
}

/// Mixes all bits of a number into all others; each result has one origin.
#[inline]
#[must_use]
pub fn mix(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the authors' program for seed 1234567: saved scripts mean the same by them.
    #[test]
    fn the_numbers_of_a_seed_never_change() {
        let mut rng = Rng::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| rng.next_u64()), expected);
    }

    #[test]
    fn parts_and_forks_draw_other_numbers() {
        let mut rng = Rng::new(7);
        let before = rng.clone();
        let mut fork = rng.fork();
        assert_eq!(rng, before, "a fork moves nothing");
        let mut firsts: Vec<u64> = (0..4).map(|part| Rng::part(7, part).next_u64()).collect();
        firsts.extend([rng.next_u64(), fork.next_u64()]);
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), 6);
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        let mut rng = Rng::new(3);
        for bound in 1..200 {
            assert!(rng.below(bound) < bound);
            assert!(rng.skewed(bound) < bound);
            assert!(rng.index(bound as usize) < bound as usize);
        }
        let mut items: Vec<u32> = (0..100).collect();
        rng.shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert!(items.iter().copied().eq(0..100), "each item is still there once");
    }
}
