use std::collections::BTreeSet;
use std::path::Path;

use model::Rate;
use record::{Execution, Phase, Run};
use store::StoreUrl;
use study::knobs::{KnobEffects, KnobsHeld};
use study::{
    ExecuteArgs, ExecutionEnd, KnownMaxima, LoadConfig, LoadOptions, Plan, RepeatPolicy,
    ServerSpec, SteadyTable, TraceSource,
};

use crate::args::Bench;
use crate::exit::{Outcome, request};
use crate::flags;
use crate::interrupt::stop_flag;
use crate::kept::Kept;
use crate::show::Show;
use crate::sweep::Swept;

pub fn run(args: &Bench, show: &Show) -> anyhow::Result<Outcome> {
    let whom = args.load.store(&args.store)?;
    let manners = manners(args)?;
    if args.repeat == 0 {
        return Err(request("--repeat must be more than zero"));
    }
    if let (Some(file), true) = (&args.trace, args.dry_run) {
        return super::trace::describe(file, args, show);
    }
    let mut plan = match &args.trace {
        Some(file) => replay(whom, file, args, &manners, show)?,
        None => single(whom, args, &manners)?,
    };
    if let Some(objective) = &args.slo {
        plan = plan.with_setting("slo", &objective.to_string());
    }
    if let Some(agents) = args.load.agents.wanted(args.agents_measure_rate)? {
        plan = plan.with_agents(agents).map_err(|(key, why)| {
            let flag = match key {
                "operations" => "ops".to_owned(),
                "measure_rate" => "agents-measure-rate".to_owned(),
                key => key.to_owned(),
            };
            request(format!("--{flag} {why}"))
        })?;
    }
    plan.probes = args.machine.probes()?;
    let levels = args.machine.levels()?;
    let plan = plan.with_knobs(levels.clone());
    let knobs = levels.plan(&plan.probes.root)?;
    if args.dry_run {
        return described(args, &plan, &knobs, show);
    }
    study::check_directories(&plan)?;
    args.machine
        .recorded
        .under(&levels, show, |seen| measure(args, &plan, manners.len(), seen, show))
}

/// What would be written and run.
fn described(
    args: &Bench,
    plan: &Plan,
    knobs: &host::knob::KnobPlan,
    show: &Show,
) -> anyhow::Result<Outcome> {
    let steps: Vec<_> = plan.steps().map(|(_, step)| step).collect();
    crate::planned::describe(&steps, knobs, args.json, show)
}

fn measure(
    args: &Bench,
    plan: &Plan,
    manners: usize,
    seen: &KnobEffects,
    show: &Show,
) -> anyhow::Result<Outcome> {
    let execution = study::execution(plan, std::env::args().collect(), seen);
    let mut kept = Kept::open(args.out.clone(), plan)?;

    let stop = stop_flag()?;
    let mut bar = Swept::new(show.bar(plan.steps().map(|(_, step)| step)), manners);
    let mut runs = Vec::new();
    let mut keep = |run: &Run| {
        runs.push(run.clone());
        kept.keep(&execution, run, show)
    };
    let doing = ExecuteArgs {
        policy: &mut RepeatPolicy::new(plan, &[], None)?,
        maxima: &mut KnownMaxima::of(plan, &[]),
        turn: &mut KnobsHeld(seen),
        keep: &mut keep,
        listener: &mut bar,
        stop: &stop,
    };
    let ended = study::execute(plan, &execution, &BTreeSet::new(), doing);
    bar.finish();
    let finished = if ended.is_ok() { kept.finish(&execution) } else { Ok(()) };
    // What was measured is shown, whatever became of the file.
    show_runs(args, show, &execution, &runs)?;
    if let (Some(path), false) = (kept.place(), runs.is_empty()) {
        show.note(&format!("kept in {}", path.display()));
    }
    finished?;
    if ended? == ExecutionEnd::Stopped {
        show.note("stopped; the run under way is not kept");
        return Ok(Outcome::Invalid);
    }
    Ok(if runs.iter().all(Run::valid) { Outcome::Done } else { Outcome::Invalid })
}

/// The store, and the server that is started for it.
type Whom = (StoreUrl, Option<ServerSpec>);

fn single(whom: Whom, args: &Bench, manners: &[LoadConfig]) -> anyhow::Result<Plan> {
    let asked = &args.workload;
    let spec = asked.spec()?;
    // A mix of nothing but inserts adds records; only the presets of that name load.
    let loads = spec.is_load() && asked.mix.is_none();
    let phase = if loads { Phase::Load } else { Phase::Measure };
    flags::planned(Plan::single(whom, &asked.name(), spec, phase, manners, args.repeat))
}

fn replay(
    whom: Whom,
    file: &Path,
    args: &Bench,
    manners: &[LoadConfig],
    show: &Show,
) -> anyhow::Result<Plan> {
    let compressibility = args.workload.compressibility.unwrap_or(0.0);
    let recording = TraceSource::open(file, compressibility, args.workload.refill)?;
    super::trace::note_header(file, recording.header.as_deref(), show);
    flags::planned(Plan::replay(whom, &recording, args.workload.seed, manners, args.repeat))
}

/// One object, or an array of them where repeats were asked for; nothing where none ended.
fn show_runs(args: &Bench, show: &Show, execution: &Execution, runs: &[Run]) -> anyhow::Result<()> {
    if runs.is_empty() {
        return Ok(());
    }
    if !args.json {
        let pairs: Vec<_> = runs.iter().map(|run| (execution, run)).collect();
        return show.painted(&report::terminal::runs(&pairs, show.style()));
    }
    let mut objects: Vec<_> = runs.iter().map(|run| run.summary(execution)).collect();
    let one = args.repeat == 1 && args.rate.as_ref().is_none_or(|rate| rate.rates().len() == 1);
    let value = if one { objects.remove(0) } else { objects.into() };
    show.json(&value)
}

/// One for each rate that is asked for.
fn manners(args: &Bench) -> anyhow::Result<Vec<LoadConfig>> {
    let rates: Vec<Option<Rate>> = match &args.rate {
        Some(sweep) => sweep.rates().iter().copied().map(Some).collect(),
        None => vec![None],
    };
    let usual = args.workload.known().and_then(|preset| preset.arrivals);
    let manner = |rate: Option<Rate>| {
        let wish = LoadOptions {
            think: args.think,
            time: args.time,
            operations: args.ops,
            steady: args.steady.map(|round| SteadyTable { round, ..SteadyTable::default() }),
            trace: args.trace.is_some(),
            speed: args.speed,
            ..args.load.wish(rate, usual)
        };
        flags::manner(&wish, args.load.agents.machines())
    };
    rates.into_iter().map(manner).collect()
}
