//! Checks the names of figures and settings in a study.

use std::collections::BTreeSet;

use analyse::check::CheckExpression;
use analyse::{BetterDirection, Metric};
use model::design::{
    CheckSpec, Conditions, Design, FigureSpec, PublishedClaim, PublishedFigures, Question, YesIf,
};
use model::suggest::hint;
use toml::Spanned;

use crate::error::StudyError;
use crate::plan::Plan;
use crate::signals::check_signal;
use crate::text::{StudySpec, StudyText};

/// Refuses a name that no figure of any run has.
pub(crate) fn check_figure(name: &str) -> Result<(), String> {
    match Metric::parse(name).map_err(|error| error.to_string())? {
        Metric::Signal(signal) => check_signal(&signal),
        _ => Ok(()),
    }
}

/// Checks every name in a study's checks, questions and figures.
///
/// # Errors
/// A check that cannot be evaluated; a name that is neither a factor, a setting of these runs
/// nor a figure; published figures that cannot be read. Each at its place.
pub(crate) fn designed(
    source: &StudyText,
    spec: &StudySpec,
    plan: &Plan,
    design: Design,
) -> Result<Design, StudyError> {
    let settings: BTreeSet<&str> =
        plan.steps().flat_map(|(_, step)| step.settings.keys().map(String::as_str)).collect();
    let known =
        KnownNames { factors: design.factors.iter().map(|f| f.name.as_str()).collect(), settings };
    let published = match &source.published {
        None => None,
        Some(text) => Some(read_published(source, text)?),
    };
    for claim in published.iter().flat_map(|all| &all.findings).flat_map(|of| &of.claims) {
        known.claim(claim).map_err(|words| {
            StudyError::Request(format!("published.toml of {}: {words}", source.origin))
        })?;
    }
    for check in &spec.checks {
        known.check(check.get_ref()).map_err(|words| source.at(check.span(), &words))?;
    }
    for question in &spec.questions {
        known.question(question.get_ref()).map_err(|words| source.at(question.span(), &words))?;
    }
    for figure in &spec.figures {
        known
            .figure(figure.get_ref(), published.as_ref())
            .map_err(|words| source.at(figure.span(), &words))?;
    }
    if let Some(name) = &spec.platform {
        crate::open_platform(name.get_ref())
            .map_err(|error| source.at(name.span(), &error.to_string()))?;
    }
    fn inner<T: Clone>(all: &[Spanned<T>]) -> Vec<T> {
        all.iter().map(|one| one.get_ref().clone()).collect()
    }
    Ok(Design {
        checks: inner(&spec.checks),
        questions: inner(&spec.questions),
        figures: inner(&spec.figures),
        published,
        scale: source.scale.clone(),
        platform: spec.platform.as_ref().map(|name| name.get_ref().clone()),
        ..design
    })
}

struct KnownNames<'a> {
    factors: BTreeSet<&'a str>,
    /// Of any of the runs.
    settings: BTreeSet<&'a str>,
}

impl KnownNames<'_> {
    fn check(&self, check: &CheckSpec) -> Result<(), String> {
        for text in [Some(&check.that), check.when.as_ref()].into_iter().flatten() {
            let relation: CheckExpression = text.parse().map_err(|error| format!("{error}"))?;
            for name in relation.names() {
                if self.value(name).is_err() {
                    check_figure(name).map_err(|words| format!("the check `{text}`: {words}"))?;
                }
            }
        }
        Ok(())
    }

    fn question(&self, question: &Question) -> Result<(), String> {
        if question.ask.trim().is_empty() {
            return Err("the question itself is missing: `ask = \"...\"`".to_owned());
        }
        for metric in question.metrics() {
            check_figure(metric)?;
        }
        for factor in question.factor.iter().chain(&question.factors).chain(&question.graduated) {
            self.value(factor)?;
        }
        let asks_effect = question.factor.is_some() || !question.factors.is_empty();
        if asks_effect && question.metric.is_none() {
            return Err("on which `metric`? Name one of `--json`".to_owned());
        }
        if !asks_effect && question.yes_if.is_some() {
            let words = "`yes_if` is of a difference: name the `metric` and a `factor`";
            return Err(words.to_owned());
        }
        let together = !question.factors.is_empty();
        if together && matches!(question.yes_if, Some(YesIf::Better | YesIf::Worse)) {
            let words = "what several factors do together is neither better nor worse; write \
                         `yes_if = \"differs\"`, or ask about one `factor`";
            return Err(words.to_owned());
        }
        if let Some(best) = &question.best {
            let metric = Metric::parse(best).map_err(|error| error.to_string())?;
            if metric.direction() == BetterDirection::Neither {
                let words = "neither more nor less of it is better, so it has no best value";
                return Err(format!("`{best}`: {words}"));
            }
        }
        let kinds = [
            asks_effect,
            !question.pareto.is_empty(),
            question.graduated.is_some(),
            question.best.is_some(),
        ];
        match kinds.iter().filter(|asked| **asked).count() {
            1 => {}
            0 => {
                let words = "which answer: a `factor`, `factors`, a `pareto` front, the `best` in a \
                             metric, or over what the load is `graduated`?";
                return Err(words.to_owned());
            }
            _ => return Err("one question asks one thing; split it into several".to_owned()),
        }
        self.conditions(&question.within)
    }

    /// A claim may be about levels that this machine lacks, but not about an unknown factor.
    fn claim(&self, claim: &PublishedClaim) -> Result<(), String> {
        check_figure(&claim.metric)?;
        self.value(&claim.factor)?;
        let bounds: Vec<f64> = claim.at_least.into_iter().chain(claim.at_most).collect();
        let are_quotients = bounds.iter().all(|bound| *bound > 0.0 && bound.is_finite());
        if bounds.is_empty() || !are_quotients || !bounds.is_sorted() {
            return Err(format!(
                "a claim about `{}` needs `at_least`, `at_most` or both: quotients above 0, the \
                 first not above the second",
                claim.metric
            ));
        }
        self.conditions(&claim.within)
    }

    fn figure(
        &self,
        figure: &FigureSpec,
        published: Option<&PublishedFigures>,
    ) -> Result<(), String> {
        if figure.id.is_empty() {
            return Err("the figure has no `id`".to_owned());
        }
        check_figure(&figure.y)?;
        for name in [Some(&figure.x), figure.series.as_ref(), figure.panels.as_ref()] {
            name.map_or(Ok(()), |name| self.value(name))?;
        }
        if let Some(id) = &figure.published {
            let series = published.map_or(&[][..], |published| &published.series);
            if !series.iter().any(|series| series.id == *id) {
                let ids = series.iter().map(|series| series.id.as_str());
                return Err(format!(
                    "published.toml has no series `{id}`; {}",
                    hint(id, ids.collect::<Vec<_>>())
                ));
            }
        }
        self.conditions(&figure.within)
    }

    fn conditions(&self, conditions: &Conditions) -> Result<(), String> {
        conditions.0.keys().try_for_each(|name| self.value(name))
    }

    /// A factor, or a setting that some run has.
    fn value(&self, name: &str) -> Result<(), String> {
        // Files of several machines can be merged.
        let setting = name == "machine" || self.settings.contains(name);
        if setting || self.factors.contains(name) {
            return Ok(());
        }
        let known = self.factors.iter().chain(&self.settings).copied();
        Err(format!(
            "`{name}` is neither a factor nor a setting of these runs; {}",
            hint(name, known.collect::<Vec<_>>())
        ))
    }
}

fn read_published(source: &StudyText, text: &str) -> Result<PublishedFigures, StudyError> {
    toml::from_str(text).map_err(|error| {
        let origin = format!("published.toml of {}", source.origin);
        let other = StudyText::new(&origin, text);
        match error.span() {
            Some(span) => other.at(span, error.message()),
            None => StudyError::Request(format!("{origin}: {}", error.message())),
        }
    })
}
