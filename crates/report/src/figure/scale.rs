//! Scales from values to positions, and ticks.

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// From 0 or below to `high`.
    Linear { low: f64, high: f64 },
    /// Both ends above 0.
    Log { low: f64, high: f64 },
}

/// A scale with its ticks and its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    pub scale: Scale,
    pub ticks: Vec<(f64, String)>,
    pub label: String,
}

/// The least range of a log axis, as a factor; a smaller one would show noise as shape.
const LEAST_LOG_SPAN: f64 = 4.0;

impl Scale {
    /// From 0 to a little above the greatest of `values`.
    pub fn from_zero(values: impl IntoIterator<Item = f64>) -> Scale {
        let most = values.into_iter().filter(|v| v.is_finite()).fold(0.0, f64::max);
        Scale::Linear { low: 0.0, high: if most > 0.0 { most * 1.04 } else { 1.0 } }
    }

    /// A log scale around the values above 0.
    pub fn log(values: impl IntoIterator<Item = f64>) -> Scale {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values.into_iter().filter(|v| v.is_finite() && *v > 0.0) {
            low = low.min(value);
            high = high.max(value);
        }
        if high == 0.0 {
            return Scale::Log { low: 1.0, high: 10.0 };
        }
        let short = (LEAST_LOG_SPAN / (high / low)).max(1.0).sqrt();
        Scale::Log { low: low / short / 1.1, high: high * short * 1.1 }
    }

    /// The position of a value between 0 and 1, clamped.
    pub fn at(&self, value: f64) -> f64 {
        let place = match *self {
            Scale::Linear { low, high } => (value - low) / (high - low),
            Scale::Log { low, high } => (value.max(low) / low).ln() / (high / low).ln(),
        };
        place.clamp(0.0, 1.0)
    }

    /// Round values within the scale, about `wanted` of them.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        match *self {
            Scale::Linear { low, high } => linear_ticks(low, high, count),
            Scale::Log { low, high } => log_ticks(low, high, count),
        }
    }
}

impl Axis {
    pub fn new(scale: Scale, count: usize, label: &str, text: fn(f64) -> String) -> Self {
        let ticks = scale.ticks(count).into_iter().map(|value| (value, text(value))).collect();
        Axis { scale, ticks, label: label.to_owned() }
    }

    /// Percentiles spaced by the logarithm of what lies above them, up to `most`.
    pub fn percentiles(most: f64) -> Self {
        let high = percentile_position(most).max(1.0);
        let ticks = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999]
            .into_iter()
            .map(|p| (percentile_position(p), crate::format::plain(p)))
            .filter(|(x, _)| *x <= high)
            .collect();
        Axis { scale: Scale::Linear { low: 0.0, high }, ticks, label: "percentile".to_owned() }
    }
}

/// 0 at the minimum, 1 at p90, 2 at p99, 3 at p99.9 …
pub fn percentile_position(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).max(1e-12).log10()
}

fn linear_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let rough = (high - low) / count.max(1) as f64;
    if !(rough.is_finite() && rough > 0.0) {
        return vec![low];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    let last = (high / step * (1.0 + 1e-9)).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

fn log_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let among = |factors: &[f64]| -> Vec<f64> {
        decades
            .clone()
            .flat_map(|d| factors.iter().map(move |f| f * 10f64.powi(d)))
            .filter(|v| (low..=high).contains(v))
            .collect()
    };
    // The finest of these that is not too many.
    let mut best = among(&[1.0]);
    for factors in [&[1.0, 3.0][..], &[1.0, 2.0, 5.0][..]] {
        let finer = among(factors);
        if finer.len() <= count {
            best = finer;
        }
    }
    // Many decades: every second or third of them.
    let every = best.len().div_ceil(count.max(1)).max(1);
    best.into_iter().step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(linear_ticks(0.0, 103.0, 5), [0.0, 50.0, 100.0]);
        assert_eq!(linear_ticks(0.0, 98.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!(linear_ticks(0.0, 0.7, 4), [0.0, 0.2, 0.4, 0.6000000000000001]);
        assert_eq!(linear_ticks(0.0, 0.0, 4), [0.0]);
    }

    #[test]
    fn log_ticks_are_round_and_few() {
        assert_eq!(log_ticks(900.0, 1.1e6, 6), [1e3, 1e4, 1e5, 1e6]);
        assert_eq!(log_ticks(900.0, 11_000.0, 6), [1e3, 2e3, 5e3, 1e4]);
        assert_eq!(log_ticks(1.0, 1e9, 5), [1.0, 1e2, 1e4, 1e6, 1e8]);
        for (low, high) in [(3.1, 12.5), (17.0, 70.0), (0.6, 2.5)] {
            assert!(log_ticks(low, high, 6).len() >= 2, "{low} {high}");
        }
    }

    #[test]
    fn places_keep_the_order_and_the_ends() {
        let log = Scale::log([10.0, 1000.0]);
        assert!((log.at(100.0) - 0.5).abs() < 1e-9);
        assert!(log.at(10.0) > 0.0 && log.at(1000.0) < 1.0);
        assert_eq!(log.at(0.0), 0.0);
        let linear = Scale::from_zero([1.0, 4.0]);
        assert_eq!(linear.at(0.0), 0.0);
        assert!(linear.at(4.0) > 0.9 && linear.at(4.0) < 1.0);
        assert_eq!(Scale::from_zero([]), Scale::Linear { low: 0.0, high: 1.0 });
    }

    #[test]
    fn percentiles_are_a_decade_apart() {
        for (p, x) in [(0.0, 0.0), (90.0, 1.0), (99.0, 2.0), (99.9, 3.0), (99.99, 4.0)] {
            assert!((percentile_position(p) - x).abs() < 1e-6, "{p}");
        }
        let axis = Axis::percentiles(99.95);
        assert_eq!(axis.ticks.last().map(|(_, t)| t.as_str()), Some("99.9"));
    }
}
