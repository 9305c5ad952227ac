//! The sentence that answers a question.

use super::{
    Answer, AnswerKind, Confidence, FactorEffects, FrontCell, GraduatedLoad, JudgedSize, MetricInfo,
};
use crate::compare::{Verdict, WorkDifference};
use crate::effect::{EffectScale, EffectSize, Interaction, MainEffect};
use crate::interval::{Interval, NoInterval};

/// The most levels in one sentence.
const MOST_LEVELS: usize = 6;
const MOST_CELLS: usize = 4;

/// Writes the verdict and its confidence; `family` is how many comparisons were corrected
/// together.
pub(super) fn write_verdict(answer: &mut Answer, family: usize) {
    let (sentence, confidence) = match &answer.kind {
        AnswerKind::Effects { of, interactions } => {
            let both = by_factors(interactions)
                .into_iter()
                .map(|pair| interaction_sentence(&pair, unit_of(of)));
            let parts: Vec<String> = of.iter().map(effects).chain(both).collect();
            (parts.join("; "), of_comparisons(answer))
        }
        AnswerKind::Front { metrics, cells, other_work } => {
            let (sentence, confidence) = front(metrics, cells);
            (format!("{sentence}{}", work_note(other_work)), confidence)
        }
        AnswerKind::Graduated { power, loads, .. } => graduated(power, loads),
        AnswerKind::Nothing => (format!("Not answered: {}", answer.verdict), Confidence::NoData),
    };
    let corrected = match (&answer.kind, family) {
        (AnswerKind::Effects { .. }, 2..) => {
            format!("; p after Holm's correction for all {family} comparisons of the study")
        }
        _ => String::new(),
    };
    let mut sentence = sentence;
    if let Some(first) = sentence.get(..1).map(str::to_uppercase) {
        // A metric's name is not capitalised.
        if sentence.starts_with("against ") || sentence.starts_with("no ") {
            sentence.replace_range(..1, &first);
        }
    }
    answer.verdict = format!("{sentence}{corrected}.");
    answer.confidence = confidence;
}

/// From the least sure significant difference; without one, whether there was data.
fn of_comparisons(answer: &Answer) -> Confidence {
    let verdicts = answer.kind.verdicts();
    let called =
        answer.kind.corrected().into_iter().filter(|p| *p < super::confidence::SIGNIFICANCE);
    match called.reduce(f64::max) {
        Some(p) => Confidence::of_p(p),
        None if verdicts.iter().all(|v| *v == Verdict::NotEnoughData) => Confidence::NoData,
        None => Confidence::NotShown,
    }
}

fn effects(effects: &FactorEffects) -> String {
    let FactorEffects { factor, metric, levels, .. } = effects;
    let Some(first) = levels.first() else { return String::new() };
    let from = &first.of.from;
    let unit = &metric.unit;
    let name = format!("{}{}", metric.name, kind(metric));
    let parts: Vec<String> =
        levels.iter().take(MOST_LEVELS).map(|level| level_text(level, unit)).collect();
    let more = match levels.len() {
        n if n > MOST_LEVELS => format!(", and {} more levels", n - MOST_LEVELS),
        _ => String::new(),
    };
    format!(
        "against {factor} = {from}, {name} is {}{more}{}{}",
        parts.join(", "),
        averaged_over(&first.of),
        work_note(&effects.other_work)
    )
}

/// Notes that the compared cells did different work.
fn work_note(work: &[WorkDifference]) -> String {
    let parts: Vec<String> = work.iter().map(WorkDifference::to_string).collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!("; the work differed: {}", parts.join(", "))
    }
}

/// `20 % higher with on (95 % +18 % to +22 %, p < 0.001)`.
fn level_text(level: &JudgedSize<MainEffect>, unit: &str) -> String {
    let (size, to) = (&level.of.size, &level.of.to);
    match (&level.verdict, &size.interval) {
        (Verdict::NotEnoughData, Err(why)) => {
            format!("{} with {to}, which one run alone cannot prove ({why})", change(size, unit))
        }
        (Verdict::NoDifference, Ok(interval)) => {
            let apart = !interval.covers(size.scale.no_effect());
            let but = if apart { ", which the number of comparisons explains" } else { "" };
            format!("not shown to differ with {to} ({}{but})", evidence(level, unit))
        }
        _ => format!("{} with {to} ({})", change(size, unit), evidence(level, unit)),
    }
}

/// `95 % +8.1 % to +16.7 %, p = 0.0004`.
fn evidence<T: super::Judgeable>(level: &JudgedSize<T>, unit: &str) -> String {
    let size = level.of.size();
    let interval = match &size.interval {
        Ok(interval) => {
            let end = |value: f64| end(size_format(size), value, unit);
            format!("95 % {} to {}", end(interval.low), end(interval.high))
        }
        Err(why) => why.to_string(),
    };
    match level.corrected {
        Some(p) => format!("{interval}, {}", probability(p)),
        None => interval,
    }
}

fn averaged_over(effect: &MainEffect) -> String {
    let names: Vec<&str> = effect.simple.first().map_or(Vec::new(), |first| {
        let varies = |name: &&String| {
            effect.simple.iter().any(|one| one.at.get(*name) != first.at.get(*name))
        };
        first.at.keys().filter(varies).map(String::as_str).collect()
    });
    let runs = effect.n_from + effect.n_to;
    match (effect.simple.len(), names.as_slice()) {
        (0 | 1, _) | (_, []) => format!(" ({runs} runs)"),
        (n, names) => format!(" (mean of {n} combinations of {}, {runs} runs)", listed(names)),
    }
}

fn unit_of(effects: &[FactorEffects]) -> &str {
    effects.first().map_or("", |effects| &effects.metric.unit)
}

/// The interactions of each pair of factors.
fn by_factors(interactions: &[JudgedSize<Interaction>]) -> Vec<Vec<&JudgedSize<Interaction>>> {
    let mut pairs: Vec<Vec<&JudgedSize<Interaction>>> = Vec::new();
    for interaction in interactions {
        match pairs.last_mut() {
            Some(pair) if pair[0].of.factors == interaction.of.factors => pair.push(interaction),
            _ => pairs.push(vec![interaction]),
        }
    }
    pairs
}

fn interaction_sentence(interactions: &[&JudgedSize<Interaction>], unit: &str) -> String {
    let Some([first, second]) = interactions.first().map(|interaction| &interaction.of.factors)
    else {
        return String::new();
    };
    let called: Vec<&JudgedSize<Interaction>> = interactions
        .iter()
        .copied()
        .filter(|interaction| {
            !matches!(interaction.verdict, Verdict::NoDifference | Verdict::NotEnoughData)
        })
        .collect();
    if called.is_empty() {
        return match interactions
            .iter()
            .all(|interaction| interaction.verdict == Verdict::NotEnoughData)
        {
            true => format!(
                "whether {first} and {second} change each other's effect cannot be told: one \
                 value has no interval"
            ),
            false => {
                format!("that {first} and {second} change each other's effect is not shown")
            }
        };
    }
    let parts: Vec<String> = called
        .iter()
        .take(MOST_LEVELS)
        .map(|interaction| {
            let times = match interaction.of.size.scale {
                EffectScale::Ratio => format!("{} times", number(interaction.of.size.value)),
                EffectScale::Difference => end(SizeFormat::Amount, interaction.of.size.value, unit),
            };
            format!(
                "with {second} = {} the effect of {first} = {} is {times} that with {} ({})",
                interaction.of.second.1,
                interaction.of.first.1,
                interaction.of.second.0,
                evidence(interaction, unit)
            )
        })
        .collect();
    parts.join(", ")
}

fn front(metrics: &[String], cells: &[FrontCell]) -> (String, Confidence) {
    let on: Vec<&FrontCell> = cells.iter().filter(|cell| cell.standing.on_front()).collect();
    let names: Vec<&str> = metrics.iter().map(String::as_str).collect();
    let mut titles: Vec<String> = on
        .iter()
        .take(MOST_CELLS)
        .map(|cell| match cell.standing.share {
            Some(share) => format!("{} (in {:.0} % of resamples)", cell.title, share * 100.0),
            None => cell.title.clone(),
        })
        .collect();
    if on.len() > MOST_CELLS {
        titles.push(format!("{} more", on.len() - MOST_CELLS));
    }
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let sentence = format!(
        "no other cell beats these {} of {} in all of {} at once: {}",
        on.len(),
        cells.len(),
        listed(&names),
        titles.join("; ")
    );
    let least = on.iter().map(|cell| cell.standing.share).reduce(|a, b| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        _ => None,
    });
    match least.flatten() {
        Some(share) => (sentence, Confidence::of_share(share)),
        None => (format!("{sentence}; single runs, so how sure is not known"), Confidence::NoData),
    }
}

/// `store=redis: 412 ops/J over 10 levels of up to 51200 ops/s and the idle machine (95 % 400 to
/// 425); power follows load by 0.38 of 1, and the idle machine draws 61 % of full load`.
fn graduated(power: &MetricInfo, loads: &[GraduatedLoad]) -> (String, Confidence) {
    let kind = kind(power);
    let one = |load: &GraduatedLoad| {
        let GraduatedLoad { title, highest_ops_s, figures, .. } = load;
        let levels = figures.levels.len() - usize::from(figures.with_idle);
        let idle = if figures.with_idle { " and the idle machine" } else { "" };
        let place = if title.is_empty() { String::new() } else { format!("{title}: ") };
        let mut words = format!(
            "{place}{} ops/J{kind} over {levels} levels of up to {} ops/s{idle}{}",
            number(figures.overall_ops_per_joule),
            number(*highest_ops_s),
            between(&load.overall_interval)
        );
        match (figures.proportionality, figures.idle_to_peak, &load.no_idle) {
            (Some(share), Some(idle), _) => {
                words += &format!(
                    ", energy proportionality {share:.2} of 1{}, the idle machine draws {} of what \
                     the highest level draws",
                    between(&load.proportionality_interval),
                    percent(idle)
                );
            }
            (.., why) => {
                let why = why.as_deref().unwrap_or("the power of the idle machine is not known");
                words += &format!(", energy proportionality cannot be said: {why}");
            }
        }
        words
    };
    let mut parts: Vec<String> = loads.iter().take(MOST_CELLS).map(one).collect();
    if loads.len() > MOST_CELLS {
        parts.push(format!("{} more", loads.len() - MOST_CELLS));
    }
    // The widest interval decides the confidence.
    let widths = loads.iter().map(|load| {
        let interval = load.overall_interval.as_ref().ok()?;
        Some((interval.high - interval.low) / 2.0 / load.figures.overall_ops_per_joule)
    });
    let widest = widths.reduce(|a, b| Some(a?.max(b?))).flatten();
    (parts.join("; "), widest.map_or(Confidence::NoData, Confidence::of_width))
}

fn between(interval: &Result<Interval, NoInterval>) -> String {
    match interval {
        Ok(i) => format!(" (95 % {} to {})", number(i.low), number(i.high)),
        Err(_) => String::new(),
    }
}

/// ` (modelled)`; empty for a measured metric.
fn kind(metric: &MetricInfo) -> String {
    match metric.provenance {
        Some((_, origin)) if origin != model::Origin::Measured => {
            format!(" ({origin})")
        }
        _ => String::new(),
    }
}

fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// How a size and its interval are written: a quotient far from 1 is not a percentage.
#[derive(Clone, Copy)]
enum SizeFormat {
    Percent,
    Times,
    Amount,
}

fn size_format(size: &EffectSize) -> SizeFormat {
    let ends = size.interval.as_ref().map_or([size.value; 2], |i| [i.low, i.high]);
    let far = |ratio: f64| !(0.1..2.0).contains(&ratio);
    match size.scale {
        EffectScale::Difference => SizeFormat::Amount,
        EffectScale::Ratio if far(size.value) || ends.into_iter().any(far) => SizeFormat::Times,
        EffectScale::Ratio => SizeFormat::Percent,
    }
}

/// `12.3 % higher`, `2.31 times as high`, `0.12 W lower`.
fn change(size: &EffectSize, unit: &str) -> String {
    let way = |up: bool| if up { "higher" } else { "lower" };
    match size_format(size) {
        SizeFormat::Times => format!("{} times as high", number(size.value)),
        SizeFormat::Percent => {
            let change = size.value - 1.0;
            format!("{} {}", percent(change.abs()), way(change > 0.0))
        }
        SizeFormat::Amount => {
            format!("{} {}", amount(size.value.abs(), unit), way(size.value > 0.0))
        }
    }
}

/// An end of an interval: `+8.1 %`, `2.1`, `-0.3 W`.
fn end(format: SizeFormat, value: f64, unit: &str) -> String {
    let sign = |value: f64| if value < 0.0 { "-" } else { "+" };
    match format {
        SizeFormat::Times => number(value),
        SizeFormat::Percent => format!("{}{}", sign(value - 1.0), percent((value - 1.0).abs())),
        SizeFormat::Amount => format!("{}{}", sign(value), amount(value.abs(), unit)),
    }
}

fn amount(value: f64, unit: &str) -> String {
    if unit.is_empty() { number(value) } else { format!("{} {unit}", number(value)) }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p >= 9.95 => format!("{p:.0} %"),
        p if p >= 0.095 => format!("{p:.1} %"),
        p => format!("{p:.2} %"),
    }
}

fn probability(p: f64) -> String {
    match p {
        p if p < 0.001 => "p < 0.001".to_owned(),
        p if p < 0.1 => format!("p = {p:.3}"),
        p => format!("p = {p:.2}"),
    }
}

/// Three digits, without an exponent in the usual range.
fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        0.0 => "0".to_owned(),
        s if !(1e-4..1e7).contains(&s) => format!("{value:.2e}"),
        _ => {
            let decimals = (2 - size.log10().floor() as i32).clamp(0, 6) as usize;
            format!("{value:.decimals$}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (1234.4, "1234"),
            (0.0123, "0.0123"),
            (1e-9, "1.00e-9"),
            (-2.5, "-2.50"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(percent(0.12345), "12 %");
        assert_eq!(percent(0.0123), "1.2 %");
        assert_eq!(percent(0.0001), "0.01 %");
        assert_eq!(end(SizeFormat::Percent, 0.91, ""), "-9.0 %");
        assert_eq!(end(SizeFormat::Times, 2.5, ""), "2.50");
        assert_eq!(end(SizeFormat::Amount, -0.3, "W"), "-0.300 W");
        assert_eq!(probability(0.0), "p < 0.001");
        assert_eq!(probability(0.0312), "p = 0.031");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
    }
}
