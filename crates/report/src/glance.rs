//! The answer of a page in a sentence: that of a study's first question, else what the runs say.

use std::cmp::Ordering;

use analyse::answer::Confidence;
use analyse::mbwu::{EvaluationRound, UnitEvaluation};
use model::{Execution, LoopKind, Phase, Run};

use crate::cells::{self, ReportCell};
use crate::format;
use crate::study::StudyReport;
use crate::tables;

/// One sentence for each study, or for the runs where none of them asks a question.
pub fn sentences(runs: &[(&Execution, &Run)], studies: &[StudyReport]) -> Vec<String> {
    let of_studies: Vec<String> = studies.iter().filter_map(of_study).collect();
    if of_studies.is_empty() { vec![of_runs(runs)] } else { of_studies }
}

/// The first question with an answer; else that none has one.
fn of_study(study: &StudyReport) -> Option<String> {
    let first = study.answers.first()?;
    let of_all = match study.answers.len() {
        1 => String::new(),
        all => format!(" (The first answer of {all} questions.)"),
    };
    match study.answers.iter().find(|answer| answer.confidence > Confidence::NoData) {
        Some(answer) => Some(format!("{} {}{of_all}", answer.ask, answer.verdict)),
        None => Some(format!("No question is answered here. {} {}", first.ask, first.verdict)),
    }
}

fn of_runs(runs: &[(&Execution, &Run)]) -> String {
    if runs.is_empty() {
        return "No run is finished yet.".to_owned();
    }
    if let Some(conclusion) = of_work_units(runs) {
        return conclusion;
    }
    if tables::measured_runs(runs).is_empty() {
        return "Every number here is simulated, none is measured.".to_owned();
    }
    let all = cells::cells(&tables::measured_runs(runs));
    let valid: Vec<&ReportCell> = all.iter().filter(|cell| cell.counted().1).collect();
    let measured = valid.iter().copied().filter(|cell| cell.runs[0].phase == Phase::Measure);
    let (closed, open): (Vec<&ReportCell>, Vec<&ReportCell>) =
        measured.partition(|cell| matches!(cell.runs[0].pacing, LoopKind::Closed { .. }));
    match (closed.is_empty(), open.is_empty(), valid.is_empty()) {
        (false, ..) => of_throughput(&closed),
        (_, false, _) => of_rates(&open),
        (.., false) => of_throughput(&valid),
        _ => "No run is valid: nothing can be concluded.".to_owned(),
    }
}

/// The conclusion of an evaluation of work units.
fn of_work_units(runs: &[(&Execution, &Run)]) -> Option<String> {
    let rounds = runs.iter().map(|(_, run)| *run);
    let rounds: Vec<&Run> = rounds.filter(|run| EvaluationRound::of(run).is_some()).collect();
    let first = rounds.first()?;
    let own: Vec<&Run> =
        rounds.iter().copied().filter(|run| run.execution == first.execution).collect();
    UnitEvaluation::of_runs(&own).ok().map(|evaluation| evaluation.conclusion)
}

fn throughput(cell: &ReportCell) -> f64 {
    cell.median(|run| Some(run.throughput())).unwrap_or(0.0)
}

fn by_throughput(a: &&&ReportCell, b: &&&ReportCell) -> Ordering {
    throughput(a).total_cmp(&throughput(b))
}

/// The fastest and the next one under a workload.
struct Lead<'c> {
    workload: &'c str,
    first: &'c ReportCell<'c>,
    /// How many times as fast as the next one.
    times: f64,
    next: &'c ReportCell<'c>,
}

/// Who serves most: under each workload where several were measured, else over all workloads.
fn of_throughput(cells: &[&ReportCell]) -> String {
    let mut workloads: Vec<&str> = Vec::new();
    for cell in cells.iter().filter(|cell| throughput(cell) > 0.0) {
        if !workloads.contains(&cell.category.as_str()) {
            workloads.push(&cell.category);
        }
    }
    let leads: Vec<Lead> = workloads.iter().filter_map(|workload| lead(cells, workload)).collect();
    if leads.is_empty() {
        return of_one_store(cells);
    }
    let once = leads.iter().all(|lead| lead.first.counted().0.len() == 1);
    let once = if once { ", each in one run" } else { "" };
    if let [only] = &leads[..] {
        return format!(
            "Under {}, {} has the highest throughput, {}: {} as much as {}{once}.",
            only.workload,
            only.first.series,
            format::rate(throughput(only.first)),
            format::ratio(only.times),
            only.next.series
        );
    }
    let mut winners: Vec<(&str, Vec<&Lead>)> = Vec::new();
    for lead in &leads {
        match winners.iter_mut().find(|(name, _)| *name == lead.first.series) {
            Some((_, own)) => own.push(lead),
            None => winners.push((&lead.first.series, vec![lead])),
        }
    }
    winners.sort_by_key(|(_, own)| std::cmp::Reverse(own.len()));
    let (name, own) = &winners[0];
    let least = own.iter().map(|lead| lead.times).fold(f64::INFINITY, f64::min);
    let most = own.iter().map(|lead| lead.times).fold(0.0, f64::max);
    let of = match own.len() == leads.len() {
        true => format!("all {} workloads", leads.len()),
        false => format!("{} of {} workloads", own.len(), leads.len()),
    };
    let others: Vec<String> = winners[1..]
        .iter()
        .map(|(name, own)| {
            let workloads: Vec<&str> = own.iter().map(|lead| lead.workload).collect();
            format!("{name} under {}", workloads.join(", "))
        })
        .collect();
    let others = if others.is_empty() { String::new() } else { format!("; {}", others.join("; ")) };
    format!(
        "{name} has the highest throughput under {of}, {} to {} as much as the next \
         one{others}{once}.",
        format::ratio(least),
        format::ratio(most)
    )
}

/// None where a workload has one configuration alone.
fn lead<'c>(cells: &[&'c ReportCell<'c>], workload: &'c str) -> Option<Lead<'c>> {
    let own = cells.iter().filter(|cell| cell.category == workload);
    let first = own.clone().max_by(by_throughput)?;
    let others = own.filter(|cell| !std::ptr::eq(**cell, *first));
    let next = others.filter(|cell| throughput(cell) > 0.0).max_by(by_throughput)?;
    Some(Lead { workload, first, times: throughput(first) / throughput(next), next })
}

fn of_one_store(cells: &[&ReportCell]) -> String {
    let (Some(least), Some(most)) =
        (cells.iter().min_by(by_throughput), cells.iter().max_by(by_throughput))
    else {
        return "No run is valid: nothing can be concluded.".to_owned();
    };
    match std::ptr::eq(*least, *most) {
        true => format!(
            "{} reaches {} under {}{}.",
            most.series,
            format::rate(throughput(most)),
            most.category,
            tail(most)
                .map_or(String::new(), |(op, p99)| format!(", 99 % of each {op} within {p99}"))
        ),
        false => format!(
            "{} reaches {} under {} and {} under {}, the lowest and the highest of {} \
             configurations.",
            least.series,
            format::rate(throughput(least)),
            least.category,
            format::rate(throughput(most)),
            most.category,
            cells.len()
        ),
    }
}

/// The highest rate that was held, and the tail there.
fn of_rates(cells: &[&ReportCell]) -> String {
    let Some(highest) = cells.iter().max_by(by_throughput) else { return String::new() };
    let rate = throughput(highest);
    let same = cells.iter().filter(|cell| {
        cell.category == highest.category && (throughput(cell) / rate - 1.0).abs() < 0.01
    });
    let tails = same.filter_map(|cell| Some((tail(cell)?, cell)));
    let tails: Vec<String> =
        tails.map(|((op, p99), cell)| format!("{}: {op} p99 {p99}", cell.series)).collect();
    format!(
        "The highest rate that was held is {} under {}: {}.",
        format::rate(rate),
        highest.category,
        if tails.is_empty() { highest.series.clone() } else { tails.join("; ") }
    )
}

/// The most frequent operation and its 99th percentile.
fn tail(cell: &ReportCell) -> Option<(&'static str, String)> {
    let op = cell.main_op()?;
    let p99 = cell.merged(op, cell.clock())?.value_at_percentile(99.0);
    Some((op.name(), format::latency(p99 as f64)))
}
