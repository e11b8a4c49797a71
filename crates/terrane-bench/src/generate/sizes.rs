//! Lengths of values and of scans.

use super::random::Random;
use crate::error::{Error, Result};
use crate::plan::ValueSize;

/// Draws lengths of values, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Sizes(ValueSize);

impl Sizes {
    /// Lengths as `size` says.
    ///
    /// # Errors
    /// `Plan`: bounds the wrong way round, or Pareto parameters that are not a distribution.
    pub fn new(size: ValueSize) -> Result<Self> {
        match size {
            ValueSize::Uniform(least, most) if least > most => {
                Err(Error::plan(format!("value sizes from {least} to {most}: the first must not be greater")))
            }
            ValueSize::Pareto { shape, scale, max }
                if !(shape.is_finite() && shape >= 0.0 && scale.is_finite() && scale > 0.0 && max > 0) =>
            {
                Err(Error::plan(format!(
                    "value sizes by Pareto need shape >= 0, scale > 0 and max > 0, not {shape}, {scale} and {max}"
                )))
            }
            size => Ok(Sizes(size)),
        }
    }

    /// The next length.
    #[inline]
    pub fn next(&self, random: &mut Random) -> usize {
        match self.0 {
            ValueSize::Fixed(bytes) => bytes,
            ValueSize::Uniform(least, most) => least + random.below((most - least) as u64 + 1) as usize,
            ValueSize::Pareto { shape, scale, max } => (pareto(random, shape, scale) as usize).min(max),
        }
    }

    /// The longest that can come.
    #[must_use]
    pub fn longest(&self) -> usize {
        match self.0 {
            ValueSize::Fixed(bytes) => bytes,
            ValueSize::Uniform(_, most) => most,
            ValueSize::Pareto { max, .. } => max,
        }
    }

    /// The expected length.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self.0 {
            ValueSize::Fixed(bytes) => bytes as f64,
            ValueSize::Uniform(least, most) => (least + most) as f64 / 2.0,
            // A length is rounded up, so its mean is the sum over n of the probability of more than n, cut at
            // `max`.
            ValueSize::Pareto { shape, scale, max } => {
                (0..max).map(|bytes| pareto_above(bytes as f64, shape, scale)).sum()
            }
        }
    }
}

/// A number of the generalized Pareto distribution with location 0, rounded up, at least 1.
#[inline]
pub fn pareto(random: &mut Random, shape: f64, scale: f64) -> u64 {
    // `unit` is never 1, so the argument is never 0.
    let above = 1.0 - random.unit();
    let x = if shape == 0.0 { -scale * above.ln() } else { scale * (above.powf(-shape) - 1.0) / shape };
    (x.ceil() as u64).max(1)
}

/// The probability of more than `x`.
#[must_use]
pub fn pareto_above(x: f64, shape: f64, scale: f64) -> f64 {
    if shape == 0.0 { (-x / scale).exp() } else { (1.0 + shape * x / scale).powf(-1.0 / shape) }
}
