//! A run as one JSON object, units in its keys: what `bench --json` prints and `export` writes.

use serde_json::{Map, Value, json};

use crate::run::{Clock, Execution, Loop, Run};

const NANOS_PER_MICRO: f64 = 1e3;

impl Run {
    /// One object; latencies in microseconds by the run's own clock, and by service time
    /// beside it where the loop is open.
    pub fn summary(&self, execution: &Execution) -> Value {
        let mut latency = Map::new();
        for clock in [Clock::Response, Clock::Service] {
            let name = if clock == self.clock() { "latency_us" } else { "service_us" };
            if let Some(percentiles) = self.percentiles(clock) {
                latency.insert(name.to_owned(), percentiles);
            }
        }
        let (kind, target, arrivals) = match &self.pacing {
            Loop::Closed { .. } => ("closed", None, None),
            Loop::Open { rate_ops_s, arrivals } => {
                ("open", Some(*rate_ops_s), Some(arrivals.clone()))
            }
        };
        let mut object = json!({
            "run": self.id,
            "study": execution.study,
            "label": self.label,
            "phase": self.phase,
            "machine": execution.machine.id,
            "store": self.settings.get("store"),
            "store_version": self.store_version,
            "workload": self.settings.get("workload"),
            "settings": self.settings,
            "threads": self.threads,
            "loop": kind,
            "target_rate_ops_s": target,
            "arrivals": arrivals,
            "started_at": self.started_at,
            "seconds": self.seconds,
            "operations": self.operations,
            "throughput_ops_s": self.throughput(),
            "cpu_s_per_mop": self.value("cpu_s_per_mop"),
            "verified": self.verified,
            "misses": self.misses,
            "errors": self.errors(),
            "failures": self.failures,
            "valid": self.valid(),
            "invalid_because": self.invalid_because,
            "warnings": self.warnings,
            "harness": self.tax,
            "stream": self.stream,
            "readings": self.readings,
        });
        if let Value::Object(fields) = &mut object {
            fields.append(&mut latency);
        }
        object
    }

    fn percentiles(&self, clock: Clock) -> Option<Value> {
        let mut per_op = Map::new();
        for latency in self.latencies.iter().filter(|l| l.clock == clock) {
            let h = &latency.histogram;
            let at = |percentile: f64| h.value_at_percentile(percentile) as f64 / NANOS_PER_MICRO;
            per_op.insert(
                latency.op.name().to_owned(),
                json!({
                    "count": h.len(),
                    "mean": h.mean() / NANOS_PER_MICRO,
                    "min": h.min() as f64 / NANOS_PER_MICRO,
                    "p50": at(50.0),
                    "p90": at(90.0),
                    "p95": at(95.0),
                    "p99": at(99.0),
                    "p99_9": at(99.9),
                    "p99_99": at(99.99),
                    "max": h.max() as f64 / NANOS_PER_MICRO,
                }),
            );
        }
        (!per_op.is_empty()).then_some(Value::Object(per_op))
    }
}
