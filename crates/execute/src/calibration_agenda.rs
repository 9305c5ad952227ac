//! Calibrates before the first run that needs it, on the store that is open for that run.

use analyse::search::SearchConclusion;
use model::{Run, RunSettings};
use study::{Calibration, Maximum, Plan, Step};

use crate::error::ExecuteError;
use crate::load_step::LoadStep;
use crate::remaining_steps::RemainingSteps;
use crate::search::{TrialAgenda, TrialTemplate};
use crate::session::StepAgenda;

/// Known maxima, and the trials of an earlier invocation.
#[derive(Debug)]
pub struct KnownMaxima {
    /// The maximum, or why there is none, by the settings that its runs share.
    known: Vec<(RunSettings, Result<Maximum, String>)>,
    trials: Vec<(RunSettings, Run)>,
    /// Of the next trial: behind all that is planned.
    ordinal: u32,
}

impl KnownMaxima {
    /// Of a plan of which `kept` was done by an earlier invocation.
    pub fn of(plan: &Plan, kept: &[Run]) -> KnownMaxima {
        let key = |run: &Run| {
            let trial_for = run.settings.get(Run::TRIAL_FOR)?;
            let (_, step) =
                plan.steps().find(|(_, step)| step.ordinal.to_string() == *trial_for)?;
            Some((calibration(step)?.key.clone(), run.clone()))
        };
        let trials = kept.iter().filter(|run| run.is_trial()).filter_map(key).collect();
        let planned = plan.steps().map(|(_, step)| step.ordinal);
        let all = planned.chain(kept.iter().map(|run| run.ordinal));
        KnownMaxima { known: Vec::new(), trials, ordinal: all.max().unwrap_or(0) + 1 }
    }

    fn known(&self, key: &RunSettings) -> Option<&Result<Maximum, String>> {
        self.known.iter().find(|(known, _)| known == key).map(|(_, found)| found)
    }

    /// The trials of this calibration by an earlier invocation, in order.
    fn made(&self, key: &RunSettings) -> Vec<Run> {
        let own = self.trials.iter().filter(|(known, _)| known == key);
        own.map(|(_, run)| run.clone()).collect()
    }

    fn conclude(&mut self, of: &Calibration, conclusion: &SearchConclusion) {
        let words = format!("{}: {}", of.objective, conclusion.summary);
        let maximum = match conclusion.rate_ops_s {
            Some(rate_ops_s) => Ok(Maximum { rate_ops_s, words }),
            None => Err(words),
        };
        self.known.push((of.key.clone(), maximum));
    }
}

/// The steps of a segment, each at the rate that is its share of a maximum. Where that is not
/// known yet, the trials that find it come first.
pub(crate) struct CalibrationAgenda<'a> {
    steps: RemainingSteps<'a>,
    maxima: &'a mut KnownMaxima,
    /// The step that waits for its maximum, and the trials that find it.
    current: Option<(Step, TrialAgenda)>,
    fault: Option<ExecuteError>,
}

impl<'a> CalibrationAgenda<'a> {
    pub(crate) fn new(
        steps: RemainingSteps<'a>,
        maxima: &'a mut KnownMaxima,
    ) -> CalibrationAgenda<'a> {
        CalibrationAgenda { steps, maxima, current: None, fault: None }
    }

    /// The error that ended it early.
    pub(crate) fn fault(&mut self) -> Option<ExecuteError> {
        self.fault.take()
    }

    pub(crate) fn first(&mut self) -> Option<Step> {
        self.advance().unwrap_or_else(|fault| {
            self.fault = Some(fault);
            None
        })
    }

    fn advance(&mut self) -> Result<Option<Step>, ExecuteError> {
        loop {
            let Some((step, mut trials)) = self.current.take() else {
                let Some(step) = self.steps.first() else { return Ok(None) };
                let Some(calibrate) = calibration(&step) else { return Ok(Some(step)) };
                match self.maxima.known(&calibrate.key) {
                    Some(Ok(maximum)) => return Ok(Some(at(&step, maximum))),
                    Some(Err(why)) => self.steps.policy.uncalibrated(&step, why),
                    None => {
                        let trying = TrialTemplate::of_step(LoadStep::of(&step)?, calibrate);
                        let made = self.maxima.made(&calibrate.key);
                        let trials = TrialAgenda::new(trying, self.maxima.ordinal, &made)?;
                        self.current = Some((step, trials));
                    }
                }
                continue;
            };
            if let Some(trial) = trials.next_step()? {
                self.current = Some((step, trials));
                return Ok(Some(trial));
            }
            let Some(calibrate) = calibration(&step) else { return Ok(Some(step)) };
            self.maxima.conclude(calibrate, &trials.conclusion());
            match self.maxima.known(&calibrate.key) {
                Some(Ok(maximum)) => return Ok(Some(at(&step, maximum))),
                Some(Err(why)) => self.steps.policy.uncalibrated(&step, why),
                None => {}
            }
        }
    }
}

/// The step at the rate that its share of the maximum is.
fn at(step: &Step, maximum: &Maximum) -> Step {
    let mut step = step.clone();
    if let Some(load) = step.activity.load_mut() {
        load.load_config = load.load_config.calibrated(maximum.rate_ops_s);
        load.maximum = Some(maximum.clone());
    }
    step
}

/// How the maximum is found of which the rate of a step is a share.
fn calibration(step: &Step) -> Option<&Calibration> {
    step.activity.load()?.calibrate.as_ref()
}

impl StepAgenda for CalibrationAgenda<'_> {
    fn next(&mut self, run: &Run) -> Option<Step> {
        match &mut self.current {
            Some((step, trials)) => {
                self.maxima.ordinal = run.ordinal + 1;
                self.steps.policy.tried(step, run);
                if let Err(fault) = trials.take(run) {
                    self.fault = Some(fault);
                    return None;
                }
            }
            None => self.steps.saved(run),
        }
        self.first()
    }

    fn preloads(&self) -> bool {
        self.steps.preloads()
    }
}
