//! Plans of one measurement without a study.

use model::Phase;
use store::StoreUrl;
use workload::WorkloadSpec;

use super::checks::{check_needs_servers, check_store, check_workload};
use super::segments::{Plan, Segment};
use super::settings::settings;
use super::size::check_runs;
use super::step::{Activity, Step, StoreLoad, label};
use crate::error::StudyError;
use crate::knobs::KnobLevels;
use crate::load::LoadConfig;
use crate::server_spec::ServerSpec;

impl Plan {
    /// A plan without a study: one run for each load configuration and repeat. The data is loaded first
    /// unless it exists.
    pub fn single(
        (store, server): (StoreUrl, Option<ServerSpec>),
        name: &str,
        workload: WorkloadSpec,
        phase: Phase,
        load_configs: &[LoadConfig],
        repeats: u32,
    ) -> Result<Plan, StudyError> {
        store.check()?;
        check_store(&store, &workload)?;
        check_runs("--repeat", repeats, load_configs.len())?;
        let mut segments = Vec::new();
        let mut ordinal = 0;
        for repeat in 1..=repeats {
            let mut steps = Vec::new();
            for (unit, load_config) in load_configs.iter().enumerate() {
                ordinal += 1;
                let at = (ordinal, unit as u32, repeat);
                let target = (&store, server.as_ref());
                steps.push(step(target, name, &workload, phase, load_config, at)?);
            }
            // Runs share one open store, but each load begins with an empty one.
            let together = if phase == Phase::Load { 1 } else { steps.len().max(1) };
            segments.extend(steps.chunks(together).map(|steps| Segment {
                store: store.clone(),
                server: server.clone(),
                temporary: false,
                steps: steps.to_vec(),
                preparing: load_configs[0].preparing(),
                knobs: KnobLevels::default(),
                copies: false,
            }));
        }
        let seed = workload.seed;
        Ok(Plan { seed, repeats, ..Plan::new("bench", segments) })
    }
}

/// One run of a store without a study; `at` is its ordinal, unit and repeat.
pub fn step(
    (store, server): (&StoreUrl, Option<&ServerSpec>),
    name: &str,
    workload: &WorkloadSpec,
    phase: Phase,
    load_config: &LoadConfig,
    (ordinal, unit, repeat): (u32, u32, u32),
) -> Result<Step, StudyError> {
    let load_config = match phase {
        Phase::Load => load_config.clone(),
        Phase::Measure | Phase::Simulate => load_config.clone().with_default_length(),
    };
    check_workload(workload, &load_config, phase)?;
    check_needs_servers(store, &load_config)?;
    let settings = settings((store, server), name, workload, &load_config, repeat);
    let load = Box::new(StoreLoad::new(workload.clone(), load_config));
    let activity = match phase {
        Phase::Load => Activity::Load(load),
        Phase::Measure | Phase::Simulate => Activity::Measure(load),
    };
    Ok(Step { ordinal, unit, repeat, label: label(store, name), activity, settings })
}
