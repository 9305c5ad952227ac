//! The cost of an MBWU on several platforms.

use analyse::cost::published::WorkUnits;
use analyse::cost::{
    CostError, GivenValue, HOURS_PER_YEAR, Platform, PlatformValue, equivalent, kwh_per_mbwu,
    m2_per_mbwu, saving, usd_per_mbwu, watts_per_mbwu,
};
use report::cost::{UnitFigure, UnitRow, saved, work_units};
use report::format;
use report::table::{ALWAYS, Align, Cell, Table};
use serde_json::{Map, Value, json};

use super::CostArgs;
use super::text;
use crate::exit::{ExitOutcome, request};
use crate::flags::platform::PlatformFlag;
use crate::output::Output;

/// A platform and its MBWUs.
struct PlatformUnit {
    name: String,
    mbwus: f64,
    price_usd: Option<f64>,
    watts: Option<f64>,
    amps: Option<f64>,
    m2: Option<f64>,
}

const USD: &str = "$/MBWU";
const AMPERES: &str = "A/MBWU";
const WATTS: &str = "W/MBWU";
const KWH: &str = "kWh/MBWU a year";
const AREA: &str = "m2/MBWU";
/// Each with its name in JSON.
const KEYS: [(&str, &str); 5] = [
    (USD, "usd_per_mbwu"),
    (AMPERES, "a_per_mbwu"),
    (WATTS, "w_per_mbwu"),
    (KWH, "kwh_per_mbwu_year"),
    (AREA, "m2_per_mbwu"),
];

/// The poster's two tables.
pub fn published(args: &CostArgs, table: &WorkUnits, show: &Output) -> anyhow::Result<ExitOutcome> {
    let [host, own] = &table.platforms;
    let platforms = [Platform::built_in(host)?, Platform::built_in(own)?];
    let mut rows = Vec::new();
    for row in &table.preconditioned {
        let unit = |at: usize| PlatformUnit {
            name: platforms[at].name.clone(),
            mbwus: row.mbwus[at],
            price_usd: platforms[at].price_usd.as_ref().map(|given| given.value),
            watts: args.volts.map(|volts| volts * row.current_a[at]),
            amps: Some(row.current_a[at]),
            m2: platforms[at].footprint_m2.as_ref().map(|given| given.value),
        };
        let mut unit_row = compared(&row.name, &unit(0), &unit(1))?;
        for figure in &mut unit_row.figures {
            figure.printed_saving = match (figure.name.as_str(), row.printed_saving) {
                (USD, Some(printed)) => Some(printed.price),
                (AMPERES, Some(printed)) => Some(printed.energy),
                _ => None,
            };
        }
        unit_row.printed_equivalent = row.printed_equivalent;
        rows.push(unit_row);
    }
    let mut notes = vec![format!("Published inputs: {}.", table.source)];
    notes.push(match args.volts {
        Some(volts) => format!("W and kWh are at {volts} V, which is yours: none is printed."),
        None => "The power is printed as a current: both platforms are taken to have one voltage, \
                 which cancels. --volts gives W and kWh."
            .to_owned(),
    });
    notes.push("m2 for each MBWU cannot be told: no footprint is printed.".to_owned());
    show_costs(args, &rows, &notes, Some(&table.source), show)
}

/// Platforms with their MBWUs on the command line: each against the first.
pub fn given(args: &CostArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    if !args.files.is_empty() {
        return Err(request("`mbwus=` gives MBWUs without results; leave the results file out"));
    }
    let units: Vec<PlatformUnit> = args
        .platform
        .iter()
        .map(|flag| unit(args.volts, args.energy_only, flag))
        .collect::<Result<_, _>>()?;
    let [first, others @ ..] = units.as_slice() else {
        return Err(request("name two platforms with `mbwus=`"));
    };
    if others.is_empty() {
        return Err(request(format!(
            "one platform alone saves nothing: name another one beside {} with its `mbwus=`",
            first.name
        )));
    }
    let rows: Vec<UnitRow> =
        others.iter().map(|own| compared("", first, own)).collect::<Result<_, _>>()?;
    show_costs(args, &rows, &[], None, show)
}

/// `volts` converts a current; `without_money` leaves prices out.
fn unit(
    volts: Option<f64>,
    without_money: bool,
    flag: &PlatformFlag,
) -> anyhow::Result<PlatformUnit> {
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
            "{name}: its price is not known{}; add `price=USD` to its --platform, or leave money \
             out with --energy-only",
            why.map_or(String::new(), |why| format!(" ({why})"))
        )));
    }
    let watts = flag.watts.or_else(|| Some(volts? * flag.amps?));
    Ok(PlatformUnit {
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
    let units: Vec<PlatformUnit> = flags
        .iter()
        .map(|flag| unit(None, false, flag).or_else(|_| unit(None, true, flag)))
        .collect::<Result<_, _>>()?;
    let Some((first, others)) = units.split_first() else {
        return Err(request("name this platform with --platform"));
    };
    let rows: Vec<UnitRow> =
        others.iter().map(|own| compared("", first, own)).collect::<Result<_, _>>()?;
    let (table, platform) = alone(first)?;
    let tables = match rows.is_empty() {
        true => vec![table],
        false => vec![table, work_units(&rows, &[]), saved(&rows)],
    };
    let compared: Vec<Value> = rows.iter().map(object).collect();
    let object = json!({ "origin": "modelled", "platform": platform, "compared": compared });
    Ok(UnitCosts { tables, object })
}

/// The figures of one platform.
fn alone(unit: &PlatformUnit) -> anyhow::Result<(Table, Value)> {
    let mut table = Table::new("What an MBWU costs here, modelled")
        .column("platform", Align::Left, ALWAYS)
        .column("MBWUs", Align::Decimal, ALWAYS);
    let mut cells: Vec<Cell> =
        vec![unit.name.clone().into(), format::significant(unit.mbwus, 3).into()];
    let mut platform = Map::new();
    platform.insert("platform".to_owned(), unit.name.clone().into());
    platform.insert("mbwus".to_owned(), unit.mbwus.into());
    for ((name, of, per), (_, key)) in KINDS.into_iter().zip(KEYS) {
        let Some(value) = of(unit) else { continue };
        let value =
            per(value, unit.mbwus).map_err(|error| request(format!("{}: {error}", unit.name)))?;
        table = table.column(name, Align::Decimal, ALWAYS);
        cells.push(format::significant(value, 4).into());
        platform.insert(key.to_owned(), value.into());
    }
    if platform.len() == 2 {
        return Err(request(format!(
            "{}: neither price, watts nor m2 is known; add them: --platform {},price=USD,watts=W",
            unit.name, unit.name
        )));
    }
    table.row(cells);
    Ok((table, Value::Object(platform)))
}

type Of = fn(&PlatformUnit) -> Option<f64>;
type Per = fn(f64, f64) -> Result<f64, CostError>;
const KINDS: [(&str, Of, Per); 5] = [
    (USD, |unit| unit.price_usd, usd_per_mbwu),
    (AMPERES, |unit| unit.amps, watts_per_mbwu),
    (WATTS, |unit| unit.watts, watts_per_mbwu),
    (KWH, |unit| unit.watts, |watts, mbwus| kwh_per_mbwu(watts, mbwus, HOURS_PER_YEAR)),
    (AREA, |unit| unit.m2, m2_per_mbwu),
];

/// Every figure that both have.
fn compared(title: &str, host: &PlatformUnit, own: &PlatformUnit) -> anyhow::Result<UnitRow> {
    let wrong = |error: CostError| request(format!("{} and {}: {error}", host.name, own.name));
    let mut figures = Vec::new();
    for (name, of, per) in KINDS {
        let (Some(a), Some(b)) = (of(host), of(own)) else { continue };
        let values = [per(a, host.mbwus).map_err(wrong)?, per(b, own.mbwus).map_err(wrong)?];
        figures.push(UnitFigure {
            name: name.to_owned(),
            values,
            saving: saving(values[1], values[0]).map_err(wrong)?,
            printed_saving: None,
        });
    }
    Ok(UnitRow {
        title: title.to_owned(),
        platforms: [host.name.clone(), own.name.clone()],
        mbwus: [host.mbwus, own.mbwus],
        figures,
        equivalent: equivalent(own.mbwus, host.mbwus).map_err(wrong)?,
        printed_equivalent: None,
    })
}

fn show_costs(
    args: &CostArgs,
    rows: &[UnitRow],
    notes: &[String],
    source: Option<&str>,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    if args.html.is_some() {
        return Err(request("--html: there is no figure of MBWUs; leave it out"));
    }
    match args.json {
        true => {
            let rows: Vec<Value> = rows.iter().map(object).collect();
            let object = json!({
                "origin": "modelled", "source": source, "compared": rows, "notes": notes,
            });
            show.json(&object)?;
        }
        false => show.print_styled(&text(&[work_units(rows, notes), saved(rows)], args, show))?,
    }
    Ok(ExitOutcome::Done)
}

fn object(row: &UnitRow) -> Value {
    let key = |name: &str| KEYS.iter().find(|(known, _)| *known == name).map_or("", |key| key.1);
    let platform = |at: usize| {
        let mut object = Map::new();
        object.insert("platform".to_owned(), row.platforms[at].clone().into());
        object.insert("mbwus".to_owned(), row.mbwus[at].into());
        for figure in &row.figures {
            object.insert(key(&figure.name).to_owned(), figure.values[at].into());
        }
        Value::Object(object)
    };
    let mut savings = Map::new();
    let mut printed = Map::new();
    for figure in &row.figures {
        savings.insert(key(&figure.name).to_owned(), figure.saving.into());
        if let Some(saving) = figure.printed_saving {
            printed.insert(key(&figure.name).to_owned(), saving.into());
        }
    }
    json!({
        "what": row.title,
        "host": platform(0),
        "own": platform(1),
        "saving": savings,
        "printed_saving": printed,
        "equivalent_platforms": row.equivalent,
        "printed_equivalent_platforms": row.printed_equivalent,
    })
}
