//! Computes the shares of slots from counts: pure, so that recorded counts can be checked.

use model::{ReadingValue, SlotCategory, SlotShare, Unavailable};

use super::formula::evaluate;
use super::table::TopDownTable;
use crate::perf::session::CountedEvent;

/// An event that had a counter for less of the time than this says nothing.
const LEAST_RUNNING: f64 = 0.02;
/// Groups that take turns see different parts of the time, so that a share may be off by so much.
const TOLERANCE: f64 = 0.02;
/// The first level may be off by so much altogether.
const TOLERANCE_OF_SUM: f64 = 0.05;

/// The counts of a table's groups, in its order.
pub type TopDownCounts = Vec<Vec<Result<CountedEvent, Unavailable>>>;

/// The share of each category for which the table has a formula, in the order of
/// [`SlotCategory::ALL`]. Counts are taken per count of the first event of their own group, so that
/// groups that were counted at different times can be used together.
pub fn shares(table: &TopDownTable, counts: &TopDownCounts) -> Vec<SlotShare> {
    let mut known: Vec<(&str, Result<f64, Unavailable>)> = Vec::new();
    for (name, formula) in table.formulas() {
        let look_up = |wanted: &str| {
            let earlier = known.iter().find(|(name, _)| *name == wanted);
            earlier.map_or_else(|| rate(table, counts, wanted), |(_, value)| value.clone())
        };
        let value = evaluate(formula, &look_up);
        known.push((name, value));
    }
    let category = |category: SlotCategory| {
        let (_, value) = known.iter().find(|(name, _)| *name == category.key())?;
        Some((category, value.clone()))
    };
    let found: Found = SlotCategory::ALL.into_iter().filter_map(category).collect();
    let consistent = consistent(&found);
    let share = |(category, value): &(SlotCategory, Result<f64, Unavailable>)| {
        let is_of_slots =
            SlotCategory::FIRST_LEVEL.contains(category) || category.part_of().is_some();
        let value = match &consistent {
            Err(why) if is_of_slots => Err(why.clone()),
            _ => value
                .clone()
                .and_then(|value| within(*category, plausible(*category, value)?, &found)),
        };
        let value = value.map(ReadingValue::Value);
        SlotShare { category: *category, share: value.unwrap_or_else(Into::into) }
    };
    found.iter().map(share).collect()
}

type Found = Vec<(SlotCategory, Result<f64, Unavailable>)>;

/// How often an event happened for each count of its group's first event.
fn rate(table: &TopDownTable, counts: &TopDownCounts, wanted: &str) -> Result<f64, Unavailable> {
    let unknown = || {
        Unavailable::new(
            format!("the table of {} has no event {wanted}", table.name),
            "report this: the table is wrong",
        )
    };
    let groups = table.groups.iter().zip(counts);
    let mut found = groups.filter_map(|(events, counts)| {
        let at = events.iter().position(|event| event.name == wanted)?;
        Some((counts.first()?, counts.get(at)?, events[0].name))
    });
    let (reference, event, name) = found.next().ok_or_else(unknown)?;
    let counted = |event: &Result<CountedEvent, Unavailable>| -> Result<f64, Unavailable> {
        let event = event.clone()?;
        match event.running < LEAST_RUNNING {
            true => Err(Unavailable::new(
                format!("{wanted} had a counter for {:.1} % of the time", 100.0 * event.running),
                "stop other profilers, set kernel.nmi_watchdog to 0, or measure for longer",
            )),
            false => Ok(event.value),
        }
    };
    match counted(reference)? {
        0.0 => Err(Unavailable::new(
            format!("{name} was counted zero times: its threads did not run"),
            "measure where the load runs",
        )),
        reference => Ok(counted(event)? / reference),
    }
}

/// Refuses what cannot be a share; what is off by rounding becomes one.
fn plausible(category: SlotCategory, value: f64) -> Result<f64, Unavailable> {
    match (-TOLERANCE..=1.0 + TOLERANCE).contains(&value) {
        true => Ok(value.clamp(0.0, 1.0)),
        false => Err(contradiction(format!("{} would be {:.1} %", category.key(), 100.0 * value))),
    }
}

/// Whether the shares of the first level that there are can belong together.
fn consistent(found: &Found) -> Result<(), Unavailable> {
    let first = || found.iter().filter(|(of, _)| SlotCategory::FIRST_LEVEL.contains(of));
    let mut sum = 0.0;
    for (category, value) in first() {
        if let Ok(value) = value {
            sum += plausible(*category, *value)?;
        }
    }
    let whole = first().count() > 0 && first().all(|(_, value)| value.is_ok());
    let least = if whole { 1.0 - TOLERANCE_OF_SUM } else { 0.0 };
    match (least..=1.0 + TOLERANCE_OF_SUM).contains(&sum) {
        true => Ok(()),
        false => {
            let sum = 100.0 * sum;
            Err(contradiction(format!("the shares of the first level add up to {sum:.1} %")))
        }
    }
}

/// A part is not larger than its whole.
fn within(category: SlotCategory, value: f64, found: &Found) -> Result<f64, Unavailable> {
    let Some(above) = category.part_of() else { return Ok(value) };
    let whole = found.iter().find(|(of, _)| *of == above);
    match whole {
        Some((_, Ok(whole))) if value > whole + TOLERANCE => Err(contradiction(format!(
            "{} would be {:.1} % of the slots, and {} is {:.1} %",
            category.key(),
            100.0 * value,
            above.key(),
            100.0 * whole
        ))),
        Some((_, Ok(whole))) => Ok(value.min(whole.clamp(0.0, 1.0))),
        _ => Ok(value),
    }
}

fn contradiction(what: String) -> Unavailable {
    Unavailable::new(
        format!("the counts contradict each other: {what}"),
        "measure a steady load for longer, and stop other profilers",
    )
}
