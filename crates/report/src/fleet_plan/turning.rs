//! What would change the answer.

use analyse::fleet_plan::{PlanInput, PricingModel, TurningInput, TurningPoint};
use serde_json::{Value, json};

use super::PlanView;
use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// One row an input; None where there is no other choice.
pub(super) fn table(view: &PlanView<'_>) -> Option<Table> {
    if view.turning.is_empty() {
        return None;
    }
    let mut table = Table::new("What would change the answer")
        .column("input", Align::Wrap, ALWAYS)
        .column("now", Align::Right, ALWAYS)
        .column("below", Align::Right, ALWAYS)
        .column("cheapest there", Align::Wrap, 60)
        .column("above", Align::Right, ALWAYS)
        .column("cheapest here", Align::Wrap, 60);
    for one in view.turning {
        let at = |turn: Option<TurningPoint>| match turn {
            Some(turn) => Cell::new(shown(one.input, turn.at), Tone::Warning),
            None => Cell::from(""),
        };
        let then = |turn: Option<TurningPoint>| {
            turn.map_or(String::new(), |turn| view.choices[turn.then].name.clone())
        };
        table.row(vec![
            name(view, one.input).into(),
            shown(one.input, one.base).into(),
            at(one.below),
            then(one.below).into(),
            at(one.above),
            then(one.above).into(),
        ]);
    }
    table.note(
        "Each input is moved alone, by up to a factor of 100 down and up: another machine is the \
         cheapest below the one value, and above the other. Empty: none is.",
    );
    Some(table)
}

/// The same for `--json`.
pub(super) fn object(view: &PlanView<'_>, one: &TurningInput) -> Value {
    let turn = |turn: Option<TurningPoint>| {
        turn.map(|turn| json!({ "at": turn.at, "cheapest": view.choices[turn.then].name }))
    };
    json!({
        "input": name(view, one.input),
        "now": one.base,
        "below": turn(one.below),
        "above": turn(one.above),
    })
}

fn name(view: &PlanView<'_>, input: PlanInput) -> String {
    match input {
        PlanInput::Price(choice) => {
            let choice = &view.choices[choice];
            let unit = match choice.pricing {
                PricingModel::Bought { .. } => "$",
                PricingModel::Rented { .. } => "$/h",
            };
            format!("price of {}, {unit}", choice.name)
        }
        PlanInput::Rate => "rate, ops/s".to_owned(),
        PlanInput::PeakOverMean => "peak over mean".to_owned(),
        PlanInput::Data => "data, bytes".to_owned(),
        PlanInput::Electricity => "electricity, $/kWh".to_owned(),
        PlanInput::Years => "lifetime, years".to_owned(),
        PlanInput::Objective => "limits of the objective, times".to_owned(),
    }
}

fn shown(input: PlanInput, value: f64) -> String {
    match input {
        PlanInput::Rate => format::count_short(value),
        PlanInput::Data => format::bytes(value),
        _ => format::significant(value, 3),
    }
}
