//! The two tables of the poster.

use analyse::cost::published::WorkUnits;
use analyse::cost::{Platform, PlatformUnits, UnitCost};

use super::{CostArgs, compared, show_costs};
use crate::exit::ExitOutcome;
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
