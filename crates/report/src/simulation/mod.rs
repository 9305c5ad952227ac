//! Simulations of direct cache access: tables, pages with figures, and JSON. Every number is
//! simulated.

mod figures;
mod lines;
mod tables;
mod validation;

use cachesim::SimOutcome;
use cachesim::sweep::SweepPoint;
use cachesim::thesis::ThesisFigure;
use cachesim::validate::Validation;
use serde_json::{Map, Value, json};

use crate::charts::ShownFigure;
use crate::html;

pub use tables::{outcomes, trace};
pub use validation::table as validation;

const SIMULATED: &str = "Every number is simulated, none is measured; see docs/cache-simulation.md for what the model \
     leaves out.";

/// A page of a sweep over `key`, the first that has several values.
pub fn swept_page(key: Option<&str>, points: &[SweepPoint], outcomes: &[SimOutcome]) -> String {
    page("Direct cache access, simulated", &[figures::swept(key, points, outcomes)])
}

/// A page of published series beside simulated ones.
pub fn validation_page(validation: &Validation) -> String {
    page("Simulated beside published", &validation::figures(validation))
}

/// A page of the figures of Basavaraj 2017; `outcomes` are in the order of the figures' jobs.
pub fn thesis_page(plans: &[ThesisFigure], outcomes: &[SimOutcome]) -> String {
    page("The figures of Basavaraj 2017, simulated", &figures::thesis(plans, outcomes))
}

fn page(title: &str, figures: &[ShownFigure]) -> String {
    html::plain_page(title, &[SIMULATED.to_owned()], figures, &[])
}

/// Several outcomes as one JSON object, each with the values that were swept.
///
/// # Errors
/// An outcome cannot be written as JSON.
pub fn object(points: &[SweepPoint], outcomes: &[SimOutcome]) -> serde_json::Result<Value> {
    let mut runs = Vec::new();
    for (point, outcome) in points.iter().zip(outcomes) {
        let at: Map<String, Value> =
            point.at.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        runs.push(json!({ "at": at, "outcome": serde_json::to_value(outcome)? }));
    }
    Ok(json!({ "kind": "simulated", "runs": runs }))
}
