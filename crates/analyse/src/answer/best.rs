//! The best choice at each level of what is given.

use model::Design;
use model::design::FactorLevels;

use super::cells::{AnswerCell, CellValues, GivenLevels, RunWithSettings, gather};
use super::confidence::JudgedSize;
use super::unanswered::Unanswered;
use super::{AnswerKind, KindAndMissing};
use crate::compare::BetterDirection;
use crate::describe::{Description, median};
use crate::effect::{CellObservations, EffectScale, EffectSize, MainEffect, main_effects};

/// What the two compared cells differ in.
const CHOICE: &str = "choice";

/// The best choice at one combination of what is given.
#[derive(Debug, Clone, PartialEq)]
pub struct BestChoice {
    /// What is given, in words: `rate 10k`; empty where nothing given varies.
    pub given: String,
    pub at: FactorLevels,
    /// How many there were to choose from.
    pub choices: usize,
    pub winner: Choice,
    /// The second best, and how the winner compares with it: `from` is the second best. None if
    /// there was nothing else to choose.
    pub next: Option<(Choice, JudgedSize<MainEffect>)>,
}

/// A configuration, or a machine with one.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// In words: `SMT on, no idle states`.
    pub words: String,
    pub at: FactorLevels,
    /// Of the metric over its runs.
    pub value: Description,
}

/// The best in a metric among the cells of each combination of what is given: that of the best
/// median, compared with the second best.
pub(super) fn best(
    design: &Design,
    runs: &[&RunWithSettings<'_>],
    metric: &str,
    resolution: f64,
) -> KindAndMissing {
    let mut gathered = gather(design, runs, &[metric], &[])?;
    let missing = std::mem::take(&mut gathered.missing);
    let info = gathered.metrics[0].clone();
    let direction = info.direction;
    if direction == BetterDirection::Neither {
        let words = "neither more nor less of it is better";
        return Err(Unanswered::NotEnough(format!("`{metric}` has no best value: {words}")));
    }
    let of_part = |(given, part): (GivenLevels, CellValues)| {
        let (winner, next) = best_of(&part, direction, resolution)?;
        let GivenLevels { words, at, .. } = given;
        Some(BestChoice { given: words, at, choices: part.cells.len(), winner, next })
    };
    let parts = gathered.into_given(&design.given());
    let choices: Vec<BestChoice> = parts.into_iter().filter_map(of_part).collect();
    if choices.iter().all(|choice| choice.next.is_none()) {
        return Err(Unanswered::NotEnough(
            "there is only one configuration on one machine: measure another configuration, or \
             another machine, and merge the files with `kvmeter merge`"
                .to_owned(),
        ));
    }
    Ok((AnswerKind::Best { metric: info, choices }, missing))
}

/// Whether a difference is for the worse.
fn is_worse(size: &EffectSize, direction: BetterDirection) -> bool {
    let none = if size.scale == EffectScale::Ratio { 1.0 } else { 0.0 };
    match direction {
        BetterDirection::More => size.value < none,
        BetterDirection::Less => size.value > none,
        BetterDirection::Neither => false,
    }
}

type WinnerAndNext = (Choice, Option<(Choice, JudgedSize<MainEffect>)>);

fn best_of(
    part: &CellValues,
    direction: BetterDirection,
    resolution: f64,
) -> Option<WinnerAndNext> {
    let words = part.words();
    let mut ranked: Vec<(f64, usize)> = part
        .cells
        .iter()
        .enumerate()
        .map(|(place, cell)| (median(&cell.runs[0].values), place))
        .collect();
    ranked.sort_by(|a, b| match direction {
        BetterDirection::More => b.0.total_cmp(&a.0),
        BetterDirection::Less | BetterDirection::Neither => a.0.total_cmp(&b.0),
    });
    let choice = |place: usize| -> Option<Choice> {
        let cell: &AnswerCell = &part.cells[place];
        let value = cell.runs[0].describe_by_median().ok()?;
        Some(Choice { words: words[place].clone(), at: cell.at.clone(), value })
    };
    let effect = |best: usize, next: usize| {
        let pair = [("next", next), ("best", best)].map(|(name, place)| {
            let at = [(CHOICE.to_owned(), name.to_owned())].into();
            CellObservations { at, values: part.cells[place].runs[0].values.clone() }
        });
        let order = ["next", "best"].map(str::to_owned);
        main_effects(&pair, CHOICE, &order, resolution).ok()?.pop()
    };
    let mut first = ranked.first()?.1;
    let mut next = None;
    if let Some((_, second)) = ranked.get(1) {
        let (mut other, mut size) = (*second, effect(first, *second));
        // Medians and means of few repeats may differ about which of two is better.
        if size.as_ref().is_some_and(|effect| is_worse(&effect.size, direction)) {
            (first, other) = (other, first);
            size = effect(first, other);
        }
        if let (Some(choice), Some(size)) = (choice(other), size) {
            next = Some((choice, JudgedSize::new(size)));
        }
    }
    let winner = choice(first)?;
    Some((winner, next))
}
