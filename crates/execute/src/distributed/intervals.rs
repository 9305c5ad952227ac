//! Complete intervals of agents' windows, merged while the run goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use drive::{CompleteInterval, RunningCounts};
use hdrhistogram::Histogram;
use model::{Op, histogram};
use serde::{Deserialize, Serialize};

use super::{TOO_SHORT, split_head, with_head};

/// Intervals that wait for the slowest agent, at most.
const WAITING: usize = 4;

/// A complete interval of one agent, or of all of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AgentInterval {
    index: u64,
    seconds: f64,
    counts: RunningCounts,
    ops: Vec<Op>,
    /// Of each of `ops`.
    latencies: Vec<Histogram<u64>>,
}

/// What precedes the histograms.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    index: u64,
    seconds: f64,
    failures: u64,
    hits: u64,
    misses: u64,
    /// Each operation and the length of its histogram in bytes.
    parts: Vec<(Op, usize)>,
}

impl AgentInterval {
    /// The head and the histograms.
    pub(super) fn encode(interval: &CompleteInterval<'_>) -> Result<Vec<u8>, String> {
        let encoded = interval.latencies.iter().map(histogram::encode);
        let encoded = encoded.collect::<Result<Vec<_>, _>>()?;
        let RunningCounts { failures, hits, misses } = interval.counts;
        let head = Head {
            index: interval.index,
            seconds: interval.seconds,
            failures,
            hits,
            misses,
            parts: interval.ops.iter().copied().zip(encoded.iter().map(Vec::len)).collect(),
        };
        with_head(&head, &encoded.concat())
    }

    /// The bytes are not trusted: there is at most one histogram for each kind of operation, and
    /// none takes more memory than [`histogram::decode`] allows.
    fn decode(bytes: &[u8]) -> Result<AgentInterval, String> {
        let (head, mut rest): (Head, _) = split_head(bytes)?;
        let (mut ops, mut latencies) = (Vec::new(), Vec::new());
        for (op, length) in head.parts {
            let (part, others) = rest.split_at_checked(length).ok_or(TOO_SHORT)?;
            rest = others;
            if ops.contains(&op) {
                return Err(format!("it has {op} twice"));
            }
            ops.push(op);
            latencies.push(histogram::decode(part)?);
        }
        let counts =
            RunningCounts { failures: head.failures, hits: head.hits, misses: head.misses };
        Ok(AgentInterval { index: head.index, seconds: head.seconds, counts, ops, latencies })
    }

    fn add(&mut self, other: &AgentInterval) {
        self.counts = self.counts.plus(other.counts);
        for (op, histogram) in other.ops.iter().zip(&other.latencies) {
            match self.ops.iter().position(|own| own == op) {
                // They grow, so that any two can be added.
                Some(place) => drop(self.latencies[place].add(histogram)),
                None => {
                    self.ops.push(*op);
                    self.latencies.push(histogram.clone());
                }
            }
        }
    }

    pub(super) fn shown(&self) -> CompleteInterval<'_> {
        let AgentInterval { index, seconds, counts, ops, latencies } = self;
        CompleteInterval { index: *index, seconds: *seconds, ops, latencies, counts: *counts }
    }
}

/// Merges each interval of all agents once. One that an agent leaves out, or delivers too late, is
/// not shown.
pub(super) struct IntervalMerger {
    /// Of each agent, as it was sent.
    newest: Vec<Arc<[u8]>>,
    /// By number; of each agent that has delivered.
    waiting: BTreeMap<u64, Vec<Option<AgentInterval>>>,
    /// Intervals below this number were shown.
    shown: u64,
}

impl IntervalMerger {
    pub(super) fn new(agents: usize) -> IntervalMerger {
        IntervalMerger { newest: vec![Arc::default(); agents], waiting: BTreeMap::new(), shown: 0 }
    }

    /// Takes the newest interval of each agent; returns those that all have delivered, in order. What
    /// cannot be decoded is left out: the page alone needs it.
    pub(super) fn take(&mut self, newest: &[Arc<[u8]>]) -> Vec<AgentInterval> {
        let agents = self.newest.len();
        for (agent, (bytes, known)) in newest.iter().zip(&mut self.newest).enumerate() {
            if bytes == known {
                continue;
            }
            known.clone_from(bytes);
            if let Ok(interval) = AgentInterval::decode(bytes)
                && interval.index >= self.shown
            {
                let of_all =
                    self.waiting.entry(interval.index).or_insert_with(|| vec![None; agents]);
                of_all[agent] = Some(interval);
            }
        }
        let mut complete = Vec::new();
        self.waiting.retain(|_, of_all| {
            let mut each = of_all.iter().flatten();
            if each.clone().count() < agents {
                return true;
            }
            if let Some(first) = each.next() {
                complete.push(each.fold(first.clone(), |mut sum, one| {
                    sum.add(one);
                    sum
                }));
            }
            false
        });
        if let Some(last) = complete.last() {
            self.shown = last.index.saturating_add(1);
        }
        let shown = self.shown;
        self.waiting.retain(|index, _| *index >= shown);
        while self.waiting.len() > WAITING {
            self.waiting.pop_first();
        }
        complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: RunningCounts = RunningCounts { failures: 1, hits: 20, misses: 3 };

    fn interval(index: u64, ops: &[Op], values: &[u64]) -> Arc<[u8]> {
        let latencies: Vec<Histogram<u64>> = ops.iter().map(|_| histogram_of(values)).collect();
        let complete =
            CompleteInterval { index, seconds: 1.0, ops, latencies: &latencies, counts: COUNTS };
        AgentInterval::encode(&complete).unwrap().into()
    }

    fn histogram_of(values: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        histogram
    }

    #[test]
    fn the_same_interval_of_all_agents_is_one() {
        let mut merger = IntervalMerger::new(2);
        let [a, b] = [interval(0, &[Op::Read], &[100, 200]), interval(0, &[Op::Update], &[300])];
        assert_eq!(merger.take(&[a.clone(), Arc::default()]), []);
        let merged = merger.take(&[a.clone(), b.clone()]);
        let [all] = &merged[..] else { panic!("{merged:?}") };
        assert_eq!((all.index, all.counts), (0, COUNTS.plus(COUNTS)));
        assert_eq!(all.ops, [Op::Read, Op::Update]);
        assert_eq!(all.latencies, [histogram_of(&[100, 200]), histogram_of(&[300])]);
        assert_eq!(merger.take(&[a, b]), [], "once");
        let both = [interval(1, &[Op::Read], &[5]), interval(1, &[Op::Read], &[7_000_000])];
        let merged = merger.take(&both);
        assert_eq!(merged[0].latencies, [histogram_of(&[5, 7_000_000])]);
    }

    #[test]
    fn an_interval_that_an_agent_leaves_out_holds_up_none_of_the_others() {
        let mut merger = IntervalMerger::new(2);
        let at = |index| interval(index, &[Op::Read], &[1]);
        assert_eq!(merger.take(&[at(0), Arc::default()]), []);
        assert_eq!(merger.take(&[at(1), Arc::default()]), []);
        // The second agent is one interval behind, and its first one was lost.
        let indices = |merged: Vec<AgentInterval>| -> Vec<u64> {
            merged.iter().map(|interval| interval.index).collect()
        };
        assert_eq!(indices(merger.take(&[at(2), at(1)])), [1]);
        assert_eq!(indices(merger.take(&[at(3), at(2)])), [2]);
        for index in 4..100 {
            merger.take(&[at(index), at(2)]);
        }
        assert!(merger.waiting.len() <= WAITING, "a silent agent takes no memory");
    }

    #[test]
    fn what_a_stranger_sends_is_refused() {
        let whole = interval(3, &[Op::Read, Op::Update], &[100, 200]);
        for length in 0..whole.len() {
            assert!(AgentInterval::decode(&whole[..length]).is_err(), "{length}");
        }
        let twice = interval(0, &[Op::Read, Op::Read], &[100]);
        assert!(AgentInterval::decode(&twice).unwrap_err().contains("twice"));
        let mut merger = IntervalMerger::new(1);
        assert_eq!(merger.take(&[twice]), []);
        assert_eq!(merger.take(&[Arc::from(&b"\xff\xff\xff\xff{}"[..])]), []);
        assert_eq!(merger.take(&[whole]).len(), 1);
    }
}
