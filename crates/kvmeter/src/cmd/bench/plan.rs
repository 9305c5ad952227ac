//! From the flags of `bench` to a plan.

use std::path::Path;

use model::{Phase, Rate};
use store::StoreUrl;
use study::{InvalidOption, LoadConfig, Plan, ServerSpec, TraceSource};

use super::args::BenchArgs;
use super::trace::note_header;
use crate::flags;
use crate::output::Output;

/// The store, and the server that is started for it.
type StoreTarget = (StoreUrl, Option<ServerSpec>);

/// A plan of a workload.
pub fn single(
    target: StoreTarget,
    args: &BenchArgs,
    configs: &[LoadConfig],
) -> anyhow::Result<Plan> {
    let flags = &args.workload;
    let spec = flags.spec()?;
    // A mix of nothing but inserts adds records; only the presets of that name load.
    let loads = spec.is_load() && flags.mix.is_none();
    let phase = if loads { Phase::Load } else { Phase::Measure };
    flags::check_plan(Plan::single(target, &flags.name(), spec, phase, configs, args.repeat))
}

/// A plan of a trace.
pub fn replay(
    target: StoreTarget,
    file: &Path,
    args: &BenchArgs,
    configs: &[LoadConfig],
    show: &Output,
) -> anyhow::Result<Plan> {
    let compressibility = args.workload.compressibility.unwrap_or(0.0);
    let options = args.trace.options()?;
    let recording = TraceSource::open(file, options, compressibility, args.workload.refill)?;
    note_header(file, recording.header.as_deref(), show);
    flags::check_plan(Plan::replay(target, &recording, args.workload.seed, configs, args.repeat))
}

/// One configuration for each rate.
pub fn load_configs(args: &BenchArgs) -> anyhow::Result<Vec<LoadConfig>> {
    let rates: Vec<Option<Rate>> = match &args.rate {
        Some(sweep) => sweep.rates().iter().copied().map(Some).collect(),
        None => vec![None],
    };
    let usual = args.workload.arrivals()?;
    let usual = usual.as_deref();
    let cpus = flags::cpus_of(args.load.agents.machines());
    let config = |rate: Option<Rate>| {
        let (window, closed_loop) = (args.window.given.clone(), args.closed_loop.given.clone());
        let options = window.or(closed_loop).or(args.load.options(rate, usual));
        let config = match (&args.trace.file, args.trace.speed) {
            (Some(_), speed) => options.replay_config(speed, cpus),
            (None, None) => options.config(cpus),
            (None, Some(_)) => {
                let why = "is for a trace: name one".to_owned();
                Err(InvalidOption { key: "speed", why })
            }
        };
        config.map_err(flags::name_flag)
    };
    rates.into_iter().map(config).collect()
}
