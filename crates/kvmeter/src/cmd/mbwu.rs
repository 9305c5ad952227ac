//! Work units, measured by `run` of a study with `[mbwu]`.

use std::path::PathBuf;

use analyse::mbwu::{
    EvaluationRound, GrowthStep, Resource, ResourceUse, RoundPurpose, UnitEvaluation,
};
use clap::{Args, ValueHint};
use execute::knobs::KnobEffects;
use execute::{Event, Listener, MachineLock, MbwuEvaluation};
use model::{Execution, Fact, Run};
use record::RunSelection;
use report::table::Table;
use report::tables;
use report::terminal::Style;
use serde_json::{Value, json};
use study::{StudyText, mbwu::MbwuTable};

use crate::cmd::cost::work_units::{self, UnitCosts};
use crate::cmd::run::{RunArgs, open, print_results, resume_hint, runs_of};
use crate::devices::NamedDevices;
use crate::exit::{ExitOutcome, request};
use crate::flags::platform::PlatformFlag;
use crate::interrupt::stop_flag;
use crate::output::Output;
use crate::output_files;
use crate::progress::Bar;
use crate::results_target::keep_or_show;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter run mbwu --device /mnt/ssd1 --device /mnt/ssd2 --out units.sqlite\n  \
    kvmeter mbwu units.sqlite\n  \
    kvmeter mbwu units.sqlite --platform name=box,price=2400,watts=180 \\\n               \
    --platform mbwu-embedded,mbwus=0.5\n  \
    kvmeter mbwu units.sqlite --json | jq '.units, .ended_by_resource'\n\n\
    Exit code 1 where no unit was proven: `at least` is not a unit.")]
pub struct MbwuArgs {
    /// A results file of a study with `[mbwu]`, or a part of it: FILE?key=value&key=value
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: String,
    /// Cost of an MBWU: this platform, a built-in one or a file, with your own values: price,
    /// watts, m2, amps, name; repeat for others, with their `mbwus`
    #[arg(long, value_name = "NAME|FILE[,KEY=VALUE...]")]
    pub platform: Vec<PlatformFlag>,
    /// One JSON object; an array where the file holds several evaluations
    #[arg(long)]
    pub json: bool,
}

/// `kvmeter mbwu FILE`.
pub fn run(args: &MbwuArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let selection = RunSelection::open(&args.file)?;
    let mut evaluations = Vec::new();
    for execution in &selection.executions {
        let own = selection.runs.iter().filter(|run| run.execution == execution.id);
        let own: Vec<&Run> = own.collect();
        if own.iter().any(|run| EvaluationRound::of(run).is_some()) {
            let evaluation =
                UnitEvaluation::of_runs(&own).map_err(|error| request(error.to_string()))?;
            evaluations.push((execution, own, evaluation));
        }
    }
    if evaluations.is_empty() {
        return Err(request(format!(
            "{}: has no rounds of work units; measure some with: kvmeter run mbwu --device PATH",
            args.file
        )));
    }
    let proven = evaluations.iter().all(|(.., evaluation)| is_proven(evaluation));
    let mut costs = Vec::new();
    for (_, runs, evaluation) in &evaluations {
        costs.push(cost(&args.platform, runs, evaluation)?);
    }
    if args.json {
        let objects: Vec<Value> = evaluations
            .iter()
            .zip(&costs)
            .map(|((execution, runs, evaluation), cost)| {
                let mut object = object(execution, runs, evaluation);
                object["cost"] = cost.as_ref().map(|cost| cost.object.clone()).into();
                object
            })
            .collect();
        // A single evaluation is one object.
        let all = match objects.len() {
            1 => objects.into_iter().next().unwrap_or_default(),
            _ => objects.into(),
        };
        show.json(&all)?;
    } else {
        for ((execution, _, evaluation), cost) in evaluations.iter().zip(&costs) {
            print(evaluation, execution, show)?;
            for table in cost.iter().flat_map(|cost| &cost.tables) {
                show.print("")?;
                show.print_styled(&report::terminal::table(table, show.style()))?;
            }
        }
    }
    Ok(if proven { ExitOutcome::Done } else { ExitOutcome::Invalid })
}

/// The cost of the units on the named platforms, the first of which is this one. Its power is the
/// measured one, unless it is given.
fn cost(
    platforms: &[PlatformFlag],
    runs: &[&Run],
    evaluation: &UnitEvaluation,
) -> anyhow::Result<Option<UnitCosts>> {
    let Some((first, others)) = platforms.split_first() else { return Ok(None) };
    let (Some(units), Some(devices)) = (evaluation.count.units, evaluation.count.devices) else {
        return Err(request(format!(
            "--platform: the number of MBWUs is unknown. {}",
            evaluation.conclusion
        )));
    };
    let full = |run: &&&Run| {
        EvaluationRound::of(run)
            .is_some_and(|round| round.stage != RoundPurpose::Raise && round.devices == devices)
    };
    let watts: Vec<f64> = runs
        .iter()
        .filter(full)
        .filter_map(|run| analyse::metric_value(run, "power_w").ok())
        .collect();
    let measured = (!watts.is_empty()).then(|| watts.iter().sum::<f64>() / watts.len() as f64);
    let mut first = first.clone();
    first.mbwus = Some(units);
    first.watts = first.watts.or(measured);
    let all: Vec<PlatformFlag> = std::iter::once(first).chain(others.iter().cloned()).collect();
    work_units::measured(&all).map(Some)
}

/// `kvmeter run STUDY --device PATH...` of a study with `[mbwu]`.
pub fn measure(
    args: &RunArgs,
    table: &MbwuTable,
    source: &StudyText,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let name = source.spec()?.name.into_inner();
    let (out, html) = output_files::output_paths(args, &name)?;
    let stop = stop_flag()?;
    let devices = NamedDevices::of(args, table, &out)?;
    if args.dry_run {
        return describe(&devices, source, args, show);
    }
    // Only one study may measure at a time.
    let _alone = MachineLock::take()?;
    let folders = devices.prepare_all(&stop, show)?;
    let mbwu = MbwuEvaluation::of(source, folders.paths(), &args.recorded.root())?;
    let Some(knobs) = mbwu.plan().common_knobs() else {
        return Err(request("the knobs of a study with [mbwu] cannot be factors".to_owned()));
    };
    let facts = folders.facts();
    args.recorded.with_knobs(&knobs, show, |effects| {
        evaluate(args, &mbwu, (&out, &html), (effects, &facts), &stop, show)
    })
}

fn evaluate(
    args: &RunArgs,
    mbwu: &MbwuEvaluation,
    (out, html): (&PathBuf, &PathBuf),
    (effects, facts): (&KnobEffects, &[Fact]),
    stop: &std::sync::Arc<std::sync::atomic::AtomicBool>,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let (mut file, mut execution, _) = open(args, mbwu.plan(), out, effects, facts)?;
    let before = runs_of(&file, &execution)?;
    if !before.is_empty() {
        show.note(&format!("{}: {} rounds are done", out.display(), before.len()));
    }
    let mut watch = RoundProgress { bar: show.bar(std::iter::empty()) };
    let mut keep = |run: &Run| keep_or_show(&mut file, (&execution, run), true, args.json, show);
    let ended = mbwu.run(&execution, &before, &mut keep, &mut watch, stop, effects);
    watch.bar.finish();
    let how = resume_hint(args, out);
    let note = format!("All completed rounds are in {}. Resume with: {how}", out.display());
    let evaluation = match ended {
        Ok(evaluation) => evaluation,
        Err(error) => return Err(error.with_note(&note).into()),
    };
    if stop.load(std::sync::atomic::Ordering::Relaxed) {
        show.note(&format!("Stopped. {note}"));
        return Ok(ExitOutcome::Invalid);
    }
    let at = execute::now();
    let closed = file.finish(&execution.id, &at);
    execution.finished_at = Some(at);
    let runs = runs_of(&file, &execution)?;
    print_results(args, execution, runs, (out, html), evaluation_tables, show)?;
    closed?;
    Ok(if is_proven(&evaluation) { ExitOutcome::Done } else { ExitOutcome::Invalid })
}

fn evaluation_tables(runs: &[(&Execution, &Run)], style: &Style) -> String {
    let text = |table: &Table| report::terminal::table(table, style);
    tables::mbwu(runs).iter().map(text).collect::<Vec<_>>().join("\n")
}

/// Prints what would be done to each device, and the sequence of rounds.
fn describe(
    devices: &NamedDevices,
    source: &StudyText,
    args: &RunArgs,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let spec = source.spec()?;
    let sequence: Vec<&str> = spec.sequence.iter().map(|step| step.get_ref().as_str()).collect();
    if args.json {
        let all = json!({ "devices": devices.describe(), "sequence": sequence });
        show.json(&all)?;
        return Ok(ExitOutcome::Done);
    }
    for line in devices.describe() {
        show.print(&line)?;
    }
    // Errors of the study are reported before devices are prepared.
    if let Some(folders) = devices.folders() {
        let mbwu = MbwuEvaluation::of(source, &folders, &args.recorded.root())?;
        let request = &mbwu.request;
        let loads: Vec<String> = request.loads.iter().map(ToString::to_string).collect();
        show.print(&format!(
            "then {} under loads of {} until it gains no more, up to {} rounds until it is \
             steady, and the same with 2 to {} devices",
            sequence.join(", "),
            loads.join(", "),
            request.most_rounds,
            request.devices
        ))?;
    }
    Ok(ExitOutcome::Done)
}

/// Whether a unit was proven, or a multiple of a given one.
fn is_proven(evaluation: &UnitEvaluation) -> bool {
    let proven = evaluation.unit.as_ref().is_some_and(|unit| unit.proven);
    let given = evaluation.request.given_unit.is_some() && evaluation.count.units.is_some();
    (proven || given) && evaluation.growth.iter().all(|step| step.steady)
}

fn print(evaluation: &UnitEvaluation, execution: &Execution, show: &Output) -> anyhow::Result<()> {
    let mut all = vec![tables::mbwu_rounds(evaluation), tables::mbwu_growth(evaluation)];
    all.extend(tables::mbwu_published(evaluation, execution));
    let all: Vec<_> = all.iter().map(|one| report::terminal::table(one, show.style())).collect();
    show.print_styled(&all.join("\n"))
}

/// Progress, with a line for each round as it ends.
struct RoundProgress {
    bar: Bar,
}

impl Listener for RoundProgress {
    fn on_event(&mut self, event: Event<'_>) {
        if let Event::Saved { run, .. } = &event
            && let Some(round) = EvaluationRound::of(run)
        {
            return self.bar.print_line(&tables::mbwu_line(&round));
        }
        self.bar.on_event(event);
    }
}

fn object(execution: &Execution, runs: &[&Run], evaluation: &UnitEvaluation) -> Value {
    let UnitEvaluation { unit, growth, count, conclusion, notes, rounds, request } = evaluation;
    let interval = unit.as_ref().and_then(|unit| unit.interval.as_ref().ok());
    let setting = |key: &str| runs.first().and_then(|run| run.settings.get(key));
    json!({
        "mbwu_ops_s": unit.as_ref().map(|unit| unit.throughput_ops_s),
        "mbwu_low_ops_s": interval.map(|interval| interval.low),
        "mbwu_high_ops_s": interval.map(|interval| interval.high),
        "proven": unit.as_ref().is_some_and(|unit| unit.proven),
        "steady": unit.as_ref().is_some_and(|unit| unit.steady),
        "bottleneck": unit.as_ref().map(|unit| unit.bottleneck.name()),
        "threads": unit.as_ref().map(|unit| unit.load.threads),
        "databases": unit.as_ref().map(|unit| unit.load.databases),
        "rate_ops_s": unit.as_ref().and_then(|unit| unit.load.rate),
        "given_mbwu_ops_s": request.given_unit,
        "units": count.units,
        "units_low": count.interval.map(|interval| interval.low),
        "units_high": count.interval.map(|interval| interval.high),
        "devices": count.devices,
        "ended_by": count.end.name(),
        "ended_by_resource": count.end.bottleneck().map(|resource| resource.name()),
        "conclusion": conclusion,
        "notes": notes,
        "growth": growth.iter().map(step).collect::<Vec<_>>(),
        "rounds": rounds.iter().map(round).collect::<Vec<_>>(),
        "execution": execution.id,
        "study": execution.study,
        "store": setting("store"),
        "workload": setting("workload"),
    })
}

fn step(step: &GrowthStep) -> Value {
    json!({
        "devices": step.devices,
        "throughput_ops_s": step.throughput_ops_s,
        "units": step.units.is_finite().then_some(step.units),
        "units_low": step.units_interval.map(|interval| interval.low),
        "units_high": step.units_interval.map(|interval| interval.high),
        "rounds": step.rounds,
        "steady": step.steady,
        "bottleneck": step.bottleneck.name(),
        "used": used(&step.uses),
    })
}

fn round(round: &EvaluationRound) -> Value {
    json!({
        "stage": round.stage.name(),
        "devices": round.devices,
        "threads": round.load.threads,
        "databases": round.load.databases,
        "rate_ops_s": round.load.rate,
        "round": round.number,
        "throughput_ops_s": round.throughput_ops_s,
        "device_throughput_ops_s": round.device_ops_s,
        "device_busy": round.busy.as_ref().ok(),
        "device_queue": round.queue.as_ref().ok(),
        "used": used(&round.uses),
        "machine_busy": round.machine_busy,
        "read_from_device": round.read_from_device,
        "bottleneck": round.bottleneck().name(),
        "valid": round.invalid_reason().is_none(),
        "invalid_because": round.invalid_because,
    })
}

/// The known shares of the resources, and why others are unknown.
fn used(uses: &[ResourceUse]) -> Value {
    let pair = |one: &ResourceUse| {
        let share = match &one.share {
            Ok(share) => json!(share),
            Err(why) => json!({ "unavailable": why }),
        };
        (Resource::name(one.resource).to_owned(), share)
    };
    uses.iter().map(pair).collect::<serde_json::Map<_, _>>().into()
}
