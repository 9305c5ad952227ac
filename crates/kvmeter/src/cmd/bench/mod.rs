//! `kvmeter bench STORE`: one measurement of one store, without a study file.

mod args;
mod plan;
mod rate_sweep;
mod trace;

pub use trace::note_header;

use std::collections::BTreeSet;

use execute::{ExecuteArgs, ExecutionEnd, KnownMaxima, RepeatPolicy};
use execute::{knobs::KnobEffects, knobs::KnobsHeld};
use live::Feed;
use model::{Execution, Run};
use study::Plan;

pub use self::args::BenchArgs;
use self::plan::{load_configs, replay, single};
use self::rate_sweep::SweepProgress;
use crate::exit::{ExitOutcome, request};
use crate::flags::agents::{Clients, stores_of};
use crate::flags::live::UrlFormat;
use crate::interrupt::stop_flag;
use crate::output::Output;
use crate::results_target::ResultsTarget;

pub fn run(args: &BenchArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let target = args.load.store(&args.store, show)?;
    let configs = load_configs(args)?;
    if args.repeat == 0 {
        return Err(request("--repeat must be more than zero"));
    }
    if let (Some(file), true) = (&args.trace.file, args.dry_run) {
        return trace::describe(file, args, show);
    }
    let mut plan = match &args.trace.file {
        Some(file) => replay(target, file, args, &configs, show)?,
        None => {
            args.workload.note_run_properties(study::RunPlace::Bench, show)?;
            single(target, args, &configs)?
        }
    };
    if let Some(objective) = &args.slo {
        plan = plan.with_setting("slo", &objective.to_string());
    }
    let host = args.agents_measure_host.as_deref();
    let measured = args.agents_measure_rate.map(|rate| (rate, host));
    let clients = match args.dry_run {
        true => Clients { config: args.load.agents.config(measured)?, started: None },
        false => args.load.agents.clients(measured, stores_of(&plan), show)?,
    };
    if let Some(agents) = clients.config {
        plan = plan.with_agents(agents).map_err(|invalid| {
            let flag = match invalid.key {
                "measure_rate" => "agents-measure-rate".to_owned(),
                _ => invalid.flag(),
            };
            request(format!("--{flag} {}", invalid.why))
        })?;
    }
    plan.probes = args.machine.probes()?;
    plan.probes.profiling = args.profiling()?;
    let levels = args.machine.levels()?;
    let plan = plan.with_knobs(levels.clone());
    let knobs = levels.plan(&plan.probes.root)?;
    if args.dry_run {
        return dry_run(args, &plan, &knobs, show);
    }
    execute::check_directories(&plan)?;
    let page = args.live.start("bench", &args.store, UrlFormat::Text)?;
    let (rates, feed) = (configs.len(), page.feed());
    let ended = args
        .machine
        .host
        .with_knobs(&levels, show, |effects| measure(args, &plan, (rates, feed), effects, show));
    page.end(&ended);
    ended
}

/// Prints the writes of knobs and the planned runs.
fn dry_run(
    args: &BenchArgs,
    plan: &Plan,
    knobs: &host::knob::KnobPlan,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let steps: Vec<_> = plan.steps().map(|(_, step)| step).collect();
    crate::plan_output::describe(&steps, knobs, args.json, show)
}

fn measure(
    args: &BenchArgs,
    plan: &Plan,
    (rates, feed): (usize, Option<Feed>),
    effects: &KnobEffects,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let execution = execute::execution(plan, std::env::args().collect(), effects);
    let mut results = ResultsTarget::open(args.out.clone(), plan)?;

    let stop = stop_flag()?;
    let mut bar =
        SweepProgress::new(show.bar(plan.steps().map(|(_, step)| step)).with_page(feed), rates);
    let mut runs = Vec::new();
    let mut keep = |run: &Run| {
        // A saved run comes again with its profile.
        runs.retain(|kept: &Run| kept.id != run.id);
        runs.push(run.clone());
        results.keep(&execution, run, show)
    };
    let execute_args = ExecuteArgs {
        policy: &mut RepeatPolicy::new(plan, &[], None)?,
        maxima: &mut KnownMaxima::of(plan, &[]),
        turn: &mut KnobsHeld(effects),
        keep: &mut keep,
        listener: &mut bar,
        stop: &stop,
    };
    let end = execute::execute(plan, &execution, &BTreeSet::new(), execute_args);
    bar.finish();
    let finished = if end.is_ok() { results.finish(&execution) } else { Ok(()) };
    // The results are shown even if the file could not be written.
    show_runs(args, show, &execution, &runs)?;
    if let (Some(path), false) = (results.path(), runs.is_empty()) {
        show.note(&format!("stored in {}", path.display()));
    }
    finished?;
    if end? == ExecutionEnd::Stopped {
        show.note("stopped; the run in progress is discarded");
        return Ok(ExitOutcome::Invalid);
    }
    Ok(if runs.iter().all(Run::valid) { ExitOutcome::Done } else { ExitOutcome::Invalid })
}

/// Prints one object, or an array with repeats or several rates; nothing if no run ended.
fn show_runs(
    args: &BenchArgs,
    show: &Output,
    execution: &Execution,
    runs: &[Run],
) -> anyhow::Result<()> {
    if runs.is_empty() {
        return Ok(());
    }
    if !args.json {
        let pairs: Vec<_> = runs.iter().map(|run| (execution, run)).collect();
        return show.print_styled(&report::terminal::runs(&pairs, show.style()));
    }
    let mut objects: Vec<_> = runs.iter().map(|run| record::summary(run, execution)).collect();
    let one = args.repeat == 1 && args.rate.as_ref().is_none_or(|rate| rate.rates().len() == 1);
    let value = if one { objects.remove(0) } else { objects.into() };
    show.json(&value)
}
