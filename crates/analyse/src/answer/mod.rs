//! The questions of a study, each answered in a sentence with its confidence.

mod cells;
mod confidence;
mod graduated;
mod sentence;

use model::design::Question;
use model::{Design, Origin, Scope};

pub use cells::{AnswerCell, CellValues, RunWithSettings, gather, provenance, quantity};
pub use confidence::{Confidence, Judgeable, JudgedSize};
pub use graduated::GraduatedLoad;

use crate::compare::{BetterDirection, Verdict, WorkDifference};
use crate::effect::{
    Interaction, MainEffect, VariationShare, interactions, main_effects, variation,
};
use crate::holm::holm;
use crate::metric::{DistributionPoint, Metric};
use crate::pareto::{ParetoStanding, pareto};

/// A latency is known to a histogram's bucket: three digits.
const LATENCY_RESOLUTION: f64 = 1e-3;

/// A question and its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub ask: String,
    /// The verdict, in one sentence.
    pub verdict: String,
    pub confidence: Confidence,
    pub kind: AnswerKind,
    /// Runs within the question's conditions, and how many of them are invalid and do not count.
    pub runs: usize,
    pub invalid: usize,
    /// Why runs have no value of a metric, each reason once with the number of runs.
    pub missing: Vec<(String, usize)>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AnswerKind {
    /// Main effects of each factor that the question names, and interactions of each pair.
    Effects { of: Vec<FactorEffects>, interactions: Vec<JudgedSize<Interaction>> },
    Front {
        metrics: Vec<String>,
        cells: Vec<FrontCell>,
        /// How the work of cells on the front differs from that of other cells.
        other_work: Vec<WorkDifference>,
    },
    /// Power over a graduated load.
    Graduated { factor: String, power: MetricInfo, loads: Vec<GraduatedLoad> },
    /// The question cannot be answered from these runs, for the reason in the verdict.
    Nothing,
}

/// What one factor does to one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct FactorEffects {
    pub factor: String,
    pub metric: MetricInfo,
    pub levels: Vec<JudgedSize<MainEffect>>,
    /// How the work at the first level differs from that at the others.
    pub other_work: Vec<WorkDifference>,
    /// The share of variation that each factor explains, if every combination was measured.
    pub shares: Vec<VariationShare>,
}

/// A metric and its provenance.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricInfo {
    /// As in `--json`.
    pub name: String,
    pub unit: String,
    pub direction: BetterDirection,
    /// The scope and origin of a reading.
    pub provenance: Option<(Scope, Origin)>,
}

/// A cell among the candidates of a front.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontCell {
    /// What distinguishes it from the others: `smt=on, idle=none`.
    pub title: String,
    pub runs: usize,
    pub standing: ParetoStanding,
    /// The title of a cell that dominates it.
    pub beaten_by: Option<String>,
}

/// Answers every question of a design from these runs.
///
/// The p-values of all comparisons of all questions are corrected together by Holm's method, so
/// that the chance of even one false difference is at most 5 % for the whole study. Effects are as
/// [`main_effects`] and [`interactions`] have them. If a question cannot be answered, its verdict
/// says why. Invalid runs do not count.
pub fn answers(design: &Design, runs: &[RunWithSettings<'_>]) -> Vec<Answer> {
    let mut answers: Vec<Answer> =
        design.questions.iter().map(|question| answer(design, question, runs)).collect();
    let p: Vec<f64> = answers.iter().flat_map(|answer| answer.kind.p()).collect();
    let mut corrected = holm(&p).into_iter();
    let family = p.len();
    for answer in &mut answers {
        answer.kind.judge(&mut corrected);
        sentence::write_verdict(answer, family);
    }
    answers
}

fn answer(design: &Design, question: &Question, runs: &[RunWithSettings<'_>]) -> Answer {
    let within: Vec<&RunWithSettings<'_>> =
        runs.iter().filter(|run| question.within.hold_by(|name| run.level(name))).collect();
    let nothing = |why: String| Answer {
        ask: question.ask.clone(),
        verdict: why,
        confidence: Confidence::NoData,
        kind: AnswerKind::Nothing,
        runs: within.len(),
        invalid: within.iter().filter(|run| !run.run.valid()).count(),
        missing: Vec::new(),
    };
    if within.is_empty() {
        return nothing("no run is within its conditions".to_owned());
    }
    let factors: Vec<&str> =
        question.factor.iter().chain(&question.factors).map(String::as_str).collect();
    let metric = question.metric.as_deref();
    let outcome =
        match (&question.graduated, factors.as_slice(), metric, question.pareto.as_slice()) {
            (Some(factor), ..) => graduated::graduated(design, &within, factor),
            (_, _, _, metrics @ [_, _, ..]) => front(design, &within, metrics),
            (_, [_, ..], Some(metric), _) => effects(design, &within, metric, &factors),
            _ => Err(
                "it names neither a metric with a factor, nor the metrics of a front, nor over \
                  what the load is graduated"
                    .to_owned(),
            ),
        };
    match outcome {
        Err(why) => nothing(why),
        Ok((result, missing)) => Answer { kind: result, missing, ..nothing(String::new()) },
    }
}

type MetricRequest = Result<(AnswerKind, Vec<(String, usize)>), String>;

fn effects(
    design: &Design,
    runs: &[&RunWithSettings<'_>],
    metric: &str,
    factors: &[&str],
) -> MetricRequest {
    let named = Metric::parse(metric).map_err(|error| error.to_string())?;
    let gathered = gather(design, runs, &[metric], factors)?;
    let cells = gathered.observed(0);
    let resolution = match &named {
        Metric::Latency { point: DistributionPoint::Count, .. } => 0.0,
        Metric::Latency { .. } => LATENCY_RESOLUTION,
        _ => 0.0,
    };
    let order = |factor: &str| gathered.order(design, factor);
    // A level that this machine cannot set explains why there is nothing to compare.
    let because = |error: crate::effect::EffectError| {
        let about = |skipped: &&model::design::SkippedCell| {
            factors.iter().any(|factor| skipped.levels.contains_key(*factor))
        };
        match design.skipped.iter().find(about) {
            Some(skipped) => format!("{error}; not run here: {}", skipped.why),
            None => error.to_string(),
        }
    };
    let of = |factor: &str| -> Result<FactorEffects, String> {
        let result = main_effects(&cells, factor, &order(factor), resolution);
        let first = order(factor).into_iter().next();
        let other_work =
            first.map_or_else(Vec::new, |first| gathered.other_work_by(factor, &first));
        Ok(FactorEffects {
            other_work,
            factor: factor.to_owned(),
            metric: gathered.metrics[0].clone(),
            levels: result.map_err(because)?.into_iter().map(JudgedSize::new).collect(),
            shares: variation(&cells).unwrap_or_default(),
        })
    };
    let all = factors.iter().map(|factor| of(factor)).collect::<Result<_, _>>()?;
    let mut together = Vec::new();
    for (at, first) in factors.iter().enumerate() {
        for second in &factors[at + 1..] {
            let (a, b) = (order(first), order(second));
            let result = interactions(&cells, (first, &a), (second, &b), resolution);
            together.extend(result.map_err(because)?.into_iter().map(JudgedSize::new));
        }
    }
    let result = AnswerKind::Effects { of: all, interactions: together };
    Ok((result, gathered.missing))
}

fn front(design: &Design, runs: &[&RunWithSettings<'_>], metrics: &[String]) -> MetricRequest {
    let names: Vec<&str> = metrics.iter().map(String::as_str).collect();
    let gathered = gather(design, runs, &names, &[])?;
    let wishes: Vec<BetterDirection> =
        gathered.metrics.iter().map(|metric| metric.direction).collect();
    let candidates: Vec<Vec<Vec<f64>>> =
        gathered.cells.iter().map(|cell| cell.values.clone()).collect();
    let standings = pareto(&candidates, &wishes).map_err(|error| match error {
        crate::pareto::ParetoError::NoDirection(at) => format!(
            "no front can be drawn of `{}`: neither more nor less of it is better",
            metrics[at]
        ),
        other => other.to_string(),
    })?;
    let titles = gathered.titles();
    let on: Vec<&AnswerCell> = standings
        .iter()
        .zip(&gathered.cells)
        .filter(|(standing, _)| standing.on_front())
        .map(|(_, cell)| cell)
        .collect();
    let other_work = gathered.other_work_of(&on);
    let cells =
        standings.into_iter().zip(&gathered.cells).enumerate().map(|(at, (standing, cell))| {
            FrontCell {
                title: titles[at].clone(),
                runs: cell.values.len(),
                beaten_by: standing.dominated_by.map(|by| titles[by].clone()),
                standing,
            }
        });
    let cells = cells.collect();
    Ok((AnswerKind::Front { metrics: metrics.to_vec(), cells, other_work }, gathered.missing))
}

impl AnswerKind {
    /// One value of each comparison, where it has one: first of the effects, then of the
    /// interactions. [`AnswerKind::judge`] goes through them in the same order.
    fn collect_each<T>(
        &self,
        effect: impl Fn(&JudgedSize<MainEffect>) -> Option<T>,
        both: impl Fn(&JudgedSize<Interaction>) -> Option<T>,
    ) -> Vec<T> {
        let AnswerKind::Effects { of, interactions } = self else { return Vec::new() };
        let effects = of.iter().flat_map(|effects| &effects.levels).filter_map(effect);
        effects.chain(interactions.iter().filter_map(both)).collect()
    }

    /// The p-values of its comparisons, not corrected.
    fn p(&self) -> Vec<f64> {
        self.collect_each(|level| level.of.size.p, |result| result.of.size.p)
    }

    /// The corrected p-values of its comparisons.
    pub fn corrected(&self) -> Vec<f64> {
        self.collect_each(|level| level.corrected, |result| result.corrected)
    }

    /// The verdicts of its comparisons.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.collect_each(|level| Some(level.verdict), |result| Some(result.verdict))
    }

    fn judge(&mut self, corrected: &mut impl Iterator<Item = f64>) {
        let AnswerKind::Effects { of, interactions } = self else { return };
        for effects in of {
            for level in &mut effects.levels {
                level.judge(effects.metric.direction, corrected);
            }
        }
        for result in interactions {
            // An interaction is neither good nor bad.
            result.judge(BetterDirection::Neither, corrected);
        }
    }
}
