//! Costs of MBWUs: tables and JSON.

use analyse::cost::{PlatformUnits, UnitComparison, UnitCost};
use serde_json::{Map, Value, json};

use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// The costs of one platform, as a table and as JSON.
pub fn unit_costs(units: &PlatformUnits, costs: &[(UnitCost, f64)]) -> (Table, Value) {
    let mut table = Table::new("What an MBWU costs here, modelled")
        .column("platform", Align::Left, ALWAYS)
        .column("MBWUs", Align::Decimal, ALWAYS);
    let mut cells: Vec<Cell> =
        vec![units.name.clone().into(), format::significant(units.mbwus, 3).into()];
    for (cost, value) in costs {
        table = table.column(cost.unit(), Align::Decimal, ALWAYS);
        cells.push(format::significant(*value, 4).into());
    }
    table.row(cells);
    (table, platform(&units.name, units.mbwus, costs.iter().copied()))
}

/// The cost of an MBWU on two platforms.
pub fn work_units(rows: &[UnitComparison], notes: &[String]) -> Table {
    let mut table = Table::new("What an MBWU costs, modelled")
        .column("", Align::Left, 9)
        .column("platform", Align::Left, ALWAYS)
        .column("MBWUs", Align::Decimal, ALWAYS);
    let mut costs: Vec<UnitCost> = Vec::new();
    for saving in rows.iter().flat_map(|row| &row.savings) {
        if !costs.contains(&saving.cost) {
            costs.push(saving.cost);
            table = table.column(saving.cost.unit(), Align::Decimal, ALWAYS);
        }
    }
    for row in rows {
        for at in 0..row.platforms.len() {
            let mut cells: Vec<Cell> = vec![
                row.title.clone().into(),
                row.platforms[at].clone().into(),
                format::plain(row.mbwus[at]).into(),
            ];
            for cost in &costs {
                let saving = row.savings.iter().find(|saving| saving.cost == *cost);
                cells.push(Cell::optional(saving.map(|s| format::significant(s.values[at], 4))));
            }
            table.row(cells);
        }
    }
    table.notes.extend(notes.iter().cloned());
    table.without_empty_columns()
}

/// The savings of the second platform over the first, with printed values.
pub fn saved(rows: &[UnitComparison]) -> Table {
    let mut table = Table::new("What is saved for each MBWU")
        .column("", Align::Left, 9)
        .column("platform", Align::Left, ALWAYS)
        .column("instead of", Align::Left, ALWAYS)
        .column("of", Align::Left, ALWAYS)
        .column("saving", Align::Decimal, ALWAYS)
        .column("printed", Align::Decimal, 8);
    for row in rows {
        let [host, own] = &row.platforms;
        let line = |of: &str, text: String, printed: Option<String>| {
            vec![
                row.title.clone().into(),
                own.clone().into(),
                host.clone().into(),
                of.to_owned().into(),
                Cell::new(text, Tone::Strong),
                Cell::optional(printed),
            ]
        };
        for saving in &row.savings {
            let printed = saving.printed_saving.map(format::percent);
            table.row(line(saving.cost.unit(), format::percent(saving.saving), printed));
        }
        let printed = row.printed_equivalent.map(|n| format!("{} for one", format::plain(n)));
        table.row(line("platforms", format!("{} for one", format::plain(row.equivalent)), printed));
    }
    table.without_empty_columns()
}

/// Two platforms as one object.
pub fn compared_object(row: &UnitComparison) -> Value {
    let side = |at: usize| {
        let costs = row.savings.iter().map(|saving| (saving.cost, saving.values[at]));
        platform(&row.platforms[at], row.mbwus[at], costs)
    };
    let key = |cost: UnitCost| cost.key().to_owned();
    let savings: Map<String, Value> =
        row.savings.iter().map(|s| (key(s.cost), s.saving.into())).collect();
    let printed = row.savings.iter().filter_map(|s| Some((key(s.cost), s.printed_saving?.into())));
    let printed: Map<String, Value> = printed.collect();
    json!({
        "what": row.title,
        "host": side(0),
        "own": side(1),
        "saving": savings,
        "printed_saving": printed,
        "equivalent_platforms": row.equivalent,
        "printed_equivalent_platforms": row.printed_equivalent,
    })
}

fn platform(name: &str, mbwus: f64, costs: impl Iterator<Item = (UnitCost, f64)>) -> Value {
    let mut object = Map::new();
    object.insert("platform".to_owned(), name.into());
    object.insert("mbwus".to_owned(), mbwus.into());
    object.extend(costs.map(|(cost, value)| (cost.key().to_owned(), value.into())));
    object.into()
}
