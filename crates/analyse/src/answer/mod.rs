//! The questions of a study, each answered in a sentence with its confidence.

mod best;
mod cells;
mod claims;
mod confidence;
mod front;
mod graduated;
mod machine_names;
mod scale;
mod sentence;
mod size_text;
mod unanswered;
mod words;

use model::design::{Question, SkippedCell, YesIf};
use model::{Design, Origin, Scope};

pub use best::{BestChoice, Choice};
pub use cells::{AnswerCell, CellValues, RunWithSettings, gather, provenance, quantity};
pub use claims::{ClaimVerdict, TestedClaim, test_claim};
pub use confidence::{Confidence, Judgeable, JudgedSize};
pub use front::{Front, FrontCell};
pub use graduated::GraduatedLoad;
pub use machine_names::machine_names;
pub use scale::take_unscaled;
pub use unanswered::Unanswered;
pub use words::{factor_words, level_words, metric_words};

use cells::GivenLevels;
use unanswered::AnswerResult;

use crate::compare::{BetterDirection, Verdict, WorkDifference};
use crate::effect::{
    CellObservations, EffectError, Interaction, MainEffect, VariationShare, interactions,
    main_effects, variation,
};
use crate::holm::holm;
use crate::metric::{DistributionPoint, Metric};

/// A latency is known to a histogram's bucket: three digits.
const LATENCY_RESOLUTION: f64 = 1e-3;

/// A question and its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub ask: String,
    /// The verdict, in one sentence.
    pub verdict: String,
    /// Sentences on each of several levels that are not shown to differ, and on each of several
    /// combinations of what is given.
    pub details: Vec<String>,
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
    Effects {
        of: Vec<FactorEffects>,
        interactions: Vec<JudgedSize<Interaction>>,
        yes_if: Option<YesIf>,
    },
    /// One front for each combination of what is given.
    Front { metrics: Vec<String>, fronts: Vec<Front> },
    /// The best choice at each combination of what is given.
    Best { metric: MetricInfo, choices: Vec<BestChoice> },
    /// Power over a graduated load.
    Graduated { factor: String, power: MetricInfo, loads: Vec<GraduatedLoad> },
    /// The question cannot be answered from these runs.
    Nothing(Unanswered),
}

/// What one factor does to one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct FactorEffects {
    pub factor: String,
    pub metric: MetricInfo,
    pub levels: Vec<JudgedSize<MainEffect>>,
    /// The same at each combination of what is given, in words, where it varies; not judged.
    pub at_given: Vec<(String, Vec<MainEffect>)>,
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
    for answer in &mut answers {
        answer.kind.judge(&mut corrected);
        sentence::write_verdict(answer, p.len());
    }
    answers
}

fn answer(design: &Design, question: &Question, runs: &[RunWithSettings<'_>]) -> Answer {
    let within: Vec<&RunWithSettings<'_>> =
        runs.iter().filter(|run| question.within.hold_by(|name| run.level(name))).collect();
    let answered = |kind: AnswerKind, missing: Vec<(String, usize)>| Answer {
        ask: question.ask.clone(),
        verdict: String::new(),
        details: Vec::new(),
        confidence: Confidence::NoData,
        kind,
        runs: within.len(),
        invalid: within.iter().filter(|run| !run.run.valid()).count(),
        missing,
    };
    let nothing = |why: Unanswered| answered(AnswerKind::Nothing(why), Vec::new());
    if within.is_empty() {
        return nothing(Unanswered::NotEnough("no run meets its conditions".to_owned()));
    }
    let factors: Vec<&str> =
        question.factor.iter().chain(&question.factors).map(String::as_str).collect();
    let metric = question.metric.as_deref();
    let outcome = match (&question.graduated, &question.best, factors.as_slice(), metric) {
        (Some(factor), ..) => graduated::graduated(design, &within, factor),
        (_, Some(metric), ..) => best::best(design, &within, metric, resolution(metric)),
        (_, _, [_, ..], Some(metric)) => effects(design, &within, metric, question, &factors),
        _ if question.pareto.len() > 1 => front::front(design, &within, &question.pareto),
        _ => Err(Unanswered::NotEnough(
            "the question needs a `metric` with a `factor`, or one of `pareto`, `best` and \
             `graduated`"
                .to_owned(),
        )),
    };
    outcome.map_or_else(nothing, |(kind, missing)| answered(kind, missing))
}

type KindAndMissing = AnswerResult<(AnswerKind, Vec<(String, usize)>)>;

/// The relative rounding of a metric's values.
fn resolution(metric: &str) -> f64 {
    match Metric::parse(metric) {
        Ok(Metric::Latency { point: DistributionPoint::Count, .. }) => 0.0,
        Ok(Metric::Latency { .. }) => LATENCY_RESOLUTION,
        _ => 0.0,
    }
}

fn effects(
    design: &Design,
    runs: &[&RunWithSettings<'_>],
    metric: &str,
    question: &Question,
    factors: &[&str],
) -> KindAndMissing {
    let gathered = gather(design, runs, &[metric], factors)?;
    let cells = gathered.observed(0);
    let resolution = resolution(metric);
    let given = design.given();
    let given: Vec<&str> = given.into_iter().filter(|name| !factors.contains(name)).collect();
    let parts = gathered.given(&given);
    let order = |factor: &str| gathered.order(design, factor);
    let because = |error| why_not(error, design, factors);
    let of = |factor: &str| -> AnswerResult<FactorEffects> {
        let result = main_effects(&cells, factor, &order(factor), resolution);
        let first = order(factor).into_iter().next();
        let other_work =
            first.map_or_else(Vec::new, |first| gathered.other_work_by(factor, &first));
        Ok(FactorEffects {
            other_work,
            factor: factor.to_owned(),
            metric: gathered.metrics[0].clone(),
            levels: result.map_err(because)?.into_iter().map(JudgedSize::new).collect(),
            at_given: at_given(&parts, &cells, factor, &order(factor), resolution),
            shares: variation(&cells).unwrap_or_default(),
        })
    };
    let all = factors.iter().map(|factor| of(factor)).collect::<AnswerResult<_>>()?;
    let mut together = Vec::new();
    for (at, first) in factors.iter().enumerate() {
        for second in &factors[at + 1..] {
            let (a, b) = (order(first), order(second));
            let result = interactions(&cells, (first, &a), (second, &b), resolution);
            together.extend(result.map_err(because)?.into_iter().map(JudgedSize::new));
        }
    }
    let yes_if = question.yes_if;
    let result = AnswerKind::Effects { of: all, interactions: together, yes_if };
    Ok((result, gathered.missing))
}

/// The effects of a factor at each combination of what is given; nothing of a single one.
fn at_given(
    given: &[GivenLevels],
    cells: &[CellObservations],
    factor: &str,
    order: &[String],
    resolution: f64,
) -> Vec<(String, Vec<MainEffect>)> {
    if given.len() < 2 {
        return Vec::new();
    }
    let of_part = |GivenLevels { words, cells: own, .. }: &GivenLevels| {
        let own: Vec<_> = own.iter().map(|position| cells[*position].clone()).collect();
        Some((words.clone(), main_effects(&own, factor, order, resolution).ok()?))
    };
    given.iter().filter_map(of_part).collect()
}

/// Why nothing can be compared: a level that this machine cannot set explains it.
fn why_not(error: EffectError, design: &Design, factors: &[&str]) -> Unanswered {
    let about =
        |skipped: &&SkippedCell| factors.iter().any(|name| skipped.levels.contains_key(*name));
    match (design.skipped.iter().find(about), error) {
        (Some(skipped), _) => Unanswered::NotMeasurable(skipped.why.clone()),
        (None, EffectError::OneLevel { factor, level }) => {
            Unanswered::NotEnough(one_level(&factor, &level))
        }
        (None, other) => Unanswered::NotEnough(other.to_string()),
    }
}

/// That a factor has one level here; of those that no study sets, how to get another.
fn one_level(factor: &str, level: &str) -> String {
    match factor {
        "machine" => format!(
            "all runs are of one machine, {level}: run the study on another machine too, and \
             merge the two files with `kvmeter merge`"
        ),
        "mbwu.devices" => "one device was measured: run the study on several".to_owned(),
        "mbwu.precondition" => format!(
            "one share, {level}, was preconditioned: run the study with another \
             mbwu.precondition too, and merge the two files with `kvmeter merge`"
        ),
        _ => {
            EffectError::OneLevel { factor: factor.to_owned(), level: level.to_owned() }.to_string()
        }
    }
}

impl AnswerKind {
    /// One value of each comparison, where it has one: first of the effects, then of the
    /// interactions. [`AnswerKind::judge`] goes through them in the same order.
    fn collect_each<T>(
        &self,
        effect: impl Fn(&JudgedSize<MainEffect>) -> Option<T>,
        both: impl Fn(&JudgedSize<Interaction>) -> Option<T>,
    ) -> Vec<T> {
        match self {
            AnswerKind::Effects { of, interactions, .. } => {
                let effects = of.iter().flat_map(|effects| &effects.levels).filter_map(effect);
                effects.chain(interactions.iter().filter_map(both)).collect()
            }
            AnswerKind::Best { choices, .. } => {
                let against_next = choices.iter().filter_map(|choice| choice.next.as_ref());
                against_next.filter_map(|(_, size)| effect(size)).collect()
            }
            _ => Vec::new(),
        }
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
        match self {
            AnswerKind::Effects { of, interactions, .. } => {
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
            AnswerKind::Best { metric, choices } => {
                for (_, size) in choices.iter_mut().filter_map(|choice| choice.next.as_mut()) {
                    size.judge(metric.direction, corrected);
                }
            }
            _ => {}
        }
    }
}
