//! A measured cell as JSON, under the names that results have everywhere.

use model::Reading;
use model::figures::{FIGURES, figures_us};
use serde_json::{Map, Value, json};

use super::job::Kind;
use super::outcome::{EndOutcome, MeasuredCell};

/// The signal of the share of last-level references that miss.
const MISSES: &str = "llc.miss_ratio";

impl EndOutcome {
    fn reading(&self, signal: &str) -> Option<&Reading> {
        self.readings.iter().find(|reading| reading.signal == signal)
    }
}

impl MeasuredCell {
    /// The LLC miss ratio of the end at which data arrives.
    pub fn arrival_misses(&self) -> Option<&Reading> {
        self.receiving_end().reading(MISSES)
    }

    /// One object.
    pub fn summary(&self) -> Value {
        let job = &self.job;
        let ends = |of: &dyn Fn(&EndOutcome) -> Option<f64>| json!({ "client": of(&self.client), "server": of(&self.server) });
        let signal = |name: &'static str| ends(&|end| end.reading(name).and_then(Reading::value));
        let way = match job.kind {
            Kind::Pingpong => "round_trip",
            Kind::Flow => "one_way",
        };
        let figures: Value = match &self.latency().0 {
            Ok(histogram) => FIGURES
                .iter()
                .zip(figures_us(&histogram.into()))
                .map(|(name, value)| ((*name).to_owned(), json!(value)))
                .collect::<Map<_, _>>()
                .into(),
            Err(_) => Value::Null,
        };
        let messages = self.messages();
        let cpu_s_per_mop = |end: &EndOutcome| {
            (messages > 0).then_some(end.cpu()?.as_secs_f64() / messages as f64 * 1e6)
        };
        json!({
            "stack": job.transport.stack(),
            "transport": job.transport,
            "message_bytes": job.size,
            "connections": job.connections,
            "threads": job.threads,
            "stride_bytes": (job.kind == Kind::Flow).then_some(job.stride),
            "reuse_bytes": (job.kind == Kind::Flow).then_some(job.reuse),
            "target_rate_ops_s": job.rate,
            "busy_poll": job.busy_poll,
            "socket_buffer_bytes": job.socket_buffer,
            "timeout_s": job.timeout_s,
            "seconds": match job.kind {
                Kind::Pingpong => self.client.seconds,
                Kind::Flow => self.server.seconds,
            },
            "sent": match job.kind {
                Kind::Pingpong => self.client.messages + self.client.lost,
                Kind::Flow => self.client.messages,
            },
            "operations": messages,
            "lost": self.lost(),
            "late": self.late(),
            "corrupt": self.corrupt(),
            "touched": self.server.touched,
            "throughput_ops_s": self.messages_s(),
            "throughput_bytes_s": self.bytes_s(),
            "latency_us": { way: figures },
            "latency_unavailable": self.latency().0.as_ref().err(),
            "latency_histogram": self.latency().encoded().ok(),
            "cpu_ns_per_byte": ends(&|end| self.cpu_ns_per_byte(end)),
            "cpu_s_per_mop": ends(&cpu_s_per_mop),
            "ipc": signal("ipc"),
            "llc_miss_ratio": signal(MISSES),
            "readings": { "client": self.client.readings, "server": self.server.readings },
            "notes": self.notes,
            "valid": self.invalid_because().is_empty(),
            "invalid_because": self.invalid_because(),
        })
    }
}
