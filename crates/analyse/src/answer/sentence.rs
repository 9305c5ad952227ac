//! The sentence that answers a question.

use model::design::YesIf;

use super::size_text::{
    SizeFormat, amount, between, change, end, listed, number, percent, probability, repeats_needed,
    size_format,
};
use super::words::{ELSEWHERE, factor_words, level_words, metric_words};
use super::{
    Answer, AnswerKind, BestChoice, Confidence, FactorEffects, Front, FrontCell, GraduatedLoad,
    JudgedSize, MetricInfo, Unanswered,
};
use crate::compare::{Verdict, WorkDifference};
use crate::effect::{EffectScale, EffectSize, Interaction, MainEffect};
use crate::interval::Interval;

/// The most levels in one sentence.
const MOST_LEVELS: usize = 6;
const MOST_CELLS: usize = 4;
/// The most combinations of what is given in one sentence; a table has all.
const MOST_GIVEN: usize = 8;

/// Writes the verdict, its details and its confidence; `family` is how many comparisons were
/// corrected together.
pub(super) fn write_verdict(answer: &mut Answer, family: usize) {
    let (sentence, details, confidence) = match &answer.kind {
        AnswerKind::Effects { of, interactions, yes_if } => {
            let both = by_factors(interactions)
                .into_iter()
                .map(|pair| interaction_sentence(&pair, unit_of(of)));
            let (effects, open): (Vec<_>, Vec<_>) = of.iter().map(|of| effects(of, family)).unzip();
            let parts: Vec<String> = effects.into_iter().chain(both).collect();
            let yes = yes_if.map_or("", |yes_if| yes_or_no(yes_if, of, interactions));
            let details = open.into_iter().flatten().chain(of.iter().flat_map(at_given)).collect();
            (format!("{yes}{}", parts.join("; ")), details, of_comparisons(answer))
        }
        AnswerKind::Best { metric, choices } => {
            let (sentence, details) = best(metric, choices);
            (sentence, details, of_best(choices))
        }
        AnswerKind::Front { metrics, fronts } => front(metrics, fronts),
        AnswerKind::Graduated { power, loads, .. } => {
            let (sentence, confidence) = graduated(power, loads);
            (sentence, Vec::new(), confidence)
        }
        AnswerKind::Nothing(Unanswered::NotMeasurable(why)) => {
            (format!("not measurable here: {why}"), Vec::new(), Confidence::NotMeasurable)
        }
        AnswerKind::Nothing(Unanswered::NotEnough(why)) => {
            (format!("not enough data: {why}"), Vec::new(), Confidence::NoData)
        }
    };
    answer.verdict = finished(sentence);
    answer.details = details.into_iter().map(finished).collect();
    answer.confidence = confidence;
}

fn finished(mut sentence: String) -> String {
    // A name such as `store=redis` keeps its letters.
    let is_word = sentence
        .split([' ', ':', ','])
        .next()
        .is_some_and(|word| word.chars().all(|c| c.is_ascii_lowercase()));
    if is_word && let Some(first) = sentence.get(..1).map(str::to_uppercase) {
        sentence.replace_range(..1, &first);
    }
    sentence + "."
}

/// `yes: `, `no: `, or that neither was shown, before the sizes: of the factor, or where there are
/// several of what they do together. That one of them has an effect answers nothing about the other.
fn yes_or_no(
    yes_if: YesIf,
    effects: &[FactorEffects],
    interactions: &[JudgedSize<Interaction>],
) -> &'static str {
    /// Relative differences below this are none.
    const SAME: f64 = 0.05;
    let levels = effects.iter().flat_map(|effects| &effects.levels);
    let judged: Vec<(Verdict, &EffectSize)> = match interactions {
        [] => levels.map(|level| (level.verdict, &level.of.size)).collect(),
        both => both.iter().map(|one| (one.verdict, &one.of.size)).collect(),
    };
    let any = |wanted: &[Verdict]| judged.iter().any(|(verdict, _)| wanted.contains(verdict));
    let (yes, no) = match yes_if {
        YesIf::Differs => (any(&[Verdict::Better, Verdict::Worse, Verdict::Different]), false),
        YesIf::Better => (any(&[Verdict::Better]), any(&[Verdict::Worse])),
        YesIf::Worse => (any(&[Verdict::Worse]), any(&[Verdict::Better])),
    };
    let is_same = |(_, size): &(Verdict, &EffectSize)| {
        let within = |value: f64| (1.0 - SAME..=1.0 + SAME).contains(&value);
        let interval = size.interval.as_ref();
        size.scale == EffectScale::Ratio
            && interval.is_ok_and(|interval| within(interval.low) && within(interval.high))
    };
    match (yes, no) {
        (true, _) => "yes: ",
        (false, true) => "no: ",
        (false, false) if judged.iter().all(is_same) => "no, by 5 % at most: ",
        (false, false) => "neither yes nor no was shown: ",
    }
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

/// From the least sure of all choices.
fn of_best(choices: &[BestChoice]) -> Confidence {
    let sizes = choices.iter().filter_map(|choice| choice.next.as_ref());
    let each = sizes.map(|(_, size)| size.corrected.map_or(Confidence::NoData, Confidence::of_p));
    each.min().unwrap_or(Confidence::NoData)
}

/// What a factor does, and a line for each of several levels that are not shown to differ.
fn effects(effects: &FactorEffects, family: usize) -> (String, Vec<String>) {
    let FactorEffects { factor, metric, levels, .. } = effects;
    let Some(first) = levels.first() else { return Default::default() };
    let from = level_words(factor, &first.of.from);
    let unit = &metric.unit;
    let name = format!("{}{}", metric_words(&metric.name), kind(metric));
    let text = |level| level_text(factor, level, unit, family);
    let (mut told, mut open): (Vec<_>, Vec<_>) = levels.iter().partition(|level| is_shown(level));
    if open.len() < 2 {
        (told, open) = (levels.iter().collect(), Vec::new());
    }
    let mut parts: Vec<String> = told.iter().copied().take(MOST_LEVELS).map(text).collect();
    if told.len() > MOST_LEVELS {
        parts.push(format!("and {} more levels differ", told.len() - MOST_LEVELS));
    }
    if !open.is_empty() {
        let of = if told.is_empty() { "any of the" } else { "the other" };
        parts.push(format!("not shown to differ with {of} {} levels", open.len()));
    }
    let sentence = format!(
        "against {from}, {name} is {}{}{}",
        parts.join(", "),
        averaged_over(&first.of),
        work_note(&effects.other_work)
    );
    (sentence, open.into_iter().map(text).collect())
}

fn is_shown(level: &JudgedSize<MainEffect>) -> bool {
    !matches!(level.verdict, Verdict::NoDifference | Verdict::NotEnoughData)
}

/// `at rate 1k 3.1 times as high with SMT off (95 % 2.9 to 3.3)`: of the last level at each
/// combination of what is given.
fn at_given(effects: &FactorEffects) -> Vec<String> {
    let FactorEffects { factor, metric, at_given, .. } = effects;
    let part = |(given, levels): &(String, Vec<MainEffect>)| {
        let last = levels.last()?;
        let interval = last.size.interval.as_ref().ok()?;
        let end = |value: f64| end(size_format(&last.size), value, &metric.unit);
        let (low, high) = (end(interval.low), end(interval.high));
        let (size, to) = (change(&last.size, &metric.unit), level_words(factor, &last.to));
        Some(format!("{}{size} with {to} (95 % {low} to {high})", place(given)))
    };
    let parts: Vec<String> = at_given.iter().filter_map(part).take(MOST_GIVEN).collect();
    if parts.len() > 1 { parts } else { Vec::new() }
}

/// `at rate 10k `: where something holds; empty where nothing given varies.
fn place(given: &str) -> String {
    match given {
        "" => String::new(),
        ELSEWHERE => format!("{ELSEWHERE} "),
        given => format!("at {given} "),
    }
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

/// `20 % higher with SMT on (95 % +18 % to +22 %, p < 0.001)`.
fn level_text(factor: &str, level: &JudgedSize<MainEffect>, unit: &str, family: usize) -> String {
    let size = &level.of.size;
    let to = level_words(factor, &level.of.to);
    match (&level.verdict, &size.interval) {
        (Verdict::NotEnoughData, Err(why)) => {
            format!("{} with {to}, which one run alone cannot prove ({why})", change(size, unit))
        }
        (Verdict::NoDifference, Ok(interval)) => not_shown(level, interval, (&to, unit), family),
        _ => format!("{} with {to} ({})", change(size, unit), evidence(level, unit)),
    }
}

/// A difference that is not significant, with its size, and how many repeats would show it.
fn not_shown(
    level: &JudgedSize<MainEffect>,
    interval: &Interval,
    (to, unit): (&str, &str),
    family: usize,
) -> String {
    let MainEffect { size, simple, n_from, n_to, .. } = &level.of;
    let evidence = evidence(level, unit);
    if !interval.covers(size.scale.no_effect()) {
        let but = "not significant after the correction for all comparisons";
        return format!("not shown to differ with {to} ({evidence}, {but})");
    }
    let repeats = n_from.min(n_to) / simple.len().max(1);
    match repeats_needed(size, interval, repeats, family) {
        Some(needed) => format!(
            "{} with {to}, but {repeats} repeats cannot rule out chance: {needed} would show a \
             difference of this size ({evidence})",
            change(size, unit)
        ),
        None => format!("not shown to differ with {to} ({evidence})"),
    }
}

/// `at ycsb-a RocksDB: 12.3 ops/J (95 % 12.0 to 12.6), 2.1 times as high as with Spill`.
fn best(metric: &MetricInfo, choices: &[BestChoice]) -> (String, Vec<String>) {
    let unit = &metric.unit;
    let one = |choice: &BestChoice| {
        let BestChoice { given, winner, next, .. } = choice;
        let place = place(given);
        let value = amount(winner.value.median, unit);
        let sure = between(&winner.value.interval());
        let than = match next {
            None => ", the only choice".to_owned(),
            Some((next, size)) => {
                let but = if is_significant(size) { "" } else { ", which is not significant" };
                let than = match size_format(&size.of.size) {
                    SizeFormat::Times => "as",
                    SizeFormat::Percent | SizeFormat::Amount => "than",
                };
                format!(
                    ", {} {than} with {}{but} ({})",
                    change(&size.of.size, unit),
                    next.words,
                    evidence(size, unit)
                )
            }
        };
        format!("{place}{}: {value}{}{sure}{than}", winner.words, kind(metric))
    };
    if let [only] = choices {
        return (one(only), Vec::new());
    }
    let mut details: Vec<String> = choices.iter().take(MOST_GIVEN).map(one).collect();
    if choices.len() > MOST_GIVEN {
        details.push(format!("{} more in the table", choices.len() - MOST_GIVEN));
    }
    (winners(choices), details)
}

fn is_significant(size: &JudgedSize<MainEffect>) -> bool {
    matches!(size.verdict, Verdict::Better | Verdict::Worse)
}

/// `no idle states at rate 1k; all idle states at rate 10k and rate 100k`, and how many of them are
/// significantly better than the second best.
fn winners(choices: &[BestChoice]) -> String {
    let mut won: Vec<(&str, Vec<&str>)> = Vec::new();
    for BestChoice { given, winner, .. } in choices {
        match won.iter_mut().find(|(words, _)| *words == winner.words) {
            Some((_, at)) => at.push(given),
            None => won.push((&winner.words, vec![given])),
        }
    }
    let compared: Vec<&JudgedSize<MainEffect>> =
        choices.iter().filter_map(|choice| Some(&choice.next.as_ref()?.1)).collect();
    let but = match compared.iter().filter(|size| is_significant(size)).count() {
        all if all == compared.len() => String::new(),
        0 => ", but nowhere significantly better than the second best".to_owned(),
        some => format!(", significantly in {some} of {} cases", choices.len()),
    };
    if let [(winner, at)] = won.as_slice() {
        let cases = if at.len() == 2 { "both".to_owned() } else { format!("all {}", at.len()) };
        return format!("{winner} in {cases} cases{but}");
    }
    let one = |(winner, at): &(&str, Vec<&str>)| match at.as_slice() {
        [ELSEWHERE] => format!("{winner} {ELSEWHERE}"),
        at => format!("{winner} at {}", listed(at)),
    };
    format!("{}{but}", won.iter().map(one).collect::<Vec<_>>().join("; "))
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
    let (first_words, second_words) = (factor_words(first), factor_words(second));
    if called.is_empty() {
        return match interactions
            .iter()
            .all(|interaction| interaction.verdict == Verdict::NotEnoughData)
        {
            true => format!(
                "whether {first_words} and {second_words} change each other's effect is unknown: one \
                 value has no interval"
            ),
            false => {
                format!(
                    "that {first_words} and {second_words} change each other's effect is not shown"
                )
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
                "with {} the effect of {} is {times} that with {} ({})",
                level_words(second, &interaction.of.second.1),
                level_words(first, &interaction.of.first.1),
                level_words(second, &interaction.of.second.0),
                evidence(interaction, unit)
            )
        })
        .collect();
    parts.join(", ")
}

fn front(metrics: &[String], fronts: &[Front]) -> (String, Vec<String>, Confidence) {
    let names: Vec<String> = metrics.iter().map(|name| metric_words(name)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let parts: Vec<(String, Confidence)> =
        fronts.iter().map(|front| one_front(front, &listed(&names))).collect();
    let least = parts.iter().map(|(_, confidence)| *confidence).min();
    let least = least.unwrap_or(Confidence::NoData);
    let mut sentences: Vec<String> = parts.into_iter().map(|(sentence, _)| sentence).collect();
    if sentences.len() == 1 {
        return (sentences.remove(0), Vec::new(), least);
    }
    let all = sentences.len();
    sentences.truncate(MOST_GIVEN);
    if all > MOST_GIVEN {
        sentences.push(format!("{} more in the tables", all - MOST_GIVEN));
    }
    (format!("a front for each of {all} cases"), sentences, least)
}

fn one_front(front: &Front, metrics: &str) -> (String, Confidence) {
    let on: Vec<&FrontCell> = front.cells.iter().filter(|cell| cell.standing.on_front()).collect();
    let mut titles: Vec<String> = on
        .iter()
        .take(MOST_CELLS)
        .map(|cell| {
            let words = if cell.words.is_empty() { "the only one" } else { &cell.words };
            match cell.standing.share {
                Some(share) => format!("{words} (in {:.0} % of resamples)", share * 100.0),
                None => words.to_owned(),
            }
        })
        .collect();
    if on.len() > MOST_CELLS {
        titles.push(format!("{} more", on.len() - MOST_CELLS));
    }
    let sentence = format!(
        "{}no other configuration beats {} of {} in all of {metrics} at once: {}{}",
        place(&front.given),
        if on.len() == 1 { "this one".to_owned() } else { format!("these {}", on.len()) },
        front.cells.len(),
        titles.join("; "),
        work_note(&front.other_work)
    );
    let least = on.iter().map(|cell| cell.standing.share).reduce(|a, b| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        _ => None,
    });
    match least.flatten() {
        Some(share) => (sentence, Confidence::of_share(share)),
        None => {
            (format!("{sentence}; single runs, so the confidence is unknown"), Confidence::NoData)
        }
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
                words += &format!(", energy proportionality is unknown: {why}");
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

/// ` (modelled)`; empty for a measured metric.
fn kind(metric: &MetricInfo) -> String {
    match metric.provenance {
        Some((_, origin)) if origin != model::Origin::Measured => {
            format!(" ({origin})")
        }
        _ => String::new(),
    }
}
