//! A comparison of two results: its rows, what is said under them, and JSON.

use analyse::{ComparedCell, ComparedMetric, Comparison, Contrast, OverallContrast};
use model::{Origin, Unit};
use serde_json::{Value, json};

use crate::tables::{self, DifferenceRow, RowVerdict};

/// One row for each metric of each cell.
pub fn rows(comparison: &Comparison) -> Vec<DifferenceRow> {
    let mut rows = Vec::new();
    for cell in &comparison.cells {
        for contrast in &cell.contrasts {
            let (low, high, note) = match &contrast.interval {
                Ok(interval) => {
                    (Some(interval.low), Some(interval.high), interval.method.to_string())
                }
                Err(why) => (None, None, why.to_string()),
            };
            rows.push(DifferenceRow {
                what: format!("{} {}{}", cell.title, contrast.metric, kind(&contrast.metric)),
                unit: contrast.metric.unit(),
                a: Some(contrast.a),
                b: Some(contrast.b),
                ratio: contrast.ratio,
                low,
                high,
                verdict: verdict(contrast),
                note: Some(note),
                n_a: cell.runs_a.len(),
                n_b: cell.runs_b.len(),
            });
        }
    }
    rows
}

/// Qualifiers of a figure: its origin if it was not measured, its boundary for energy.
fn kind(metric: &ComparedMetric) -> String {
    match metric.provenance() {
        Some((_, origin)) if origin != Origin::Measured => {
            format!(" ({})", tables::origin_name(origin))
        }
        Some((scope, _))
            if metric.unit() == Unit::OpsPerJoule || metric.unit() == Unit::JoulesPerOp =>
        {
            format!(" ({scope})")
        }
        _ => String::new(),
    }
}

fn verdict(contrast: &Contrast) -> RowVerdict {
    match contrast.verdict {
        analyse::Verdict::Better => RowVerdict::Better,
        analyse::Verdict::Worse => RowVerdict::Worse,
        analyse::Verdict::Different => RowVerdict::Different,
        analyse::Verdict::NoDifference => RowVerdict::NoDifference,
        analyse::Verdict::NotEnoughData => RowVerdict::NotEnoughData,
        analyse::Verdict::OtherWork => RowVerdict::OtherWork,
    }
}

/// Notes below the table: the differences, and what was left out.
pub fn notes(comparison: &Comparison) -> Vec<String> {
    let mut lines = vec![String::new(), comparison.verdict()];
    let stores_differ = comparison.differences.iter().any(|d| d.setting == "store");
    // The options of two different stores are listed, not compared one by one.
    let (options, others): (Vec<_>, Vec<_>) = comparison
        .differences
        .iter()
        .partition(|d| stores_differ && d.setting.starts_with("store."));
    for difference in others {
        let (a, b) = (difference.a.join(", "), difference.b.join(", "));
        let mut line = format!("{}: {a} against {b}", difference.setting);
        if let Some(caution) = difference.caution {
            line += &format!(" ({caution})");
        }
        lines.push(line);
    }
    lines.extend(set_options("A", options.iter().map(|d| (&d.setting, &d.a))));
    lines.extend(set_options("B", options.iter().map(|d| (&d.setting, &d.b))));
    for cell in &comparison.cells {
        for work in &cell.other_work {
            lines.push(format!("{}: the sides did different work: {work}", cell.title));
        }
        for withheld in &cell.excluded_metrics {
            lines.push(format!(
                "{} {}: not compared, {}",
                cell.title, withheld.metric, withheld.reason
            ));
        }
    }
    for lonely in &comparison.unmatched {
        lines.push(format!("{}: {} only", lonely.title, lonely.side));
    }
    let excluded = comparison.excluded_a + comparison.excluded_b;
    if excluded > 0 {
        let runs = if excluded == 1 { "run was" } else { "runs were" };
        lines.push(format!("{excluded} invalid {runs} left out"));
    }
    lines.push(format!(
        "If nothing differed, chance alone would show about {:.1} differences here.",
        comparison.expected_by_chance()
    ));
    lines
}

/// The options of one side's store in a line, if it has any.
fn set_options<'a>(
    side: &str,
    options: impl Iterator<Item = (&'a String, &'a Vec<String>)>,
) -> Option<String> {
    let set: Vec<String> = options
        .filter(|(_, values)| *values != &["(not set)"])
        .map(|(name, values)| format!("{}={}", name.trim_start_matches("store."), values.join(",")))
        .collect();
    (!set.is_empty()).then(|| format!("options of {side}: {}", set.join(" ")))
}

/// The comparison as one JSON object; `a` and `b` name the sides.
pub fn object(a: &str, b: &str, comparison: &Comparison) -> Value {
    let cells: Vec<Value> = comparison.cells.iter().map(cell).collect();
    let differences: Vec<Value> = comparison
        .differences
        .iter()
        .map(|d| json!({ "setting": d.setting, "a": d.a, "b": d.b, "caution": d.caution }))
        .collect();
    let unmatched: Vec<Value> = comparison
        .unmatched
        .iter()
        .map(|l| json!({ "cell": l.title, "only_in": l.side.to_string(), "runs": l.runs }))
        .collect();
    json!({
        "a": a,
        "b": b,
        "level": analyse::LEVEL,
        "differences": differences,
        "cells": cells,
        "one_side_only": unmatched,
        "excluded_invalid": { "a": comparison.excluded_a, "b": comparison.excluded_b },
        "expected_by_chance": comparison.expected_by_chance(),
        "overall": comparison.overall().iter().map(overall).collect::<Vec<_>>(),
        "verdict": comparison.verdict(),
    })
}

fn overall(one: &OverallContrast) -> Value {
    let ends = one.interval.as_ref().ok();
    json!({
        "metric": one.metric,
        "cells": one.cells,
        "ratio": one.ratio,
        "ratio_low": ends.map(|i| i.low),
        "ratio_high": ends.map(|i| i.high),
        "p_holm": one.corrected,
        "no_interval_because": one.interval.as_ref().err().map(ToString::to_string),
        "verdict": one.verdict.to_string(),
    })
}

fn cell(cell: &ComparedCell) -> Value {
    let contrast = |contrast: &Contrast| {
        let (low, high, method, why_none) = match &contrast.interval {
            Ok(i) => (Some(i.low), Some(i.high), Some(i.method.to_string()), None),
            Err(why) => (None, None, None, Some(why.to_string())),
        };
        json!({
            "metric": contrast.metric.to_string(),
            "unit": contrast.metric.unit(),
            "boundary": contrast.metric.provenance().map(|(scope, _)| scope),
            "origin": contrast.metric.provenance().map(|(_, origin)| origin),
            "a": contrast.a,
            "b": contrast.b,
            "ratio": contrast.ratio,
            "ratio_low": low,
            "ratio_high": high,
            "method": method,
            "no_interval_because": why_none,
            "verdict": contrast.verdict.to_string(),
        })
    };
    let contrasts: Vec<Value> = cell.contrasts.iter().map(contrast).collect();
    let excluded: Vec<Value> = cell
        .excluded_metrics
        .iter()
        .map(|w| json!({ "metric": w.metric, "because": w.reason }))
        .collect();
    json!({
        "cell": cell.title,
        "runs_a": cell.runs_a.len(),
        "runs_b": cell.runs_b.len(),
        "metrics": contrasts,
        "not_compared": excluded,
        "other_work": cell.other_work.iter().map(|work| {
            json!({ "what": work.what, "a": work.a, "b": work.b })
        }).collect::<Vec<_>>(),
    })
}
