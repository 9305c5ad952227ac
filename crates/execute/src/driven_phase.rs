//! The load of one phase, generated here or by agents.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use drive::{Observer, PhaseKind, PhaseOutcome, Target, Ticks};
use study::{KnobLevels, LoadConfig};
use workload::Workload;

use crate::distributed::{AgentPool, AgentRun, AgentRunResult};
use crate::error::ExecuteError;
use crate::execution_cache::{CachedTax, ExecutionCache, TaxSetting};
use crate::load_plan::{cpus_of_load, init_thread, load_plan};
use crate::load_step::LoadStep;
use crate::replay::replay;

/// A finished phase: its load configuration and outcome.
pub(crate) struct DrivenPhase {
    pub(crate) outcome: PhaseOutcome,
    pub(crate) load_config: LoadConfig,
    pub(crate) tax: Option<CachedTax>,
    /// The agents' result, where agents generated the load.
    pub(crate) agent_run: Option<AgentRunResult>,
}

/// Generates load in this process.
pub(crate) struct LocalDriver<'a> {
    pub(crate) clock: &'a Ticks,
    pub(crate) stop: &'a Arc<AtomicBool>,
    pub(crate) cache: &'a ExecutionCache,
    pub(crate) knobs: &'a KnobLevels,
    /// The CPUs to which servers are confined.
    pub(crate) servers: &'a [u32],
}

impl LocalDriver<'_> {
    /// Runs a phase after its tax was measured.
    pub(crate) fn drive(
        &self,
        store: &Arc<dyn Target>,
        workload: &Arc<Workload>,
        step: LoadStep<'_>,
        what: PhaseKind,
        observer: &mut dyn Observer,
    ) -> Result<DrivenPhase, ExecuteError> {
        let (seed, load_config) = (step.load.workload.seed, step.load.load_config.clone());
        let mut plan = load_plan(&load_config, what, seed, self.stop);
        plan.on_start = init_thread(&load_config, self.servers);
        if let Some(trace) = step.activity.trace() {
            plan.trace = Some(replay(trace, &load_config, seed)?);
        }
        let (clock, first) = (self.clock, &plan.on_start);
        let replayed = plan.trace.as_ref().map(|replay| replay.most);
        let setting = TaxSetting {
            trace: step.activity.trace().cloned().zip(replayed),
            cpus: cpus_of_load(&load_config, self.servers),
            knobs: self.knobs.clone(),
            co_runner: step.load.co_runner.clone(),
            ..TaxSetting::of(what, &step.load.workload)
        };
        let tax = self.cache.taxes.of(setting, step.ordinal, || match &plan.trace {
            Some(replay) => Ok(drive::replay_tax(clock, replay, workload, first)?),
            None => Ok(Some(drive::tax(clock, workload, what, first)?)),
        })?;
        let outcome = drive::drive(clock, Arc::clone(store), workload, &plan, observer)?;
        Ok(DrivenPhase { outcome, load_config, tax, agent_run: None })
    }
}

/// Runs a phase on agents.
pub(crate) fn on_agents(
    agent_pool: &mut AgentPool,
    task: &AgentRun<'_>,
    observer: &mut dyn Observer,
) -> Result<DrivenPhase, ExecuteError> {
    let mut agent_run = agent_pool.run(task, observer)?;
    let outcome = std::mem::take(&mut agent_run.outcome);
    let load_config = agent_run.load_config.clone();
    // Each agent measures its own tax before each run.
    let tax = agent_run.tax.map(|tax| CachedTax { tax, run: task.step.ordinal });
    Ok(DrivenPhase { outcome, load_config, tax, agent_run: Some(agent_run) })
}
