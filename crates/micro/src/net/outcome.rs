//! Results of the ends of a cell.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use model::Reading;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::job::{Kind, NetJob};

/// Begun before an end's threads start and ended after they did, on the thread that starts
/// them: counters of the process that threads inherit cover the phase.
pub trait EndMeter {
    fn begin(&mut self);
    fn end(&mut self) -> Vec<Reading>;
}

/// A meter that reads nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMeter;

impl EndMeter for NoMeter {
    fn begin(&mut self) {}
    fn end(&mut self) -> Vec<Reading> {
        Vec::new()
    }
}

/// The result of one end in one phase.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EndOutcome {
    /// Whole messages: round trips of a ping-pong's client, those sent back by its server; sent
    /// by a flow's client, received by its server.
    pub messages: u64,
    /// Messages that were sent and never came whole. Only where a transport may lose them.
    pub lost: u64,
    /// Messages that arrived after they were given up, twice, or behind a later one.
    pub late: u64,
    /// Messages whose content was wrong.
    pub corrupt: u64,
    /// Places that a flow's receiver touched.
    pub touched: u64,
    /// From the first to the last message of the phase.
    pub seconds: f64,
    /// CPU time of this end's threads, where the kernel gives it.
    pub cpu_user_ns: Option<u64>,
    pub cpu_system_ns: Option<u64>,
    /// Nanoseconds: a ping-pong's round trips at the client, a flow's one-way delays at the
    /// server.
    pub latency: NetLatency,
    /// The readings of the caller's [`EndMeter`].
    pub readings: Vec<Reading>,
}

/// A distribution, or why there is none.
#[derive(Debug, Clone)]
pub struct NetLatency(pub Result<Histogram<u64>, String>);

impl Default for NetLatency {
    fn default() -> Self {
        NetLatency(Err("this end measures no latency".to_owned()))
    }
}

impl NetLatency {
    /// An empty distribution from 1 ns on with 3 significant digits.
    pub fn empty() -> NetLatency {
        NetLatency(Histogram::new(3).map_err(|error| error.to_string()))
    }

    pub fn record(&mut self, ns: u64) {
        if let Ok(histogram) = &mut self.0 {
            // The histogram resizes itself, so this fails for centuries only.
            if let Err(error) = histogram.record(ns.max(1)) {
                self.0 = Err(error.to_string());
            }
        }
    }

    fn add(&mut self, other: &NetLatency) {
        match (&mut self.0, &other.0) {
            (Ok(all), Ok(more)) => {
                if let Err(error) = all.add(more) {
                    self.0 = Err(error.to_string());
                }
            }
            (_, Err(why)) => self.0 = Err(why.clone()),
            (Err(_), Ok(_)) => {}
        }
    }

    /// Decodes what [`NetLatency::encoded`] returned.
    ///
    /// # Errors
    /// The text is no encoded histogram.
    pub fn decode(text: &str) -> Result<Histogram<u64>, String> {
        let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
        model::histogram::decode(&bytes)
    }

    /// HDR's V2 format, deflated, in base64.
    pub fn encoded(&self) -> Result<String, String> {
        let histogram = self.0.as_ref().map_err(Clone::clone)?;
        Ok(STANDARD.encode(model::histogram::encode(histogram)?))
    }
}

#[derive(Serialize, Deserialize)]
enum EncodedLatency {
    Histogram(String),
    Missing(String),
}

impl Serialize for NetLatency {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self.encoded() {
            Ok(text) => EncodedLatency::Histogram(text),
            Err(why) => EncodedLatency::Missing(why),
        }
        .serialize(out)
    }
}

impl<'de> Deserialize<'de> for NetLatency {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        Ok(NetLatency(match EncodedLatency::deserialize(from)? {
            EncodedLatency::Histogram(text) => {
                Ok(NetLatency::decode(&text).map_err(D::Error::custom)?)
            }
            EncodedLatency::Missing(why) => Err(why),
        }))
    }
}

impl EndOutcome {
    /// The result of an end that measures latencies.
    pub(super) fn timing() -> EndOutcome {
        EndOutcome { latency: NetLatency::empty(), ..EndOutcome::default() }
    }

    /// Adds another thread's counts; the time is not added.
    pub(super) fn add(&mut self, other: &EndOutcome) {
        self.messages += other.messages;
        self.lost += other.lost;
        self.late += other.late;
        self.corrupt += other.corrupt;
        self.touched += other.touched;
        let sum = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        self.cpu_user_ns = sum(self.cpu_user_ns, other.cpu_user_ns);
        self.cpu_system_ns = sum(self.cpu_system_ns, other.cpu_system_ns);
        self.latency.add(&other.latency);
    }

    pub fn cpu(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.cpu_user_ns? + self.cpu_system_ns?))
    }
}

/// A measured cell.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MeasuredCell {
    pub job: NetJob,
    pub client: EndOutcome,
    pub server: EndOutcome,
    /// Notes for reading the result.
    pub notes: Vec<String>,
}

impl MeasuredCell {
    /// Messages that arrived: round trips, or messages of a flow.
    pub fn messages(&self) -> u64 {
        self.receiving_end().messages
    }

    /// The end at which messages arrive.
    pub(super) fn receiving_end(&self) -> &EndOutcome {
        match self.job.kind {
            Kind::Pingpong => &self.client,
            Kind::Flow => &self.server,
        }
    }

    /// Payload that was delivered, both ways.
    pub fn bytes(&self) -> u64 {
        let ways = match self.job.kind {
            Kind::Pingpong => 2,
            Kind::Flow => 1,
        };
        self.messages() * self.job.size * ways
    }

    /// Messages a second; none where nothing arrived.
    pub fn messages_s(&self) -> Option<f64> {
        self.per_second(self.messages())
    }

    /// Payload bytes a second.
    pub fn bytes_s(&self) -> Option<f64> {
        self.per_second(self.bytes())
    }

    fn per_second(&self, things: u64) -> Option<f64> {
        let seconds = self.receiving_end().seconds;
        (things > 0 && seconds > 0.0).then(|| things as f64 / seconds)
    }

    /// CPU nanoseconds of an end for each payload byte delivered.
    pub fn cpu_ns_per_byte(&self, end: &EndOutcome) -> Option<f64> {
        let bytes = self.bytes();
        (bytes > 0).then_some(end.cpu()?.as_nanos() as f64 / bytes as f64)
    }

    /// The round trips, or the one-way delays, in nanoseconds.
    pub fn latency(&self) -> &NetLatency {
        &self.receiving_end().latency
    }

    pub fn lost(&self) -> u64 {
        self.receiving_end().lost
    }

    pub fn late(&self) -> u64 {
        self.receiving_end().late
    }

    pub fn corrupt(&self) -> u64 {
        self.client.corrupt + self.server.corrupt
    }

    /// Why the result is invalid. Loss is a result and no reason.
    pub fn invalid_because(&self) -> Vec<String> {
        let mut why = Vec::new();
        if self.corrupt() > 0 {
            why.push(format!("{} messages were not what was sent", self.corrupt()));
        }
        if self.messages() == 0 {
            why.push(match self.lost() {
                0 => "no message went through".to_owned(),
                lost => format!("none of {lost} messages arrived"),
            });
        }
        why
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_resizes_and_round_trips() {
        let mut latency = NetLatency::empty();
        for ns in [0, 1, 1_500, 20_000_000, 3_600_000_000_000] {
            latency.record(ns);
        }
        let text = serde_json::to_string(&latency).unwrap();
        let read: NetLatency = serde_json::from_str(&text).unwrap();
        let (kept, read) = (latency.0.unwrap(), read.0.unwrap());
        assert_eq!(kept, read);
        assert_eq!((read.len(), read.min()), (5, 1));
        let off = |percentile: f64, value: f64| {
            (read.value_at_percentile(percentile) as f64 / value - 1.0).abs()
        };
        assert!(off(60.0, 1.5e3) < 1e-3 && off(80.0, 2e7) < 1e-3 && off(100.0, 3.6e12) < 1e-3);
    }

    #[test]
    fn thread_results_add_up_and_a_missing_latency_stays_missing() {
        let mut whole = EndOutcome { messages: 2, cpu_user_ns: Some(5), ..EndOutcome::timing() };
        whole.latency.record(1000);
        let mut other =
            EndOutcome { messages: 3, lost: 1, cpu_user_ns: Some(7), ..EndOutcome::timing() };
        other.latency.record(5_000_000);
        whole.add(&other);
        assert_eq!((whole.messages, whole.lost, whole.cpu_user_ns), (5, 1, Some(12)));
        assert_eq!(whole.latency.0.as_ref().unwrap().len(), 2);
        assert!(whole.latency.0.as_ref().unwrap().max() > 4_900_000);
        whole.add(&EndOutcome::default());
        assert!(whole.latency.0.is_err() && whole.cpu_user_ns.is_none());
    }
}
