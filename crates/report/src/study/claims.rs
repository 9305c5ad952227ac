//! Published findings beside what was measured.

use analyse::answer::{ClaimVerdict, TestedClaim, Unanswered, level_words, metric_words};
use model::design::{PublishedClaim, PublishedFinding, Question, Texts};

use super::StudyReport;
use super::tables::size_text;
use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// The published findings, each tested by the study's runs. None without findings.
pub fn table(study: &StudyReport) -> Option<Table> {
    let mut table = Table::new("Published findings")
        .column("finding", Align::Wrap, ALWAYS)
        .column("tested", Align::Wrap, 60)
        .column("published", Align::Left, ALWAYS)
        .column("measured", Align::Left, ALWAYS)
        .column("outcome", Align::Wrap, ALWAYS)
        .column("where", Align::Wrap, 50);
    for (finding, claims) in study.findings() {
        let place = Cell::from(finding.place.clone());
        // One reason is enough for a finding that nothing here tests.
        if claims.iter().all(|tested| tested.outcome.is_err()) {
            let why = claims.first().map(|first| measured(first).1);
            let why = why.unwrap_or_else(|| Cell::new("it has no number to test", Tone::Muted));
            let mut row: Vec<Cell> = vec![finding.says.clone().into()];
            row.extend(["", "", ""].map(Cell::from));
            row.extend([why, place]);
            table.row(row);
            continue;
        }
        for (nth, tested) in claims.iter().enumerate() {
            let says = if nth == 0 { finding.says.clone() } else { String::new() };
            let (measured, outcome) = measured(tested);
            table.row(vec![
                says.into(),
                what(&tested.claim).into(),
                range(&tested.claim).into(),
                measured.into(),
                outcome,
                place.clone(),
            ]);
        }
    }
    if table.rows.is_empty() {
        return None;
    }
    if let Some(published) = &study.design.published {
        table.note(published.source.clone());
    }
    table.note(
        "a quotient of the metric at two levels; reproduced: the 95 % interval meets the published \
         range, and excludes 1 where the range does",
    );
    Some(table.without_empty_columns())
}

/// Published claims about a question that were tested here, a sentence for each: `Published (section
/// 4.3): throughput with SMT off against SMT on, 0.763 to 0.87 times; measured 0.82× (95 % 0.80× to
/// 0.84×): reproduced.`
pub fn beside(study: &StudyReport, question: &Question) -> Vec<String> {
    let on_it = study.findings().flat_map(|(finding, claims)| {
        let own = claims
            .iter()
            .filter(|tested| tested.outcome.is_ok() && is_about(&tested.claim, question));
        own.map(move |tested| sentence(finding, tested))
    });
    on_it.collect()
}

/// Whether a claim is about the metric and the factor of a question, and about runs of it.
fn is_about(claim: &PublishedClaim, question: &Question) -> bool {
    let factors = question.factor.iter().chain(&question.factors);
    let overlaps = |name: &String, claimed: &Texts| {
        let own = question.within.0.get(name);
        own.is_none_or(|own| claimed.0.iter().any(|level| own.contains(level)))
    };
    question.metric.as_ref() == Some(&claim.metric)
        && factors.into_iter().any(|factor| *factor == claim.factor)
        && claim.within.0.iter().all(|(name, claimed)| overlaps(name, claimed))
}

fn sentence(finding: &PublishedFinding, tested: &TestedClaim) -> String {
    let claim = &tested.claim;
    let place = match finding.place.as_str() {
        "" => String::new(),
        place => format!(" ({place})"),
    };
    let (measured, outcome) = measured(tested);
    let measured = match measured.as_str() {
        format::NONE => String::new(),
        size => format!("; measured {size}"),
    };
    format!("Published{place}: {}, {}{measured}: {}.", what(claim), range(claim), outcome.text)
}

/// A published number of Kreon does not stand under Spill's name alone, nor the other way round.
fn level_of(factor: &str, level: &str) -> String {
    match (factor, level) {
        ("store", "spill") => "Spill (Kreon's design)".to_owned(),
        _ => level_words(factor, level),
    }
}

/// `throughput with SMT on against SMT off, Spill (Kreon's design)`.
fn what(claim: &PublishedClaim) -> String {
    let level = |level: &str| level_of(&claim.factor, level);
    let within: Vec<String> = claim
        .within
        .0
        .iter()
        .filter(|(name, _)| *name != "experiment")
        .map(|(name, levels)| {
            levels.0.iter().map(|one| level_of(name, one)).collect::<Vec<_>>().join(" or ")
        })
        .collect();
    let place = if within.is_empty() { String::new() } else { format!(", {}", within.join(", ")) };
    let (to, from) = (level(&claim.to.0), level(&claim.from.0));
    format!("{} with {to} against {from}{place}", metric_words(&claim.metric))
}

/// `1.15 to 1.31 times`.
fn range(claim: &PublishedClaim) -> String {
    match (claim.at_least, claim.at_most) {
        (Some(low), Some(high)) => format!("{low} to {high} times"),
        (Some(1.0), None) => "higher".to_owned(),
        (None, Some(1.0)) => "lower".to_owned(),
        (Some(low), None) => format!("at least {low} times"),
        (None, Some(high)) => format!("at most {high} times"),
        (None, None) => String::new(),
    }
}

fn measured(tested: &TestedClaim) -> (String, Cell) {
    let not_tested = |why: String| (format::NONE.to_owned(), Cell::new(why, Tone::Muted));
    match &tested.outcome {
        Ok((size, verdict)) => {
            let ends = size.interval.as_ref().map_or(String::new(), |i| {
                let end = |value| size_text(size, value, "");
                format!(" (95 % {} to {})", end(i.low), end(i.high))
            });
            let tone = match verdict {
                ClaimVerdict::Reproduced => Tone::Good,
                ClaimVerdict::Contradicted => Tone::Bad,
                ClaimVerdict::OtherSize => Tone::Warning,
                ClaimVerdict::NotShown => Tone::Muted,
            };
            let text = format!("{}{ends}", size_text(size, size.value, ""));
            (text, Cell::new(verdict.to_string(), tone))
        }
        Err(Unanswered::NotMeasurable(why)) => {
            not_tested(format!("not tested: not measurable here, {why}"))
        }
        Err(Unanswered::NotEnough(why)) => not_tested(format!("not tested here: {why}")),
    }
}
