//! Plans of replays without a study.

use store::StoreUrl;

use super::checks::check_needs_servers;
use super::segments::{Plan, Segment};
use super::settings::settings;
use super::size::check_runs;
use super::step::{Activity, Step, StoreLoad, label};
use super::trace::{TraceSource, placeholder_workload, replace_workload_settings};
use crate::error::StudyError;
use crate::knobs::KnobLevels;
use crate::load::LoadConfig;
use crate::server_spec::ServerSpec;

/// Name of the workload of a replay without a name.
const NAME: &str = "trace";

impl Plan {
    /// A plan of replays without a study, one for each load configuration and repeat.
    pub fn replay(
        (store, server): (StoreUrl, Option<ServerSpec>),
        recording: &TraceSource,
        seed: u64,
        load_configs: &[LoadConfig],
        repeats: u32,
    ) -> Result<Plan, StudyError> {
        store.check()?;
        let recording = &recording.for_store(&store)?;
        check_runs("--repeat", repeats, load_configs.len())?;
        let mut segments = Vec::new();
        for repeat in 1..=repeats {
            for (unit, load_config) in load_configs.iter().enumerate() {
                let at = (segments.len() as u32 + 1, unit as u32, repeat);
                let target = (&store, server.as_ref());
                let step = replay_step(target, recording, seed, load_config, at)?;
                segments.push(Segment {
                    store: store.clone(),
                    server: server.clone(),
                    temporary: false,
                    steps: vec![step],
                    preparing: load_config.preparing(),
                    knobs: KnobLevels::default(),
                    copies: false,
                });
            }
        }
        let plan = Plan { seed, repeats, ..Plan::new("bench", segments) };
        check_stdin(&plan)?;
        Ok(plan)
    }
}

/// One replay on a store without a study; `recording` is that for the store, and `at` the ordinal,
/// unit and repeat.
///
/// # Errors
/// Options that only servers support, recorded pacing for a trace without times.
pub fn replay_step(
    (store, server): (&StoreUrl, Option<&ServerSpec>),
    recording: &TraceSource,
    seed: u64,
    load_config: &LoadConfig,
    (ordinal, unit, repeat): (u32, u32, u32),
) -> Result<Step, StudyError> {
    check_needs_servers(store, load_config)?;
    recording.check_pacing(load_config)?;
    let workload = placeholder_workload(seed);
    let mut settings = settings((store, server), NAME, &workload, load_config, repeat);
    replace_workload_settings(recording, load_config, &mut settings);
    let load = Box::new(StoreLoad::new(workload, load_config.clone()));
    let activity = Activity::Replay(load, recording.clone());
    Ok(Step { ordinal, unit, repeat, label: label(store, NAME), activity, settings })
}

/// Standard input can be read once.
pub(crate) fn check_stdin(plan: &Plan) -> Result<(), StudyError> {
    let reads = |recording: &TraceSource| recording.is_stdin();
    let readers = plan.steps().filter(|(_, step)| step.activity.trace().is_some_and(reads)).count();
    if readers > 1 {
        return Err(StudyError::Request(format!(
            "the trace comes from standard input, which can be read only once, but {readers} runs \
             replay it; name a file"
        )));
    }
    Ok(())
}
