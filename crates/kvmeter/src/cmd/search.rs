use std::time::Duration;

use analyse::search::{Conclusion, Ended, SearchRequest, Trial};
use analyse::slo::Objective;
use model::{Rate, Span};
use record::Execution;
use study::knobs::KnobEffects;
use study::{LoadOptions, Plan, RateSearch, SearchResult, ServerTiming};

use crate::args;
use crate::exit::{Outcome, request};
use crate::flags;
use crate::found::{Searching, disturbance, object};
use crate::interrupt::stop_flag;
use crate::kept::Kept;
use crate::show::Show;

/// Each trial lets connections and caches come to themselves for so long.
const WARM_UP: Span = Span(Duration::from_millis(500));

pub fn run(args: &args::Search, show: &Show) -> anyhow::Result<Outcome> {
    let search = asked(args)?;
    let plan = search.plan()?;
    search.knobs.plan(&plan.probes.root)?;
    study::check_directories(&plan)?;
    let levels = &search.knobs;
    args.machine.recorded.under(levels, show, |seen| measure(args, &search, &plan, seen, show))
}

fn measure(
    args: &args::Search,
    search: &RateSearch,
    plan: &Plan,
    seen: &KnobEffects,
    show: &Show,
) -> anyhow::Result<Outcome> {
    let execution = study::execution(plan, std::env::args().collect(), seen);
    let mut kept = Kept::open(args.out.clone(), plan)?;

    let stop = stop_flag()?;
    let mut watch = Searching::new(show.bar(std::iter::empty()), search);
    let mut keep = |run: &record::Run| kept.keep(&execution, run, show);
    let found = search.run(&execution, &mut keep, &mut watch, &stop, seen);
    watch.finish();
    let mut found = found?;
    let fault = found.fault.take();
    let whole = fault.is_none() && found.conclusion.ended != Ended::Stopped;
    let finished = if whole { kept.finish(&execution) } else { Ok(()) };
    print(args, show, search, &execution, &found)?;
    if let (Some(path), false) = (kept.place(), found.tried.is_empty()) {
        show.note(&format!("kept in {}", path.display()));
    }
    if let Some(words) = disturbance(&found) {
        show.note(&words);
    }
    finished?;
    match fault {
        Some(fault) => Err(fault.into()),
        None => Ok(outcome(&found.conclusion)),
    }
}

/// A client that was the limit, or a machine that was busy, has found nothing of the server.
fn outcome(conclusion: &Conclusion) -> Outcome {
    let about_the_server =
        !matches!(conclusion.ended, Ended::Client | Ended::Disturbed | Ended::Stopped);
    match about_the_server && conclusion.rate_ops_s.is_some() {
        true => Outcome::Done,
        false => Outcome::Invalid,
    }
}

fn print(
    args: &args::Search,
    show: &Show,
    search: &RateSearch,
    execution: &Execution,
    found: &SearchResult,
) -> anyhow::Result<()> {
    if args.json {
        return show.json(&object(search, execution, found));
    }
    if !found.tried.is_empty() {
        let trials: Vec<&Trial> = found.tried.iter().map(|tried| &tried.trial).collect();
        let title = format!("Trials of {} on {}", search.name, search.store.scheme);
        let table = report::tables::trials(&title, &trials);
        show.painted(&report::terminal::table(&table, show.style()))?;
    }
    show.print(&format!("\n{}", found.conclusion.words))
}

fn asked(args: &args::Search) -> anyhow::Result<RateSearch> {
    let (store, server) = args.load.store(&args.store)?;
    let workload = args.workload.spec()?;
    if workload.is_load() && args.workload.mix.is_none() {
        return Err(request(format!(
            "--workload {}: a load has no rate to search for; name a workload that asks",
            args.workload.preset
        )));
    }
    let preset = args.workload.known();
    let usual = preset.and_then(|preset| preset.slo);
    let objective: Objective = match (&args.slo, usual) {
        (Some(given), _) => given.clone(),
        (None, Some(usual)) => usual.parse()?,
        (None, None) => {
            return Err(request(format!(
                "--slo is missing, and the workload {} has none of its own; say what latency has \
                 to keep, as in --slo 'p99<1ms'",
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
    // The rate of a trial is not known yet; all that is asked with it is.
    let wish = args.load.wish(Some(Rate(1.0)), preset.and_then(|preset| preset.arrivals));
    let wish = LoadOptions { warm_up: wish.warm_up.or(Some(WARM_UP)), ..wish };
    let mut manner = flags::manner(&wish, args.load.agents.machines())?;
    if args.load.server_latency.is_none() {
        // Looking inside the server takes some of the rate that is searched for.
        manner.server_timing = ServerTiming::Off;
    }
    let rate = |rate: Option<Rate>| rate.map(|Rate(rate)| rate);
    Ok(RateSearch {
        store,
        server,
        name: args.workload.name(),
        workload,
        load_config: manner,
        objective,
        request: SearchRequest {
            hint: None,
            lowest: rate(args.from),
            highest: rate(args.to),
            resolution: args.resolution,
            trials: args.trials,
        },
        time: args.time.0,
        agents: args.load.agents.wanted(None)?,
        probes: args.machine.probes()?,
        knobs: args.machine.levels()?,
        most_time: args.max_time.map(|Span(most)| most),
    })
}
