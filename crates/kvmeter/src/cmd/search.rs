use std::time::Duration;

use analyse::search::{RateTrial, SearchConclusion, SearchEnd, SearchRequest};
use analyse::slo::Objective;
use execute::knobs::KnobEffects;
use execute::{RateSearch, SearchResult};
use model::{Execution, Rate, Span};
use study::{LoadOptions, Plan, ServerTiming, unplaced};

use crate::args;
use crate::exit::{ExitOutcome, request};
use crate::flags;
use crate::interrupt::stop_flag;
use crate::output::Output;
use crate::results_target::ResultsTarget;
use crate::search_progress::{SearchProgress, disturbance, object};

/// The default warm-up of a trial.
const WARM_UP: Span = Span(Duration::from_millis(500));

pub fn run(args: &args::Search, show: &Output) -> anyhow::Result<ExitOutcome> {
    let search = rate_search(args)?;
    let plan = search.plan()?;
    search.knobs.plan(&plan.probes.root)?;
    execute::check_directories(&plan)?;
    let levels = &search.knobs;
    args.machine
        .recorded
        .with_knobs(levels, show, |effects| measure(args, &search, &plan, effects, show))
}

fn measure(
    args: &args::Search,
    search: &RateSearch,
    plan: &Plan,
    effects: &KnobEffects,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let execution = execute::execution(plan, std::env::args().collect(), effects);
    let mut results = ResultsTarget::open(args.out.clone(), plan)?;

    let stop = stop_flag()?;
    let mut watch = SearchProgress::new(show.bar(std::iter::empty()), search);
    let mut keep = |run: &model::Run| results.keep(&execution, run, show);
    let result = search.run(&execution, &mut keep, &mut watch, &stop, effects);
    watch.finish();
    let mut result = result?;
    let fault = result.fault.take();
    let whole = fault.is_none() && result.conclusion.end != SearchEnd::Stopped;
    let finished = if whole { results.finish(&execution) } else { Ok(()) };
    print(args, show, search, &execution, &result)?;
    if let (Some(path), false) = (results.path(), result.tried.is_empty()) {
        show.note(&format!("stored in {}", path.display()));
    }
    if let Some(words) = disturbance(&result) {
        show.note(&words);
    }
    finished?;
    match fault {
        Some(fault) => Err(fault.into()),
        None => Ok(outcome(&result.conclusion)),
    }
}

/// A search that was limited by the client or disturbed has no result for the server.
fn outcome(conclusion: &SearchConclusion) -> ExitOutcome {
    let about_the_server =
        !matches!(conclusion.end, SearchEnd::Client | SearchEnd::Disturbed | SearchEnd::Stopped);
    match about_the_server && conclusion.rate_ops_s.is_some() {
        true => ExitOutcome::Done,
        false => ExitOutcome::Invalid,
    }
}

fn print(
    args: &args::Search,
    show: &Output,
    search: &RateSearch,
    execution: &Execution,
    result: &SearchResult,
) -> anyhow::Result<()> {
    if args.json {
        return show.json(&object(search, execution, result));
    }
    if !result.tried.is_empty() {
        let trials: Vec<&RateTrial> = result.tried.iter().map(|tried| &tried.trial).collect();
        let title = format!("Trials of {} on {}", search.name, search.store.scheme);
        let table = report::tables::trials(&title, &trials);
        show.print_styled(&report::terminal::table(&table, show.style()))?;
    }
    show.print(&format!("\n{}", result.conclusion.summary))
}

fn rate_search(args: &args::Search) -> anyhow::Result<RateSearch> {
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
    let options = args.load.options(Some(Rate(1.0)), preset.and_then(|preset| preset.arrivals));
    let timed = options.server_latency.is_some();
    let usual = LoadOptions { warm_up: Some(unplaced(WARM_UP)), ..LoadOptions::default() };
    let cpus = flags::cpus_of(args.load.agents.machines());
    let mut config = options.or(usual).config(cpus).map_err(flags::name_flag)?;
    if !timed {
        // Timing inside the server would lower the rate.
        config.server_timing = ServerTiming::Off;
    }
    let rate = |rate: Option<Rate>| rate.map(|Rate(rate)| rate);
    Ok(RateSearch {
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
        agents: args.load.agents.config(None)?,
        probes: args.machine.probes()?,
        knobs: args.machine.levels()?,
        most_time: args.max_time.map(|Span(most)| most),
    })
}
