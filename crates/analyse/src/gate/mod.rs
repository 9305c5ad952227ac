//! A gate: whether B is worse than A by more than stated changes, in every cell.
//!
//! Each condition in each cell is one judgement: a regression only where the data prove it, held
//! only where they prove the opposite, and undecided otherwise, with the repeats that would
//! decide. `docs/decisions/0022-a-gate-proves.md` says how often it errs.

mod condition;
mod evidence;
mod judge;
mod repeats;
mod sentence;

use std::collections::BTreeMap;

use model::{Run, RunSettings};
use thiserror::Error;

use crate::compare::{Comparison, ComparisonSide, Unmatched};
use crate::holm::holm;
use evidence::{Evidence, GateCell};
use judge::UncorrectedJudgement;

pub use condition::{GateCondition, GateConditionError, GateRelation};
pub use sentence::percent as signed_percent;

/// Several conditions and how sure their verdicts are to be.
#[derive(Debug, Clone, PartialEq)]
pub struct GateRequest {
    pub conditions: Vec<GateCondition>,
    /// Of the two-sided interval of each judgement, between 0.5 and 1, both excluded.
    pub confidence: f64,
}

/// The confidence of a gate's intervals by default.
///
/// Half of the rest, 0.5 %, is the chance of a false regression in one look at the data, and a
/// gate that lacks repeats is looked at twice.
pub const GATE_CONFIDENCE: f64 = 0.99;

impl GateRequest {
    /// The probability outside of the interval on each side.
    pub fn tail(&self) -> f64 {
        (1.0 - self.confidence) / 2.0
    }
}

/// All judgements of a gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    pub confidence: f64,
    /// By condition, then by cell.
    pub judgements: Vec<Judgement>,
    /// What was not judged although it is no failure: a load phase, an operation that a cell does
    /// not have.
    pub notes: Vec<String>,
}

/// What a gate says as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateOutcome {
    /// Every judgement holds.
    Passed,
    /// At least one regression is proven.
    Failed,
    /// None is proven, and at least one judgement is undecided.
    Undecided,
}

/// One condition in one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    pub condition: GateCondition,
    pub cell: String,
    /// The numbers of repeats.
    pub runs_a: usize,
    pub runs_b: usize,
    /// None where the data have no ratio.
    pub size: Option<GateSize>,
    pub verdict: GateVerdict,
}

/// B / A of the geometric means over the repeats, and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateSize {
    pub ratio: f64,
    /// The ends of the interval at the gate's confidence, of this judgement alone.
    pub low: f64,
    pub high: f64,
    /// Of so large a change beyond the threshold if there were none; one-sided.
    pub p: f64,
    /// The same after Holm's correction for all judgements.
    pub p_holm: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum GateVerdict {
    /// The change is proven to be beyond the threshold.
    Regression,
    /// The change is proven not to be beyond the threshold.
    Holds,
    /// The interval is on neither side of the threshold.
    TooFewRepeats {
        /// How many more each side needs, if the change and the variation stay as they are; None
        /// where so many would not suffice that the number means nothing.
        more: Option<u32>,
    },
    /// There is nothing to judge by, for this reason.
    NotJudged(String),
}

#[derive(Debug, Clone, PartialEq, Error)]
pub enum GateError {
    #[error("the condition `{condition}`: no cell has `{name}` on either side: {why}")]
    NoCell { condition: String, name: String, why: String },
}

impl Gate {
    pub fn outcome(&self) -> GateOutcome {
        let any = |of: fn(&GateVerdict) -> bool| self.judgements.iter().any(|it| of(&it.verdict));
        match (
            any(|verdict| *verdict == GateVerdict::Regression),
            any(|verdict| *verdict != GateVerdict::Holds),
        ) {
            (true, _) => GateOutcome::Failed,
            (false, true) => GateOutcome::Undecided,
            (false, false) => GateOutcome::Passed,
        }
    }
}

/// Judges every condition in every cell of a comparison, whose runs are among `a` and `b`.
///
/// The change is the ratio of geometric means over the repeats, its interval Welch's t on
/// logarithms, as in the comparison. A regression is proven where the one-sided p-value of a
/// change beyond the threshold is below half of what the confidence leaves, after Holm's correction
/// for all judgements; that a condition holds is proven by the interval of the single judgement,
/// since all of them have to hold (an intersection-union test: Berger, Technometrics 24, 1982).
/// A side of a single run proves nothing. The load phase is judged only where nothing else is
/// there.
///
/// # Errors
/// A condition on a metric that no cell has.
pub fn gate(
    comparison: &Comparison,
    a: &[&Run],
    b: &[&Run],
    request: &GateRequest,
) -> Result<Gate, GateError> {
    let runs_a: BTreeMap<&str, &Run> = a.iter().map(|run| (run.id.as_str(), *run)).collect();
    let runs_b: BTreeMap<&str, &Run> = b.iter().map(|run| (run.id.as_str(), *run)).collect();
    let cells: Vec<GateCell<'_>> =
        comparison.cells.iter().map(|cell| GateCell::new(cell, &runs_a, &runs_b)).collect();
    let unmatched = comparison.unmatched.iter().filter(|it| it.side == ComparisonSide::A);
    let unmatched: Vec<&Unmatched> = unmatched.collect();
    // Data are loaded once for many repeats, so that loads seldom have repeats of their own.
    let only_loads = cells.iter().all(|cell| is_load(&cell.compared.settings));
    let is_judged = |settings: &RunSettings| only_loads || !is_load(settings);
    let mut notes: Vec<String> = cells
        .iter()
        .filter(|cell| !is_judged(&cell.compared.settings))
        .map(|cell| format!("{}: not judged, it is the load phase", cell.compared.title))
        .collect();
    let mut judged: Vec<UncorrectedJudgement> = Vec::new();
    for condition in &request.conditions {
        let (mut found, mut absent) = (false, None);
        for cell in cells.iter().filter(|cell| is_judged(&cell.compared.settings)) {
            match cell.evidence(&condition.metric) {
                Evidence::Absent(why) => {
                    notes.push(format!("{}: no {}: {why}", cell.compared.title, condition.name));
                    absent.get_or_insert(why);
                }
                evidence => {
                    found = true;
                    judged.push(UncorrectedJudgement::new(condition, cell, evidence));
                }
            }
        }
        if let Some(why) = absent.filter(|_| !found) {
            let (condition, name) = (condition.to_string(), condition.name.clone());
            return Err(GateError::NoCell { condition, name, why });
        }
        let missing = unmatched.iter().filter(|it| is_judged(&it.settings));
        judged.extend(missing.map(|missing| UncorrectedJudgement::missing(condition, missing)));
    }
    let p: Vec<f64> = judged.iter().filter_map(|it| it.change.map(|change| change.p())).collect();
    let (count, mut corrected) = (p.len(), holm(&p).into_iter());
    let judgements = judged
        .into_iter()
        .map(|one| {
            let p_holm = one.change.and_then(|_| corrected.next());
            one.judgement(p_holm.unwrap_or(1.0), request.tail(), count)
        })
        .collect();
    Ok(Gate { confidence: request.confidence, judgements, notes })
}

fn is_load(settings: &RunSettings) -> bool {
    settings.get("phase").is_some_and(|phase| phase == "load")
}
