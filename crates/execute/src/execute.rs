//! Executes a plan on this machine.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use drive::Ticks;
use model::{Execution, Reading, Run};
use study::{KnobLevels, Plan, ProbesConfig, Segment, Step};

use crate::calibration_agenda::KnownMaxima;
use crate::directories::remove_what_is_not_kept;
use crate::distributed::AgentPool;
use crate::error::ExecuteError;
use crate::event::{Event, Listener};
use crate::execution_cache::ExecutionCache;
use crate::idle_power::measure_idle;
use crate::knobs::{KnobControl, KnobEffects};
use crate::repeat_policy::{ExecutionEnd, RepeatPolicy};
use crate::required::check_required;
use crate::run_context::RunContext;
use crate::schedule::{SegmentExecutor, schedule};
use crate::session::StepAgenda;

/// Arguments of [`execute`].
pub struct ExecuteArgs<'a> {
    /// Decides which of the planned runs are done.
    pub policy: &'a mut RepeatPolicy,
    /// The calibrated maxima known so far.
    pub maxima: &'a mut KnownMaxima,
    /// Turns the knobs.
    pub turn: &'a mut dyn KnobControl,
    pub keep: &'a mut dyn FnMut(&Run) -> Result<(), ExecuteError>,
    pub listener: &'a mut dyn Listener,
    /// When set, the current step ends early and is not saved, and no other begins.
    pub stop: &'a Arc<AtomicBool>,
}

/// Runs every step that is not `done` and that the policy selects, in order and under the knobs of
/// its block, after measuring the idle machine for each set of levels; saves each run as it ends.
///
/// # Errors
/// The error of a run; all runs before it are saved.
pub fn execute(
    plan: &Plan,
    execution: &Execution,
    done: &BTreeSet<u32>,
    args: ExecuteArgs<'_>,
) -> Result<ExecutionEnd, ExecuteError> {
    let ExecuteArgs { policy, maxima, turn, keep, listener, stop } = args;
    check_required(&plan.probes)?;
    let mut machine = ThisMachine {
        clock: Ticks::new(),
        execution,
        stop,
        agent_pool: plan.agents.clone().map(AgentPool::new),
        probes: &plan.probes,
        idle: Vec::new(),
        cache: ExecutionCache::default(),
        keep,
        listener,
    };
    if schedule(plan, done, policy, maxima, turn, &mut machine)? == ExecutionEnd::Stopped {
        return Ok(ExecutionEnd::Stopped);
    }
    remove_what_is_not_kept(plan)?;
    Ok(ExecutionEnd::Whole)
}

/// This machine, with what is measured once for all of an execution.
struct ThisMachine<'a> {
    clock: Ticks,
    execution: &'a Execution,
    stop: &'a Arc<AtomicBool>,
    agent_pool: Option<AgentPool>,
    probes: &'a ProbesConfig,
    /// The power of the idle machine depends on idle states and frequencies, so it is measured for
    /// each set of levels.
    idle: Vec<(KnobLevels, Vec<Reading>)>,
    cache: ExecutionCache,
    keep: &'a mut dyn FnMut(&Run) -> Result<(), ExecuteError>,
    listener: &'a mut dyn Listener,
}

impl SegmentExecutor for ThisMachine<'_> {
    fn knobs_turned(&mut self, levels: &KnobLevels) {
        if !self.idle.iter().any(|(known, _)| known == levels) {
            let idle = measure_idle(self.probes, &mut *self.listener, self.stop);
            self.idle.push((levels.clone(), idle));
        }
    }

    fn knobs_unavailable(&mut self, levels: &KnobLevels, why: &ExecuteError) {
        self.listener.on_event(Event::KnobsUnavailable { levels, why });
    }

    fn run_segment(
        &mut self,
        segment: &Segment,
        first: Step,
        agenda: &mut dyn StepAgenda,
        knob_effects: &KnobEffects,
    ) -> Result<bool, ExecuteError> {
        let idle = self.idle.iter().find(|(levels, _)| *levels == segment.knobs);
        let mut context = RunContext {
            clock: &self.clock,
            execution: self.execution,
            stop: self.stop,
            agent_pool: self.agent_pool.as_mut(),
            probes: self.probes,
            idle: idle.map_or(&[], |(_, readings)| readings),
            knob_effects,
            cache: &self.cache,
        };
        context.run_segment(segment, first, agenda, &mut *self.keep, &mut *self.listener)
    }
}
