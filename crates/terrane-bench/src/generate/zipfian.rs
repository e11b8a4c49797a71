//! Ranks by Zipf's law: rank r (from 0) of n has probability (r + 1)^-theta / zeta(n, theta).
//!
//! * Below 1: the method of Gray et al. (SIGMOD 1994) that YCSB uses. The two first ranks are exact; the
//!   others follow the inverse of an integral. With 0.99 over a million the third rank comes up a fifth too
//!   rarely or too often, as it does in YCSB; the distribution function is nowhere off by more than 0.011.
//! * From 1 up, where that method is not defined: rejection-inversion (Hörmann and Derflinger, 1996), exact.
//!
//! zeta is not summed: 64 terms, then the formula of Euler and Maclaurin up to the fifth derivative, good to
//! 1e-12. So ten billion items cost nothing, and a growing number of items one power each time it has grown.

use super::random::Random;

/// Draws ranks.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    method: Method,
}

#[derive(Clone, Debug)]
enum Method {
    Gray(Gray),
    Inversion(Inversion),
}

impl Zipfian {
    /// A law over `items` ranks, at least 1, with the constant `theta`, above 0.
    ///
    /// # Panics
    /// `items` is 0 or `theta` is not a finite number above 0.
    #[must_use]
    pub fn new(items: u64, theta: f64) -> Self {
        assert!(items > 0 && theta.is_finite() && theta > 0.0, "{items} items with theta {theta}");
        let method = if theta < 1.0 {
            Method::Gray(Gray::new(items, theta))
        } else {
            Method::Inversion(Inversion::new(items, theta))
        };
        Zipfian { items, method }
    }

    /// Changes the number of ranks; cheap.
    #[inline]
    pub fn resize(&mut self, items: u64) {
        if items != self.items && items > 0 {
            self.items = items;
            match &mut self.method {
                Method::Gray(gray) => gray.resize(items),
                Method::Inversion(inversion) => inversion.resize(items),
            }
        }
    }

    /// The next rank, below the number of items.
    #[inline]
    pub fn next(&self, random: &mut Random) -> u64 {
        match &self.method {
            Method::Gray(gray) => gray.next(self.items, random),
            Method::Inversion(inversion) => inversion.next(self.items, random),
        }
    }
}

#[derive(Clone, Debug)]
struct Gray {
    theta: f64,
    zeta: Zeta,
    alpha: f64,
    half_to_theta: f64,
    zeta_n: f64,
    eta: f64,
}

impl Gray {
    fn new(items: u64, theta: f64) -> Self {
        let mut gray = Gray {
            theta,
            zeta: Zeta::new(theta),
            alpha: 1.0 / (1.0 - theta),
            half_to_theta: 0.5f64.powf(theta),
            zeta_n: 0.0,
            eta: 0.0,
        };
        gray.resize(items);
        gray
    }

    fn resize(&mut self, items: u64) {
        self.zeta_n = self.zeta.sum(items);
        let zeta_2 = 1.0 + self.half_to_theta;
        // With one or two items the first two ranks take every draw, and eta would be 0 / 0.
        self.eta = if items <= 2 {
            0.0
        } else {
            (1.0 - (2.0 / items as f64).powf(1.0 - self.theta)) / (1.0 - zeta_2 / self.zeta_n)
        };
    }

    #[inline]
    fn next(&self, items: u64, random: &mut Random) -> u64 {
        let unit = random.unit();
        let scaled = unit * self.zeta_n;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + self.half_to_theta {
            return 1.min(items - 1);
        }
        let rank = (items as f64 * (self.eta * unit - self.eta + 1.0).powf(self.alpha)) as u64;
        rank.min(items - 1)
    }
}

/// Partial sums of k^-theta.
#[derive(Clone, Debug)]
struct Zeta {
    theta: f64,
    /// Sum of the terms below [`Zeta::FROM`], and what the formula takes off at its lower end.
    lower: f64,
}

impl Zeta {
    const FROM: u64 = 64;

    fn new(theta: f64) -> Self {
        let head: f64 = (1..Self::FROM).map(|k| (k as f64).powf(-theta)).sum();
        let from = Self::FROM as f64;
        let at_from = from.powf(-theta);
        let lower = head - Self::antiderivative(theta, from, at_from) + at_from;
        Zeta { theta, lower }
    }

    /// The sum for k from 1 to `items`.
    fn sum(&self, items: u64) -> f64 {
        if items <= Self::FROM {
            return (1..=items).map(|k| (k as f64).powf(-self.theta)).sum();
        }
        let x = items as f64;
        let term = x.powf(-self.theta);
        self.lower + Self::antiderivative(self.theta, x, term)
    }

    /// Integral of the terms up to `x`, half the term there (`term` = x^-theta), and the corrections.
    fn antiderivative(theta: f64, x: f64, term: f64) -> f64 {
        let first = -theta * term / x;
        let third = first * (theta + 1.0) * (theta + 2.0) / (x * x);
        x * term / (1.0 - theta) + term / 2.0 + first / 12.0 - third / 720.0
    }
}

#[derive(Clone, Debug)]
struct Inversion {
    theta: f64,
    low: f64,
    high: f64,
    accept: f64,
}

impl Inversion {
    fn new(items: u64, theta: f64) -> Self {
        let mut inversion = Inversion { theta, low: 0.0, high: 0.0, accept: 0.0 };
        inversion.low = inversion.integral(1.5) - 1.0;
        inversion.accept = 2.0 - inversion.inverse(inversion.integral(2.5) - inversion.density(2.0));
        inversion.resize(items);
        inversion
    }

    fn resize(&mut self, items: u64) {
        self.high = self.integral(items as f64 + 0.5);
    }

    #[inline]
    fn next(&self, items: u64, random: &mut Random) -> u64 {
        loop {
            let area = self.high + random.unit() * (self.low - self.high);
            let x = self.inverse(area);
            let rank = ((x + 0.5) as u64).clamp(1, items);
            let at = rank as f64;
            if at - x <= self.accept || area >= self.integral(at + 0.5) - self.density(at) {
                return rank - 1;
            }
        }
    }

    /// x^-theta.
    fn density(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    /// Integral of the density from 1 to `x`: (x^(1 - theta) - 1) / (1 - theta), which is ln x at 1.
    #[inline]
    fn integral(&self, x: f64) -> f64 {
        let power = 1.0 - self.theta;
        let log = x.ln();
        if power == 0.0 { log } else { (power * log).exp_m1() / power }
    }

    #[inline]
    fn inverse(&self, area: f64) -> f64 {
        let power = 1.0 - self.theta;
        if power == 0.0 { area.exp() } else { ((power * area).max(-1.0).ln_1p() / power).exp() }
    }
}
