//! The Pareto front at each level of what is given.

use model::Design;

use super::cells::{AnswerCell, CellValues, RunWithSettings, gather};
use super::unanswered::{AnswerResult, Unanswered};
use super::{AnswerKind, KindAndMissing};
use crate::compare::{BetterDirection, WorkDifference};
use crate::pareto::{ParetoError, ParetoStanding, pareto};

/// The front of one combination of what is given.
#[derive(Debug, Clone, PartialEq)]
pub struct Front {
    /// What is given, in words: `rate 10k`; empty where nothing given varies.
    pub given: String,
    pub cells: Vec<FrontCell>,
    /// How the work of cells on the front differs from that of other cells.
    pub other_work: Vec<WorkDifference>,
}

/// A cell among the candidates of a front.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontCell {
    /// What distinguishes it from the others: `smt=on, idle=none`.
    pub title: String,
    /// The same in words: `SMT on, no idle states`.
    pub words: String,
    pub runs: usize,
    pub standing: ParetoStanding,
    /// The position of a cell that dominates it.
    pub beaten_by: Option<usize>,
}

/// A front for each combination of what is given. What is given is not chosen: the lowest rate
/// would win everything.
pub(super) fn front(
    design: &Design,
    runs: &[&RunWithSettings<'_>],
    metrics: &[String],
) -> KindAndMissing {
    let names: Vec<&str> = metrics.iter().map(String::as_str).collect();
    let mut gathered = gather(design, runs, &names, &[])?;
    let missing = std::mem::take(&mut gathered.missing);
    let parts = gathered.into_given(&design.given());
    let fronts = parts.into_iter().map(|(given, part)| of_part(given.words, &part, metrics));
    let fronts = fronts.collect::<AnswerResult<_>>()?;
    Ok((AnswerKind::Front { metrics: metrics.to_vec(), fronts }, missing))
}

fn of_part(given: String, part: &CellValues, metrics: &[String]) -> AnswerResult<Front> {
    let wishes: Vec<BetterDirection> = part.metrics.iter().map(|metric| metric.direction).collect();
    let candidates: Vec<Vec<Vec<f64>>> =
        part.cells.iter().map(|cell| cell.values.clone()).collect();
    let standings = pareto(&candidates, &wishes).map_err(|error| {
        Unanswered::NotEnough(match error {
            ParetoError::NoDirection(at) => format!(
                "no front can be drawn of `{}`: neither more nor less of it is better",
                metrics[at]
            ),
            other => other.to_string(),
        })
    })?;
    let (titles, words) = (part.titles(), part.words());
    let on: Vec<&AnswerCell> = standings
        .iter()
        .zip(&part.cells)
        .filter(|(standing, _)| standing.on_front())
        .map(|(_, cell)| cell)
        .collect();
    let other_work = part.other_work_of(&on);
    let cells = standings.into_iter().zip(&part.cells).enumerate().map(|(at, (standing, cell))| {
        FrontCell {
            title: titles[at].clone(),
            words: words[at].clone(),
            runs: cell.values.len(),
            beaten_by: standing.dominated_by,
            standing,
        }
    });
    Ok(Front { given, cells: cells.collect(), other_work })
}
