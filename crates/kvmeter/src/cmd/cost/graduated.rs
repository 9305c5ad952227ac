//! Candidates whose power was measured over a graduated load.

use std::collections::BTreeSet;

use analyse::RunWork;
use analyse::answer::{AnswerKind, GraduatedLoad, MetricInfo};
use analyse::cost::{CostError, LoadPower, SourcedCandidate};
use model::{Execution, Run};
use report::study::studies;

use super::CostArgs;
use super::candidates::{COMMAND_LINE, platform_and_name, sourced};
use crate::exit::request;
use crate::flags::platform::PlatformFlag;

/// A graduated load of some machine.
pub struct MachineLoad<'a> {
    execution: &'a Execution,
    load: GraduatedLoad,
    power: MetricInfo,
    work: Vec<RunWork>,
}

impl MachineLoad<'_> {
    pub fn execution(&self) -> &Execution {
        self.execution
    }

    /// The id of its machine.
    pub fn machine(&self) -> &str {
        &self.execution.machine.id
    }
}

type Pairs<'a> = Vec<(&'a Execution, &'a Run)>;

/// The graduated loads of studies, and the runs that are in none of them.
pub fn loads<'a>(pairs: &[(&'a Execution, &'a Run)]) -> (Vec<MachineLoad<'a>>, Pairs<'a>) {
    let mut executions: Vec<&Execution> = Vec::new();
    for (execution, _) in pairs {
        if !executions.iter().any(|known| known.id == execution.id) {
            executions.push(execution);
        }
    }
    let (mut machine_loads, mut taken) = (Vec::new(), BTreeSet::new());
    for study in studies(executions.iter().copied(), pairs) {
        for (answer, question) in study.answers.iter().zip(&study.design.questions) {
            let AnswerKind::Graduated { factor, power, loads } = &answer.kind else { continue };
            let levels = study.runs_with_settings.iter().filter(|run| {
                question.within.hold_by(|name| run.level(name)) && run.level(factor).is_some()
            });
            let levels: Vec<_> = levels.collect();
            for load in loads {
                let own = |(execution, _): &&(&'a Execution, &'a Run)| {
                    load.at.get("machine").is_some_and(|name| name == study.machine_name(execution))
                };
                let Some((execution, _)) = pairs.iter().find(own) else { continue };
                let own = levels.iter().filter(|run| {
                    let mut at = load.at.iter();
                    at.all(|(name, level)| run.level(name) == Some(level.as_str()))
                });
                let work = own.filter(|run| run.run.valid()).map(|run| RunWork::of(run.run));
                machine_loads.push(MachineLoad {
                    work: work.collect(),
                    execution,
                    load: load.clone(),
                    power: power.clone(),
                });
            }
            taken.extend(levels.iter().map(|run| run.run.id.clone()));
        }
    }
    let rest = pairs.iter().filter(|(_, run)| !taken.contains(&run.id) && !run.is_trial());
    (machine_loads, rest.copied().collect())
}

/// The machine at the highest level of its load, with its power at every other.
pub fn candidate(
    args: &CostArgs,
    load: &MachineLoad<'_>,
    flag: Option<&PlatformFlag>,
) -> anyhow::Result<SourcedCandidate> {
    let MachineLoad { execution, load, power, work } = load;
    let (platform, machine) = platform_and_name(flag, execution)?;
    let at = |name: &str| load.at.get(name).cloned().unwrap_or_default();
    let label = match load.title.is_empty() {
        true => format!("{} on {machine}", at("store")),
        false => format!("{} on {machine}, {}", at("store"), load.title),
    };
    let cannot = |error: CostError| request(format!("{label}: {error}"));
    let highest = load.figures.levels.first();
    let highest = highest.ok_or_else(|| request(format!("{label}: it has no level")))?;
    let measured = LoadPower::of_graduated(load, power).map_err(cannot)?;
    let (from, boundary) = (measured.from.clone(), measured.boundary_note(&label));
    let known = match flag.and_then(|flag| flag.watts) {
        Some(watts) => measured.scaled_to(watts, COMMAND_LINE).map_err(cannot)?,
        None => measured,
    };
    let workload = at("workload");
    let highest_rate = (highest.ops_s, format!("the highest level of a {from}"));
    let mut one = sourced(args, flag, platform, (label.clone(), workload), highest_rate, known)?;
    one.work.clone_from(work);
    one.notes.extend(load.no_idle.iter().map(|why| {
        format!("{label}: its power at other loads than the highest is not known: {why}.")
    }));
    one.notes.extend(boundary);
    Ok(one)
}
