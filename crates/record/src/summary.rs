//! A run as one JSON object, units in its keys: what `bench --json` prints and `export` writes.

use model::{Distribution, Reading};
use serde_json::{Map, Value, json};

use crate::figures::{FIGURES, figures_us};
use crate::latency_scope::LatencyScope;
use crate::run::{Execution, LatencyClock, LoopKind, Phase, Run};
use crate::write::finite_or_unavailable;

impl Run {
    /// One object. `latency_us` has, for each operation, the figures of the run's own clock in
    /// microseconds; where the loop is open, `service_us` has those of the service time.
    /// `arrival_latency_us` is there where the kernel stamped the answers, and `server_latency_us`,
    /// of all operations together, where the server was watched. Values that are unknown or not a
    /// number are null.
    pub fn summary(&self, execution: &Execution) -> Value {
        let (kind, target, arrivals, think) = match &self.pacing {
            LoopKind::Closed { think_s } => ("closed", None, None, Some(*think_s)),
            LoopKind::Open { rate_ops_s, arrivals } => {
                ("open", Some(*rate_ops_s), Some(arrivals.as_str()), None)
            }
        };
        let readings: Vec<Reading> = self.readings.iter().map(finite_or_unavailable).collect();
        let mut object = json!({
            "run": self.id,
            "execution": execution.id,
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
            "think_s": think,
            "started_at": self.started_at,
            "seconds": self.seconds,
            "operations": self.operations,
            "throughput_ops_s": self.throughput(),
            "achieved_rate_ops_s": self.achieved_rate(),
            "hit_ratio": self.hit_ratio(),
            "latency_us": self.percentiles(self.clock()),
            "cpu_s_per_mop": self.value("cpu_s_per_mop"),
            "ops_per_joule": self.value("ops_per_joule"),
            "joules_per_op": self.value("joules_per_op"),
            "joules_per_op_net": self.value("joules_per_op_net"),
            "energy_boundary": self.joules_per_op().map(|energy| energy.scope),
            "energy_origin": self.joules_per_op().map(|energy| energy.origin),
            "ipc": self.value("ipc"),
            "verified": self.verified,
            "misses": self.misses,
            "errors": self.errors(),
            "failures": self.failures,
            "valid": self.valid(),
            "invalid_because": self.invalid_because,
            "warnings": self.warnings,
            "harness": self.tax,
            "stream": self.stream_facts(),
            "readings": readings,
            "samples": self.samples,
        });
        if self.phase == Phase::Simulate {
            // A simulation has no loop and no counts, not even 0.
            let load = ["threads", "loop", "think_s"];
            let counted = ["seconds", "operations", "throughput_ops_s", "verified", "misses"];
            for key in load.into_iter().chain(counted) {
                object[key] = Value::Null;
            }
        }
        // In a closed loop `latency_us` is the service time.
        if self.clock() == LatencyClock::Response {
            object["service_us"] = self.percentiles(LatencyClock::Service);
        }
        if self.latencies.iter().any(|latency| latency.clock == LatencyClock::Arrival) {
            object["arrival_latency_us"] = self.percentiles(LatencyClock::Arrival);
        }
        if let Some(histogram) = self.latency(LatencyScope::Any, LatencyClock::Server) {
            object["server_latency_us"] = figures(histogram);
        }
        object
    }

    /// The facts of the stream, nested by the dots in their names; numbers as numbers.
    fn stream_facts(&self) -> Value {
        let mut facts = Map::new();
        for (name, text) in &self.stream {
            // A fingerprint is text even if its hexadecimal digits are all decimal.
            let number = if name == "fingerprint" { None } else { number(text) };
            let value = number.unwrap_or_else(|| text.as_str().into());
            match name.split_once('.') {
                Some((group, name)) => {
                    let group = facts.entry(group).or_insert_with(|| Value::Object(Map::new()));
                    group[name] = value;
                }
                None => {
                    facts.insert(name.clone(), value);
                }
            }
        }
        Value::Object(facts)
    }

    fn percentiles(&self, clock: LatencyClock) -> Value {
        let mut per_op = Map::new();
        for latency in self.latencies.iter().filter(|latency| latency.clock == clock) {
            per_op.insert(latency.op.name().to_owned(), figures(&latency.histogram));
        }
        Value::Object(per_op)
    }
}

/// The figures of one distribution in microseconds, and how many samples it has.
fn figures(histogram: &Distribution) -> Value {
    let figures = FIGURES.into_iter().zip(figures_us(histogram));
    let mut object: Map<String, Value> =
        figures.map(|(name, us)| (name.to_owned(), us.into())).collect();
    object.insert("count".to_owned(), histogram.len().into());
    object.into()
}

fn number(text: &str) -> Option<Value> {
    let whole = text.parse::<u64>().ok().map(Value::from);
    whole.or_else(|| text.parse::<f64>().ok().filter(|value| value.is_finite()).map(Value::from))
}
