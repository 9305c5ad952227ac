//! `kvmeter simulate dca`: runs simulations on all cores and shows the results.

use cachesim::sweep::run_all;
use cachesim::{Policy, Traffic};
use report::simulation;

use super::dca_args::DcaArgs;
use super::sweep::KeySweep;
use super::{recorded, thesis, trace, validate};
use crate::exit::ExitOutcome;
use crate::output::Output;

pub fn run(args: &DcaArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    if let Some(series) = &args.validate {
        return validate::run(series, args, show);
    }
    if args.published_figures {
        return thesis::run(args, show);
    }
    let machine = args.machine("xeon-gold-6140")?;
    if let Some(path) = &args.trace {
        return trace::run(args, &machine, path, show);
    }
    let mut traffic = Traffic::open(&args.traffic, &machine)?;
    if let Some(run) = &args.from_run {
        recorded::take(run, &mut traffic)?;
    }
    let sweep = KeySweep::parse(&args.sweep)?;
    let mut policies = Vec::new();
    for text in &args.policy {
        policies.push(Policy::parse(text)?);
    }
    let (points, jobs) = sweep.jobs(&machine, &traffic, &policies)?;
    args.check_page()?;
    if jobs.len() > 1 {
        show.note(&format!("{} simulations", jobs.len()));
    }
    let outcomes = run_all(&jobs)?;
    args.write_page(|| simulation::swept_page(sweep.first_varied(), &points, &outcomes))?;
    match &outcomes[..] {
        _ if !args.json => show.tables(&[simulation::outcomes(&points, &outcomes)])?,
        [one] if sweep.is_empty() => show.json(&serde_json::to_value(one)?)?,
        _ => show.json(&simulation::object(&points, &outcomes)?)?,
    }
    Ok(ExitOutcome::Done)
}
