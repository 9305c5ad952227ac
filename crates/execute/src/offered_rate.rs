//! The rate that a moving load offers, interval by interval.

use drive::PhaseOutcome;
use model::signal::CLIENT_OFFERED_RATE;
use model::{Origin, Pacing, Series};
use study::LoadConfig;

/// The mean offered rate in each interval of the run's series; none where the rate does not move.
pub(crate) fn series(load_config: &LoadConfig, outcome: &PhaseOutcome) -> Option<Series> {
    let (Some(profile), Pacing::Open { rate, .. }) =
        (&load_config.shape.profile, load_config.shape.pacing)
    else {
        return None;
    };
    let mut ends: Vec<(f64, f64)> =
        outcome.series.iter().map(|point| (point.at_s, point.seconds)).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    ends.dedup_by(|a, b| (a.0 - b.0).abs() < 1e-6);
    let offered = |(end, seconds): &(f64, f64)| {
        // Nothing is due after the window, in which the last answers still come.
        let to = end.min(outcome.window_s);
        let from = (end - seconds).clamp(0.0, to);
        rate * (profile.integral(to) - profile.integral(from)) / seconds.max(1e-9)
    };
    let values: Vec<f64> = ends.iter().map(offered).collect();
    let signal = CLIENT_OFFERED_RATE;
    (values.len() > 1).then(|| Series {
        signal: signal.name.to_owned(),
        unit: signal.unit,
        scope: signal.scope,
        source: format!("{} {}", signal.source, profile.name()),
        origin: Origin::Modelled,
        at_s: ends.iter().map(|(end, _)| *end).collect(),
        values,
    })
}

#[cfg(test)]
mod tests {
    use model::{Arrivals, Op, RateProfile, SeriesPoint};

    use super::*;

    #[test]
    fn every_interval_has_the_mean_of_the_profile() {
        let point = |at_s, seconds, op| SeriesPoint {
            at_s,
            op,
            seconds,
            operations: 1,
            p50_ns: 1,
            p99_ns: 1,
            p999_ns: 1,
            max_ns: 1,
        };
        let outcome = PhaseOutcome {
            series: vec![
                point(1.0, 1.0, Op::Read),
                point(1.0, 1.0, Op::Update),
                point(2.0, 1.0, Op::Read),
                point(2.5, 0.5, Op::Read),
            ],
            window_s: 2.25,
            ..PhaseOutcome::default()
        };
        let mut config = LoadConfig::closed(1);
        assert_eq!(series(&config, &outcome), None);
        config.shape.pacing = Pacing::Open { rate: 100.0, arrivals: Arrivals::Poisson };
        config.shape.profile = RateProfile::parse("ramp:0x..2x@1s,4x@5s").ok();
        let offered = series(&config, &outcome).unwrap();
        assert_eq!(offered.at_s, [1.0, 2.0, 2.5]);
        assert_eq!(offered.values, [100.0, 400.0, 200.0]);
    }
}
