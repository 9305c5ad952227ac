//! Load as a share of a maximum: `rate = "80%"` of the highest rate that holds an objective,
//! which the study finds first, as `kvmeter search` does, and keeps with its runs.

use std::time::Duration;

use analyse::search::SearchRequest;
use analyse::slo::Objective;
use model::design::Factor;
use model::{Op, Rate, RunSettings};
use toml::Spanned;
use workload::WorkloadSpec as Workload;

use crate::error::StudyError;
use crate::load::LoadConfig;
use crate::text::{StudySpec, StudyText};

/// Of a trial that need not be longer, as in `kvmeter search`.
const TRIAL: Duration = Duration::from_secs(5);
/// Trials that a calibration takes: a guess, for the estimate.
const GUESSED_TRIALS: f64 = 14.0;

/// How the maximum of a step is found.
#[derive(Debug, Clone)]
pub struct Calibration {
    pub objective: Objective,
    pub request: SearchRequest,
    /// Of a trial that need not be longer.
    pub time: Duration,
    pub most_time: Option<Duration>,
    /// Settings that the runs of one calibration have in common with those that use its maximum:
    /// all that they depend on but for the rate.
    pub key: RunSettings,
}

/// A maximum that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Maximum {
    /// The highest rate that held, in operations per second.
    pub rate_ops_s: f64,
    /// What held, and what ended the search, in a sentence.
    pub words: String,
}

/// Settings that differ between the runs of one calibration and those of its levels.
const OWN: [&str; 4] = ["rate", "rate_profile", "time", "repeat"];
/// Keys on which a maximum does not depend.
const OF_RATE: [&str; 3] = ["measure.rate", "measure.rate_profile", "measure.time"];

/// The calibration of a study; none if it has none.
///
/// # Errors
/// An invalid value, at its place.
pub(crate) fn of_study(
    source: &StudyText,
    spec: &StudySpec,
) -> Result<Option<Calibration>, StudyError> {
    let Some(table) = &spec.calibrate else { return Ok(None) };
    let objective: Objective = table
        .slo
        .get_ref()
        .parse()
        .map_err(|error| source.at(table.slo.span(), &format!("{error}")))?;
    let rate = |rate: &Option<Spanned<Rate>>| rate.as_ref().map(|rate| rate.get_ref().0);
    let usual = SearchRequest::default();
    let request = SearchRequest {
        hint: None,
        lowest: rate(&table.from),
        highest: rate(&table.to),
        resolution: table.resolution.as_ref().map_or(usual.resolution, |share| *share.get_ref()),
        trials: table.trials.as_ref().map_or(usual.trials, |trials| *trials.get_ref()),
    };
    if let Err(error) = analyse::search::Search::new(request) {
        return Err(source.at(table.slo.span(), &format!("[calibrate]: {error}")));
    }
    let time = table.time.as_ref().map_or(TRIAL, |time| time.get_ref().0);
    if let Some(place) = table.time.as_ref().filter(|_| time.is_zero()) {
        return Err(source.at(place.span(), "time: must be more than zero"));
    }
    let most_time = table.max_time.as_ref().map(|most| most.get_ref().0);
    Ok(Some(Calibration { objective, request, time, most_time, key: RunSettings::new() }))
}

/// The calibration that a measured step needs; none where its rate is a number.
///
/// # Errors
/// A share without a `[calibrate]` table; an objective of an operation that the workload lacks.
pub(crate) fn of_step(
    source: &StudyText,
    spec: &StudySpec,
    calibrate: Option<&Calibration>,
    workload: &Workload,
) -> Result<Option<Calibration>, StudyError> {
    let place = spec.measure.span_of("rate").unwrap_or_default();
    let Some(calibrate) = calibrate else {
        let words = "rate: a share of which maximum? Give the objective, as in \
                     `[calibrate]` with `slo = \"p99<1ms\"`";
        return Err(source.at(place, words));
    };
    if let Some(op) = missing_operation(&calibrate.objective, workload) {
        let place = spec.calibrate.as_ref().map_or(place, |table| table.slo.span());
        return Err(source.at(place, &format!("the workload has no `{op}`")));
    }
    Ok(Some(calibrate.clone()))
}

/// An operation of an objective that the workload does not contain.
pub fn missing_operation(objective: &Objective, workload: &Workload) -> Option<Op> {
    let ops = objective.conditions().iter().filter_map(|condition| condition.op);
    ops.into_iter().find(|op| !workload.mix.contains(*op))
}

impl Calibration {
    /// Sets the key of steps that share the maximum: those that differ only in the rate, how it
    /// moves, and in factors that set only these.
    pub(crate) fn shared_by_all_rates(&mut self, settings: &RunSettings, factors: &[Factor]) {
        let is_of_rate = |key: &String| OF_RATE.contains(&key.as_str());
        let of_rate =
            |factor: &&Factor| !factor.sets.is_empty() && factor.sets.iter().all(is_of_rate);
        let of_rate: Vec<String> = factors.iter().filter(of_rate).map(Factor::setting).collect();
        self.key = settings.clone();
        self.key.retain(|name, _| !OWN.contains(&name.as_str()) && !of_rate.contains(name));
    }

    /// Estimated seconds of the calibration.
    pub(crate) fn seconds(&self, load: &LoadConfig) -> f64 {
        let trials = GUESSED_TRIALS * (self.time.as_secs_f64() + load.seconds_before());
        self.most_time.map_or(trials, |most| trials.min(most.as_secs_f64()))
    }
}
