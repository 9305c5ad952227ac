//! A study's answers as one JSON object: units and methods as text, unknown values as null.

use analyse::answer::{
    Answer, AnswerKind, BestChoice, Choice, FactorEffects, GraduatedLoad, MetricInfo,
};
use analyse::effect::{EffectScale, EffectSize};
use analyse::{CellRuns, Interval, NoInterval};
use serde_json::{Value, json};

use super::{MetricCells, StudyReport, check_summaries, measured};

/// The answers of a study, its cells and checks.
pub fn object(study: &StudyReport) -> Value {
    let answers: Vec<Value> = study.answers.iter().map(answer).collect();
    let checks: Vec<Value> = check_summaries(study)
        .iter()
        .map(|result| {
            json!({
                "that": result.check.that,
                "when": result.check.when,
                "why": result.check.why,
                "holds": result.holds,
                "broken": result.broken.iter().map(|(run, values)| {
                    json!({ "run": run, "values": values })
                }).collect::<Vec<_>>(),
                "not_known": result.unknown.iter().map(|(why, runs)| {
                    json!({ "because": why, "runs": runs })
                }).collect::<Vec<_>>(),
                "not_asked": result.not_applicable,
            })
        })
        .collect();
    json!({
        "study": study.name,
        "question": study.question,
        "scale": study.design.scale,
        "machines": study.executions.iter().map(|e| e.machine.id.as_str())
            .collect::<std::collections::BTreeSet<_>>(),
        "unasked": study.unasked,
        "runs": study.runs.len(),
        "level": analyse::LEVEL,
        "answers": answers,
        "cells": measured(study).iter().flat_map(cells).collect::<Vec<_>>(),
        "checks": checks,
        "not_run": study.design.skipped,
        "notes": study.executions.iter().flat_map(|e| &e.notes).collect::<Vec<_>>(),
    })
}

/// Every cell of one metric, each interval with its method.
fn cells(of: &MetricCells) -> Vec<Value> {
    let cell = |(title, runs): &(String, CellRuns)| {
        let described = runs.describe().ok()?;
        Some(json!({
            "metric": of.metric.name,
            "unit": of.metric.unit,
            "provenance": provenance(&of.metric),
            "cell": title,
            "n": described.n,
            "median": described.median,
            "mean": described.mean,
            "sd": described.sd,
            "cv": described.cv,
            "interval": ends(&described.interval()),
            "mean_interval": ends(&described.mean_interval),
        }))
    };
    of.cells.iter().filter_map(cell).collect()
}

fn ends(interval: &Result<Interval, NoInterval>) -> Value {
    match interval {
        Ok(i) => json!({ "low": i.low, "high": i.high, "method": i.method.to_string() }),
        Err(why) => json!({ "no_interval_because": why.to_string() }),
    }
}

fn answer(answer: &Answer) -> Value {
    let mut object = json!({
        "ask": answer.ask,
        "verdict": answer.verdict,
        "details": answer.details,
        "confidence": answer.confidence.to_string(),
        "runs": answer.runs,
        "invalid": answer.invalid,
        "missing": answer.missing.iter().map(|(why, runs)| {
            json!({ "because": why, "runs": runs })
        }).collect::<Vec<_>>(),
    });
    match &answer.kind {
        AnswerKind::Effects { of, interactions, .. } => {
            object["effects"] = of.iter().flat_map(effects).collect();
            object["interactions"] = interactions
                .iter()
                .map(|result| {
                    let mut object = size(&result.of.size, result.corrected);
                    object["factors"] = json!(result.of.factors);
                    object["first"] = json!([result.of.first.0, result.of.first.1]);
                    object["second"] = json!([result.of.second.0, result.of.second.1]);
                    object["verdict"] = result.verdict.to_string().into();
                    object
                })
                .collect();
        }
        AnswerKind::Best { metric, choices } => {
            object["metric"] = metric.name.as_str().into();
            object["unit"] = metric.unit.as_str().into();
            object["choices"] = choices.iter().map(best_choice).collect();
        }
        AnswerKind::Front { metrics, fronts } => {
            object["metrics"] = json!(metrics);
            object["cells"] = fronts
                .iter()
                .flat_map(|front| front.cells.iter().map(move |cell| (front, cell)))
                .map(|(front, cell)| {
                    json!({
                        "at": front.given,
                        "cell": cell.title,
                        "runs": cell.runs,
                        "medians": cell.standing.medians,
                        "on_front": cell.standing.on_front(),
                        "share_of_resamples": cell.standing.share,
                        "beaten_by": cell.beaten_by.map(|by| front.cells[by].title.as_str()),
                    })
                })
                .collect();
        }
        AnswerKind::Graduated { factor, power, loads } => {
            object["factor"] = factor.as_str().into();
            object["power"] = provenance(power);
            object["loads"] = loads.iter().map(graduated).collect();
        }
        AnswerKind::Nothing(_) => {}
    }
    object
}

fn best_choice(choice: &BestChoice) -> Value {
    let of = |choice: &Choice| {
        json!({
            "levels": choice.at,
            "words": choice.words,
            "runs": choice.value.n,
            "median": choice.value.median,
            "interval": ends(&choice.value.interval()),
        })
    };
    let next = choice.next.as_ref().map(|(next, judged)| {
        let mut object = of(next);
        object["best_against_it"] = size(&judged.of.size, judged.corrected);
        object["verdict"] = judged.verdict.to_string().into();
        object
    });
    json!({
        "at": choice.at,
        "choices": choice.choices,
        "best": of(&choice.winner),
        "next": next,
    })
}

/// The boundary and origin of the power.
fn provenance(power: &MetricInfo) -> Value {
    match power.provenance {
        Some((scope, origin)) => json!({
            "scope": scope.to_string(),
            "origin": origin.to_string(),
        }),
        None => Value::Null,
    }
}

fn graduated(load: &GraduatedLoad) -> Value {
    let figures = &load.figures;
    json!({
        "cell": load.title,
        "highest_ops_s": load.highest_ops_s,
        "repeats": load.repeats,
        "overall_ops_per_joule": figures.overall_ops_per_joule,
        "overall_interval": ends(&load.overall_interval),
        "with_idle": figures.with_idle,
        "no_idle_because": load.no_idle,
        "energy_proportionality": figures.proportionality,
        "energy_proportionality_interval": ends(&load.proportionality_interval),
        "idle_to_peak": figures.idle_to_peak,
        "levels": figures.levels.iter().map(|level| json!({
            "share": level.share,
            "throughput_ops_s": level.ops_s,
            "power_w": level.power_w,
            "ops_per_joule": level.ops_per_joule,
        })).collect::<Vec<_>>(),
    })
}

fn effects(effects: &FactorEffects) -> Vec<Value> {
    let of = |level: &analyse::answer::JudgedSize<analyse::effect::MainEffect>| {
        let mut object = size(&level.of.size, level.corrected);
        object["metric"] = effects.metric.name.as_str().into();
        object["unit"] = effects.metric.unit.as_str().into();
        object["factor"] = effects.factor.as_str().into();
        object["from"] = level.of.from.as_str().into();
        object["to"] = level.of.to.as_str().into();
        object["combinations"] = level.of.simple.len().into();
        object["runs"] = json!([level.of.n_from, level.of.n_to]);
        object["verdict"] = level.verdict.to_string().into();
        object
    };
    effects.levels.iter().map(of).collect()
}

fn size(size: &EffectSize, corrected: Option<f64>) -> Value {
    let (low, high, method, none) = match &size.interval {
        Ok(i) => (Some(i.low), Some(i.high), Some(i.method.to_string()), None),
        Err(why) => (None, None, None, Some(why.to_string())),
    };
    json!({
        "scale": match size.scale { EffectScale::Ratio => "ratio", EffectScale::Difference => "difference" },
        "value": size.value,
        "low": low,
        "high": high,
        "method": method,
        "no_interval_because": none,
        "p": size.p,
        "p_holm": corrected,
        "in_sd": size.standardised,
    })
}
