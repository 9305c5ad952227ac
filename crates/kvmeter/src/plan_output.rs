//! Printing a plan: cells, order, and an estimate.

use std::collections::BTreeSet;

use model::Span;
use report::tables::{self, PlanSize};
use report::{PlanRow, format};
use study::{Activity, Estimates, MovingRate, Plan, Step};

use crate::exit::ExitOutcome;
use crate::output::Output;

const JOULES_PER_WH: f64 = 3600.0;

/// Prints the planned runs and the writes of knobs.
pub fn describe(
    steps: &[&Step],
    knobs: &host::knob::KnobPlan,
    json: bool,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let turns = knobs.levels().next().is_some();
    if json {
        let steps: Vec<_> = steps.iter().map(|step| with_writes(object(step), knobs)).collect();
        show.json(&steps)?;
        return Ok(ExitOutcome::Done);
    }
    rows(steps, show)?;
    moving_rates(steps).iter().try_for_each(|words| show.print(words))?;
    match turns {
        true => crate::cmd::knob::describe(knobs, show),
        false => Ok(ExitOutcome::Done),
    }
}

/// Prints the plan of a study: its design, its runs and an estimate.
pub fn describe_study(
    plan: &Plan,
    done: &BTreeSet<u32>,
    limit: Option<Span>,
    json: bool,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let left = plan.steps().filter(|(_, step)| !done.contains(&step.ordinal));
    let root = &plan.probes.root;
    if json {
        let mut all = Vec::new();
        for (segment, step) in left {
            all.push(with_writes(object(step), &segment.knobs.plan(root)?));
        }
        show.json(&all)?;
        return Ok(ExitOutcome::Done);
    }
    if !plan.design.factors.is_empty() {
        let cells: BTreeSet<_> =
            plan.steps().map(|(_, step)| plan.design.levels_of(&step.settings)).collect();
        let stores: BTreeSet<u32> = plan.steps().map(|(_, step)| step.unit).collect();
        let size = PlanSize { cells: cells.len(), stores: stores.len(), repeats: plan.repeats };
        show.tables(&[tables::design(&plan.design, &size)])?;
        show.print("")?;
    }
    let steps: Vec<&Step> = left.map(|(_, step)| step).collect();
    rows(&steps, show)?;
    moving_rates(&steps).iter().try_for_each(|words| show.print(words))?;
    if plan.design.factors.is_empty() {
        tables::skipped_lines(&plan.design).try_for_each(|words| show.print(&words))?;
    }
    show.print(&estimate(plan, |step| !done.contains(&step.ordinal)))?;
    limit.into_iter().try_for_each(|limit| show.print(&budget_line(plan, limit)))?;
    match plan.common_knobs() {
        Some(levels) if !levels.is_empty() => crate::cmd::knob::describe(&levels.plan(root)?, show),
        _ => Ok(ExitOutcome::Done),
    }
}

/// Announces a study in a few lines before it starts.
pub fn announce(plan: &Plan, limit: Option<Span>, show: &Output) {
    if show.is_quiet() {
        return;
    }
    if let Some(scale) = &plan.design.scale {
        show.note(&format!("at the scale `{}`: {}", scale.name, scale.note));
    }
    tables::skipped_lines(&plan.design).for_each(|words| show.note(&words));
    show.note(&estimate(plan, |_| true));
    if let Some(limit) = limit {
        show.note(&budget_line(plan, limit));
    }
}

/// Time, disk and energy in a line.
fn estimate(plan: &Plan, include: impl Fn(&Step) -> bool) -> String {
    let Estimates { runs, seconds, guessed, disk, loads, calibrations, knob_changes } =
        plan.estimate(|step| !plan.is_spare(step) && include(step));
    let about = if guessed { "about " } else { "" };
    let mut words = format!("{runs} runs in {about}{}", format::seconds(seconds));
    let count = |n: usize, one: &str, many: &str| match n {
        1 => format!(", 1 {one}"),
        n => format!(", {n} {many}"),
    };
    if loads > 0 {
        words += &count(loads, "load of data", "loads of data");
    }
    if calibrations > 0 {
        words += &count(calibrations, "calibration first", "calibrations first");
    }
    if knob_changes > 0 {
        words += &count(knob_changes, "change of knobs", "changes of knobs");
    }
    if disk.0 > 0 {
        words += &format!(", up to {} on disk", format::bytes(disk.0 as f64));
    }
    match (&plan.probes.energy.model, execute::watts_now(&plan.probes)) {
        (Some(model), _) => {
            let most = model.full_w * seconds / JOULES_PER_WH;
            words += &format!(", at most {most:.1} Wh by the model of {} W", model.full_w);
        }
        (None, Ok(now)) => {
            let least = now.watts * seconds / JOULES_PER_WH;
            words += &format!(
                ", at least {least:.1} Wh: the machine draws {:.1} W now ({})",
                now.watts, now.signal
            );
        }
        (None, Err(why)) => words += &format!("; its energy is unknown: {why}"),
    }
    words
}

/// How many repeats fit into a time limit.
fn budget_line(plan: &Plan, Span(limit): Span) -> String {
    let all = plan.steps().map(|(_, step)| step.repeat).max().unwrap_or(0);
    let fits =
        |repeat: &u32| plan.estimate(|step| step.repeat <= *repeat).seconds <= limit.as_secs_f64();
    let limit = Span(limit);
    match (1..=all).rev().find(fits) {
        Some(repeats) if repeats == all => format!("all of it fits into {limit}"),
        Some(repeats) => {
            format!("about {repeats} of {all} repeats fit into {limit}; the others are dropped")
        }
        None => format!(
            "not even one repeat of every cell fits into {limit}: cells are dropped, in their \
             random order"
        ),
    }
}

fn rows(steps: &[&Step], show: &Output) -> anyhow::Result<()> {
    let rows: Vec<PlanRow> = steps.iter().map(|step| row(step)).collect();
    show.print_styled(&report::terminal::plan(&rows, show.style()))
}

/// The window, the requests and the peak of a step whose rate moves.
fn moving_rate(step: &Step) -> Option<MovingRate> {
    match &step.activity {
        Activity::Measure(load) => load.load_config.moving_rate(),
        Activity::Load(_) | Activity::Replay(..) | Activity::Bench(_) => None,
    }
}

/// A line for each profile and rate.
fn moving_rates(steps: &[&Step]) -> BTreeSet<String> {
    let words = |moving: MovingRate| {
        let MovingRate { profile, pass_s, seconds, requests, peak, of_maximum } = moving;
        let load = match of_maximum {
            true => format!(
                "on average {:.1} % of the maximum, at most {:.1} %",
                100.0 * requests / seconds,
                100.0 * peak
            ),
            false => format!(
                "{} requests, at most {}",
                format::count(requests.round() as u64),
                format::rate(peak)
            ),
        };
        let (pass, window) = (format::seconds(pass_s), format::seconds(seconds));
        format!("rate profile {profile}: a pass takes {pass}, the window {window}; {load}")
    };
    steps.iter().filter_map(|step| moving_rate(step)).map(words).collect()
}

/// A row in JSON.
fn object(step: &Step) -> serde_json::Value {
    let mut object = row(step).object();
    if let Some(MovingRate { pass_s, seconds, requests, peak, of_maximum, .. }) = moving_rate(step)
    {
        object["rate_profile"] = match of_maximum {
            true => serde_json::json!({
                "pass_s": pass_s, "seconds": seconds,
                "mean_of_maximum": requests / seconds, "peak_of_maximum": peak,
            }),
            false => serde_json::json!({
                "pass_s": pass_s, "seconds": seconds,
                "requests": requests.round(), "peak_ops_s": peak,
            }),
        };
    }
    object
}

fn row(step: &Step) -> PlanRow {
    let estimate = step.estimate();
    PlanRow {
        ordinal: step.ordinal,
        label: step.label.clone(),
        phase: step.phase(),
        repeat: step.repeat,
        settings: step.settings.clone(),
        seconds: Some(estimate.seconds),
        guessed: estimate.guessed,
        bytes: Some(estimate.data.0),
    }
}

fn with_writes(mut object: serde_json::Value, knobs: &host::knob::KnobPlan) -> serde_json::Value {
    if knobs.levels().next().is_some() {
        let writes: Vec<String> = knobs.writes().map(|(.., write)| write.to_string()).collect();
        object["knob_writes"] = writes.into();
    }
    object
}
