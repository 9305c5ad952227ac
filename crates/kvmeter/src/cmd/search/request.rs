//! From the flags of `search` to what is searched for.

use std::time::Duration;

use analyse::search::SearchRequest;
use analyse::slo::Objective;
use execute::RateSearch;
use model::{Rate, Span};
use study::{LoadOptions, ServerTiming, TraceSource, placeholder_workload, unplaced};

use super::args::SearchArgs;
use crate::cmd::bench::note_header;
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
    let (store, server) = args.load.store(&args.store, show)?;
    refuse_other_rates(args)?;
    let trace = trace(args, show)?;
    let workload = match &trace {
        Some(_) => placeholder_workload(args.workload.seed),
        None => args.workload.spec()?,
    };
    let name = match &trace {
        Some(_) => "trace".to_owned(),
        None => args.workload.name(),
    };
    if workload.is_load() && args.workload.mix.is_none() {
        return Err(request(format!(
            "--workload {}: a load has no rate to search for; name another workload",
            args.workload.preset
        )));
    }
    let preset = args.workload.preset_spec().filter(|_| trace.is_none());
    let usual = preset.and_then(|preset| preset.slo);
    let objective: Objective = match (&args.slo, usual) {
        (Some(given), _) => given.clone(),
        (None, Some(usual)) => usual.parse()?,
        (None, None) => {
            return Err(request(format!(
                "--slo is missing, and the workload {} has none of its own; give a latency \
                 objective, as in --slo 'p99<1ms'",
                if trace.is_some() { "of a trace" } else { &args.workload.preset }
            )));
        }
    };
    if trace.is_none()
        && let Some(op) = study::missing_operation(&objective, &workload)
    {
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
    let options = options.or(usual);
    let mut config = match &trace {
        Some(_) => options.replay_config(None, cpus),
        None => options.config(cpus),
    }
    .map_err(flags::name_flag)?;
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
        name,
        workload,
        trace,
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

/// A search tries rates of its own.
fn refuse_other_rates(args: &SearchArgs) -> anyhow::Result<()> {
    if args.rate_profile.is_some() {
        return Err(request(
            "--rate-profile: a search holds each rate that it tries for the whole trial; leave it \
             out, and then run `kvmeter bench` with the rate that was found as --rate and a profile \
             of multiples of it, as in --rate-profile 'ramp:0.5x..1x@1m'",
        ));
    }
    if args.trace.speed.is_some() {
        return Err(request(
            "--speed: keeps the trace's own times, and a search sends its requests at the rates \
             that it tries; leave it out",
        ));
    }
    Ok(())
}

/// The trace whose requests are sent.
fn trace(args: &SearchArgs, show: &Output) -> anyhow::Result<Option<TraceSource>> {
    let Some(file) = &args.trace.file else { return Ok(None) };
    let compressibility = args.workload.compressibility.unwrap_or(0.0);
    let options = args.trace.options()?;
    let trace = TraceSource::open(file, options, compressibility, args.workload.refill)?;
    note_header(file, trace.header.as_deref(), show);
    Ok(Some(trace))
}
