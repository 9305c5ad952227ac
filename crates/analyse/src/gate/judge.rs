//! The judgement of one condition in one cell.

use super::evidence::{Evidence, GateCell};
use super::{GateCondition, GateRelation, GateSize, GateVerdict, Judgement, repeats};
use crate::compare::Unmatched;
use crate::quantile::{student, student_tails};
use crate::welch::{LogDifference, LogSample, log_difference};

/// A condition in a cell, before the correction for the others.
pub(super) struct UncorrectedJudgement {
    condition: GateCondition,
    cell: String,
    runs_a: usize,
    runs_b: usize,
    /// None: not judged, and `why`.
    pub(super) change: Option<Change>,
    why: String,
}

/// The change of B relative to A, as its logarithm.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) a: LogSample,
    pub(super) b: LogSample,
    pub(super) resolution: f64,
    difference: LogDifference,
    /// How far the difference is beyond the threshold; negative on the side that holds.
    pub(super) beyond: f64,
}

impl Change {
    pub(super) fn new(
        a: LogSample,
        b: LogSample,
        resolution: f64,
        condition: &GateCondition,
    ) -> Change {
        let difference = log_difference(a, b);
        let above = difference.log - condition.change.ln_1p();
        let beyond = match condition.relation {
            GateRelation::Above => above,
            GateRelation::Below => -above,
        };
        Change { a, b, resolution, difference, beyond }
    }

    /// The probability of so large a change beyond the threshold if it were at the threshold:
    /// the upper tail of Student's t at `(beyond - resolution) / se`.
    pub(super) fn p(&self) -> f64 {
        self.upper_tail(self.beyond - self.resolution)
    }

    /// The same of so small a change.
    fn p_of_holding(&self) -> f64 {
        match self.difference.se > 0.0 || self.resolution > 0.0 {
            true => self.upper_tail(-self.beyond - self.resolution),
            // Equal values are not beyond a threshold of no change.
            false => f64::from(u8::from(self.beyond > 0.0)),
        }
    }

    fn upper_tail(&self, distance: f64) -> f64 {
        let LogDifference { se, df, .. } = self.difference;
        if se > 0.0 {
            let tail = student_tails(distance.abs() / se, df) / 2.0;
            return if distance >= 0.0 { tail } else { 1.0 - tail };
        }
        f64::from(u8::from(distance <= 0.0))
    }

    /// `exp(d -+ (t(1 - tail, df) se + resolution))`.
    fn size(&self, p_holm: f64, tail: f64) -> GateSize {
        let LogDifference { log, se, df } = self.difference;
        let half = if se > 0.0 { student(1.0 - tail, df) * se } else { 0.0 } + self.resolution;
        let (low, high) = ((log - half).exp(), (log + half).exp());
        GateSize { ratio: log.exp(), low, high, p: self.p(), p_holm }
    }
}

impl UncorrectedJudgement {
    pub(super) fn new(
        condition: &GateCondition,
        cell: &GateCell<'_>,
        evidence: Evidence,
    ) -> UncorrectedJudgement {
        let (change, why) = match evidence {
            Evidence::Repeats { a, b, resolution } => {
                (Some(Change::new(a, b, resolution, condition)), String::new())
            }
            Evidence::Absent(why) | Evidence::None(why) => (None, why),
        };
        UncorrectedJudgement {
            condition: condition.clone(),
            cell: cell.compared.title.clone(),
            runs_a: cell.a.len(),
            runs_b: cell.b.len(),
            change,
            why,
        }
    }

    /// A cell that B does not have.
    pub(super) fn missing(condition: &GateCondition, cell: &Unmatched) -> UncorrectedJudgement {
        let why = match cell.invalid_on_other_side {
            0 => "B has no run of it".to_owned(),
            count => format!("B has no valid run of it, and {count} invalid"),
        };
        UncorrectedJudgement {
            condition: condition.clone(),
            cell: cell.title.clone(),
            runs_a: cell.runs,
            runs_b: 0,
            change: None,
            why,
        }
    }

    /// `p_holm`: after the correction for all `count` judgements of the gate. `tail`: what p may
    /// be at most.
    pub(super) fn judgement(self, p_holm: f64, tail: f64, count: usize) -> Judgement {
        let verdict = match &self.change {
            None => GateVerdict::NotJudged(self.why),
            Some(_) if p_holm < tail => GateVerdict::Regression,
            Some(change) if change.p_of_holding() < tail => GateVerdict::Holds,
            Some(change) => {
                // What is beyond the threshold has to pass the correction, too.
                let tail = if change.beyond > 0.0 { tail / count as f64 } else { tail };
                GateVerdict::TooFewRepeats { more: repeats::more(change, tail) }
            }
        };
        Judgement {
            condition: self.condition,
            cell: self.cell,
            runs_a: self.runs_a,
            runs_b: self.runs_b,
            size: self.change.map(|change| change.size(p_holm, tail)),
            verdict,
        }
    }
}
