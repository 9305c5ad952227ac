//! Serialises an outcome for another process of the same version.
//!
//! Format: length of the head, four bytes, little-endian; the head, JSON, with all numbers and the
//! lengths of the histograms; the histograms, in HDR's V2 format, deflated.

use hdrhistogram::Histogram;
use model::Op;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::outcome::{DriveError, PhaseOutcome};
use model::histogram::{decode, encode};

/// Bytes that are no outcome.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("these bytes are not an outcome: {0}")]
pub struct OutcomeDecodeError(String);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    outcome: PhaseOutcome,
    /// For each histogram the kind of operation and the length in bytes, in this order.
    service: Vec<(Op, usize)>,
    response: Vec<(Op, usize)>,
    arrival: Vec<(Op, usize)>,
    miss: Vec<(Op, usize)>,
    intervals: Vec<usize>,
}

impl PhaseOutcome {
    /// All of it: [`PhaseOutcome::from_bytes`] restores it.
    ///
    /// # Errors
    /// A histogram that cannot be encoded.
    pub fn to_bytes(&self) -> Result<Vec<u8>, DriveError> {
        let mut histograms = Vec::new();
        let mut put = |named: &[(Op, Histogram<u64>)]| {
            let one = |(op, histogram): &(Op, Histogram<u64>)| {
                let bytes = encode(histogram).map_err(DriveError::Internal)?;
                histograms.extend_from_slice(&bytes);
                Ok((*op, bytes.len()))
            };
            named.iter().map(one).collect::<Result<Vec<_>, DriveError>>()
        };
        let (service, response) = (put(&self.service)?, put(&self.response)?);
        let (arrival, miss) = (put(&self.arrival)?, put(&self.miss)?);
        histograms.extend(self.intervals.iter().flatten());
        // What is not written needs no copy.
        let outcome = PhaseOutcome {
            service: Vec::new(),
            response: Vec::new(),
            arrival: Vec::new(),
            miss: Vec::new(),
            intervals: Vec::new(),
            ..self.clone()
        };
        let intervals = self.intervals.iter().map(Vec::len).collect();
        let head = Head { outcome, service, response, arrival, miss, intervals };
        let internal = |error: &dyn std::fmt::Display| {
            DriveError::Internal(format!("an outcome cannot be encoded: {error}"))
        };
        let head = serde_json::to_vec(&head).map_err(|error| internal(&error))?;
        let length = u32::try_from(head.len()).map_err(|error| internal(&error))?;
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend(head);
        bytes.extend(histograms);
        Ok(bytes)
    }

    /// Restores what [`PhaseOutcome::to_bytes`] returned.
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<PhaseOutcome, OutcomeDecodeError> {
        let mut rest = Rest(bytes);
        let length = rest.take(4)?.try_into().map(u32::from_le_bytes).unwrap_or_default();
        let head: Head = serde_json::from_slice(rest.take(length as usize)?)
            .map_err(|error| OutcomeDecodeError(error.to_string()))?;
        let mut named = |lengths: Vec<(Op, usize)>| {
            // A histogram takes far more memory than its bytes: bounds their number.
            if (1..lengths.len()).any(|at| lengths[..at].iter().any(|(op, _)| *op == lengths[at].0))
            {
                return Err(OutcomeDecodeError("an operation has two histograms".to_owned()));
            }
            let one = |(op, length)| {
                let bytes = rest.take(length)?;
                decode(bytes).map(|histogram| (op, histogram)).map_err(OutcomeDecodeError)
            };
            lengths.into_iter().map(one).collect::<Result<Vec<_>, OutcomeDecodeError>>()
        };
        let (service, response) = (named(head.service)?, named(head.response)?);
        let (arrival, miss) = (named(head.arrival)?, named(head.miss)?);
        let interval = |length| rest.take(length).map(<[u8]>::to_vec);
        let intervals = head.intervals.into_iter().map(interval).collect::<Result<Vec<_>, _>>()?;
        match rest.0 {
            [] => Ok(PhaseOutcome { service, response, arrival, miss, intervals, ..head.outcome }),
            _ => Err(OutcomeDecodeError("there are too many".to_owned())),
        }
    }
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], OutcomeDecodeError> {
        let cut = || OutcomeDecodeError("they end too early".to_owned());
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(cut)?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use model::Count;
    use proptest::prelude::*;
    use workload::{Mix, Workload, WorkloadSpec};

    use super::*;
    use crate::outcome::{AnswerFailure, FailureKind, SteadyReport};
    use crate::{LoadPlan, NoObserver, PhaseKind, Ticks, drive, open};
    use model::{Arrivals, LoadShape, Pacing, StopCondition};

    /// The outcome of a real phase, with all other fields filled.
    fn outcome() -> PhaseOutcome {
        let mix = Mix::parse("read=0.5,insert=0.3,update=0.2").unwrap();
        let spec =
            WorkloadSpec { records: Count(1000), mix, ..WorkloadSpec::preset("ycsb-a").unwrap() };
        let workload = Arc::new(Workload::new(&spec).unwrap());
        let plan = LoadPlan {
            shape: LoadShape {
                pacing: Pacing::Open { rate: 20e3, arrivals: Arrivals::Poisson },
                until: StopCondition { operations: None, time: Some(Duration::from_millis(300)) },
                ..LoadShape::default()
            },
            interval: Duration::from_millis(100),
            keep_intervals: true,
            ..LoadPlan::closed(PhaseKind::Mix, 2)
        };
        let store = open(&"null".parse().unwrap()).unwrap();
        let mut outcome = drive(&Ticks::new(), store, &workload, &plan, &mut NoObserver).unwrap();
        outcome.arrival = outcome.service.clone();
        outcome.miss = outcome.service[..1].to_vec();
        outcome.modelled_s = 1.0 / 3.0;
        outcome.failures = vec![AnswerFailure {
            kind: FailureKind::OutOfMemory,
            count: 3,
            first: "\"ä\"".to_owned(),
        }];
        outcome.steady = Some(SteadyReport { rounds: vec![0.1 + 0.2, 1e-300], reached: false });
        outcome.mean_wake_up_s = Some(1.0 / 3.0);
        outcome.warnings = vec!["one".to_owned(), "two".to_owned()];
        outcome.fingerprint = u64::MAX - 1;
        outcome
    }

    #[test]
    fn an_outcome_survives_encoding() {
        let outcome = outcome();
        assert!(outcome.series.len() > 3 && outcome.intervals.len() == outcome.series.len());
        assert!(outcome.response.len() == 3 && outcome.operations > 0);
        let bytes = outcome.to_bytes().unwrap();
        let carried = PhaseOutcome::from_bytes(&bytes).unwrap();
        assert_eq!(carried, outcome);
        assert_eq!(carried.to_bytes().unwrap(), bytes);
        for (point, interval) in carried.series.iter().zip(&carried.intervals) {
            let histogram = decode(interval).unwrap();
            assert_eq!(histogram.len(), point.operations);
            assert_eq!(histogram.value_at_percentile(99.0), point.p99_ns);
        }
    }

    #[test]
    fn truncated_and_extended_bytes_are_refused() {
        let bytes = outcome().to_bytes().unwrap();
        for length in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
            assert!(PhaseOutcome::from_bytes(&bytes[..length]).is_err(), "{length}");
        }
        assert!(PhaseOutcome::from_bytes(&[&bytes[..], b"x"].concat()).is_err());
        let once = outcome();
        let (op, histogram) = once.service[0].clone();
        let twice =
            PhaseOutcome { service: vec![(op, histogram.clone()), (op, histogram)], ..once };
        let refused = PhaseOutcome::from_bytes(&twice.to_bytes().unwrap()).unwrap_err();
        assert!(refused.to_string().contains("two histograms"), "{refused}");
    }

    proptest! {
        #[test]
        fn garbage_does_not_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200)
        ) {
            prop_assert!(PhaseOutcome::from_bytes(&bytes).is_err());
        }
    }
}
