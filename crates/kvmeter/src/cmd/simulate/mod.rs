//! `kvmeter simulate dca`: runs simulations on all cores and shows the results.

mod figures;
mod recorded;
mod sweep;
mod tables;

use std::io::BufReader;
use std::path::PathBuf;

use cachesim::sweep::{SweepJob, run_all};
use cachesim::validate::validate_series;
use cachesim::{Policy, SimOutcome as Simulation, SimulatedMachine, Traffic};
use clap::{Args, Subcommand, ValueHint};
use serde_json::{Value, json};

use crate::exit::{ExitOutcome, request};
use crate::output::Output;
use sweep::KeySweep;

#[derive(Debug, Args)]
pub struct SimulateArgs {
    #[command(subcommand)]
    pub what: SimulateVerb,
}

#[derive(Debug, Subcommand)]
pub enum SimulateVerb {
    /// The last-level cache with direct cache access, under packets, cores and co-runners
    Dca(Box<DcaArgs>),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter simulate dca                                       forwarding at 100 Gbit/s\n  \
    kvmeter simulate dca --sweep descriptors=128,1024,4096 --sweep ways=2,4,6\n  \
    kvmeter simulate dca --traffic co-run --policy on,off,iat,yield-search\n  \
    kvmeter simulate dca --machine my.toml --traffic my-traffic.toml --json\n  \
    kvmeter simulate dca --trace accesses.txt\n  \
    kvmeter simulate dca --validate\n\n\
    Machines: xeon-gold-6140, xeon-e5-2697-v2. Traffic: forward, ping-pong, flow, store, co-run, data-caching.\n\
    Policies: on, off, ways:N, phase-and-rate, iat, yield-search.\n\
    Every number is simulated; docs/cache-simulation.md says what is modelled and what is not.")]
pub struct DcaArgs {
    /// A built-in machine or a TOML file [default: xeon-gold-6140]
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub machine: Option<String>,
    /// Built-in traffic or a TOML file
    #[arg(long, default_value = "forward", value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub traffic: String,
    /// Policies that assign the ways
    #[arg(long, default_value = "on", value_delimiter = ',', value_name = "POLICY")]
    pub policy: Vec<String>,
    /// One or more values for packet, descriptors, cores, ways, rate, cycles, stride, working-set
    /// or seed; every combination is simulated
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub sweep: Vec<String>,
    /// Packets as in this recorded run: `FILE` or `FILE?key=value`
    #[arg(long, value_name = "RESULTS", conflicts_with = "trace", value_hint = ValueHint::FilePath)]
    pub from_run: Option<String>,
    /// A memory trace through the caches instead of traffic: a line an access,
    /// `core0 read 0x1000 8` or `card write 0x1000 1500`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["validate", "sweep"], value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Simulate every published point, or those of the series named, and show its error; ends
    /// with 1 where a limit is broken
    #[arg(long, value_name = "SERIES", num_args = 0.., require_equals = true, value_delimiter = ',', conflicts_with_all = ["sweep", "from_run"])]
    pub validate: Option<Vec<String>>,
    /// Simulate figures 4.1 to 4.9 of Basavaraj 2017, on its machine unless --machine names another
    #[arg(long, requires = "figures", conflicts_with_all = ["sweep", "validate", "trace", "from_run"])]
    pub seed_figures: bool,
    /// Draw the sweep into this HTML file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub figures: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &SimulateArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    match &args.what {
        SimulateVerb::Dca(args) => match &args.validate {
            Some(series) => check(series, args, show),
            None if args.seed_figures => seed_figures(args, show),
            None => dca(args, show),
        },
    }
}

fn dca(args: &DcaArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let machine = SimulatedMachine::open(args.machine.as_deref().unwrap_or("xeon-gold-6140"))?;
    if let Some(path) = &args.trace {
        return trace(args, &machine, path, show);
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
    output(args)?;
    if jobs.len() > 1 {
        show.note(&format!("{} simulations", jobs.len()));
    }
    let outcomes = run_all(&jobs)?;
    if let Some(path) = &args.figures {
        let drawings = figures::swept(&sweep, &points, &outcomes);
        figures::write(path, "Direct cache access, simulated", drawings)?;
    }
    if args.json {
        let object = match &outcomes[..] {
            [one] if sweep.is_empty() => serde_json::to_value(one)?,
            _ => json!({ "kind": "simulated", "runs": runs(&points, &outcomes)? }),
        };
        show.json(&object)?;
    } else {
        show.print_styled(&report::terminal::table(
            &tables::outcomes(&points, &outcomes),
            show.style(),
        ))?;
    }
    Ok(ExitOutcome::Done)
}

/// Each outcome with the values that were swept.
fn runs(points: &[sweep::SweepPoint], outcomes: &[Simulation]) -> anyhow::Result<Vec<Value>> {
    let mut runs = Vec::new();
    for (point, outcome) in points.iter().zip(outcomes) {
        let at: serde_json::Map<String, Value> =
            point.at.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        runs.push(json!({ "at": at, "outcome": serde_json::to_value(outcome)? }));
    }
    Ok(runs)
}

fn output(args: &DcaArgs) -> anyhow::Result<()> {
    match &args.figures {
        Some(path) => crate::output_files::check_output("--figures", path, &[]),
        None => Ok(()),
    }
}

fn check(series: &[String], args: &DcaArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    output(args)?;
    let validation = validate_series(series)?;
    if let Some(path) = &args.figures {
        figures::write(path, "Simulated beside published", figures::validation(&validation))?;
    }
    if args.json {
        show.json(&validation)?;
    } else {
        show.print_styled(&report::terminal::table(
            &tables::validation(&validation),
            show.style(),
        ))?;
    }
    Ok(if validation.valid { ExitOutcome::Done } else { ExitOutcome::Invalid })
}

fn seed_figures(args: &DcaArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    output(args)?;
    let path = args.figures.as_ref();
    let path =
        path.ok_or_else(|| request("--seed-figures: name the page with `--figures FILE`"))?;
    let machine = SimulatedMachine::open(args.machine.as_deref().unwrap_or("xeon-e5-2697-v2"))?;
    let plans = cachesim::thesis::figures(&machine)?;
    let jobs: Vec<SweepJob> = plans.iter().flat_map(|plan| plan.jobs()).collect();
    show.note(&format!("{} simulations", jobs.len()));
    let outcomes = run_all(&jobs)?;
    figures::write(
        path,
        "The figures of Basavaraj 2017, simulated",
        figures::thesis(&plans, &outcomes),
    )?;
    if args.json {
        let object = json!({ "kind": "simulated", "runs": serde_json::to_value(&outcomes)? });
        show.json(&object)?;
    } else {
        show.note(&format!("drawn into {}", path.display()));
    }
    Ok(ExitOutcome::Done)
}

fn trace(
    args: &DcaArgs,
    machine: &SimulatedMachine,
    path: &std::path::Path,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let [policy] = &args.policy[..] else {
        return Err(request("--trace: one policy of on, off and ways:N"));
    };
    let (setting, controller) = Policy::parse(policy)?.start(machine.choice())?;
    if controller.is_some() {
        return Err(request(format!(
            "--policy {policy}: a trace has no time, so nothing can be controlled; use on, off or ways:N"
        )));
    }
    let file = std::fs::File::open(path)
        .map_err(|error| request(format!("{}: cannot be read: {error}", path.display())))?;
    let origin = path.display().to_string();
    let outcome = cachesim::trace::run(machine, setting.card, 1, &origin, BufReader::new(file))?;
    if args.json {
        show.json(&outcome)?;
    } else {
        show.print_styled(&report::terminal::table(&tables::trace(&outcome), show.style()))?;
    }
    Ok(ExitOutcome::Done)
}
