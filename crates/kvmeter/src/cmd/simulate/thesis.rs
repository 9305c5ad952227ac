//! `simulate dca --published-figures`: the figures of a thesis, simulated.

use cachesim::sweep::{SweepJob, run_all};
use report::simulation;
use serde_json::json;

use super::dca_args::DcaArgs;
use crate::exit::{ExitOutcome, request};
use crate::output::Output;

pub fn run(args: &DcaArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    args.check_page()?;
    let path = args.figures.as_ref();
    let path =
        path.ok_or_else(|| request("--published-figures: name the page with `--figures FILE`"))?;
    let machine = args.machine("xeon-e5-2697-v2")?;
    let plans = cachesim::thesis::figures(&machine)?;
    let jobs: Vec<SweepJob> = plans.iter().flat_map(|plan| plan.jobs()).collect();
    show.note(&format!("{} simulations", jobs.len()));
    let outcomes = run_all(&jobs)?;
    args.write_page(|| simulation::thesis_page(&plans, &outcomes))?;
    match args.json {
        true => show.json(&json!({ "kind": "simulated", "runs": outcomes }))?,
        false => show.note(&format!("drawn into {}", path.display())),
    }
    Ok(ExitOutcome::Done)
}
