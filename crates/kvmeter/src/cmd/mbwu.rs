//! Work units: measured by `run` of a study with `[mbwu]`, shown by `mbwu`.

use std::path::PathBuf;

use analyse::mbwu::{
    EvaluationRound, GrowthStep, Resource, ResourceUse, RoundPurpose, UnitEvaluation,
};
use model::Fact;
use record::{Execution, Run, RunSelection};
use report::table::Table;
use report::tables;
use report::terminal::Style;
use serde_json::{Value, json};
use study::knobs::KnobEffects;
use study::{Event, Listener, MachineLock, MbwuEvaluation, MbwuTable, StudyText};

use crate::args;
use crate::cmd::cost::work_units::{self, UnitCosts};
use crate::cmd::run::{open, resume_hint, runs_of, tell};
use crate::cost_flags::PlatformFlag;
use crate::devices::Devices;
use crate::exit::{Outcome, request};
use crate::files;
use crate::interrupt::stop_flag;
use crate::kept::keep_or_show;
use crate::show::{Bar, Show};

/// `kvmeter mbwu FILE`.
pub fn run(args: &args::Mbwu, show: &Show) -> anyhow::Result<Outcome> {
    let selection = RunSelection::open(&args.file)?;
    let mut found = Vec::new();
    for execution in &selection.executions {
        let own = selection.runs.iter().filter(|run| run.execution == execution.id);
        let own: Vec<&Run> = own.collect();
        if own.iter().any(|run| EvaluationRound::of(run).is_some()) {
            let evaluation =
                UnitEvaluation::of_runs(&own).map_err(|error| request(error.to_string()))?;
            found.push((execution, own, evaluation));
        }
    }
    if found.is_empty() {
        return Err(request(format!(
            "{}: holds no rounds of work units; measure some with: kvmeter run mbwu --device PATH",
            args.file
        )));
    }
    let proven = found.iter().all(|(.., evaluation)| counts(evaluation));
    let mut costs = Vec::new();
    for (_, runs, evaluation) in &found {
        costs.push(cost(&args.platform, runs, evaluation)?);
    }
    if args.json {
        let objects: Vec<Value> = found
            .iter()
            .zip(&costs)
            .map(|((execution, runs, evaluation), cost)| {
                let mut object = object(execution, runs, evaluation);
                object["cost"] = cost.as_ref().map(|cost| cost.object.clone()).into();
                object
            })
            .collect();
        // One evaluation is the usual case: one object.
        let all = match objects.len() {
            1 => objects.into_iter().next().unwrap_or_default(),
            _ => objects.into(),
        };
        show.json(&all)?;
    } else {
        for ((execution, _, evaluation), cost) in found.iter().zip(&costs) {
            print(evaluation, execution, show)?;
            for table in cost.iter().flat_map(|cost| &cost.tables) {
                show.print("")?;
                show.painted(&report::terminal::table(table, show.style()))?;
            }
        }
    }
    Ok(if proven { Outcome::Done } else { Outcome::Invalid })
}

/// What the units cost on the platforms that were named, the first of which is this one. Its power
/// is what was measured while it generated them, unless it is given.
fn cost(
    platforms: &[PlatformFlag],
    runs: &[&Run],
    evaluation: &UnitEvaluation,
) -> anyhow::Result<Option<UnitCosts>> {
    let Some((first, others)) = platforms.split_first() else { return Ok(None) };
    let (Some(units), Some(devices)) = (evaluation.count.units, evaluation.count.devices) else {
        return Err(request(format!(
            "--platform: there is no number of MBWUs to divide by. {}",
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
    args: &args::Run,
    table: &MbwuTable,
    source: &StudyText,
    show: &Show,
) -> anyhow::Result<Outcome> {
    let name = source.spec()?.name.into_inner();
    let (out, html) = files::places(args, &name)?;
    let stop = stop_flag()?;
    let devices = Devices::of(args, table, &out)?;
    if args.dry_run {
        return describe(&devices, source, args, show);
    }
    // Whoever runs a study measures alone.
    let _alone = MachineLock::take()?;
    let folders = devices.ready(&stop, show)?;
    let mbwu = MbwuEvaluation::of(source, folders.paths(), &args.recorded.root())?;
    let Some(knobs) = mbwu.plan().common_knobs() else {
        return Err(request("the knobs of a study with [mbwu] cannot be factors".to_owned()));
    };
    let facts = folders.facts();
    args.recorded.under(&knobs, show, |seen| {
        evaluate(args, &mbwu, (&out, &html), (seen, &facts), &stop, show)
    })
}

fn evaluate(
    args: &args::Run,
    mbwu: &MbwuEvaluation,
    (out, html): (&PathBuf, &PathBuf),
    (seen, facts): (&KnobEffects, &[Fact]),
    stop: &std::sync::Arc<std::sync::atomic::AtomicBool>,
    show: &Show,
) -> anyhow::Result<Outcome> {
    let (mut file, mut execution, _) = open(args, mbwu.plan(), out, seen, facts)?;
    let before = runs_of(&file, &execution)?;
    if !before.is_empty() {
        show.note(&format!("{}: {} rounds are done", out.display(), before.len()));
    }
    let mut watch = Rounds { bar: show.bar(std::iter::empty()) };
    let mut keep = |run: &Run| keep_or_show(&mut file, (&execution, run), true, args.json, show);
    let ended = mbwu.run(&execution, &before, &mut keep, &mut watch, stop, seen);
    watch.bar.finish();
    let how = resume_hint(args, out);
    let kept = format!("Every round that was kept is in {}. Go on with: {how}", out.display());
    let evaluation = match ended {
        Ok(evaluation) => evaluation,
        Err(error) => return Err(error.with_note(&kept).into()),
    };
    if stop.load(std::sync::atomic::Ordering::Relaxed) {
        show.note(&format!("Stopped. {kept}"));
        return Ok(Outcome::Invalid);
    }
    let at = study::now();
    let closed = file.finish(&execution.id, &at);
    execution.finished_at = Some(at);
    let runs = runs_of(&file, &execution)?;
    tell(args, execution, runs, (out, html), tables_of, show)?;
    closed?;
    Ok(if counts(&evaluation) { Outcome::Done } else { Outcome::Invalid })
}

fn tables_of(runs: &[(&Execution, &Run)], style: &Style) -> String {
    let text = |table: &Table| report::terminal::table(table, style);
    tables::mbwu(runs).iter().map(text).collect::<Vec<_>>().join("\n")
}

/// What would be done to which device, and how each round would be measured.
fn describe(
    devices: &Devices,
    source: &StudyText,
    args: &args::Run,
    show: &Show,
) -> anyhow::Result<Outcome> {
    let spec = source.spec()?;
    let sequence: Vec<&str> = spec.sequence.iter().map(|step| step.get_ref().as_str()).collect();
    if args.json {
        let all = json!({ "devices": devices.describe(), "sequence": sequence });
        show.json(&all)?;
        return Ok(Outcome::Done);
    }
    for line in devices.describe() {
        show.print(&line)?;
    }
    // What is wrong with the study is said before anybody waits for a device.
    if let Some(folders) = devices.folders() {
        let mbwu = MbwuEvaluation::of(source, &folders, &args.recorded.root())?;
        let request = &mbwu.request;
        let loads: Vec<String> = request.loads.iter().map(ToString::to_string).collect();
        show.print(&format!(
            "then {} under loads of {} until it brings no more, up to {} rounds until it is \
             steady, and the same with 2 to {} devices",
            sequence.join(", "),
            loads.join(", "),
            request.most_rounds,
            request.devices
        ))?;
    }
    Ok(Outcome::Done)
}

/// Whether it came to a unit, or to a fraction of a given one.
fn counts(evaluation: &UnitEvaluation) -> bool {
    let proven = evaluation.unit.as_ref().is_some_and(|unit| unit.proven);
    let given = evaluation.request.given_unit.is_some() && evaluation.count.units.is_some();
    (proven || given) && evaluation.growth.iter().all(|step| step.steady)
}

fn print(evaluation: &UnitEvaluation, execution: &Execution, show: &Show) -> anyhow::Result<()> {
    let mut all = vec![tables::mbwu_rounds(evaluation), tables::mbwu_growth(evaluation)];
    all.extend(tables::mbwu_published(evaluation, execution));
    let all: Vec<_> = all.iter().map(|one| report::terminal::table(one, show.style())).collect();
    show.painted(&all.join("\n"))
}

/// Progress, and a line for each round as it ends.
struct Rounds {
    bar: Bar,
}

impl Listener for Rounds {
    fn on_event(&mut self, event: Event<'_>) {
        if let Event::Saved { run, .. } = &event
            && let Some(round) = EvaluationRound::of(run)
        {
            return self.bar.say(&tables::mbwu_line(&round));
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
        "ended_by": count.ended.name(),
        "ended_by_resource": count.ended.bottleneck().map(|found| found.name()),
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
        "device_throughput_ops_s": round.each_ops_s,
        "device_busy": round.busy.as_ref().ok(),
        "device_queue": round.queue.as_ref().ok(),
        "used": used(&round.uses),
        "machine_busy": round.machine_busy,
        "read_from_device": round.read_from_device,
        "bottleneck": round.bottleneck().name(),
        "valid": round.spoilt().is_none(),
        "invalid_because": round.invalid_because,
    })
}

/// Shares of the resources that are known, and why the others are not.
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
