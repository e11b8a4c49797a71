//! Crash images: every content that a loss of power may leave.

use terrane_base::Rng;

/// All contents that a region may have after a loss of power at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashImages {
    /// The words that are durable for certain; where there is a choice, the oldest one.
    base: Vec<u64>,
    /// Words with several possible contents, by their index: the durable one first, then those of later
    /// stores.
    choices: Vec<(usize, Vec<u64>)>,
}

impl CrashImages {
    pub(super) fn new(base: Vec<u64>, choices: Vec<(usize, Vec<u64>)>) -> Self {
        debug_assert!(choices.iter().all(|(_, words)| words.len() > 1), "a choice has two words at least");
        CrashImages { base, choices }
    }

    /// Number of images; `u64::MAX` if there are more.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.choices.iter().fold(1, |count: u64, (_, words)| count.saturating_mul(words.len() as u64))
    }

    /// Image number `number` below [`CrashImages::count`]: 0 is the one that has nothing that may be lost,
    /// the last one, unless there are too many to count, has all of it.
    #[must_use]
    pub fn image(&self, number: u64) -> Vec<u8> {
        let mut rest = number;
        self.built(|words| {
            let len = words.len() as u64;
            let chosen = rest % len;
            rest /= len;
            chosen as usize
        })
    }

    /// The image with everything that was stored.
    #[must_use]
    pub fn newest(&self) -> Vec<u8> {
        self.built(|words| words.len() - 1)
    }

    /// One of the images, each word drawn on its own.
    #[must_use]
    pub fn sample(&self, rng: &mut Rng) -> Vec<u8> {
        self.built(|words| rng.index(words.len()))
    }

    /// Calls `check` with every image if there are at most `limit` of them; else with the oldest one, the
    /// newest one and samples, `limit` in all.
    pub fn each(&self, limit: u64, rng: &mut Rng, mut check: impl FnMut(Vec<u8>)) {
        if self.count() <= limit {
            (0..self.count()).for_each(|number| check(self.image(number)));
            return;
        }
        check(self.image(0));
        check(self.newest());
        (2..limit).for_each(|_| check(self.sample(rng)));
    }

    fn built(&self, mut choose: impl FnMut(&[u64]) -> usize) -> Vec<u8> {
        let mut words = self.base.clone();
        for (index, candidates) in &self.choices {
            words[*index] = candidates[choose(candidates)];
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}
