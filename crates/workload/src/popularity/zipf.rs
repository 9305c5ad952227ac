//! Zipf's law over a finite number of ranks, drawn exactly.

use crate::random::Draws;

/// The most ranks that can be drawn from.
pub const MOST: u64 = 1_000_000_000_000_000_000;

/// P(rank k) proportional to k^-theta for k in 1 ..= n; ranks are given from 0.
///
/// Drawn by rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate
/// variates from monotone discrete distributions", ACM TOMACS 6(3), 1996. A point under the hat
/// x^-theta is found by inverting its integral H, rounded to the nearest rank k, and kept where it
/// lies in the part of k's column that has the area k^-theta; no table grows with n, no
/// normalising sum is needed, and nothing is approximated. What remains is the arithmetic of f64:
/// the uniform number has 52 bits, so that ranks rarer than 2^-52 are drawn in groups, and the
/// probabilities are true to about nine digits.
///
/// Two departures from the paper, both for speed. The integral is kept without its constant
/// factor and offset, as v = x^(1 - theta): the inverse is then one logarithm and one exponential,
/// and loses no digits where theta is well above 1. And the constant below which a point is kept
/// without evaluating H (the paper's s, computed at k = 2) is tabled for every power of two, where
/// it is larger; the exact test is then left to few draws.
#[derive(Debug, Clone)]
pub struct Zipf {
    n: u64,
    theta: f64,
    integral: Integral,
    /// 1 - theta, and its reciprocal where that is used.
    q: f64,
    inverse_q: f64,
    /// v at the right end of the last column, and the way from there to the left end of the first.
    from: f64,
    way: f64,
    /// By the binary logarithm of k: a point no further left of k than this is kept.
    keep: [f64; 64],
}

/// How v follows from x: an integral of x^-theta, up to a factor and an offset.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Integral {
    /// v = x^q, q times the integral.
    Power,
    /// v = (x^q - 1) / q without loss of digits, for theta near 1.
    NearLogarithm,
    /// v = ln x, for theta 1.
    Logarithm,
}

/// From here on a column exceeds its area by less than f64 can tell apart where it is rounded:
/// the excess is about theta / (8 k), below 2^-29 for every theta that reaches so far.
const ALWAYS_KEPT: i32 = 26;

impl Zipf {
    /// `n`: 1 to [`MOST`] ranks; `theta`: positive and finite. The caller has checked both.
    pub fn new(n: u64, theta: f64) -> Zipf {
        let q = 1.0 - theta;
        let integral = match q.abs() {
            0.0 => Integral::Logarithm,
            near if near < 1e-3 => Integral::NearLogarithm,
            _ => Integral::Power,
        };
        let mut zipf = Zipf {
            n,
            theta,
            integral,
            q,
            inverse_q: 1.0 / q,
            from: 0.0,
            way: 0.0,
            keep: [f64::INFINITY; 64],
        };
        zipf.from = zipf.at(n as f64 + 0.5);
        // The first column is as wide as its area 1 needs.
        zipf.way = zipf.start(1.0) - zipf.from;
        for octave in 1..ALWAYS_KEPT {
            // Beyond 2^20 the difference to 0.5 would drown in the rounding of k.
            let k = 2f64.powi(octave.min(20));
            zipf.keep[octave as usize] = k - zipf.inverse(zipf.start(k)) - 1e-8;
        }
        zipf
    }

    pub fn ranks(&self) -> u64 {
        self.n
    }

    pub fn theta(&self) -> f64 {
        self.theta
    }

    /// v at `x`.
    #[inline(always)]
    fn at(&self, x: f64) -> f64 {
        match self.integral {
            Integral::Power => (self.q * x.ln()).exp(),
            Integral::NearLogarithm => (self.q * x.ln()).exp_m1() / self.q,
            Integral::Logarithm => x.ln(),
        }
    }

    /// The `x` at `v`.
    #[inline(always)]
    fn inverse(&self, v: f64) -> f64 {
        match self.integral {
            Integral::Power => (v.ln() * self.inverse_q).exp(),
            Integral::NearLogarithm => ((self.q * v).ln_1p() / self.q).exp(),
            Integral::Logarithm => v.exp(),
        }
    }

    /// v where the kept part of column `k` begins: its area back from the right end.
    #[inline(always)]
    fn start(&self, k: f64) -> f64 {
        let area = (-self.theta * k.ln()).exp();
        let scale = if self.integral == Integral::Power { self.q } else { 1.0 };
        self.at(k + 0.5) - scale * area
    }

    /// A rank, 0 the most popular.
    #[inline]
    pub fn draw(&self, draws: &mut Draws) -> u64 {
        loop {
            let v = self.from + draws.unit() * self.way;
            let x = self.inverse(v);
            let k = ((x + 0.5) as u64).clamp(1, self.n);
            let left = k as f64 - x;
            if left <= self.keep[k.ilog2() as usize] || self.kept(k as f64, v) {
                return k - 1;
            }
        }
    }

    /// The exact test. x^q falls along x where theta is above 1.
    #[cold]
    fn kept(&self, k: f64, v: f64) -> bool {
        if self.integral == Integral::Power && self.q < 0.0 {
            v <= self.start(k)
        } else {
            v >= self.start(k)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Lane;

    /// The sum of k^-theta for k in 1 ..= n: the first terms one by one, the others by the
    /// Euler-Maclaurin formula.
    pub fn zeta(n: u64, theta: f64) -> f64 {
        let head = n.min(1000);
        let sum: f64 = (1..=head).map(|k| (k as f64).powf(-theta)).sum();
        if head == n {
            return sum;
        }
        let (a, b) = (head as f64, n as f64);
        let h = |x: f64| {
            if theta == 1.0 { x.ln() } else { ((1.0 - theta) * x.ln()).exp_m1() / (1.0 - theta) }
        };
        let p = |x: f64| x.powf(-theta);
        let slope = |x: f64| -theta * x.powf(-theta - 1.0);
        sum + h(b) - h(a) + (p(b) - p(a)) / 2.0 + (slope(b) - slope(a)) / 12.0
    }

    #[test]
    fn zeta_is_the_known_constant() {
        // YCSB's ZETAN for 10^10 items and 0.99; Euler's constant; pi^2 / 6.
        assert!((zeta(10_000_000_000, 0.99) - 26.469_028_201_783_02).abs() < 1e-6);
        let euler = zeta(1_000_000, 1.0) - 1e6f64.ln() - 0.5e-6;
        assert!((euler - 0.577_215_664_9).abs() < 1e-9);
        let basel = std::f64::consts::PI.powi(2) / 6.0;
        assert!((zeta(1_000_000, 2.0) + 1e-6 - basel).abs() < 1e-9);
    }

    /// Chi-square over the first 50 ranks, each its own cell, and octaves beyond. The critical
    /// value is the mean plus five standard deviations: passed by chance but once in 10^5.
    #[test]
    fn frequencies_are_zipf_s() {
        const DRAWS: u64 = 400_000;
        let thetas = [0.01, 0.5, 0.9, 0.99, 0.999_999_999, 1.0, 1.000_01, 1.2, 2.0, 5.0];
        for n in [1, 2, 3, 10, 1000, 1_000_000, 10_000_000_000, MOST] {
            for theta in thetas {
                let mut edges: Vec<u64> = (0..=50.min(n)).collect();
                while edges[edges.len() - 1] < n {
                    edges.push((edges[edges.len() - 1].saturating_mul(2)).min(n));
                }
                let mut seen = vec![0u64; edges.len() - 1];
                let zipf = Zipf::new(n, theta);
                let lane = Lane::new(n, theta.to_bits());
                for i in 0..DRAWS {
                    let rank = zipf.draw(&mut Draws::from(lane.at(i)));
                    assert!(rank < n);
                    seen[edges.partition_point(|&edge| edge <= rank) - 1] += 1;
                }
                let total = zeta(n, theta);
                let (mut chi, mut cells) = (0.0, 0.0);
                let (mut rest, mut rest_seen) = (0.0, 0.0);
                for (index, &seen) in seen.iter().enumerate() {
                    let mass = zeta(edges[index + 1], theta) - zeta(edges[index], theta);
                    let expected = mass / total * DRAWS as f64;
                    if expected < 10.0 {
                        // Too rare for a cell of its own.
                        rest += expected;
                        rest_seen += seen as f64;
                        continue;
                    }
                    chi += (seen as f64 - expected).powi(2) / expected;
                    cells += 1.0;
                }
                if rest > 1.0 {
                    chi += (rest_seen - rest).powi(2) / rest;
                    cells += 1.0;
                }
                let free = cells - 1.0f64;
                let critical = free + 5.0 * (2.0 * free).sqrt() + 5.0;
                assert!(chi < critical, "n {n}, theta {theta}: {chi} over {free}");
            }
        }
    }

    /// The table of kept points must not keep one that the exact test refuses.
    #[test]
    fn the_shortcut_agrees_with_the_exact_test() {
        for theta in [0.01, 0.5, 0.99, 0.999_999, 1.0, 1.5, 4.0] {
            let zipf = Zipf::new(1 << 40, theta);
            for k in (2..5000u64).chain([1 << 13, 12_345, 99_999, 1 << 17, 150_000]) {
                let k_ = k as f64;
                let exact = k_ - zipf.inverse(zipf.start(k_));
                assert!(zipf.keep[k.ilog2() as usize] <= exact + 1e-8, "theta {theta}, k {k}");
            }
        }
    }
}
