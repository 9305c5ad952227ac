//! Zipf's law over a finite number of ranks, drawn exactly.

use crate::alias::Alias;
use model::random::{Draws, below, unit};

/// Ranks 1 to this one have a cell each.
const SINGLE: u64 = 63;

/// Cells of an octave `2^j .. 2^(j+1)` behind them.
const CELLS: u64 = 16;

/// P(rank k) proportional to k^-theta for k in 1 ..= n; ranks are given from 0.
///
/// Drawn by rejection under a staircase (J. von Neumann's method with a hat of steps; L. Devroye,
/// "Non-Uniform Random Variate Generation", Springer 1986, chapters II.3 and VIII.1). The ranks are
/// divided into cells, one for each of the first and then 16 for each doubling, and every rank of a
/// cell is proposed as often as its first one is due. A proposed rank k of the cell that begins at
/// a is accepted with probability (a / k)^theta, else another is proposed. That is exact for every
/// theta and n: no normalising sum is needed and no probability is approximated. The table has at
/// most some 900 cells (at 10^18 ranks), and 511 at 10^10.
///
/// A power is computed for one draw in twenty only: below a bound for the whole cell a rank is
/// accepted at once. This is why it was preferred to rejection-inversion (W. Hörmann and G.
/// Derflinger, ACM TOMACS 6(3), 1996), which needs a logarithm and an exponential for each draw and
/// took twice the time.
#[derive(Debug, Clone)]
pub struct Zipf {
    n: u64,
    theta: f64,
    choose: Alias,
    cells: Box<[StairCell]>,
}

#[derive(Debug, Clone, Copy)]
struct StairCell {
    /// Its first rank, counted from 1.
    first: u64,
    /// Ranks in it.
    width: u64,
    /// The acceptance probability of its last rank, a lower bound for the others, in units of
    /// 2^-64.
    acceptance: u64,
}

impl Zipf {
    /// `n`: 1 to 10^18 ranks; `theta`: positive and finite. The caller has checked both.
    pub fn new(n: u64, theta: f64) -> Zipf {
        let mut cells = Vec::new();
        let mut weights = Vec::new();
        let mut first = 1;
        while first <= n {
            let octave = 1u64 << first.ilog2();
            let width = if first <= SINGLE { 1 } else { octave / CELLS };
            let width = width.min(n - first + 1);
            let last = (first + width - 1) as f64;
            // One part in 10^12 below the bound, so that rounding cannot lift it.
            let acceptance = match width {
                1 => u64::MAX,
                _ => ((first as f64 / last).powf(theta) * 1.844_674_407_369e19) as u64,
            };
            weights.push(width as f64 * (first as f64).powf(-theta));
            cells.push(StairCell { first, width, acceptance });
            first += width;
        }
        Zipf { n, theta, choose: Alias::new(&weights), cells: cells.into() }
    }

    pub fn ranks(&self) -> u64 {
        self.n
    }

    pub fn theta(&self) -> f64 {
        self.theta
    }

    /// A rank, 0 the most popular.
    #[inline]
    pub fn draw(&self, draws: &mut Draws) -> u64 {
        loop {
            let cell = self.cells[self.choose.pick(draws.next()) as usize];
            let k = cell.first + below(draws.next(), cell.width);
            let chance = draws.next();
            if chance <= cell.acceptance || self.accepts(cell.first, k, chance) {
                return k - 1;
            }
        }
    }

    /// The exact test.
    #[cold]
    fn accepts(&self, first: u64, k: u64, chance: u64) -> bool {
        unit(chance) < (first as f64 / k as f64).powf(self.theta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::random::RandomStream;

    /// The largest supported number of ranks.
    const MOST: u64 = 1_000_000_000_000_000_000;

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
                let mut observed = vec![0u64; edges.len() - 1];
                let zipf = Zipf::new(n, theta);
                let random = RandomStream::new(n, theta.to_bits());
                for i in 0..DRAWS {
                    let rank = zipf.draw(&mut Draws::from(random.at(i)));
                    assert!(rank < n);
                    observed[edges.partition_point(|&edge| edge <= rank) - 1] += 1;
                }
                let total = zeta(n, theta);
                let (mut chi, mut cells) = (0.0, 0.0);
                let (mut rest, mut rest_observed) = (0.0, 0.0);
                for (index, &observed) in observed.iter().enumerate() {
                    let mass = zeta(edges[index + 1], theta) - zeta(edges[index], theta);
                    let expected = mass / total * DRAWS as f64;
                    if expected < 10.0 {
                        // Too rare for a cell of its own.
                        rest += expected;
                        rest_observed += observed as f64;
                        continue;
                    }
                    chi += (observed as f64 - expected).powi(2) / expected;
                    cells += 1.0;
                }
                if rest > 1.0 {
                    chi += (rest_observed - rest).powi(2) / rest;
                    cells += 1.0;
                }
                let free = cells - 1.0f64;
                let critical = free + 5.0 * (2.0 * free).sqrt() + 5.0;
                assert!(chi < critical, "n {n}, theta {theta}: {chi} over {free}");
            }
        }
    }

    /// The bound must not exceed the acceptance probability of any rank.
    #[test]
    fn acceptance_bound_is_conservative() {
        for theta in [0.01, 0.99, 1.0, 4.0] {
            let zipf = Zipf::new(1_000_000_000_000, theta);
            let mut next = 1;
            for cell in &zipf.cells {
                assert_eq!(cell.first, next, "the cells cover every rank once");
                next += cell.width;
                let last = (cell.first as f64 / (next - 1) as f64).powf(theta);
                assert!(cell.acceptance as f64 <= last * 2f64.powi(64), "{theta}: {cell:?}");
            }
            assert_eq!(next - 1, zipf.n);
        }
    }
}
