//! Readings and time series of each of several servers.

use std::collections::BTreeMap;

use drive::{NodeCounts, NodeInterval, PhaseOutcome, imbalance};
use model::signal::{
    NODE_FAILED, NODE_HIT_RATIO, NODE_IMBALANCE, NODE_LATENCY, NODE_P99, NODE_RATE, Signal,
};
use model::{Origin, Reading, Series};

/// The load of each server and its answers.
pub(crate) fn readings(nodes: &BTreeMap<String, NodeCounts>, seconds: f64) -> Vec<Reading> {
    let mut all = Vec::new();
    all.extend(imbalance(nodes).map(|value| NODE_IMBALANCE.value(value, seconds)));
    for (name, node) in nodes {
        let mut put = |signal: Signal, value: f64| {
            all.push(Reading { signal: signal.name_of(name), ..signal.value(value, seconds) });
        };
        put(NODE_RATE, node.answers as f64 / seconds.max(1e-9));
        put(NODE_FAILED, node.failed as f64);
        if node.answers > 0 {
            put(NODE_LATENCY, node.latency.mean() / 1e9);
            put(NODE_P99, node.latency.value_at_percentile(99.0) as f64 / 1e9);
        }
        if let Some(ratio) = node.hit_ratio() {
            put(NODE_HIT_RATIO, ratio);
        }
    }
    all
}

/// Rate and mean latency of each server that answered, the most loaded first, over the whole
/// intervals of the window.
pub(crate) fn series(outcome: &PhaseOutcome) -> Vec<Series> {
    let length = outcome.interval_s;
    // A window closes some microseconds before or after its last interval does.
    let whole = (outcome.window_s / length.max(1e-9) + 0.01).floor() as usize;
    let mut nodes: Vec<_> = outcome.nodes.iter().filter(|(_, node)| node.answers > 0).collect();
    nodes.sort_by_key(|(_, node)| std::cmp::Reverse(node.answers));
    let mut all = Vec::new();
    for (name, node) in nodes {
        let intervals = &node.intervals[..whole.min(node.intervals.len())];
        let mut put = |signal: Signal, of: fn(&NodeInterval, f64) -> Option<f64>| {
            let points = (1..).zip(intervals).filter_map(|(end, interval)| {
                Some(((f64::from(end) * length).min(outcome.window_s), of(interval, length)?))
            });
            let (at_s, values): (Vec<f64>, Vec<f64>) = points.unzip();
            all.push(Series {
                signal: signal.name_of(name),
                unit: signal.unit,
                scope: signal.scope,
                source: signal.source.to_owned(),
                origin: Origin::Measured,
                at_s,
                values,
            });
        };
        put(NODE_RATE, |interval, length| Some(interval.answers as f64 / length));
        put(NODE_LATENCY, |interval, _| {
            (interval.answers > 0).then(|| interval.nanos as f64 / 1e9 / interval.answers as f64)
        });
    }
    all.retain(|series| series.at_s.len() > 1);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_have_whole_intervals_alone() {
        let interval = |answers| NodeInterval { answers, nanos: answers * 1000 };
        let intervals = [10, 0, 20, 3].map(interval).to_vec();
        let node = NodeCounts { answers: 33, intervals, ..NodeCounts::default() };
        let idle = NodeCounts::default();
        let outcome = PhaseOutcome {
            nodes: [("a".to_owned(), node), ("b".to_owned(), idle)].into(),
            interval_s: 0.5,
            window_s: 1.7,
            ..PhaseOutcome::default()
        };
        let all = series(&outcome);
        let names: Vec<&str> = all.iter().map(|series| series.signal.as_str()).collect();
        assert_eq!(names, ["node.a.rate", "node.a.latency"]);
        assert_eq!(
            (&all[0].at_s[..], &all[0].values[..]),
            (&[0.5, 1.0, 1.5][..], &[20.0, 0.0, 40.0][..])
        );
        // Nothing was answered in the second.
        assert_eq!(all[1].at_s, [0.5, 1.5]);
        assert!(all[1].values.iter().all(|latency| (latency - 1e-6).abs() < 1e-12));
    }
}
