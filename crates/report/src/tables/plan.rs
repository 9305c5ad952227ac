//! The plan of a study.

use std::collections::BTreeSet;

use model::{Phase, RunSettings};

use serde_json::{Value, json};

use crate::format;
use crate::table::{ALWAYS, Align, Table};

/// Prefix of a setting that is the level of a factor.
const FACTOR: &str = "factor.";

/// One run of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanRow {
    pub ordinal: u32,
    pub label: String,
    pub phase: Phase,
    pub settings: RunSettings,
    pub repeat: u32,
    /// Estimated wall time; None where it cannot be known.
    pub seconds: Option<f64>,
    /// The time is a guess.
    pub guessed: bool,
    /// Estimated bytes of keys and values that the store will hold afterwards.
    pub bytes: Option<u64>,
}

impl PlanRow {
    /// One object.
    pub fn object(&self) -> Value {
        json!({
            "ordinal": self.ordinal,
            "label": self.label,
            "phase": self.phase,
            "repeat": self.repeat,
            "settings": self.settings,
            "estimated_seconds": self.seconds,
            "estimate_is_a_guess": self.guessed,
            "data_bytes": self.bytes,
        })
    }
}

/// Every run in its order; common settings are listed below.
pub fn plan(rows: &[PlanRow]) -> Table {
    let mut table = Table::new("Plan")
        .column("#", Align::Right, ALWAYS)
        .column("run", Align::Left, ALWAYS)
        .column("phase", Align::Left, 40)
        .column("time", Align::Right, ALWAYS)
        .column("data", Align::Right, 60)
        .column("cell", Align::Wrap, ALWAYS)
        .column("settings", Align::Left, 20);
    let keys: BTreeSet<&String> = rows.iter().flat_map(|row| row.settings.keys()).collect();
    let (levels, keys): (Vec<&String>, Vec<&String>) =
        keys.into_iter().partition(|key| key.starts_with(FACTOR));
    let (common, varying): (Vec<&String>, Vec<&String>) = keys.into_iter().partition(|key| {
        rows.len() > 1 && rows.iter().all(|r| r.settings.get(*key) == rows[0].settings.get(*key))
    });
    let text = |settings: &RunSettings, keys: &[&String]| {
        let pairs = keys.iter().filter_map(|key| Some((key, settings.get(*key)?)));
        let name = |key: &String| key.strip_prefix(FACTOR).unwrap_or(key).to_owned();
        pairs.map(|(key, value)| format!("{}={value}", name(key))).collect::<Vec<_>>().join(" ")
    };
    for row in rows {
        table.row(vec![
            row.ordinal.to_string().into(),
            row.label.clone().into(),
            phase(row.phase).into(),
            row.seconds.map_or(format::NONE.into(), format::seconds).into(),
            row.bytes.map_or(format::NONE.into(), |b| format::bytes(b as f64)).into(),
            text(&row.settings, &levels).into(),
            text(&row.settings, &varying).into(),
        ]);
    }
    let mut table = table.without_empty_columns();
    let known: f64 = rows.iter().filter_map(|row| row.seconds).sum();
    let unknown = rows.iter().filter(|row| row.seconds.is_none()).count();
    let most = rows.iter().filter_map(|row| row.bytes).max();
    let mut total = format!("{} runs, about {}", rows.len(), format::seconds(known));
    if unknown > 0 {
        let runs = if unknown == 1 { "run" } else { "runs" };
        total += &format!(" and {unknown} {runs} of unknown length");
    }
    if let Some(most) = most {
        total += &format!(", at most {} of keys and values in a store", format::bytes(most as f64));
    }
    table.note(total);
    if most.is_some_and(|bytes| bytes > 0) {
        table.note(
            "on disk a store takes more: a log-structured one two to three times as much while it \
             merges, plus its logs",
        );
    }
    if let (Some(first), false) = (rows.first(), common.is_empty()) {
        table.note(format!("in every run: {}", text(&first.settings, &common)));
    }
    table
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Load => "load",
        Phase::Measure => "measure",
        Phase::Simulate => "simulate",
    }
}
