//! A plan of a purchase: the sentence, tables for the terminal and Markdown, JSON, and a page that
//! one shows to who pays.

mod figure;
mod object;
mod sentence;
mod tables;
mod turning;

use analyse::fleet_plan::{
    Demand, FleetPlan, FrontierPoint, MachineChoice, MixedFleet, PlanConfidence, PurchaseTerms,
    TurningInput,
};

use crate::html::{self, SheetPart};
use crate::table::Table;

pub use object::object;
pub use sentence::sentences;

/// A plan with what it rests on.
pub struct PlanView<'a> {
    pub demand: &'a Demand,
    pub terms: &'a PurchaseTerms,
    /// The latency objective; None where all capacities are given.
    pub objective: Option<&'a str>,
    pub choices: &'a [MachineChoice],
    /// In the order of the choices.
    pub sources: &'a [ChoiceSource],
    pub plan: &'a FleetPlan,
    /// Several kinds together, where that is cheaper.
    pub mixed: Option<&'a MixedFleet>,
    pub frontier: &'a [FrontierPoint],
    pub turning: &'a [TurningInput],
    /// None where no capacity was repeated.
    pub confidence: Option<&'a PlanConfidence>,
    /// Assumptions and remarks.
    pub notes: &'a [String],
}

/// Where the numbers of a choice are from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChoiceSource {
    pub capacity: String,
    pub price: String,
    /// Why it is not known, where it is not.
    pub power: String,
    /// The publication or offer of its platform.
    pub platform: Option<String>,
}

/// The tables, in their order.
pub fn tables(view: &PlanView<'_>) -> Vec<Table> {
    let mut all = vec![tables::fleets(view), tables::needed(view)];
    all.extend(turning::table(view));
    all.extend(tables::frontier(view));
    all.push(tables::inputs(view));
    all
}

/// One self-contained HTML page: the sentence, the fleet, the frontier of cost against latency and
/// power, what would change the answer, then inputs and assumptions.
pub fn page(view: &PlanView<'_>) -> String {
    let (fleets, needed, inputs) =
        (tables::fleets(view), tables::needed(view), tables::inputs(view));
    let (figure, frontier) = (figure::figure(view), tables::frontier(view));
    let turning = turning::table(view);
    let mut parts = vec![SheetPart::Table(&fleets), SheetPart::Table(&needed)];
    parts.extend(figure.iter().map(SheetPart::Figure));
    parts.extend(frontier.iter().map(SheetPart::Table));
    parts.extend(turning.iter().map(SheetPart::Table));
    parts.push(SheetPart::Table(&inputs));
    html::sheet("Which machines to buy or rent", &sentences(view), &parts)
}
