//! A [`LengthSpec`](crate::LengthSpec) compiled for sampling.

use model::Bytes;

use crate::{LengthSpec, SpecError, normal};
use model::random::unit;

/// The limits of a length.
#[derive(Debug, Clone, Copy)]
pub struct LengthLimits {
    /// The key of the spec that holds it, for errors.
    pub key: &'static str,
    pub lowest: u64,
    pub highest: u64,
    /// Where an unbounded distribution without a `max` ends.
    pub cut: u64,
}

/// Upper limit of a law whose remainder is taken.
const WHOLE: u64 = 1 << 53;

/// Draws lengths by the inverse of the cumulative distribution function.
#[derive(Debug, Clone)]
pub struct LengthSampler {
    law: LengthLaw,
    /// The smallest and the largest that can be drawn.
    min: u64,
    max: u64,
}

#[derive(Debug, Clone)]
enum LengthLaw {
    Fixed,
    /// `base + k`, `k` below `span`.
    Uniform {
        base: u64,
        span: f64,
    },
    Normal {
        mean: f64,
        sd: f64,
    },
    Exponential {
        mean: f64,
    },
    Pareto {
        location: f64,
        scale: f64,
        shape: f64,
    },
    Gev {
        location: f64,
        scale: f64,
        shape: f64,
    },
    Discrete(Box<WeightedLengths>),
    Modulo {
        by: u64,
        of: Box<LengthSampler>,
    },
}

#[derive(Debug, Clone)]
struct WeightedLengths {
    /// Cumulative probability up to and with each size.
    up_to: Vec<f64>,
    sizes: Vec<u64>,
    /// The distribution above the last of `up_to`.
    tail: Option<LengthSampler>,
}

impl LengthSampler {
    /// # Errors
    /// Parameters outside their range, or sizes outside the limits.
    pub fn new(size: &LengthSpec, limits: LengthLimits) -> Result<LengthSampler, SpecError> {
        let invalid =
            |problem: &str| Err(SpecError::invalid(limits.key, format!("`{size}`: {problem}")));
        let (law, min, max) = match *size {
            LengthSpec::Fixed(Bytes(length)) => (LengthLaw::Fixed, length, length),
            LengthSpec::Uniform { min: Bytes(min), max: Bytes(max) } => {
                if min > max {
                    return invalid("`min` is above `max`");
                }
                (LengthLaw::Uniform { base: min, span: (max - min) as f64 + 1.0 }, min, max)
            }
            LengthSpec::Normal { mean, sd, min, max } => {
                if !mean.is_finite() || !sd.is_finite() || sd < 0.0 {
                    return invalid("`sd` must not be negative");
                }
                let (min, max) = bounds(min, max, limits);
                (LengthLaw::Normal { mean, sd }, min, max)
            }
            LengthSpec::Exponential { mean, min, max } => {
                if !mean.is_finite() || mean <= 0.0 {
                    return invalid("`mean` must be positive");
                }
                let (min, max) = bounds(min, max, limits);
                (LengthLaw::Exponential { mean }, min, max)
            }
            LengthSpec::Pareto { location, scale, shape, min, max }
            | LengthSpec::Gev { location, scale, shape, min, max } => {
                if ![location, scale, shape].iter().all(|x| x.is_finite()) || scale <= 0.0 {
                    return invalid("`scale` must be positive");
                }
                let law = match size {
                    LengthSpec::Pareto { .. } => LengthLaw::Pareto { location, scale, shape },
                    _ => LengthLaw::Gev { location, scale, shape },
                };
                let (min, max) = bounds(min, max, limits);
                (law, min, max)
            }
            LengthSpec::Discrete { ref values, ref tail } => {
                let discrete = match WeightedLengths::new(values, tail.as_deref(), limits)? {
                    Ok(discrete) => discrete,
                    Err(problem) => return invalid(problem),
                };
                let tail = discrete.tail.as_ref();
                let sizes = discrete.sizes.iter().copied();
                let min = sizes.clone().chain(tail.map(|tail| tail.min)).min().unwrap_or(0);
                let max = sizes.chain(tail.map(|tail| tail.max)).max().unwrap_or(0);
                (LengthLaw::Discrete(Box::new(discrete)), min, max)
            }
            LengthSpec::Modulo { by: Bytes(by), ref of } => {
                if by <= limits.lowest {
                    return invalid("`modulo` leaves nothing; write a larger size");
                }
                let whole = LengthLimits { lowest: 0, highest: u64::MAX, cut: WHOLE, ..limits };
                let of = LengthSampler::new(of, whole)?;
                (LengthLaw::Modulo { by, of: Box::new(of) }, limits.lowest, by - 1)
            }
        };
        if min > max {
            return invalid("`min` is above `max`");
        }
        for edge in [min, max] {
            if !(limits.lowest..=limits.highest).contains(&edge) {
                return Err(SpecError::OutOfRange {
                    key: limits.key,
                    size: Bytes(edge),
                    lowest: Bytes(limits.lowest),
                    highest: Bytes(limits.highest),
                });
            }
        }
        let mut length = LengthSampler { law, min, max };
        // A law may never reach its bounds: a Pareto number is not below its location.
        if !matches!(length.law, LengthLaw::Discrete(_) | LengthLaw::Modulo { .. }) {
            (length.min, length.max) = (length.draw(0), length.draw(u64::MAX));
        }
        Ok(length)
    }

    /// Raises all shorter lengths to `lowest`.
    pub fn at_least(mut self, lowest: u64) -> LengthSampler {
        self.min = self.min.max(lowest);
        self.max = self.max.max(lowest);
        self
    }

    pub fn max(&self) -> u64 {
        self.max
    }

    /// The length for 64 random bits.
    #[inline]
    pub fn draw(&self, random: u64) -> u64 {
        match self.law {
            LengthLaw::Fixed => self.min,
            _ => self.at(unit(random)),
        }
    }

    /// The length below which a draw falls with this probability, between 0 and 1.
    pub fn quantile(&self, share: f64) -> u64 {
        self.at(share)
    }

    /// The length below which a draw falls with probability `u`, 0 < u < 1.
    fn at(&self, u: f64) -> u64 {
        let x = match self.law {
            LengthLaw::Fixed => return self.min,
            LengthLaw::Uniform { base, span } => {
                return (base + (u * span) as u64).clamp(self.min, self.max);
            }
            LengthLaw::Normal { mean, sd } => mean + sd * normal::quantile(u),
            LengthLaw::Exponential { mean } => -mean * (-u).ln_1p(),
            LengthLaw::Pareto { location, scale, shape } => {
                location + scale * box_cox(-(-u).ln_1p(), shape)
            }
            LengthLaw::Gev { location, scale, shape } => {
                location + scale * box_cox(-(-u.ln()).ln(), shape)
            }
            LengthLaw::Discrete(ref discrete) => return discrete.at(u).max(self.min),
            LengthLaw::Modulo { by, ref of } => return (of.at(u) % by).clamp(self.min, self.max),
        };
        (x.round() as u64).clamp(self.min, self.max)
    }

    /// Whether a draw can give this length.
    pub fn possible(&self, length: u64) -> bool {
        (self.min..=self.max).contains(&length)
            && match &self.law {
                LengthLaw::Discrete(discrete) => {
                    discrete.sizes.contains(&length)
                        || length == self.min
                        || discrete.tail.as_ref().is_some_and(|tail| tail.possible(length))
                }
                _ => true,
            }
    }

    /// The expected length: the integral of [`LengthSampler::at`] over (0, 1), in panels that halve
    /// towards both ends so that heavy tails are seen.
    pub fn mean(&self) -> f64 {
        match &self.law {
            LengthLaw::Fixed => self.min as f64,
            &LengthLaw::Uniform { base, span } => {
                let (raised, top) = ((self.min - base) as f64, base as f64 + span - 1.0);
                let above = (span - raised) * (self.min as f64 + top) / 2.0;
                (raised * self.min as f64 + above) / span
            }
            LengthLaw::Discrete(discrete) => {
                let mut sum = 0.0;
                let mut below = 0.0;
                for (&up_to, &size) in discrete.up_to.iter().zip(&discrete.sizes) {
                    sum += (up_to - below) * size.max(self.min) as f64;
                    below = up_to;
                }
                sum + discrete
                    .tail
                    .as_ref()
                    .map_or(0.0, |tail| (1.0 - below) * tail.clone().at_least(self.min).mean())
            }
            _ => {
                const POINTS: u32 = 256;
                let mut sum = 0.0;
                for halving in 1..=50 {
                    let width = 0.5f64.powi(halving + 1);
                    for point in 0..POINTS {
                        let u = width * (1.0 + (point as f64 + 0.5) / POINTS as f64);
                        let both = self.at(u) as f64 + self.at(1.0 - u) as f64;
                        sum += both * width / POINTS as f64;
                    }
                }
                sum
            }
        }
    }
}

fn bounds(min: Option<Bytes>, max: Option<Bytes>, limits: LengthLimits) -> (u64, u64) {
    let min = min.map_or(limits.lowest, |size| size.0);
    (min, max.map_or(limits.cut.max(min), |size| size.0))
}

/// (exp(shape y) - 1) / shape, and its limit y where `shape` is 0.
fn box_cox(y: f64, shape: f64) -> f64 {
    if shape == 0.0 { y } else { (shape * y).exp_m1() / shape }
}

impl WeightedLengths {
    fn new(
        values: &[(Bytes, f64)],
        tail: Option<&LengthSpec>,
        limits: LengthLimits,
    ) -> Result<Result<WeightedLengths, &'static str>, SpecError> {
        // Sums of decimal fractions miss 1 by a few units in the last place.
        const ROUNDING: f64 = 1e-9;
        if values.iter().any(|(_, weight)| !weight.is_finite() || *weight < 0.0) {
            return Ok(Err("a weight is a probability between 0 and 1"));
        }
        let mut sum = 0.0;
        let (mut up_to, mut sizes) = (Vec::new(), Vec::new());
        for &(Bytes(size), weight) in values.iter().filter(|(_, weight)| *weight > 0.0) {
            sum += weight;
            up_to.push(sum);
            sizes.push(size);
        }
        if sum > 1.0 + ROUNDING {
            return Ok(Err("the weights sum to more than 1"));
        }
        let tail = match tail {
            Some(tail) if sum < 1.0 - ROUNDING => Some(LengthSampler::new(tail, limits)?),
            Some(_) => None,
            None if sum < 1.0 - ROUNDING => {
                return Ok(Err("the weights sum to less than 1; add `tail` for the rest"));
            }
            None => None,
        };
        Ok(Ok(WeightedLengths { up_to, sizes, tail }))
    }

    fn at(&self, u: f64) -> u64 {
        let index = self.up_to.partition_point(|&up_to| up_to < u);
        match (self.sizes.get(index), &self.tail) {
            (Some(&size), _) => size,
            (None, Some(tail)) => {
                let below = self.up_to.last().copied().unwrap_or(0.0);
                tail.at(((u - below) / (1.0 - below)).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON))
            }
            // Rounding of the sum: the last size reaches up to 1.
            (None, None) => self.sizes.last().copied().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::random::RandomStream;

    const VALUES: LengthLimits =
        LengthLimits { key: "value.size", lowest: 0, highest: 1 << 30, cut: 1 << 20 };

    fn length(text: &str) -> LengthSampler {
        LengthSampler::new(&LengthSpec::parse(text).unwrap(), VALUES).unwrap()
    }

    /// The largest distance between the drawn and the analytic P(length <= k) over all k, which
    /// exceeds 1.95 / sqrt(n) once in a thousand (Kolmogorov; less often for whole numbers).
    fn distance(text: &str, cdf: impl Fn(f64) -> f64) -> f64 {
        let length = length(text);
        let draws = 200_000u64;
        let random = RandomStream::new(1, 99);
        let mut drawn: Vec<u64> = (0..draws).map(|i| length.draw(random.at(i))).collect();
        drawn.sort_unstable();
        assert!(drawn.iter().all(|&k| length.possible(k)));
        let mut worst = 0.0f64;
        for (index, &k) in drawn.iter().enumerate() {
            if drawn.get(index + 1) != Some(&k) {
                let observed = (index + 1) as f64 / draws as f64;
                worst = worst.max((observed - cdf(k as f64 + 0.5)).abs());
            }
        }
        let mean = drawn.iter().sum::<u64>() as f64 / draws as f64;
        assert!((mean / length.mean() - 1.0).abs() < 0.02, "{text}: {mean} {}", length.mean());
        worst * (draws as f64).sqrt()
    }

    /// The logistic-free way to the normal distribution: Simpson's rule over its density.
    fn normal_cdf(z: f64) -> f64 {
        let h = z / 400.0;
        let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let inner: f64 =
            (1..400).map(|i| density(i as f64 * h) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
        0.5 + (density(0.0) + inner + density(z)) * h / 3.0
    }

    fn pareto_cdf(x: f64) -> f64 {
        if x < 15.0 {
            0.0
        } else {
            1.0 - (1.0 + 0.348238 * (x - 15.0) / 214.476).powf(-1.0 / 0.348238)
        }
    }

    #[test]
    fn each_law_follows_its_cumulative_function() {
        let uniform = |x: f64| ((x - 99.5) / 200.0).clamp(0.0, 1.0);
        assert!(distance("uniform:100..299", uniform) < 1.95);
        assert!(distance("normal:1000,100", |x| normal_cdf((x - 1000.0) / 100.0)) < 1.95);
        assert!(distance("exponential:200", |x| 1.0 - (-x / 200.0).exp()) < 1.95);
        assert!(distance("pareto:15,214.476,0.348238", pareto_cdf) < 1.95);
        assert!(distance("pareto:15,100,0", |x| 1.0 - (-(x - 15.0).max(0.0) / 100.0).exp()) < 1.95);
        let bounded = |x: f64| 1.0 - (1.0 - 0.5 * x / 100.0).max(0.0).powi(2);
        assert!(distance("pareto:0,100,-0.5", bounded) < 1.95);
        let gev =
            |x: f64| (-(1.0 + 0.078688 * (x - 30.7984) / 8.20449).powf(-1.0 / 0.078688)).exp();
        assert!(distance("gev:30.7984,8.20449,0.078688", gev) < 1.95);
        assert!(distance("gev:300,20,0", |x| (-(-(x - 300.0) / 20.0).exp()).exp()) < 1.95);
    }

    /// P(length <= k) of a remainder is the sum over all lengths with that remainder.
    #[test]
    fn a_remainder_has_the_mass_of_all_lengths_that_leave_it() {
        let cdf = |x: f64| 1.0 - (1.0 + 2.0 * x.max(0.0) / 30.0).powf(-0.5);
        let left = |x: f64| -> f64 {
            // 2,000 rounds leave 0.3 % of the lengths out, which are as good as even.
            let rounds = 2000;
            let mass = |round: u32| {
                let begin = f64::from(round) * 100.0;
                cdf(begin + x) - cdf(begin - 0.5)
            };
            (0..rounds).map(mass).sum::<f64>()
                + (1.0 - cdf(f64::from(rounds) * 100.0)) * ((x + 0.5) / 100.0)
        };
        assert!(distance("modulo:100,of=pareto:0,30,2", left) < 1.95);
        assert_eq!(length("modulo:100,of=300").draw(5), 0);
        let scans = LengthLimits { lowest: 1, ..VALUES };
        let spec = LengthSpec::parse("modulo:100,of=uniform:100..100").unwrap();
        assert_eq!(LengthSampler::new(&spec, scans).unwrap().draw(5), 1);
        for text in
            ["modulo:1,of=5", "modulo:0,of=5", "modulo:2GiB,of=5", "modulo:9,of=normal:1,-1"]
        {
            let spec = LengthSpec::parse(text).unwrap();
            assert!(LengthSampler::new(&spec, scans).is_err(), "{text}");
        }
    }

    #[test]
    fn bounds_clamp_lengths() {
        let clamped = |x: f64| match x {
            x if x < 900.0 => 0.0,
            x if x > 1100.0 => 1.0,
            x => normal_cdf((x - 1000.0) / 100.0),
        };
        assert!(distance("normal:1000,100,min=900,max=1100", clamped) < 1.95);
    }

    /// Atikoglu et al., "Workload Analysis of a Large-Scale Key-Value Store", SIGMETRICS 2012.
    #[test]
    fn facebook_etc_values() {
        let weights = [
            0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023,
            0.00837, 0.00837, 0.08989, 0.00092, 0.00326, 0.01980,
        ];
        let list: Vec<String> =
            weights.iter().enumerate().map(|(k, w)| format!("{k}={w}")).collect();
        let text = format!("discrete:{},tail=pareto:15,214.476,0.348238", list.join(","));
        let sum: f64 = weights.iter().sum();
        let cdf = |x: f64| {
            let listed: f64 = weights.iter().take(x.ceil() as usize).sum();
            listed + (1.0 - sum) * pareto_cdf(x)
        };
        assert!(distance(&text, cdf) < 1.95);
        // Analytic: sum of k P(k), and the Pareto mean, location + scale / (1 - shape).
        let listed: f64 = weights.iter().enumerate().map(|(k, w)| k as f64 * w).sum();
        let mean = listed + (1.0 - sum) * (15.0 + 214.476 / (1.0 - 0.348238));
        let etc = length(&text);
        assert!((etc.mean() / mean - 1.0).abs() < 0.002, "{} {mean}", etc.mean());
        assert!(etc.possible(2) && !length("discrete:2=0.5,4=0.5").possible(3));
    }

    #[test]
    fn refuses_invalid_parameters() {
        for (text, says) in [
            ("uniform:5..2", "`min` is above `max`"),
            ("normal:5,-1", "`sd`"),
            ("exponential:0", "`mean` must be positive"),
            ("pareto:1,0,1", "`scale`"),
            ("gev:1,-2,1", "`scale`"),
            ("discrete:1=0.7,2=0.7", "more than 1"),
            ("discrete:1=0.7", "add `tail`"),
            ("discrete:1=-0.7,2=1", "probability"),
            ("2GiB", "between 0 and 1GiB"),
            ("exponential:5,max=2GiB", "between 0 and 1GiB"),
        ] {
            let error = LengthSampler::new(&LengthSpec::parse(text).unwrap(), VALUES)
                .unwrap_err()
                .to_string();
            assert!(error.contains(says) && error.contains("value.size"), "{text}: {error}");
        }
    }
}
