//! A study's checks over all its runs.

use analyse::check::{CheckResult, judge};
use model::design::CheckSpec;

use super::StudyReport;
use crate::run_names;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// One check and its results.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckSummary {
    pub check: CheckSpec,
    pub holds: usize,
    /// The runs in which it is broken, each with the values of its names.
    pub broken: Vec<(String, Vec<String>)>,
    /// Why it could not be evaluated, each reason once with its number of runs.
    pub unknown: Vec<(String, usize)>,
    /// Its `when` did not apply.
    pub not_applicable: usize,
}

/// Every check of the study, over its valid runs.
pub fn check_summaries<'a>(study: &'a StudyReport) -> &'a [CheckSummary] {
    study.check_summaries.get_or_init(|| summarise(study))
}

fn summarise(study: &StudyReport) -> Vec<CheckSummary> {
    let names = run_names::names(&study.runs);
    let one = |check: &CheckSpec| {
        let mut summary = CheckSummary {
            check: check.clone(),
            holds: 0,
            broken: Vec::new(),
            unknown: Vec::new(),
            not_applicable: 0,
        };
        for ((_, run), name) in study.runs.iter().zip(&names).filter(|((_, run), _)| run.valid()) {
            let unknown = |reason: String, summary: &mut CheckSummary| match summary
                .unknown
                .iter_mut()
                .find(|(known, _)| *known == reason)
            {
                Some((_, count)) => *count += 1,
                None => summary.unknown.push((reason, 1)),
            };
            match judge(check, run) {
                Err(error) => unknown(error.to_string(), &mut summary),
                Ok(judged) => match judged.result {
                    CheckResult::Holds => summary.holds += 1,
                    CheckResult::NotApplicable => summary.not_applicable += 1,
                    CheckResult::Broken => summary.broken.push((name.clone(), judged.values)),
                    CheckResult::Unknown(reason) => unknown(reason, &mut summary),
                },
            }
        }
        summary
    };
    study.design.checks.iter().map(one).collect()
}

/// The checks with their counts and findings; None without checks.
pub fn table(study: &StudyReport) -> Option<Table> {
    if study.design.checks.is_empty() {
        return None;
    }
    let mut table = Table::new("Checks")
        .column("check", Align::Wrap, ALWAYS)
        .column("holds", Align::Right, ALWAYS)
        .column("broken", Align::Right, ALWAYS)
        .column("not known", Align::Right, 60)
        .column("finding", Align::Wrap, 50);
    for summary in check_summaries(study) {
        let evaluated = summary.holds + summary.broken.len();
        let (finding, tone) = match (summary.broken.first(), evaluated) {
            (Some((run, values)), _) => {
                let more = match summary.broken.len() {
                    1 => String::new(),
                    n => format!(", and {} more", n - 1),
                };
                (format!("{run}: {}{more}", values.join(", ")), Tone::Bad)
            }
            (None, 0) => {
                let why = summary.unknown.first().map_or("it applies to no run", |(why, _)| why);
                (format!("cannot be evaluated: {why}"), Tone::Warning)
            }
            (None, _) => ("holds".to_owned(), Tone::Good),
        };
        let unknown: usize = summary.unknown.iter().map(|(_, count)| count).sum();
        let when =
            summary.check.when.as_ref().map_or(String::new(), |when| format!(" when {when}"));
        table.row(vec![
            format!("{}{when}", summary.check.that).into(),
            summary.holds.to_string().into(),
            match summary.broken.len() {
                0 => "0".into(),
                n => Cell::new(n.to_string(), Tone::Bad),
            },
            match unknown {
                0 => "".into(),
                n => Cell::new(n.to_string(), Tone::Warning),
            },
            Cell::new(finding, tone),
        ]);
        if let Some(why) = &summary.check.why {
            table.note(format!("{}: {why}", summary.check.that));
        }
    }
    table.note("counts are of valid runs; a breach is a finding and does not make a run invalid");
    Some(table.without_empty_columns())
}
