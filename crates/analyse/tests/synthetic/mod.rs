//! Runs whose truth is known.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use model::{
    LatencyClock, LoopKind, Op, Origin, Phase, Reading, ReadingValue, Run, RunLatency, Scope,
    SeriesPoint, Unit,
};

/// xorshift64*, another generator than the crate's own.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn share(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.share()).cos()
    }
}

pub fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub fn reading(signal: &str, value: f64) -> Reading {
    Reading {
        signal: signal.to_owned(),
        answer: ReadingValue::Value(value),
        unit: Unit::Ratio,
        scope: Scope::Process,
        source: "a file".to_owned(),
        window_s: 10.0,
        origin: Origin::Measured,
    }
}

/// A closed-loop run of reads at this rate for this many seconds, steady to the last
/// operation, whose latencies are around `latency_ns`.
pub fn run(id: &str, pairs: &[(&str, &str)], rate: f64, latency_ns: f64, seconds: usize) -> Run {
    let mut histogram = Histogram::new(3).expect("3 digits");
    for i in 0..100 {
        // Exponential, by its quantiles.
        let share = (f64::from(i) + 0.5) / 100.0;
        histogram.record_n((-(1.0 - share).ln() * latency_ns) as u64 + 1, 100).expect("it grows");
    }
    let at = |percentile| histogram.value_at_percentile(percentile);
    let series = (1..=seconds)
        .map(|second| SeriesPoint {
            at_s: second as f64,
            op: Op::Read,
            seconds: 1.0,
            operations: rate as u64,
            p50_ns: at(50.0),
            p99_ns: at(99.0),
            p999_ns: at(99.9),
            max_ns: histogram.max(),
        })
        .collect();
    Run {
        id: id.to_owned(),
        execution: "execution".to_owned(),
        ordinal: 0,
        label: id.to_owned(),
        phase: Phase::Measure,
        settings: settings(pairs),
        store_version: "1".to_owned(),
        threads: 1,
        pacing: LoopKind::Closed { think_s: 0.0 },
        started_at: String::new(),
        seconds: seconds as f64,
        operations: (rate * seconds as f64) as u64,
        verified: 0,
        misses: 0,
        failures: Vec::new(),
        invalid_because: Vec::new(),
        warnings: Vec::new(),
        latencies: vec![RunLatency {
            op: Op::Read.into(),
            clock: LatencyClock::Service,
            histogram: histogram.into(),
        }]
        .into(),
        series,
        readings: vec![reading("cpu_s_per_mop", 1e6 / rate)],
        profile: None,
        tax: None,
        samples: Vec::new(),
        stream: BTreeMap::new(),
    }
}
