//! `kvmeter plan`: how many of which machine serve a load within an objective, and at what cost.

mod age;
mod args;
mod choice;
mod from_flags;
mod from_runs;
mod gather;
mod measured;
mod output;
mod price_table;
mod prices;
mod terms;

use analyse::fleet_plan::{
    Demand, FleetPlan, MachineChoice, PurchaseError, confidence, frontier, mixed_fleet, plan,
    turning_points,
};
use report::fleet_plan::{ChoiceSource, PlanView};

pub use self::args::PlanArgs;
use self::gather::{GatheredChoices, gather};
use self::terms::{demand, terms};
use crate::exit::{ExitOutcome, request};
use crate::output::Output;
use crate::output_files;

pub fn run(args: &PlanArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let demand = demand(args)?;
    if let Some(html) = &args.html {
        output_files::check_output("--html", html, &[])?;
    }
    let GatheredChoices { objective, chosen, mut notes } = gather(args, &demand)?;
    let platforms: Vec<_> = chosen.iter().filter_map(|one| one.platform.as_ref()).collect();
    let terms = terms(args, &platforms, &mut notes)?;
    notes.extend(age::warnings(&platforms));
    for note in chosen.iter().flat_map(|one| &one.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let measured: Vec<Option<f64>> = chosen.iter().map(|one| one.measured_bytes).collect();
    let (choices, sources): (Vec<MachineChoice>, Vec<ChoiceSource>) =
        chosen.into_iter().map(|one| (one.choice, one.source)).unzip();
    let wrong = |error: PurchaseError| request(error.to_string());
    let plan = plan(&choices, &demand, &terms).map_err(wrong)?;
    notes.extend(larger_data(&demand, &plan, &choices, &measured));
    let frontier = frontier(&choices, &demand, &terms).map_err(wrong)?;
    let turning = turning_points(&choices, &demand, &terms).map_err(wrong)?;
    let confidence = confidence(&choices, &demand, &terms).map_err(wrong)?;
    let mixed = mixed_fleet(&choices, &demand, &terms, plan.first()).map_err(wrong)?;
    let view = PlanView {
        demand: &demand,
        terms: &terms,
        objective: objective.as_deref(),
        choices: &choices,
        sources: &sources,
        plan: &plan,
        mixed: mixed.as_ref(),
        frontier: &frontier,
        turning: &turning,
        confidence: confidence.as_ref(),
        notes: &notes,
    };
    output::show(&view, args, show)
}

/// A planned machine that holds this many times the data of the measured one is noted.
const MUCH_LARGER: f64 = 2.0;

/// Notes machines that are to hold much more data than their capacity was measured with.
fn larger_data(
    demand: &Demand,
    plan: &FleetPlan,
    choices: &[MachineChoice],
    measured: &[Option<f64>],
) -> Vec<String> {
    let Some(data) = demand.data_bytes else { return Vec::new() };
    let noted = plan.fleets.iter().filter_map(|fleet| {
        let planned = data * demand.replicas as f64 / fleet.machines() as f64;
        let own = measured[fleet.choice].filter(|own| planned > MUCH_LARGER * own)?;
        Some(format!(
            "{}: {} of data a machine are planned, but its capacity was measured with {}: measure it \
             with as many.",
            choices[fleet.choice].name,
            report::format::bytes(planned),
            report::format::bytes(own)
        ))
    });
    noted.collect()
}
