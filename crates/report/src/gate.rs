//! The verdicts of a gate: lines, a summary for a pull request, and JSON.

use analyse::gate::{Gate, GateOutcome, GateVerdict, Judgement, signed_percent};
use serde_json::{Value, json};

use crate::markdown;
use crate::table::{ALWAYS, Align, Table};

/// The summary, then a line for each judgement and each note.
pub fn lines(gate: &Gate) -> Vec<String> {
    let indented = |text: String| format!("  {text}");
    let details = gate.sentences().into_iter().chain(gate.notes.clone());
    std::iter::once(gate.summary()).chain(details.map(indented)).collect()
}

/// A summary for a pull request: the sentences, then a table of the judgements.
pub fn markdown(gate: &Gate) -> String {
    let mut out = format!("**{}**\n\n", markdown::escaped(&gate.summary()));
    for sentence in gate.sentences() {
        out += &format!("- {}\n", markdown::escaped(&sentence));
    }
    for note in &gate.notes {
        out += &format!("- {}\n", markdown::escaped(note));
    }
    out.push('\n');
    out += &markdown::table(&table(gate));
    out
}

fn table(gate: &Gate) -> Table {
    let mut table = Table::new("")
        .column("cell", Align::Left, ALWAYS)
        .column("condition", Align::Left, ALWAYS)
        .column("B against A", Align::Right, ALWAYS)
        .column(format!("{} % interval", gate.confidence_percent()), Align::Right, ALWAYS)
        .column("runs", Align::Right, ALWAYS)
        .column("verdict", Align::Left, ALWAYS);
    for judgement in &gate.judgements {
        let Judgement { condition, cell, runs_a, runs_b, size, verdict } = judgement;
        let change = |ratio: f64| signed_percent(ratio - 1.0);
        let none = || "-".to_owned();
        let ends = |low, high| format!("{} to {}", change(low), change(high));
        table.row(vec![
            cell.clone().into(),
            condition.to_string().into(),
            size.map_or_else(none, |size| change(size.ratio)).into(),
            size.map_or_else(none, |size| ends(size.low, size.high)).into(),
            format!("{runs_a} and {runs_b}").into(),
            name(verdict).into(),
        ]);
    }
    table
}

/// As one JSON object; `exit_code` is that of the command.
pub fn object(gate: &Gate, exit_code: u8) -> Value {
    let judgement = |one: &Judgement| {
        let size = one.size.as_ref();
        let (more, because) = match &one.verdict {
            GateVerdict::TooFewRepeats { more } => (*more, None),
            GateVerdict::NotJudged(why) => (None, Some(why)),
            GateVerdict::Regression | GateVerdict::Holds => (None, None),
        };
        json!({
            "condition": one.condition.to_string(),
            "metric": one.condition.name,
            "cell": one.cell,
            "runs_a": one.runs_a,
            "runs_b": one.runs_b,
            "ratio": size.map(|size| size.ratio),
            "ratio_low": size.map(|size| size.low),
            "ratio_high": size.map(|size| size.high),
            "p": size.map(|size| size.p),
            "p_holm": size.map(|size| size.p_holm),
            "verdict": name(&one.verdict),
            "more_repeats": more,
            "not_judged_because": because,
            "sentence": gate.sentence(one),
        })
    };
    json!({
        "outcome": match gate.outcome() {
            GateOutcome::Passed => "passed",
            GateOutcome::Failed => "failed",
            GateOutcome::Undecided => "undecided",
        },
        "exit_code": exit_code,
        "summary": gate.summary(),
        "confidence": gate.confidence,
        "judgements": gate.judgements.iter().map(judgement).collect::<Vec<_>>(),
        "notes": gate.notes,
    })
}

const fn name(verdict: &GateVerdict) -> &'static str {
    match verdict {
        GateVerdict::Regression => "regression",
        GateVerdict::Holds => "holds",
        GateVerdict::TooFewRepeats { .. } | GateVerdict::NotJudged(_) => "undecided",
    }
}
