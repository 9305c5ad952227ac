//! The report of a study with a design: its questions answered, its figures in its own layout, its
//! checks, and published values compared with measured ones.

mod checks;
mod claims;
mod csv;
mod draw;
mod graduated;
mod object;
mod plot;
mod plotting;
mod published;
mod tables;
mod unanswered;
mod units;

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use analyse::answer::{
    Answer, RunWithSettings, TestedClaim, answers, machine_names, take_unscaled, test_claim,
};
use model::design::PublishedFinding;
use model::{Design, Execution, Run};

pub use checks::{CheckSummary, check_summaries, table as checks_table};
pub use claims::beside;
pub use csv::csv;
pub use graduated::tables as graduated_tables;
pub use object::object;
pub use plot::{Plot, PlotPoint};
pub use plotting::plot;
pub use tables::{MetricCells, best_choices, cells, effects, fronts, gaps, measured, published};
pub use unanswered::{UnansweredQuestions, answered, unanswered};

use crate::charts::{ShownFigure, slug};
use crate::table::Table;

/// One study with all its executions, on however many machines.
pub struct StudyReport<'a> {
    pub name: &'a str,
    /// Prefix of the ids of its figures, if there are several studies.
    prefix: String,
    pub question: Option<&'a str>,
    /// That of the first execution, with what any of the executions could not run.
    pub design: Design,
    pub executions: Vec<&'a Execution>,
    pub runs: Vec<(&'a Execution, &'a Run)>,
    pub runs_with_settings: Vec<RunWithSettings<'a>>,
    pub answers: Vec<Answer>,
    /// Questions that this scale leaves nothing to answer from.
    pub unasked: Vec<String>,
    /// By the ids of machines.
    machine_names: BTreeMap<String, Arc<str>>,
    /// Shared by several parts of a report, computed on first use.
    plots: OnceCell<Vec<Result<Plot, String>>>,
    check_summaries: OnceCell<Vec<CheckSummary>>,
    cells: OnceCell<Vec<Table>>,
    /// The claims of each published finding, tested.
    claims: OnceCell<Vec<Vec<TestedClaim>>>,
}

/// The studies among these runs: executions of one name with the same questions, checks, figures
/// and scale. Measurements without a design are in none.
pub fn studies<'a>(
    executions: impl IntoIterator<Item = &'a Execution>,
    runs: &[(&'a Execution, &'a Run)],
) -> Vec<StudyReport<'a>> {
    let mut studies: Vec<StudyReport<'a>> = Vec::new();
    let mut by_execution: HashMap<&str, Vec<(&'a Execution, &'a Run)>> = HashMap::new();
    // Calibration trials are no results.
    for (of, run) in runs.iter().filter(|(_, run)| !run.is_trial()) {
        by_execution.entry(&of.id).or_default().push((of, run));
    }
    for execution in executions.into_iter().filter(|execution| !execution.design.is_empty()) {
        let own = by_execution.remove(execution.id.as_str()).unwrap_or_default();
        match studies.iter_mut().find(|study| study.is_same(execution)) {
            Some(study) => {
                study.executions.push(execution);
                study.runs.extend(own);
                study.add_to_design(&execution.design);
            }
            None => studies.push(StudyReport {
                name: &execution.study,
                prefix: String::new(),
                question: execution.question.as_deref(),
                design: execution.design.clone(),
                executions: vec![execution],
                runs: own,
                runs_with_settings: Vec::new(),
                answers: Vec::new(),
                unasked: Vec::new(),
                machine_names: BTreeMap::new(),
                plots: OnceCell::new(),
                check_summaries: OnceCell::new(),
                cells: OnceCell::new(),
                claims: OnceCell::new(),
            }),
        }
    }
    let several = studies.len() > 1;
    for (nth, study) in studies.iter_mut().enumerate() {
        if several {
            study.prefix = format!("{}-{}-", nth + 1, slug(study.name));
        }
        study.machine_names = machine_names(study.executions.iter().copied());
        let with_settings = |(execution, run): &(&'a Execution, &'a Run)| match study
            .machine_names
            .get(&execution.machine.id)
        {
            Some(name) => RunWithSettings::on_machine(Arc::clone(name), run),
            None => RunWithSettings::new(execution, run),
        };
        study.runs_with_settings = study.runs.iter().map(with_settings).collect();
        let left = take_unscaled(&mut study.design);
        study.unasked = left.into_iter().map(|question| question.ask).collect();
        study.answers = answers(&study.design, &study.runs_with_settings);
    }
    studies
}

impl StudyReport<'_> {
    /// The name of an execution's machine in answers and figures.
    pub fn machine_name<'s>(&'s self, execution: &'s Execution) -> &'s str {
        self.machine_names.get(&execution.machine.id).map_or(&execution.machine.id, |name| name)
    }

    fn is_same(&self, execution: &Execution) -> bool {
        let (a, b) = (&self.design, &execution.design);
        self.name == execution.study
            && (&a.questions, &a.figures, &a.checks) == (&b.questions, &b.figures, &b.checks)
            && a.scale == b.scale
    }

    /// Levels and gaps that another machine's design has and this one does not.
    fn add_to_design(&mut self, other: &Design) {
        for factor in &other.factors {
            match self.design.factors.iter_mut().find(|known| known.name == factor.name) {
                Some(known) => {
                    let more = factor.levels.iter().filter(|l| !known.levels.contains(l));
                    let more: Vec<String> = more.cloned().collect();
                    known.levels.extend(more);
                }
                None => self.design.factors.push(factor.clone()),
            }
        }
        for skipped in &other.skipped {
            if !self.design.skipped.contains(skipped) {
                self.design.skipped.push(skipped.clone());
            }
        }
    }

    /// Each published finding with its claims, tested by the study's runs.
    pub fn findings(&self) -> impl Iterator<Item = (&PublishedFinding, &[TestedClaim])> {
        let findings = self.design.published.as_ref().map_or(&[][..], |all| &all.findings);
        let tested = self.claims.get_or_init(|| {
            let of = |finding: &PublishedFinding| {
                let test = |claim| test_claim(&self.design, &self.runs_with_settings, claim);
                finding.claims.iter().map(test).collect()
            };
            findings.iter().map(of).collect()
        });
        findings.iter().zip(tested.iter().map(Vec::as_slice))
    }

    /// Its own figures, each drawn with its values as a table; those that cannot be drawn are
    /// in [`gaps`].
    pub(crate) fn figures(&self) -> Vec<ShownFigure> {
        self.plots().iter().map(|plotted| self.shown(plotted)).collect()
    }

    fn shown(&self, plotted: &Plot) -> ShownFigure {
        let shown = draw::shown(plotted);
        ShownFigure { id: format!("figure-{}{}", self.prefix, slug(&plotted.id)), ..shown }
    }

    /// The numbers of its figures.
    pub fn plots(&self) -> Vec<Plot> {
        let own = self.plotted().iter().filter_map(|plotted| plotted.as_ref().ok()).cloned();
        own.chain(graduated::plots(self)).filter(|p| !p.points.is_empty()).collect()
    }

    /// Each figure of the design, or why it cannot be drawn.
    fn plotted(&self) -> &[Result<Plot, String>] {
        self.plots.get_or_init(|| self.design.figures.iter().map(|spec| plot(self, spec)).collect())
    }

    /// Each of its figures as a file: its id, the SVG and the data behind it as CSV.
    pub fn files(&self) -> Vec<FigureFile> {
        let file = |plotted: Plot| {
            let shown = self.shown(&plotted);
            let svg = crate::figure::standalone(&shown.chart, crate::figure::WIDE, &shown.alt);
            FigureFile { id: shown.id, svg, csv: csv(&plotted) }
        };
        self.plots().into_iter().map(file).collect()
    }

    /// The tables of the study in the order of its report: best choices, effects, fronts, graduated loads,
    /// checks, published beside measured, gaps. [`cells`] has the rest.
    pub fn tables(&self) -> Vec<Table> {
        let mut all: Vec<Table> = best_choices(self);
        all.extend(effects(self));
        all.extend(fronts(self));
        all.extend(graduated_tables(self));
        all.extend(checks::table(self));
        all.extend(published(self));
        all.extend(gaps(self));
        all
    }

    /// How the p of its answers are corrected; None for fewer than two comparisons.
    pub fn correction_note(&self) -> Option<String> {
        let family: usize = self.answers.iter().map(|answer| answer.kind.corrected().len()).sum();
        (family > 1).then(|| {
            format!("p is after Holm's correction for all {family} comparisons of the study.")
        })
    }

    /// The note of the scale at which it was run.
    pub fn scale_note(&self) -> Option<String> {
        let scale = self.design.scale.as_ref()?;
        Some(format!("Run at the scale `{}`: {}", scale.name, scale.note))
    }

    /// The questions that wait for another scale; None without one.
    pub fn unasked_note(&self) -> Option<String> {
        let asks = self.unasked.join(" ");
        (!asks.is_empty()).then(|| format!("Not asked at this scale, for want of levels: {asks}"))
    }

    /// What the scale sets, as a study file has it.
    pub fn scale_settings(&self) -> Vec<String> {
        let set = self.design.scale.iter().flat_map(|scale| &scale.set);
        set.map(|(key, value)| format!("{key} = {value}")).collect()
    }

    /// One sentence for each check that is broken in some run.
    pub fn broken_checks(&self) -> Vec<String> {
        let broken = check_summaries(self).iter().filter(|summary| !summary.broken.is_empty());
        let sentence = |summary: &CheckSummary| {
            let (broken, all) = (summary.broken.len(), summary.broken.len() + summary.holds);
            let why = summary.check.why.iter().map(|why| format!(" ({why})")).collect::<String>();
            format!("Broken in {broken} of {all} runs: {}{why}", summary.check.that)
        };
        broken.map(sentence).collect()
    }
}

/// `; 88 of 89 runs are valid and count; in 4 of them ...`: the runs of an answer.
pub fn counted(answer: &Answer) -> String {
    let mut out = match answer.invalid {
        0 => format!("; {} runs", answer.runs),
        invalid => {
            format!("; {} of {} runs are valid and count", answer.runs - invalid, answer.runs)
        }
    };
    for (why, runs) in &answer.missing {
        out += &format!("; in {runs} of them {why}");
    }
    out
}

/// A figure for a paper.
pub struct FigureFile {
    /// The name of its files.
    pub id: String,
    pub svg: String,
    pub csv: String,
}
