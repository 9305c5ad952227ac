//! A study's checks over all its runs.

use analyse::check::{CheckResult, judge};
use record::design::CheckSpec;

use super::Study;
use crate::naming;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// One check and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    pub check: CheckSpec,
    pub holds: usize,
    /// The runs in which it is broken, each with what its names stood for.
    pub broken: Vec<(String, Vec<String>)>,
    /// Why it could not be told, each reason once with its number of runs.
    pub unknown: Vec<(String, usize)>,
    /// Its `when` did not apply.
    pub not_asked: usize,
}

/// Every check of the study, over its valid runs.
pub fn checked<'a>(study: &'a Study) -> &'a [Checked] {
    study.checked.get_or_init(|| judged(study))
}

fn judged(study: &Study) -> Vec<Checked> {
    let names = naming::names(&study.runs);
    let one = |check: &CheckSpec| {
        let mut found = Checked {
            check: check.clone(),
            holds: 0,
            broken: Vec::new(),
            unknown: Vec::new(),
            not_asked: 0,
        };
        for ((_, run), name) in study.runs.iter().zip(&names).filter(|((_, run), _)| run.valid()) {
            let unknown = |reason: String, found: &mut Checked| match found
                .unknown
                .iter_mut()
                .find(|(known, _)| *known == reason)
            {
                Some((_, count)) => *count += 1,
                None => found.unknown.push((reason, 1)),
            };
            match judge(check, run) {
                Err(error) => unknown(error.to_string(), &mut found),
                Ok(judged) => match judged.ruling {
                    CheckResult::Holds => found.holds += 1,
                    CheckResult::NotAsked => found.not_asked += 1,
                    CheckResult::Broken => found.broken.push((name.clone(), judged.values)),
                    CheckResult::Unknown(reason) => unknown(reason, &mut found),
                },
            }
        }
        found
    };
    study.design.checks.iter().map(one).collect()
}

/// The checks with their counts and findings; None without checks.
pub fn table(study: &Study) -> Option<Table> {
    if study.design.checks.is_empty() {
        return None;
    }
    let mut table = Table::new("Checks")
        .column("check", Align::Wrap, ALWAYS)
        .column("holds", Align::Right, ALWAYS)
        .column("broken", Align::Right, ALWAYS)
        .column("not known", Align::Right, 60)
        .column("finding", Align::Wrap, 50);
    for found in checked(study) {
        let asked = found.holds + found.broken.len();
        let (finding, tone) = match (found.broken.first(), asked) {
            (Some((run, values)), _) => {
                let more = match found.broken.len() {
                    1 => String::new(),
                    n => format!(", and {} more", n - 1),
                };
                (format!("{run}: {}{more}", values.join(", ")), Tone::Bad)
            }
            (None, 0) => {
                let why = found.unknown.first().map_or("asked of no run", |(why, _)| why);
                (format!("cannot be told: {why}"), Tone::Warning)
            }
            (None, _) => ("holds".to_owned(), Tone::Good),
        };
        let unknown: usize = found.unknown.iter().map(|(_, count)| count).sum();
        let when = found.check.when.as_ref().map_or(String::new(), |when| format!(" when {when}"));
        table.row(vec![
            format!("{}{when}", found.check.that).into(),
            found.holds.to_string().into(),
            match found.broken.len() {
                0 => "0".into(),
                n => Cell::new(n.to_string(), Tone::Bad),
            },
            match unknown {
                0 => "".into(),
                n => Cell::new(n.to_string(), Tone::Warning),
            },
            Cell::new(finding, tone),
        ]);
        if let Some(why) = &found.check.why {
            table.note(format!("{}: {why}", found.check.that));
        }
    }
    table.note("counts are of valid runs; a breach is a finding and does not make a run invalid");
    Some(table.without_empty_columns())
}
