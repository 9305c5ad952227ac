//! Whether popularity follows Zipf's law, and with which exponent.
//!
//! By Zipf's law the number of keys that expect more than x requests is proportional to
//! x^-a, a = 1/theta. Requests of a key are then a Poisson number with such a mean, so that a key
//! with at least m requests has c of them with probability
//! a Γ(c - a) Γ(m) / (Γ(c + 1) Γ(m - a)). The exponent maximises the likelihood of the keys'
//! requests from m on; m is where the Kolmogorov-Smirnov distance is least (A. Clauset et al., SIAM
//! Review 51(4), 2009). Unlike a fit to ranks this needs no order of keys, which chance distorts,
//! and a sample of keys will do.

use serde::Serialize;

/// Below so many keys nothing is fitted.
const FEWEST_KEYS: u64 = 100;
/// The most requests of a key are at least so many times the fewest ones: a power law over less
/// than a decade cannot be told from other laws.
const LEAST_SPAN: f64 = 10.0;
/// A distance that is small in practice, however many keys prove that it is not zero.
const SMALL_DISTANCE: f64 = 0.03;
/// Quantile of the Kolmogorov distribution at 1 %.
const KOLMOGOROV: f64 = 1.63;
const LEAST_THETA: f64 = 0.15;
const MOST_THETA: f64 = 3.0;

/// Zipf's law as it fits best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ZipfFit {
    /// The exponent that is most likely, with the interval of 95 % by the likelihood ratio.
    pub theta: f64,
    pub theta_low: f64,
    pub theta_high: f64,
    /// The fit is to the keys with at least so many requests.
    pub from_requests: u64,
    pub keys: u64,
    /// Kolmogorov-Smirnov distance of their requests from the law.
    pub distance: f64,
    /// Whether the distance is what chance gives, or small, over a decade of requests.
    pub is_zipf: bool,
}

/// Fits to `(requests, keys with so many)`, rising. `None` where there are too few keys.
pub(super) fn fit(spectrum: &[(u64, u64)]) -> Option<ZipfFit> {
    let most = spectrum.last()?.0;
    let mut best: Option<ZipfFit> = None;
    let mut from = 2;
    while from <= most {
        let tail = &spectrum[spectrum.partition_point(|(requests, _)| *requests < from)..];
        let keys: u64 = tail.iter().map(|(_, keys)| keys).sum();
        if keys < FEWEST_KEYS {
            break;
        }
        let spans = most as f64 / from as f64 >= LEAST_SPAN;
        let fitted = fit_tail(tail, from, keys, spans);
        // Any fit over a decade is better than one over less.
        let better = best.is_none_or(|best| spans && fitted.distance < best.distance);
        if better {
            best = Some(fitted);
        }
        from += (from / 4).max(1);
    }
    best
}

fn fit_tail(tail: &[(u64, u64)], from: u64, keys: u64, spans: bool) -> ZipfFit {
    // The law needs a < m.
    let least = LEAST_THETA.max(1.0 / (from as f64 - 0.1));
    let likelihood = |theta: f64| log_likelihood(tail, from, keys, theta);
    let theta = maximum(least, MOST_THETA, likelihood);
    let bound = likelihood(theta) - 1.92;
    let edge = |mut outside: f64| {
        if likelihood(outside) >= bound {
            return outside;
        }
        let mut inside = theta;
        for _ in 0..40 {
            let middle = (inside + outside) / 2.0;
            if likelihood(middle) >= bound { inside = middle } else { outside = middle }
        }
        inside
    };
    let distance = distance(tail, from, keys, theta);
    let chance = KOLMOGOROV / (keys as f64).sqrt();
    let inner = theta > least * 1.01 && theta < MOST_THETA * 0.99;
    ZipfFit {
        theta,
        theta_low: edge(least),
        theta_high: edge(MOST_THETA),
        from_requests: from,
        keys,
        distance,
        is_zipf: spans && inner && distance <= chance.max(SMALL_DISTANCE),
    }
}

fn log_likelihood(tail: &[(u64, u64)], from: u64, keys: u64, theta: f64) -> f64 {
    let (a, m) = (1.0 / theta, from as f64);
    let sum: f64 = tail
        .iter()
        .map(|(requests, keys)| {
            let c = *requests as f64;
            *keys as f64 * (ln_gamma(c - a) - ln_gamma(c + 1.0))
        })
        .sum();
    keys as f64 * (a.ln() + ln_gamma(m) - ln_gamma(m - a)) + sum
}

fn distance(tail: &[(u64, u64)], from: u64, keys: u64, theta: f64) -> f64 {
    let (a, m) = (1.0 / theta, from as f64);
    let constant = ln_gamma(m) - ln_gamma(m - a);
    // The share of the keys with at least so many requests.
    let survivors = |c: f64| (constant + ln_gamma(c - a) - ln_gamma(c)).exp();
    let (mut left, mut most) = (keys, 0.0f64);
    for (requests, with) in tail {
        let c = *requests as f64;
        most = most.max((left as f64 / keys as f64 - survivors(c)).abs());
        left -= with;
        most = most.max((left as f64 / keys as f64 - survivors(c + 1.0)).abs());
    }
    most
}

/// Where a function with one maximum has it: the golden section.
pub(super) fn maximum(mut low: f64, mut high: f64, of: impl Fn(f64) -> f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let (mut a, mut b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut at_a, mut at_b) = (of(a), of(b));
    for _ in 0..40 {
        if at_a > at_b {
            (high, b, at_b) = (b, a, at_a);
            a = high - GOLDEN * (high - low);
            at_a = of(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + GOLDEN * (high - low);
            at_b = of(b);
        }
    }
    (low + high) / 2.0
}

/// The logarithm of Γ for x above 0, by Stirling's series from 8 on.
fn ln_gamma(mut x: f64) -> f64 {
    let mut product = 1.0;
    while x < 8.0 {
        product *= x;
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series = (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0))) / x;
    (x - 0.5) * x.ln() - x + 0.918_938_533_204_672_8 + series - f64::ln(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_is_that_of_the_tables() {
        for (x, expected) in [(1.0, 0.0), (2.0, 0.0), (0.5, 0.572_364_943), (10.0, 12.801_827_480)]
        {
            assert!((ln_gamma(x) - expected).abs() < 1e-8, "{x}");
        }
    }
}
