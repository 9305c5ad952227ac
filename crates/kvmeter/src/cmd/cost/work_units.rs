//! The cost of an MBWU on several platforms.

use analyse::cost::published::WorkUnits;
use analyse::cost::{
    CostError, GivenValue, Platform, PlatformUnits, PlatformValue, UnitComparison, UnitCost,
};
use report::cost::{compared_object, saved, unit_costs, work_units};
use report::table::Table;
use serde_json::{Value, json};

use super::CostArgs;
use super::output::text;
use crate::exit::{ExitOutcome, request};
use crate::flags::platform::PlatformFlag;
use crate::output::Output;

/// The poster's two tables.
pub fn published(args: &CostArgs, table: &WorkUnits, show: &Output) -> anyhow::Result<ExitOutcome> {
    let [host, own] = &table.platforms;
    let platforms = [Platform::built_in(host)?, Platform::built_in(own)?];
    let mut rows = Vec::new();
    for row in &table.preconditioned {
        let unit = |at: usize| PlatformUnits {
            name: platforms[at].name.clone(),
            mbwus: row.mbwus[at],
            price_usd: platforms[at].price_usd.as_ref().map(|given| given.value),
            watts: args.volts.map(|volts| volts * row.current_a[at]),
            amps: Some(row.current_a[at]),
            m2: platforms[at].footprint_m2.as_ref().map(|given| given.value),
        };
        let mut unit_row = compared(&row.name, &unit(0), &unit(1))?;
        for saving in &mut unit_row.savings {
            saving.printed_saving = match (saving.cost, row.printed_saving) {
                (UnitCost::Usd, Some(printed)) => Some(printed.price),
                (UnitCost::Amperes, Some(printed)) => Some(printed.energy),
                _ => None,
            };
        }
        unit_row.printed_equivalent = row.printed_equivalent;
        rows.push(unit_row);
    }
    let mut notes = vec![format!("Published inputs: {}.", table.source)];
    notes.push(match args.volts {
        Some(volts) => format!("W and kWh are at your {volts} V: the publication prints none."),
        None => "The power is printed as a current: both platforms are taken to have one voltage, \
                 which cancels. --volts gives W and kWh."
            .to_owned(),
    });
    notes.push("m2 for each MBWU is unknown: no footprint is printed.".to_owned());
    show_costs(args, &rows, &notes, Some(&table.source), show)
}

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

/// `volts` converts a current; `without_money` leaves prices out.
fn unit(
    volts: Option<f64>,
    without_money: bool,
    flag: &PlatformFlag,
) -> anyhow::Result<PlatformUnits> {
    let platform = flag.base.as_deref().map(study::open_platform).transpose()?;
    let named = platform.as_ref().map(|platform| platform.name.clone());
    let name = flag.name.clone().or(named).unwrap_or_else(|| "platform".to_owned());
    let mbwus = flag.mbwus.ok_or_else(|| {
        request(format!("--platform {}: `mbwus=` is missing, and another one has it", flag.text))
    })?;
    let from = |of: fn(&Platform) -> &Option<GivenValue>| {
        platform.as_ref().and_then(|platform| of(platform).as_ref()).map(|given| given.value)
    };
    let price_usd = flag.price.or_else(|| from(|p| &p.price_usd));
    if price_usd.is_none() && !without_money {
        let why = platform.as_ref().map(|p| p.why_absent(PlatformValue::PriceUsd));
        return Err(request(format!(
            "{name}: its price is not known{}; add `price=USD` to its --platform, or leave out \
             money with --energy-only",
            why.map_or(String::new(), |why| format!(" ({why})"))
        )));
    }
    let watts = flag.watts.or_else(|| Some(volts? * flag.amps?));
    Ok(PlatformUnits {
        name,
        mbwus,
        price_usd: price_usd.filter(|_| !without_money),
        watts: watts.or_else(|| from(|p| &p.full_load_w)),
        amps: flag.amps,
        m2: flag.m2.or_else(|| from(|p| &p.footprint_m2)),
    })
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
