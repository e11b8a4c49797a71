//! The outcome of a power cut, decided by a seed.

use terrane_base::env::Random;
use terrane_base::rng;

use std::sync::atomic::{AtomicU64, Ordering};

/// The fate of the unsynced writes of one file. Whole modes exist beside the per-sector one, because a long
/// kept prefix or an entirely lost file would be too rare by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nothing reached the device.
    Lost,
    /// Everything reached the device.
    Kept,
    /// Everything up to some offset in the file did.
    Prefix,
    /// Each page and each sector is decided on its own.
    Scattered,
    /// Each page is kept or lost on its own: the outcomes that are counted.
    Pages,
}

/// The fate of one sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Lost,
    Kept,
    /// The first bytes, as many as given, are new.
    Torn(usize),
    /// An earlier unsynced version, by number.
    Older(u64),
}

/// A stream of choices: random numbers of a seed (SplitMix64: Steele, Lea, Flood 2014), or the digits of a
/// number.
#[derive(Debug)]
pub(crate) struct Choices {
    state: AtomicU64,
    is_counted: bool,
}

impl Choices {
    /// The choices of `seed` for the thing numbered `subject`.
    pub(crate) fn new(seed: u64, subject: u64) -> Self {
        let state = AtomicU64::new(seed ^ subject.wrapping_mul(0xd6e8_feb8_6659_fd93));
        let choices = Choices { state, is_counted: false };
        choices.next_u64();
        choices
    }

    /// The digits of `number`, least significant first, each in the base that the caller asks for.
    pub(crate) fn counted(number: u64) -> Self {
        Choices { state: AtomicU64::new(number), is_counted: true }
    }

    pub(super) fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// A number below `bound`, which is at least 1.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        if self.is_counted {
            let number = self.state.load(Ordering::Relaxed);
            self.state.store(number / bound, Ordering::Relaxed);
            return number % bound;
        }
        self.next_u64() % bound
    }

    pub(super) fn mode(&self) -> Mode {
        match self.below(6) {
            0 => Mode::Lost,
            1 => Mode::Kept,
            2 => Mode::Prefix,
            _ => Mode::Scattered,
        }
    }

    pub(super) fn fate(&self, sector_bytes: usize) -> Fate {
        match self.below(8) {
            0..3 => Fate::Lost,
            3..6 => Fate::Kept,
            6 => Fate::Torn(self.below(sector_bytes as u64) as usize),
            _ => Fate::Older(self.next_u64()),
        }
    }
}

impl Random for Choices {
    fn next_u64(&self) -> u64 {
        rng::mix(self.state.fetch_add(rng::STEP, Ordering::Relaxed).wrapping_add(rng::STEP))
    }
}
