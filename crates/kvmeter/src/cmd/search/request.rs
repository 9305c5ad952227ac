//! From the flags of `search` to what is searched for.

use std::time::Duration;

use analyse::search::SearchRequest;
use analyse::slo::Objective;
use execute::RateSearch;
use model::{Rate, Span};
use study::{LoadOptions, ServerTiming, unplaced};

use super::args::SearchArgs;
use crate::exit::request;
use crate::flags;
use crate::flags::agents::Clients;
use crate::hosts::StartedAgents;
use crate::output::Output;

/// The default warm-up of a trial.
const WARM_UP: Span = Span(Duration::from_millis(500));

/// What is searched for, and the agents that were started for it.
pub fn rate_search(
    args: &SearchArgs,
    show: &Output,
) -> anyhow::Result<(RateSearch, Option<StartedAgents>)> {
    let (store, server) = args.load.store(&args.store)?;
    let workload = args.workload.spec()?;
    if workload.is_load() && args.workload.mix.is_none() {
        return Err(request(format!(
            "--workload {}: a load has no rate to search for; name another workload",
            args.workload.preset
        )));
    }
    let preset = args.workload.preset_spec();
    let usual = preset.and_then(|preset| preset.slo);
    let objective: Objective = match (&args.slo, usual) {
        (Some(given), _) => given.clone(),
        (None, Some(usual)) => usual.parse()?,
        (None, None) => {
            return Err(request(format!(
                "--slo is missing, and the workload {} has none of its own; give a latency \
                 objective, as in --slo 'p99<1ms'",
                args.workload.preset
            )));
        }
    };
    if let Some(op) = study::missing_operation(&objective, &workload) {
        return Err(request(format!(
            "--slo {objective}: the workload {} has no `{op}`",
            args.workload.name()
        )));
    }
    if args.time.0.is_zero() {
        return Err(request("--time: must be more than zero"));
    }
    // The rate of a trial is not known yet; all other options are.
    let options = args.load.options(Some(Rate(1.0)), args.workload.arrivals()?.as_deref());
    let timed = options.server_latency.is_some();
    let usual = LoadOptions { warm_up: Some(unplaced(WARM_UP)), ..LoadOptions::default() };
    let cpus = flags::cpus_of(args.load.agents.machines());
    let mut config = options.or(usual).config(cpus).map_err(flags::name_flag)?;
    if !timed {
        // Timing inside the server would lower the rate.
        config.server_timing = ServerTiming::Off;
    }
    let rate = |rate: Option<Rate>| rate.map(|Rate(rate)| rate);
    let (probes, knobs) = (args.machine.probes()?, args.machine.levels()?);
    let Clients { config: agents, started } = args.load.agents.clients(None, vec![&store], show)?;
    let search = RateSearch {
        store,
        server,
        name: args.workload.name(),
        workload,
        load_config: config,
        objective,
        request: SearchRequest {
            hint: None,
            lowest: rate(args.from),
            highest: rate(args.to),
            resolution: args.resolution,
            trials: args.trials,
        },
        time: args.time.0,
        agents,
        probes,
        knobs,
        most_time: args.max_time.map(|Span(most)| most),
    };
    Ok((search, started))
}
