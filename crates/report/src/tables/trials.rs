//! The trials of a search, by rising rate.

use analyse::search::{RateTrial, TrialOutcome};
use analyse::slo::{ConditionResult, ObjectiveVerdict};

use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// One row for each trial, with intervals.
pub fn trials(title: &str, trials: &[&RateTrial]) -> Table {
    let mut table = Table::new(title).column("target", Align::Right, ALWAYS).column(
        "kops/s",
        Align::Decimal,
        ALWAYS,
    );
    let conditions = trials.first().map_or(&[][..], |trial| &trial.judgement.results);
    for finding in conditions {
        table = table.column(finding.condition.to_string(), Align::Left, ALWAYS);
    }
    let mut table = table
        .column("hit ratio", Align::Decimal, ALWAYS)
        .column("client", Align::Right, 60)
        .column("", Align::Left, ALWAYS);
    let mut sorted = trials.to_vec();
    sorted.sort_by(|a, b| a.rate_ops_s.total_cmp(&b.rate_ops_s));
    for trial in &sorted {
        let (words, tone) = outcome(trial);
        let mut cells = vec![
            Cell::from(format::count(trial.rate_ops_s.round() as u64)),
            Cell::new(format::kops(trial.achieved_ops_s), Tone::Strong),
        ];
        cells
            .extend(trial.judgement.results.iter().map(|result| Cell::from(measured_text(result))));
        cells.push(
            trial.hit_ratio.map_or(Cell::from(""), |ratio| format::readable(ratio, 3).into()),
        );
        cells.push(format!("{:.0} %", trial.client.busy * 100.0).into());
        cells.push(Cell::new(words, tone));
        table.row(cells);
    }
    table.note(
        "target: operations a second; kops/s: those that were achieved; latency is \
         counted from the instant at which a request was due, with its 95 % interval; client: the \
         share of its time in which it could not have sent more",
    );
    table.without_empty_columns()
}

/// One line as a trial ends: `24,500 ops/s  answered 24.49 kops/s  p99 830 µs (801 to 866 µs)  held`.
pub fn trial_line(trial: &RateTrial) -> String {
    let mut parts = vec![
        format!("{:>11} ops/s", format::count(trial.rate_ops_s.round() as u64)),
        format!("answered {}", format::rate(trial.achieved_ops_s)),
    ];
    parts.extend(
        trial
            .judgement
            .results
            .iter()
            .map(|result| format!("{} {}", figure_name(result), measured_text(result))),
    );
    parts.push(outcome(trial).0);
    parts.join("  ")
}

fn figure_name(result: &ConditionResult) -> String {
    let of = result.condition.op.map_or(String::new(), |op| format!("{op}."));
    format!("{of}{}", result.condition.figure)
}

/// The measured value and its interval.
fn measured_text(result: &ConditionResult) -> String {
    let Some(value) = result.measured_ns.map(format::latency) else {
        return "no sample".to_owned();
    };
    match &result.interval {
        Ok(interval) => {
            let (low, high) = (format::latency(interval.low), format::latency(interval.high));
            format!("{value} ({low} to {high})")
        }
        Err(_) => format!("{value} (of {} samples)", format::count(result.samples)),
    }
}

/// The outcome of a trial in words.
fn outcome(trial: &RateTrial) -> (String, Tone) {
    let broken = |result: &&ConditionResult| result.verdict == ObjectiveVerdict::Breaks;
    match trial.outcome() {
        TrialOutcome::Held => ("held".to_owned(), Tone::Good),
        TrialOutcome::Broke => match trial.judgement.results.iter().find(broken) {
            Some(result) => (format!("broke {}", figure_name(result)), Tone::Bad),
            None => ("broke".to_owned(), Tone::Bad),
        },
        TrialOutcome::Unclear => ("unclear".to_owned(), Tone::Warning),
        TrialOutcome::Behind => ("fell behind".to_owned(), Tone::Bad),
        TrialOutcome::Failed => ("answers failed".to_owned(), Tone::Bad),
        TrialOutcome::Disturbed => ("the machine was busy".to_owned(), Tone::Warning),
        TrialOutcome::Client if trial.client.late.is_some() => {
            ("the client was late".to_owned(), Tone::Warning)
        }
        TrialOutcome::Client => ("the client was busy".to_owned(), Tone::Warning),
    }
}
