//! Choices by range of the key space: hot ranges, and the model of key ranges of db_bench's mixgraph.

use super::random::Random;

/// A share of operations goes to a share of the keys, which lies in [`HotRanges::COUNT`] equal ranges, evenly
/// spaced.
///
/// Inside the hot keys, and inside the cold ones, each key is alike (as YCSB's hotspot distribution, whose
/// hot keys are one range). Keys inserted later are cold.
#[derive(Clone, Debug)]
pub struct HotRanges {
    /// Keys from the start of one range to the start of the next.
    stride: u64,
    /// Hot keys at the start of each stride.
    hot: u64,
    ranges: u64,
    share: f64,
}

impl HotRanges {
    /// How many ranges; fewer if there are fewer hot keys.
    pub const COUNT: u64 = 16;

    /// `operations` of all operations on `keys` of the `count` keys; both shares above 0, at most 1.
    #[must_use]
    pub fn new(count: u64, keys: f64, operations: f64) -> Self {
        let hot = ((count as f64 * keys).round() as u64).clamp(1, count.max(1));
        let ranges = Self::COUNT.min(hot);
        HotRanges { stride: (count / ranges).max(1), hot: (hot / ranges).max(1), ranges, share: operations }
    }

    /// The next number below `count`, which is at least the count given at first.
    #[inline]
    pub fn next(&self, count: u64, random: &mut Random) -> u64 {
        let cold_each = self.stride - self.hot;
        let cold = count - self.hot * self.ranges;
        if cold == 0 || random.unit() < self.share {
            let place = random.below(self.hot * self.ranges);
            return place / self.hot * self.stride + place % self.hot;
        }
        let place = random.below(cold);
        if place < cold_each * self.ranges {
            place / cold_each * self.stride + self.hot + place % cold_each
        } else {
            // Behind the last stride: what the division left over, and what was inserted since.
            place + self.hot * self.ranges
        }
    }

    /// Returns true if a number is one of the hot keys.
    #[must_use]
    pub fn is_hot(&self, number: u64) -> bool {
        number < self.stride * self.ranges && number % self.stride < self.hot
    }
}

/// Key ranges as db_bench's mixgraph has them (`prefix_dist` and `all_dist` of Cao et al., FAST 2020).
///
/// * Thirty ranges of equal size; the one of rank i is drawn with a probability in proportion to
///   a e^(b i) + c e^(d i), and the ranks are shuffled over the key space.
/// * In a range, ranks of keys follow the power law with the distribution function a r^b, and are scattered
///   by a hash.
///
/// Unlike db_bench, which takes one random number for everything, range, key, value size and scan length are
/// drawn independently of one another; and the shuffle and the hash are of our own making.
#[derive(Clone, Debug)]
pub struct KeyRanges {
    /// Upper ends of the ranges' shares of the numbers below 2^64, in the order of the key space.
    ends: Vec<u64>,
    size: u64,
}

impl KeyRanges {
    const COUNT: u64 = 30;
    /// a, b, c, d of the access probability of ranges (`keyrange_dist_*`).
    const RANGE: [f64; 4] = [14.18, -2.917, 0.0164, -0.08082];
    /// a, b of the power law of keys (`key_dist_*`).
    const KEY: [f64; 2] = [0.002_312, 0.3467];

    /// Ranges over `count` keys, at least 1.
    #[must_use]
    pub fn new(count: u64) -> Self {
        let ranges = Self::COUNT.min(count).max(1);
        let [a, b, c, d] = Self::RANGE;
        let mut weights: Vec<f64> =
            (1..=ranges).map(|rank| a * (b * rank as f64).exp() + c * (d * rank as f64).exp()).collect();
        // All threads and repetitions must agree on where the hot ranges are: a fixed seed.
        let mut random = Random::new(ranges);
        for place in (1..weights.len()).rev() {
            weights.swap(place, random.below(place as u64 + 1) as usize);
        }
        let sum: f64 = weights.iter().sum();
        let mut so_far = 0.0;
        let ends = weights
            .iter()
            .map(|weight| {
                so_far += weight / sum;
                (so_far * 2f64.powi(64)) as u64
            })
            .collect();
        KeyRanges { ends, size: (count / ranges).max(1) }
    }

    /// The next number.
    #[inline]
    pub fn next(&self, random: &mut Random) -> u64 {
        let draw = random.next_u64();
        let range = self.ends.partition_point(|end| *end <= draw).min(self.ends.len() - 1) as u64;
        let [a, b] = Self::KEY;
        let rank = (random.unit() / a).powf(1.0 / b).ceil() as u64;
        range * self.size + super::permutation::scatter(rank) % self.size
    }

    /// The share of operations on each range, in the order of the key space.
    #[must_use]
    pub fn shares(&self) -> Vec<f64> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| (end - start) as f64 / 2f64.powi(64)).collect()
    }
}
