//! The cost of an MBWU on several platforms.

mod platform_units;
mod poster;

use analyse::cost::{CostError, PlatformUnits, UnitComparison};
use report::cost::{compared_object, saved, unit_costs, work_units};
use report::table::Table;
use serde_json::{Value, json};

use self::platform_units::unit;
pub use self::poster::published;
use super::CostArgs;
use super::output::text;
use crate::exit::{ExitOutcome, request};
use crate::flags::platform::PlatformFlag;
use crate::output::Output;

/// Platforms with their MBWUs on the command line: each against the first.
pub fn given(args: &CostArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    if !args.files.is_empty() {
        return Err(request("`mbwus=` gives MBWUs without results; leave the results file out"));
    }
    let units: Vec<PlatformUnits> = args
        .platform
        .iter()
        .map(|flag| unit(args.volts, args.energy_only, flag))
        .collect::<Result<_, _>>()?;
    let [first, others @ ..] = units.as_slice() else {
        return Err(request("name two platforms with `mbwus=`"));
    };
    if others.is_empty() {
        return Err(request(format!(
            "a saving is between two platforms: name another one beside {} with its `mbwus=`",
            first.name
        )));
    }
    let rows: Vec<UnitComparison> =
        others.iter().map(|own| compared("", first, own)).collect::<Result<_, _>>()?;
    show_costs(args, &rows, &[], None, show)
}

/// The costs of units.
pub struct UnitCosts {
    pub tables: Vec<Table>,
    pub object: Value,
}

/// The costs of the units of a measured platform, which comes first with its `mbwus`, and the
/// savings of the others.
pub fn measured(flags: &[PlatformFlag]) -> anyhow::Result<UnitCosts> {
    // A platform without a price still has its energy.
    let units: Vec<PlatformUnits> = flags
        .iter()
        .map(|flag| unit(None, false, flag).or_else(|_| unit(None, true, flag)))
        .collect::<Result<_, _>>()?;
    let Some((first, others)) = units.split_first() else {
        return Err(request("name this platform with --platform"));
    };
    let rows: Vec<UnitComparison> =
        others.iter().map(|own| compared("", first, own)).collect::<Result<_, _>>()?;
    let cannot = |error: CostError| request(format!("{}: {error}", first.name));
    let costs = first.costs().map_err(cannot)?;
    if costs.is_empty() {
        return Err(request(format!(
            "{}: neither price, watts nor m2 is known; add them: --platform {},price=USD,watts=W",
            first.name, first.name
        )));
    }
    let (table, platform) = unit_costs(first, &costs);
    let tables = match rows.is_empty() {
        true => vec![table],
        false => vec![table, work_units(&rows, &[]), saved(&rows)],
    };
    let compared: Vec<Value> = rows.iter().map(compared_object).collect();
    let object = json!({ "origin": "modelled", "platform": platform, "compared": compared });
    Ok(UnitCosts { tables, object })
}

/// Every cost that both have.
fn compared(
    title: &str,
    host: &PlatformUnits,
    own: &PlatformUnits,
) -> anyhow::Result<UnitComparison> {
    UnitComparison::of(title, host, own)
        .map_err(|error| request(format!("{} and {}: {error}", host.name, own.name)))
}

fn show_costs(
    args: &CostArgs,
    rows: &[UnitComparison],
    notes: &[String],
    source: Option<&str>,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    if args.html.is_some() {
        return Err(request("--html: there is no figure of MBWUs; leave it out"));
    }
    match args.json {
        true => {
            let rows: Vec<Value> = rows.iter().map(compared_object).collect();
            let object = json!({
                "origin": "modelled", "source": source, "compared": rows, "notes": notes,
            });
            show.json(&object)?;
        }
        false => show.print_styled(&text(&[work_units(rows, notes), saved(rows)], args, show))?,
    }
    Ok(ExitOutcome::Done)
}
