//! The trials of a search: one row each, by rising rate.

use analyse::search::{Outcome, Trial};
use analyse::slo::{Finding, Verdict};

use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// What a trial says, and how sure that is.
pub fn trials(title: &str, trials: &[&Trial]) -> Table {
    let mut table = Table::new(title).column("asked", Align::Right, ALWAYS).column(
        "kops/s",
        Align::Decimal,
        ALWAYS,
    );
    let conditions = trials.first().map_or(&[][..], |trial| &trial.judgement.findings);
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
        cells.extend(trial.judgement.findings.iter().map(|found| Cell::from(measured(found))));
        cells.push(
            trial.hit_ratio.map_or(Cell::from(""), |ratio| format::significant(ratio, 3).into()),
        );
        cells.push(format!("{:.0} %", trial.client.busy * 100.0).into());
        cells.push(Cell::new(words, tone));
        table.row(cells);
    }
    table.note(
        "asked: operations a second; kops/s: those that were answered of them; latency is \
         counted from the instant at which a request was due, with its 95 % interval; client: the \
         share of its time in which it could not have sent more",
    );
    table.without_empty_columns()
}

/// One line as a trial ends: `24,500 ops/s  answered 24.49 kops/s  p99 830 µs (801 to 866 µs)  held`.
pub fn trial_line(trial: &Trial) -> String {
    let mut parts = vec![
        format!("{:>11} ops/s", format::count(trial.rate_ops_s.round() as u64)),
        format!("answered {}", format::rate(trial.achieved_ops_s)),
    ];
    parts.extend(
        trial
            .judgement
            .findings
            .iter()
            .map(|found| format!("{} {}", figure(found), measured(found))),
    );
    parts.push(outcome(trial).0);
    parts.join("  ")
}

fn figure(found: &Finding) -> String {
    let of = found.condition.op.map_or(String::new(), |op| format!("{op}."));
    format!("{of}{}", found.condition.figure)
}

/// What was measured, and its interval.
fn measured(found: &Finding) -> String {
    let Some(value) = found.measured_ns.map(format::latency) else {
        return "no sample".to_owned();
    };
    match &found.interval {
        Ok(interval) => {
            let (low, high) = (format::latency(interval.low), format::latency(interval.high));
            format!("{value} ({low} to {high})")
        }
        Err(_) => format!("{value} (of {} samples)", format::count(found.samples)),
    }
}

/// What the trial says in words.
fn outcome(trial: &Trial) -> (String, Tone) {
    let broken = |found: &&Finding| found.verdict == Verdict::Breaks;
    match trial.outcome() {
        Outcome::Held => ("held".to_owned(), Tone::Good),
        Outcome::Broke => match trial.judgement.findings.iter().find(broken) {
            Some(found) => (format!("broke {}", figure(found)), Tone::Bad),
            None => ("broke".to_owned(), Tone::Bad),
        },
        Outcome::Unclear => ("unclear".to_owned(), Tone::Warning),
        Outcome::Behind => ("fell behind".to_owned(), Tone::Bad),
        Outcome::Failed => ("answers failed".to_owned(), Tone::Bad),
        Outcome::Disturbed => ("the machine was busy".to_owned(), Tone::Warning),
        Outcome::Client if trial.client.late.is_some() => {
            ("the client was late".to_owned(), Tone::Warning)
        }
        Outcome::Client => ("the client was busy".to_owned(), Tone::Warning),
    }
}
