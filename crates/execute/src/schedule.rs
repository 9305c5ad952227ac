//! Which runs happen, in which order: blocks of runs under the same levels of the knobs, within a
//! block segment by segment, within a segment what is left of its steps, calibrations first.

use std::collections::BTreeSet;

use study::{KnobLevels, Plan, Segment, Step};

use crate::calibration_agenda::{CalibrationAgenda, KnownMaxima};
use crate::error::ExecuteError;
use crate::knobs::{KnobControl, KnobEffects};
use crate::remaining_steps::RemainingSteps;
use crate::repeat_policy::{Decision, ExecutionEnd, RepeatPolicy};
use crate::session::StepAgenda;

/// What runs the steps of a segment: this machine, or a stand-in in tests.
pub(crate) trait SegmentExecutor {
    /// The knobs are at other levels from now on.
    fn knobs_turned(&mut self, levels: &KnobLevels);

    /// The knobs cannot be turned to these levels; their runs are skipped.
    fn knobs_unavailable(&mut self, levels: &KnobLevels, why: &ExecuteError);

    /// Runs a step and those that follow in the agenda, and saves each run as it ends; returns
    /// whether it reached the agenda's end.
    ///
    /// # Errors
    /// The error of a run; all runs before it are saved.
    fn run_segment(
        &mut self,
        segment: &Segment,
        first: Step,
        agenda: &mut dyn StepAgenda,
        knob_effects: &KnobEffects,
    ) -> Result<bool, ExecuteError>;
}

/// Has every step run that is not `done` and that the policy selects.
///
/// # Errors
/// The error of a run, or of the knobs where no run happened.
pub(crate) fn schedule(
    plan: &Plan,
    done: &BTreeSet<u32>,
    policy: &mut RepeatPolicy,
    maxima: &mut KnownMaxima,
    turn: &mut dyn KnobControl,
    executor: &mut dyn SegmentExecutor,
) -> Result<ExecutionEnd, ExecuteError> {
    let mut not_run = Vec::new();
    let mut any_run = false;
    for block in plan.segments.chunk_by(|a, b| a.knobs == b.knobs) {
        let left = |segment: &&Segment| segment.steps.iter().any(|s| !done.contains(&s.ordinal));
        let Some(levels) = block.iter().find(left).map(|segment| &segment.knobs) else { continue };
        let has_runs = block
            .iter()
            .flat_map(|segment| &segment.steps)
            .any(|step| !done.contains(&step.ordinal) && policy.decide(step) == Decision::Run);
        if !has_runs {
            continue;
        }
        let (mut end, mut begun) = (ExecutionEnd::Whole, false);
        let turned = turn.turn(levels, &mut |knob_effects| {
            begun = true;
            executor.knobs_turned(levels);
            for segment in block {
                let steps = RemainingSteps::new(segment, done, policy);
                let mut agenda = CalibrationAgenda::new(steps, maxima);
                let Some(first) = agenda.first() else {
                    agenda.fault().map_or(Ok(()), Err)?;
                    continue;
                };
                any_run = true;
                if !executor.run_segment(segment, first, &mut agenda, knob_effects)? {
                    end = ExecutionEnd::Stopped;
                    break;
                }
                agenda.fault().map_or(Ok(()), Err)?;
            }
            Ok(())
        });
        match turned {
            Ok(()) => {}
            // Nothing was begun: these levels are unavailable, others may not be.
            Err(error) if !begun && !levels.is_empty() => {
                executor.knobs_unavailable(levels, &error);
                policy.not_run(levels, &error);
                not_run.push(error);
            }
            Err(error) => return Err(error),
        }
        if end == ExecutionEnd::Stopped {
            return Ok(end);
        }
    }
    match not_run.pop() {
        Some(error) if !any_run && done.is_empty() => Err(error),
        _ => Ok(ExecutionEnd::Whole),
    }
}

#[cfg(test)]
mod tests;
