//! `kvmeter search STORE`: the highest rate at which a store meets a latency objective.

mod args;
mod progress;
mod request;

use analyse::search::{RateTrial, SearchConclusion, SearchEnd};
use execute::knobs::KnobEffects;
use execute::{RateSearch, SearchResult};
use live::Feed;
use model::Execution;
use study::Plan;

pub use self::args::SearchArgs;
use self::progress::{SearchProgress, disturbance, object};
use self::request::rate_search;
use crate::exit::ExitOutcome;
use crate::flags::live::UrlFormat;
use crate::interrupt::stop_flag;
use crate::output::Output;
use crate::results_target::ResultsTarget;

pub fn run(args: &SearchArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    // Agents that were started live as long as the search.
    let (search, _agents) = rate_search(args, show)?;
    if search.trace.is_none() {
        args.workload.note_run_properties(study::RunPlace::Search, show)?;
    }
    let plan = search.plan()?;
    search.knobs.plan(&plan.probes.root)?;
    execute::check_directories(&plan)?;
    let levels = &search.knobs;
    let page = args.live.start("search", &args.store, UrlFormat::Text)?;
    let feed = page.feed();
    let ended = args
        .machine
        .host
        .with_knobs(levels, show, |effects| measure(args, &search, (&plan, feed), effects, show));
    page.end(&ended);
    ended
}

fn measure(
    args: &SearchArgs,
    search: &RateSearch,
    (plan, feed): (&Plan, Option<Feed>),
    effects: &KnobEffects,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let execution = execute::execution(plan, std::env::args().collect(), effects);
    let mut results = ResultsTarget::open(args.out.clone(), plan)?;

    let stop = stop_flag()?;
    let mut watch = SearchProgress::new(show.bar(std::iter::empty()).with_page(feed), search);
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
    args: &SearchArgs,
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
