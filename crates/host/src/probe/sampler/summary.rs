//! Summaries of samples over exactly a window.

/// The summary of a gauge over a window, by linear interpolation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SampleSummary {
    pub mean: f64,
    /// Of the samples in the window and the two next to its edges.
    pub minimum: f64,
    pub maximum: f64,
    /// The gauge's unit times seconds: joules of watts.
    pub integral: f64,
    /// From the window's start to its end.
    pub gain: f64,
    /// Whether it went down in between, ever so little.
    pub falls: bool,
    /// Of the window.
    pub seconds: f64,
}

/// Samples as (time in s, value) with rising times. `from` and `to` must lie within them
/// and are interpolated; a window of no length has the value at its instant as its mean.
pub(super) fn summary(samples: &[(f64, f64)], from: f64, to: f64) -> Option<SampleSummary> {
    let inner = samples.iter().copied().filter(|(at, _)| *at > from && *at < to);
    let line: Vec<(f64, f64)> = std::iter::once((from, value_at(samples, from)?))
        .chain(inner)
        .chain([(to, value_at(samples, to)?)])
        .collect();
    let area = |pair: &[(f64, f64)]| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0;
    let integral: f64 = line.windows(2).map(area).sum();
    let first = samples.iter().rposition(|(at, _)| *at <= from)?;
    let last = samples.iter().position(|(at, _)| *at >= to)?;
    let values = || samples[first.min(last)..=first.max(last)].iter().map(|(_, value)| *value);
    let minimum = values().fold(f64::INFINITY, f64::min);
    let maximum = values().fold(f64::NEG_INFINITY, f64::max);
    // Rounding must not put the mean outside of the samples' range.
    let mean = |seconds: f64| (integral / seconds).max(minimum).min(maximum);
    Some(SampleSummary {
        mean: if to > from { mean(to - from) } else { line[0].1 },
        minimum,
        maximum,
        integral,
        gain: line[line.len() - 1].1 - line[0].1,
        falls: line.windows(2).any(|pair| pair[1].1 < pair[0].1),
        seconds: to - from,
    })
}

/// The value on the line through the samples on both sides.
fn value_at(samples: &[(f64, f64)], at: f64) -> Option<f64> {
    let behind = samples.iter().position(|(time, _)| *time >= at)?;
    let (time, value) = samples[behind];
    if time == at {
        return Some(value);
    }
    let (before, start) = *samples.get(behind.checked_sub(1)?)?;
    Some(start + (value - start) * (at - before) / (time - before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_integral_is_of_exactly_the_window() {
        // 100 W until 1 s, then a slope to 300 W at 3 s.
        let samples = [(-1.0, 100.0), (1.0, 100.0), (3.0, 300.0)];
        let summed = summary(&samples, 0.0, 2.0).unwrap();
        assert!((summed.integral - (100.0 + 150.0)).abs() < 1e-12, "{summed:?}");
        assert!((summed.mean - 125.0).abs() < 1e-12, "{summed:?}");
        assert_eq!((summed.minimum, summed.maximum), (100.0, 300.0));
        assert_eq!((summed.gain, summed.falls, summed.seconds), (100.0, false, 2.0));
        assert!(summary(&[(0.0, 5.0), (1.0, 4.0), (2.0, 9.0)], 0.0, 2.0).unwrap().falls);
    }

    #[test]
    fn an_edge_without_a_sample_behind_it_has_no_value() {
        let samples = [(0.5, 1.0), (1.0, 1.0)];
        assert_eq!(summary(&samples, 0.0, 1.0), None);
        assert_eq!(summary(&samples, 0.5, 1.5), None);
        assert!(summary(&samples, 0.5, 1.0).is_some());
    }

    #[test]
    fn an_instant_has_a_value_and_no_energy() {
        let summed = summary(&[(0.0, 10.0), (2.0, 30.0)], 1.0, 1.0).unwrap();
        assert_eq!((summed.mean, summed.integral), (20.0, 0.0));
    }
}
