use record::{Execution, Run, Selection};

use crate::args::Report;
use crate::exit::{Outcome, request};
use crate::files;
use crate::show::Show;

pub fn run(args: &Report, show: &Show) -> anyhow::Result<Outcome> {
    let selection = Selection::open(&args.file)?;
    if let Some(html) = &args.html {
        files::check_output("--html", html, &[&selection.path])?;
    }
    let pairs = selection.pairs();
    if args.json {
        let objects: Vec<_> = pairs.iter().map(|(execution, run)| run.summary(execution)).collect();
        show.print(&serde_json::to_string_pretty(&objects)?)?;
    } else if args.markdown {
        show.print(&report::markdown::runs(&pairs))?;
    } else {
        show.print(&report::terminal::runs(&pairs, show.style()))?;
    }
    if let Some(html) = &args.html {
        let page = report::html::page(&by_execution(&selection));
        files::make_room_for(html)
            .and_then(|()| std::fs::write(html, page))
            .map_err(|error| request(format!("{}: {error}", html.display())))?;
        show.note(&format!("report   {}", html.display()));
    }
    Ok(Outcome::Done)
}

/// Each execution with its runs, as the page wants them.
fn by_execution(selection: &Selection) -> Vec<(Execution, Vec<Run>)> {
    let with_runs = |execution: &Execution| {
        let runs = selection.runs.iter().filter(|run| run.execution == execution.id);
        (execution.clone(), runs.cloned().collect())
    };
    selection.executions.iter().map(with_runs).collect()
}
