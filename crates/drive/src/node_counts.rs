//! What the client threads count of each of several servers.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

/// The most servers of an outcome, as of a cluster: each has a distribution.
const MOST_NODES: usize = 1000;
/// Significant digits of the distributions: 37 KB a server and thread.
pub(crate) const DIGITS: u8 = 2;

/// Requests to one server, in the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeCounts {
    /// Answers that were accepted.
    pub answers: u64,
    /// Requests that it did not answer.
    pub failed: u64,
    /// Keys that reads asked for, and those of them that were found.
    pub read: u64,
    pub found: u64,
    /// From sending to the answer, in nanoseconds.
    #[serde(serialize_with = "encode", deserialize_with = "decode")]
    pub latency: Histogram<u64>,
    /// Of each interval of the window.
    pub intervals: Vec<NodeInterval>,
}

/// One interval of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeInterval {
    pub answers: u64,
    /// The sum of their latencies.
    pub nanos: u64,
}

impl Default for NodeCounts {
    fn default() -> Self {
        let latency =
            Histogram::new(DIGITS).unwrap_or_else(|_| unreachable!("2 is a valid number"));
        NodeCounts { answers: 0, failed: 0, read: 0, found: 0, latency, intervals: Vec::new() }
    }
}

impl NodeCounts {
    /// Counts one answer about `read` keys of a read, of which `found` were found.
    #[inline]
    pub(crate) fn count(&mut self, (read, found): (usize, usize), nanos: u64, interval: usize) {
        self.answers += 1;
        self.read += read as u64;
        self.found += found as u64;
        self.latency.saturating_record(nanos);
        if self.intervals.len() <= interval {
            self.intervals.resize(interval + 1, NodeInterval::default());
        }
        let current = &mut self.intervals[interval];
        current.answers += 1;
        current.nanos += nanos;
    }

    pub(crate) fn add(&mut self, other: &NodeCounts) {
        self.answers += other.answers;
        self.failed += other.failed;
        self.read += other.read;
        self.found += other.found;
        // Both grow to any value.
        let _ = self.latency.add(&other.latency);
        if self.intervals.len() < other.intervals.len() {
            self.intervals.resize(other.intervals.len(), NodeInterval::default());
        }
        for (own, other) in self.intervals.iter_mut().zip(&other.intervals) {
            own.answers += other.answers;
            own.nanos += other.nanos;
        }
    }

    /// Share of the keys read that were found; None without reads.
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.read > 0).then(|| self.found as f64 / self.read as f64)
    }
}

/// Adds the counts of other threads or clients.
pub(crate) fn add_all(
    all: &mut BTreeMap<String, NodeCounts>,
    others: &BTreeMap<String, NodeCounts>,
) {
    for (name, counts) in others {
        all.entry(name.clone()).or_default().add(counts);
    }
}

/// The most loaded server over the mean of those that answered anything; None without answers.
pub fn imbalance(nodes: &BTreeMap<String, NodeCounts>) -> Option<f64> {
    let answers = nodes.values().map(|node| node.answers).filter(|answers| *answers > 0);
    let (count, all) = (answers.clone().count(), answers.clone().sum::<u64>());
    Some(answers.max()? as f64 * count as f64 / all as f64)
}

fn encode<S: Serializer>(latency: &Histogram<u64>, to: S) -> Result<S::Ok, S::Error> {
    model::histogram::encode(latency).map_err(ser::Error::custom)?.serialize(to)
}

fn decode<'de, D: Deserializer<'de>>(from: D) -> Result<Histogram<u64>, D::Error> {
    let bytes = Vec::<u8>::deserialize(from)?;
    let latency = model::histogram::decode(&bytes).map_err(de::Error::custom)?;
    match latency.sigfig() {
        DIGITS => Ok(latency),
        other => Err(de::Error::custom(format!("a server's latency has {other} digits"))),
    }
}

/// The counts by name, of at most [`MOST_NODES`].
pub(crate) fn few<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, NodeCounts>, D::Error> {
    struct Few;
    impl<'de> de::Visitor<'de> for Few {
        type Value = BTreeMap<String, NodeCounts>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "at most {MOST_NODES} servers")
        }
        fn visit_map<A: de::MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
            let mut all = BTreeMap::new();
            while let Some((name, counts)) = from.next_entry()? {
                if all.len() == MOST_NODES {
                    return Err(de::Error::custom("an outcome has too many servers"));
                }
                all.insert(name, counts);
            }
            Ok(all)
        }
    }
    from.deserialize_map(Few)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(times: u64) -> NodeCounts {
        let mut node = NodeCounts::default();
        for time in 0..times {
            node.count((1, usize::from(time % 2 == 0)), 1000 * (time + 1), time as usize % 3);
        }
        node
    }

    #[test]
    fn imbalance_is_the_most_loaded_over_the_mean() {
        let nodes = |all: &[u64]| {
            let named = |(at, times): (usize, &u64)| (at.to_string(), answered(*times));
            all.iter().enumerate().map(named).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(imbalance(&nodes(&[])), None);
        assert_eq!(imbalance(&nodes(&[5, 5, 5])), Some(1.0));
        assert_eq!(imbalance(&nodes(&[6, 3, 0])), Some(6.0 / 4.5));
    }

    #[test]
    fn counts_of_threads_add_up() {
        let mut sum = answered(4);
        sum.add(&answered(8));
        assert_eq!((sum.answers, sum.latency.len(), sum.hit_ratio()), (12, 12, Some(0.5)));
        assert_eq!(sum.intervals.iter().map(|one| one.answers).collect::<Vec<_>>(), [5, 4, 3]);
        assert_eq!(sum.intervals.iter().map(|one| one.nanos).sum::<u64>(), 46_000);
    }

    #[test]
    fn hostile_counts_are_refused() {
        #[derive(Deserialize)]
        struct Outcome(#[serde(deserialize_with = "few")] BTreeMap<String, NodeCounts>);
        let text = serde_json::to_string(&answered(5)).unwrap();
        assert_eq!(serde_json::from_str::<NodeCounts>(&text).unwrap(), answered(5));
        let many = |count: usize| {
            let all: Vec<String> = (0..count).map(|at| format!("\"{at}\":{text}")).collect();
            serde_json::from_str::<Outcome>(&format!("{{{}}}", all.join(",")))
        };
        assert_eq!(many(MOST_NODES).unwrap().0.len(), MOST_NODES);
        assert!(many(MOST_NODES + 1).is_err());
        let fine = NodeCounts { latency: Histogram::new(3).unwrap(), ..answered(5) };
        let fine = serde_json::to_string(&fine).unwrap();
        assert!(serde_json::from_str::<NodeCounts>(&fine).is_err());
    }
}
