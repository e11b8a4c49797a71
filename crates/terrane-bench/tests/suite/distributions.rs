//! Frequencies of the generators against theory, with fixed seeds.
#![allow(clippy::disallowed_methods, clippy::type_complexity, reason = "a test, on files of its own")]

use terrane_bench::generate::distribution::{Chooser, Part};
use terrane_bench::generate::permutation::{Permutation, fnv, scatter};
use terrane_bench::generate::random::Random;
use terrane_bench::generate::ranges::{HotRanges, KeyRanges};
use terrane_bench::generate::sizes::{Sizes, pareto_above};
use terrane_bench::generate::space::KeySpace;
use terrane_bench::generate::zipfian::Zipfian;
use terrane_bench::plan::{Distribution, ValueSize};

const DRAWS: u64 = 2_000_000;
const ALONE: Part = Part { thread: 0, threads: 1, inserts: 0 };

fn zeta(items: u64, theta: f64) -> f64 {
    (1..=items).map(|k| (k as f64).powf(-theta)).sum()
}

/// The bucket of a rank: each of the first eight has its own, then one from one power of two to the next.
fn bucket(rank: u64) -> usize {
    (if rank < 8 { rank } else { 5 + u64::from(rank.ilog2()) }) as usize
}

/// The sum of `weights` in each bucket of so many ranks.
fn by_bucket(items: u64, weights: impl Iterator<Item = (u64, f64)>) -> Vec<f64> {
    let mut sums = vec![0.0; bucket(items - 1) + 1];
    for (rank, weight) in weights {
        sums[bucket(rank)] += weight;
    }
    sums
}

/// Draws by bucket. They take longest: draw once for all theories.
fn draws(items: u64, theta: f64) -> Vec<f64> {
    let law = Zipfian::new(items, theta);
    let mut random = Random::new(11);
    by_bucket(items, (0..DRAWS).map(|_| (law.next(&mut random), 1.0)))
}

/// Draws by bucket, with what theory expects there.
fn beside(seen: &[f64], items: u64, theory: f64) -> Vec<(f64, f64)> {
    let weights: Vec<f64> = (1..=items).map(|rank| (rank as f64).powf(-theory)).collect();
    let scale = DRAWS as f64 / weights.iter().sum::<f64>();
    let expected = by_bucket(items, (0..items).zip(weights.into_iter().map(|weight| weight * scale)));
    seen.iter().copied().zip(expected).collect()
}

/// Chi-square of draws against a theory, by degree of freedom.
fn chi_square(seen: &[f64], items: u64, theory: f64) -> f64 {
    let parts = beside(seen, items, theory);
    let sum: f64 = parts.iter().map(|(seen, expected)| (seen - expected).powi(2) / expected).sum();
    sum / (parts.len() - 1) as f64
}

#[test]
fn zipfian_from_1_up_is_exact() {
    for items in [1000, 1_000_000] {
        for theta in [1.0, 1.01, 1.2, 2.0] {
            let seen = draws(items, theta);
            let own = chi_square(&seen, items, theta);
            // By degree of freedom it is about 1; 3 is beyond one in a million for twelve or more.
            assert!(own < 3.0, "theta {theta} over {items}: {own}");
            for other in [theta - 0.05, theta + 0.05] {
                let off = chi_square(&seen, items, other);
                assert!(off > 100.0, "theta {theta} passes for {other}: {off}");
            }
        }
    }
}

/// The largest share by which a bucket with at least 1 % of the draws is off.
fn worst(parts: &[(f64, f64)]) -> f64 {
    let enough = DRAWS as f64 / 100.0;
    let of_weight = parts.iter().filter(|(_, expected)| *expected >= enough);
    of_weight.map(|(seen, expected)| (seen / expected - 1.0).abs()).fold(0.0, f64::max)
}

#[test]
fn zipfian_below_1_is_as_near_as_its_method() {
    for items in [1000, 1_000_000] {
        for theta in [0.5, 0.9, 0.99] {
            // What Gray's method is off by (at the third rank most) is a property of YCSB, too.
            let drawn = draws(items, theta);
            let own = beside(&drawn, items, theta);
            for (seen, expected) in &own[..2] {
                assert!((seen - expected).abs() < 5.0 * expected.sqrt(), "{seen} for {expected}");
            }
            for other in [theta - 0.05, theta + 0.05] {
                let (seen, expected) = beside(&drawn, items, other)[0];
                assert!((seen - expected).abs() > 10.0 * expected.sqrt(), "{theta} passes for {other}");
            }
            let worst = worst(&own);
            assert!(worst < 0.2, "theta {theta} over {items}: {worst}");
        }
    }
}

/// The share of ranks below `rank` by the formula of Gray et al., with a summed zeta.
fn gray_below(rank: u64, items: u64, theta: f64, sum: f64) -> f64 {
    let two = 1.0 + 0.5f64.powf(theta);
    match rank {
        0 => 0.0,
        1 => 1.0 / sum,
        _ if rank == items => 1.0,
        _ => {
            let eta = (1.0 - (2.0 / items as f64).powf(1.0 - theta)) / (1.0 - two / sum);
            let unit = ((rank as f64 / items as f64).powf(1.0 - theta) - 1.0 + eta) / eta;
            unit.max(two / sum)
        }
    }
}

#[test]
fn zipfian_below_1_is_exactly_its_method() {
    for items in [1000, 1_000_000] {
        for theta in [0.5, 0.99] {
            let seen = draws(items, theta);
            let chi = |theory: f64| {
                let sum = zeta(items, theory);
                let ends = [1, 2, 3, 4, 5, 6, 7, 8].into_iter().chain((4..).map(|bit| 1 << bit));
                let ends = ends.map(|end: u64| end.min(items));
                let (mut below, mut chi) = (0.0, 0.0);
                for (seen, end) in seen.iter().zip(ends) {
                    let to_here = gray_below(end, items, theory, sum);
                    let expected = DRAWS as f64 * (to_here - below);
                    below = to_here;
                    chi += (seen - expected).powi(2) / expected;
                }
                assert!((below - 1.0).abs() < 1e-9, "the buckets cover all ranks: {below}");
                chi / (seen.len() - 1) as f64
            };
            let (own, less, more) = (chi(theta), chi(theta - 0.05), chi((theta + 0.05).min(0.999)));
            println!("{items} {theta}: {own:.2}, less {less:.0}, more {more:.0}");
            assert!(own < 3.0 && less > 100.0 && more > 10.0, "{theta}: {own} {less} {more}");
        }
    }
}

#[test]
fn the_mass_of_zipfian_099_is_where_theory_puts_it() {
    const ITEMS: u64 = 1_000_000;
    /// How far the distribution function of the draws is from the theory's at worst (Kolmogorov and Smirnov).
    fn distance(drawn: &[f64], theory: f64) -> f64 {
        let (mut seen_so_far, mut expected_so_far, mut worst) = (0.0, 0.0, 0.0f64);
        for (seen, expected) in beside(drawn, ITEMS, theory) {
            seen_so_far += seen / DRAWS as f64;
            expected_so_far += expected / DRAWS as f64;
            worst = worst.max((seen_so_far - expected_so_far).abs());
        }
        worst
    }
    let drawn = draws(ITEMS, 0.99);
    let own = distance(&drawn, 0.99);
    let (less, more) = (distance(&drawn, 0.94), distance(&drawn, 1.04));
    println!("distance to 0.99: {own:.4}, to 0.94: {less:.4}, to 1.04: {more:.4}");
    assert!(own < 0.012, "{own}");
    assert!(less > 0.04 && more > 0.04, "{less} {more}");
}

#[test]
fn an_extended_distribution_equals_a_new_one_of_that_size() {
    for theta in [0.5, 0.99, 1.0, 1.2] {
        let mut grown = Zipfian::new(10, theta);
        for items in [1, 2, 3, 63, 64, 65, 1000, 123_456] {
            grown.resize(items);
            let made = Zipfian::new(items, theta);
            let (mut left, mut right) = (Random::new(5), Random::new(5));
            for _ in 0..2000 {
                let rank = grown.next(&mut left);
                assert_eq!(rank, made.next(&mut right));
                assert!(rank < items, "rank {rank} of {items}");
            }
        }
    }
}

#[test]
fn ten_billion_ranks_have_the_zeta_that_ycsb_notes() {
    // The first rank's frequency is 1 / zeta: YCSB notes 26.46902820178302 for its ten billion.
    let law = Zipfian::new(10_000_000_000, 0.99);
    let mut random = Random::new(3);
    let mut first = 0.0;
    for _ in 0..DRAWS {
        first += f64::from(u8::from(law.next(&mut random) == 0));
    }
    let expected = DRAWS as f64 / 26.469_028_201_783_02;
    assert!((first - expected).abs() < 4.0 * expected.sqrt(), "{first} for {expected}");
}

#[test]
fn the_hash_is_fnv_1a() {
    // The published FNV-1a of eight zero bytes, and the sign taken off as `Math.abs` does.
    assert_eq!(fnv(0), 0xa8c7_f832_281a_39c5u64.wrapping_neg());
    assert_eq!(fnv(1), {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for byte in [1u8, 0, 0, 0, 0, 0, 0, 0] {
            hash = (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
        }
        (hash as i64).unsigned_abs()
    });
}

fn counts(distribution: Distribution, keys: u64, draws: u64) -> Vec<u64> {
    let space = KeySpace::new(keys);
    let mut chooser = Chooser::new(distribution, &space, ALONE).expect("a sound case");
    let mut random = Random::new(17);
    let mut counts = vec![0; keys as usize];
    (0..draws).for_each(|_| counts[chooser.next(&space, &mut random) as usize] += 1);
    counts
}

#[test]
fn scrambled_zipfian_is_hot_and_spread() {
    const KEYS: u64 = 10_000;
    let counts = counts(Distribution::Zipfian(0.99), KEYS, DRAWS);
    // The hottest key is that of rank 0, with its share and what falls on it by chance.
    let hottest = (0..KEYS).max_by_key(|key| counts[*key as usize]).expect("a sound case");
    assert_eq!(hottest, fnv(0) % KEYS);
    let share = counts[hottest as usize] as f64 / DRAWS as f64;
    assert!((share - 1.0 / 26.469).abs() < 0.002, "{share}");
    // The ten hottest keys do not lie together, and each tenth of the key space gets its part.
    let mut by_heat: Vec<usize> = (0..KEYS as usize).collect();
    by_heat.sort_by_key(|key| std::cmp::Reverse(counts[*key]));
    let tenths: std::collections::BTreeSet<usize> = by_heat[..20].iter().map(|key| key / 1000).collect();
    assert!(tenths.len() >= 6, "{:?}", &by_heat[..20]);
    for tenth in counts.chunks(1000) {
        let share = tenth.iter().sum::<u64>() as f64 / DRAWS as f64;
        assert!((0.05..0.25).contains(&share), "{share}");
    }
}

#[test]
fn uniform_is_uniform() {
    let counts = counts(Distribution::Uniform, 1000, DRAWS);
    let expected = DRAWS as f64 / 1000.0;
    let chi: f64 = counts.iter().map(|seen| (*seen as f64 - expected).powi(2) / expected).sum();
    // 999 degrees of freedom: mean 999, standard deviation 45.
    assert!((chi - 999.0).abs() < 5.0 * 45.0, "{chi}");
}

#[test]
fn latest_follows_the_newest_key() {
    const START: u64 = 1000;
    let space = KeySpace::new(START);
    let mut chooser = Chooser::new(Distribution::Latest, &space, ALONE).expect("a sound case");
    let mut random = Random::new(4);
    for grown in [0u64, 1, 5000] {
        (0..grown).for_each(|_| space.acknowledge(space.claim_insert()));
        let count = space.count();
        let newest = (0..100_000).filter(|_| chooser.next(&space, &mut random) == count - 1).count();
        let expected = 100_000.0 / zeta(count, 0.99);
        assert!((newest as f64 - expected).abs() < 5.0 * expected.sqrt(), "{newest} for {expected}");
    }
    assert_eq!(space.count(), START + 5001);
}

#[test]
fn sequential_threads_share_the_keys() {
    let space = KeySpace::new(1003);
    let mut seen = vec![0; 1003];
    for thread in 0..4 {
        let part = Part { thread, threads: 4, inserts: 0 };
        let mut chooser = Chooser::new(Distribution::Sequential, &space, part).expect("a sound case");
        let length = (1003 * (u64::from(thread) + 1) / 4) - 1003 * u64::from(thread) / 4;
        let mut before = None;
        for _ in 0..length {
            let key = chooser.next(&space, &mut Random::new(0));
            assert!(before.is_none_or(|before| key == before + 1));
            before = Some(key);
            seen[key as usize] += 1;
        }
        assert!(chooser.next(&space, &mut Random::new(0)) < before.expect("a sound case"), "it starts over");
    }
    assert!(seen.iter().all(|times| *times == 1));
    // More threads than keys: each still has one.
    let tiny = KeySpace::new(2);
    for thread in 0..5 {
        let part = Part { thread, threads: 5, inserts: 0 };
        let mut chooser = Chooser::new(Distribution::Sequential, &tiny, part).expect("a sound case");
        assert!((0..5).all(|_| chooser.next(&tiny, &mut Random::new(0)) < 2));
    }
}

#[test]
fn hot_ranges_get_their_share() {
    for (count, keys, operations) in [(1000, 0.1, 0.9), (999, 0.2, 0.5), (37, 0.03, 0.7), (10, 1.0, 1.0)] {
        let ranges = HotRanges::new(count, keys, operations);
        let hot = (0..count).filter(|key| ranges.is_hot(*key)).count() as f64;
        assert!((hot - count as f64 * keys).abs() <= 16.0, "{hot} of {count}");
        let counts = counts(Distribution::HotRange(keys, operations), count, 500_000);
        let on_hot: u64 = (0..count).filter(|key| ranges.is_hot(*key)).map(|key| counts[key as usize]).sum();
        assert!((on_hot as f64 / 500_000.0 - operations).abs() < 0.01, "{on_hot}");
        assert!(operations == 1.0 || counts.iter().all(|times| *times > 0), "every key has its turn");
    }
}

#[test]
fn key_ranges_follow_the_model() {
    const KEYS: u64 = 30_000;
    let ranges = KeyRanges::new(KEYS);
    let mut random = Random::new(6);
    let mut seen = [0.0; 30];
    (0..DRAWS).for_each(|_| seen[(ranges.next(&mut random) / 1000) as usize] += 1.0);
    let mut shares = ranges.shares();
    for (seen, share) in seen.iter().zip(&shares) {
        assert!((seen / DRAWS as f64 - share).abs() < 0.002, "{seen} for {share}");
    }
    // The model's own weights, hottest first.
    let mut weights: Vec<f64> = (1..=30)
        .map(|i| 14.18 * (-2.917 * f64::from(i)).exp() + 0.0164 * (-0.08082 * f64::from(i)).exp())
        .collect();
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
    shares.sort_by(|left, right| right.total_cmp(left));
    for (share, weight) in shares.iter().zip(&weights) {
        assert!((share - weight).abs() < 1e-6, "{share} for {weight}");
    }
    assert!(KeyRanges::new(3).next(&mut random) < 3);
}

#[test]
fn bad_parameters_are_refused() {
    let space = KeySpace::new(10);
    let refused = |distribution| {
        let message = Chooser::new(distribution, &space, ALONE).unwrap_err().to_string();
        assert!(!message.is_empty());
    };
    [0.0, -1.0, f64::NAN, f64::INFINITY].into_iter().for_each(|theta| refused(Distribution::Zipfian(theta)));
    [(0.0, 0.5), (1.1, 0.5), (0.5, f64::NAN)]
        .into_iter()
        .for_each(|(k, o)| refused(Distribution::HotRange(k, o)));
    refused(Distribution::Default);
    assert!(Chooser::new(Distribution::Uniform, &KeySpace::new(0), ALONE).is_err());
    assert!(Sizes::new(ValueSize::Uniform(5, 4)).is_err());
    assert!(Sizes::new(ValueSize::Pareto { shape: -0.1, scale: 1.0, max: 10 }).is_err());
}

#[test]
fn pareto_sizes_follow_their_law() {
    let (shape, scale, max) = (0.2615, 25.45, 1024);
    let sizes = Sizes::new(ValueSize::Pareto { shape, scale, max }).expect("a sound case");
    let mut random = Random::new(8);
    let drawn: Vec<usize> = (0..DRAWS).map(|_| sizes.next(&mut random)).collect();
    for bytes in [1, 10, 25, 50, 100, 400] {
        let above = drawn.iter().filter(|size| **size > bytes).count() as f64 / DRAWS as f64;
        let expected = pareto_above(bytes as f64, shape, scale);
        assert!((above - expected).abs() < 0.002, "{above} above {bytes}, not {expected}");
        let other = pareto_above(bytes as f64, shape, scale * 1.1);
        assert!((above - other).abs() > 0.002 || bytes == 1 || bytes == 400, "{above} passes for {other}");
    }
    assert!(drawn.iter().all(|size| (1..=max).contains(size)));
    let mean = drawn.iter().sum::<usize>() as f64 / DRAWS as f64;
    assert!((mean / sizes.mean() - 1.0).abs() < 0.01, "{mean} for {}", sizes.mean());
}

#[test]
fn uniform_sizes_include_both_ends() {
    let sizes = Sizes::new(ValueSize::Uniform(3, 6)).expect("a sound case");
    let mut random = Random::new(8);
    let mut counts = [0; 8];
    (0..40_000).for_each(|_| counts[sizes.next(&mut random)] += 1);
    assert_eq!([counts[0], counts[2], counts[7]], [0; 3]);
    assert!(counts[3..7].iter().all(|times| (9_500..10_500).contains(times)), "{counts:?}");
}

#[test]
fn permutations_hold_every_number_once() {
    for bound in [1, 2, 3, 5, 64, 65, 1000, 100_003] {
        for seed in 0..3 {
            let order = Permutation::new(bound, seed);
            let mut seen = vec![false; bound as usize];
            let numbers: Vec<u64> = (0..bound).map(|place| order.at(place)).collect();
            numbers.iter().for_each(|number| assert!(!std::mem::replace(&mut seen[*number as usize], true)));
            if bound >= 1000 {
                // A random order has one ascent in two, and hardly a neighbour that stays one.
                let ascents = numbers.windows(2).filter(|pair| pair[0] < pair[1]).count() as f64;
                assert!((ascents / bound as f64 - 0.5).abs() < 0.06, "{ascents} of {bound}");
                let together = numbers.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
                assert!(together < 20 + bound as usize / 100, "{together} of {bound}");
            }
        }
    }
    let scattered: std::collections::BTreeSet<u64> = (0..100_000).map(scatter).collect();
    assert_eq!(scattered.len(), 100_000);
    assert!(*scattered.last().expect("a sound case") < 1 << 63);
}
