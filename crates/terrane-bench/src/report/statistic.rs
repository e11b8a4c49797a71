//! The few statistics of reports: medians, ranges, an interval for a median that assumes no distribution, and
//! stalls.

/// Share of the median below which an interval is a stall.
const STALL: f64 = 0.1;

/// Median, least and greatest of some values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Middle value; the mean of the two middle ones for an even count.
    pub median: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
    /// How many values.
    pub count: usize,
}

impl Spread {
    /// Of these values; those that are not numbers are left out. `None` if nothing is left.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let sorted = sorted(values);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Spread { median: middle(&sorted), min, max, count: sorted.len() })
    }

    /// Range by the median: 0.1 is 10 % between the least and the greatest. `None` for a single value: one
    /// repetition tells nothing about noise.
    #[must_use]
    pub fn relative(&self) -> Option<f64> {
        (self.count > 1 && self.median > 0.0).then(|| (self.max - self.min) / self.median)
    }
}

/// An interval that holds the median of what the values were drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability that the interval holds the median; `None` for fewer than [`PAIRS_MIN`] values, where the
    /// interval is the range of the values and its probability would be too low to judge by.
    pub coverage: Option<f64>,
}

/// From how many values on an interval has a stated coverage.
pub const PAIRS_MIN: usize = 5;

/// Least coverage of an interval that is narrower than the range. Five values reach 93.75 % with their whole
/// range.
const COVERAGE_MIN: f64 = 0.9;

impl Interval {
    /// The narrowest pair of order statistics, symmetric by rank, whose coverage is at least 90 %.
    ///
    /// The `k`-th least and `k`-th greatest of `n` independent values enclose the median with probability
    /// `1 - 2 P(B < k)`, `B` binomial with `n` and 1/2, whatever the distribution is. `None` without values.
    #[must_use]
    pub fn of_median(values: impl IntoIterator<Item = f64>) -> Option<Interval> {
        let sorted = sorted(values);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len();
        if count < PAIRS_MIN {
            return Some(Interval { low, high, coverage: None });
        }
        let mut best = Interval { low, high, coverage: Some(coverage(count, 1)) };
        for rank in 2..=count / 2 {
            let reached = coverage(count, rank);
            if reached < COVERAGE_MIN {
                break;
            }
            best = Interval { low: sorted[rank - 1], high: sorted[count - rank], coverage: Some(reached) };
        }
        Some(best)
    }
}

/// `1 - 2 P(B < rank)`, `B` binomial with `count` and 1/2.
fn coverage(count: usize, rank: usize) -> f64 {
    let mut probability = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for successes in 0..rank {
        below += probability;
        probability *= (count - successes) as f64 / (successes + 1) as f64;
    }
    1.0 - 2.0 * below
}

/// Median; `None` without values.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    Spread::of(values).map(|spread| spread.median)
}

/// Geometric mean of values above zero; others are left out. `None` if nothing is left.
#[must_use]
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> =
        values.into_iter().filter(|value| value.is_finite() && *value > 0.0).map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

/// Starts of the stalled intervals of all repetitions, in order, and the longest run of them: those with less
/// than a tenth of the median of their repetition. `interval` is the length of one; the results are in its
/// unit.
#[must_use]
pub fn stalls(all: &[&[u64]], interval: f64) -> (Vec<f64>, f64) {
    let (mut starts, mut longest) = (Vec::new(), 0_usize);
    for operations in all {
        let Some(middle) = median(operations.iter().map(|count| *count as f64)) else { continue };
        let mut run = 0;
        for (at, count) in operations.iter().enumerate() {
            let stalled = (*count as f64) < middle * STALL;
            run = if stalled { run + 1 } else { 0 };
            longest = longest.max(run);
            if stalled {
                starts.push(at as f64 * interval);
            }
        }
    }
    starts.sort_by(f64::total_cmp);
    (starts, longest as f64 * interval)
}
