use analyse::cost::{BreakEven, CandidateCosts, CandidatePair, WorkloadCosts};

use super::{CostView, PrintedCost};
use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// The server that the others are shown against.
const FIRST: usize = 0;

pub(super) fn all(view: &CostView<'_>) -> Vec<Table> {
    let mut tables = vec![energy(view)];
    tables.extend(total(view));
    tables.extend(break_even(view));
    tables.extend(sensitivity(view));
    if let Some(first) = tables.first_mut() {
        first.notes.extend(view.notes.iter().cloned());
    }
    tables
}

/// Servers, power and energy cost, with printed values where there are any.
fn energy(view: &CostView<'_>) -> Table {
    let target = format::target_rate(view.terms.target_ops_s);
    let prices = &view.terms.usd_per_kwh;
    let mut table = Table::new(format!("Energy cost of {target}, modelled"))
        .column("workload", Align::Left, 9)
        .column("server", Align::Left, ALWAYS)
        .column("servers", Align::Right, ALWAYS)
        .column("U", Align::Right, 7)
        .column("W each", Align::Decimal, 8)
        .column("kW", Align::Decimal, 6);
    for price in prices {
        let head = format!("$/h at {}", format::plain(*price));
        table = table.column(head, Align::Decimal, ALWAYS).column("printed", Align::Decimal, 8);
    }
    let mut table = table
        .column("normalised", Align::Decimal, ALWAYS)
        .column("printed", Align::Decimal, 8)
        .column("racks", Align::Right, 5)
        .column("m2", Align::Decimal, 5)
        .column("kg CO2/h", Align::Decimal, 5);
    for row in view.answer.groups.iter().flat_map(|group| &group.rows) {
        let candidate = &row.candidate;
        let printed = view
            .printed
            .iter()
            .find(|p| p.workload == candidate.workload && p.name == candidate.name);
        let mut cells: Vec<Cell> = vec![
            candidate.workload.clone().into(),
            candidate.name.clone().into(),
            format::count(row.servers).into(),
            Cell::optional(candidate.utilisation.map(format::percent)),
            format::significant(row.average_w, 3).into(),
            format::significant(row.power_w / 1e3, 3).into(),
        ];
        for price in prices {
            let cost = row.costs.iter().find(|cost| cost.usd_per_kwh == *price);
            cells.push(Cell::optional(cost.map(|cost| format::usd(cost.fleet.energy_usd_per_h))));
            cells.push(as_printed(printed, *price));
        }
        cells.push(format::usd(row.normalised).into());
        cells.push(Cell::optional(printed.map(|p| format!("{:.2}", p.normalised))));
        cells.push(Cell::optional(row.racks.map(format::count)));
        cells.push(Cell::optional(row.floor_m2.map(|area| format::significant(area, 3))));
        cells.push(Cell::optional(row.carbon_kg_per_h.map(|kg| format::significant(kg, 3))));
        table.row(cells);
    }
    table.without_empty_columns()
}

fn as_printed(printed: Option<&PrintedCost>, usd_per_kwh: f64) -> Cell {
    let found = printed.and_then(|p| p.usd_per_h.iter().find(|(price, _)| *price == usd_per_kwh));
    match found {
        Some((_, cost)) => Cell::new(format!("{cost:.2}"), Tone::Muted),
        None => Cell::from(""),
    }
}

/// Equipment, energy and rent; None where no server has a price.
fn total(view: &CostView<'_>) -> Option<Table> {
    let groups = &view.answer.groups;
    let priced: Vec<&CandidateCosts> = groups
        .iter()
        .flat_map(|group| &group.rows)
        .filter(|row| row.candidate.price_usd.is_some())
        .collect();
    if priced.is_empty() {
        return None;
    }
    let mut table = Table::new("Total cost, modelled")
        .column("workload", Align::Left, 9)
        .column("server", Align::Left, ALWAYS)
        .column("price, $", Align::Right, 8)
        .column("years", Align::Right, ALWAYS)
        .column("$/kWh", Align::Decimal, ALWAYS)
        .column("servers, $/h", Align::Decimal, 7)
        .column("energy, $/h", Align::Decimal, 7)
        .column("rent, $/h", Align::Decimal, 7)
        .column("together, $/h", Align::Decimal, ALWAYS)
        .column("$ for 10^9 ops", Align::Decimal, 6);
    let rented = view.terms.usd_per_rack_unit_month > 0.0;
    for row in priced {
        for cost in &row.costs {
            let rent = rented.then(|| format::usd(cost.fleet.rack_usd_per_h));
            table.row(vec![
                row.candidate.workload.clone().into(),
                row.candidate.name.clone().into(),
                Cell::optional(row.candidate.price_usd.map(format::dollars)),
                format::plain(cost.years).into(),
                format::plain(cost.usd_per_kwh).into(),
                format::usd(cost.fleet.equipment_usd_per_h).into(),
                format::usd(cost.fleet.energy_usd_per_h).into(),
                Cell::optional(rent),
                Cell::new(format::usd(cost.fleet.total_usd_per_h()), Tone::Strong),
                format::usd(cost.usd_per_gop).into(),
            ]);
        }
    }
    for group in groups {
        for pair in shown_pairs(group) {
            table.notes.extend(verdict(group, pair));
        }
    }
    Some(table.without_empty_columns())
}

fn shown_pairs(group: &WorkloadCosts) -> impl Iterator<Item = &CandidatePair> {
    group.pairs.iter().filter(|pair| pair.own == FIRST)
}

/// The cheaper of two servers, and the assumptions that would change that.
fn verdict(group: &WorkloadCosts, pair: &CandidatePair) -> Option<String> {
    let ratios: Vec<f64> =
        pair.break_evens.iter().filter_map(|even| Some(even.priced.as_ref()?.ratio)).collect();
    let (least, most) = ratios
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), ratio| (low.min(*ratio), high.max(*ratio)));
    if ratios.is_empty() {
        return None;
    }
    let name = |at: usize| group.rows[at].candidate.name.as_str();
    let range = match least == most {
        true => format::ratio(least),
        false => format!("{} to {}", format::ratio(least), format::ratio(most)),
    };
    let whose = match (most < 1.0, least > 1.0) {
        (true, _) => format!("{} is the cheaper in every case", name(pair.own)),
        (_, true) => format!("{} is the cheaper in every case", name(pair.other)),
        _ => "which one is cheaper depends on lifetime and electricity".to_owned(),
    };
    let flips: Vec<&str> = pair
        .swings
        .iter()
        .filter(|(_, swing)| swing.flips_at.is_some())
        .map(|(assumption, _)| assumption.name.as_str())
        .collect();
    let sensitivity = match flips.is_empty() {
        true => "no single assumption changes that within its range".to_owned(),
        false => format!("each of these alone could change that: {}", flips.join("; ")),
    };
    let of = match group.workload.is_empty() {
        true => String::new(),
        false => format!("{}: ", group.workload),
    };
    let (own, other) = (name(pair.own), name(pair.other));
    Some(format!("{of}{own} costs {range} of {other}: {whose}; {sensitivity}."))
}

/// Where two servers cost the same; None where there is one server only.
fn break_even(view: &CostView<'_>) -> Option<Table> {
    let groups: Vec<&WorkloadCosts> = view
        .answer
        .groups
        .iter()
        .filter(|group| view.headline.is_none_or(|headline| group.workload == headline))
        .collect();
    if groups.iter().all(|group| group.pairs.is_empty()) {
        return None;
    }
    let mut table = Table::new("Break-even prices, solved")
        .column("workload", Align::Left, 9)
        .column("server", Align::Left, ALWAYS)
        .column("against", Align::Left, ALWAYS)
        .column("years", Align::Right, ALWAYS)
        .column("$/kWh", Align::Decimal, ALWAYS)
        .column("its price p, $", Align::Right, ALWAYS)
        .column("even at, $", Align::Right, ALWAYS)
        .column("p / even", Align::Decimal, 8)
        .column("even at any p", Align::Left, 6)
        .column("same price", Align::Right, 5)
        .column("even at $/kWh", Align::Right, 5)
        .column("even at years", Align::Right, 5);
    for group in &groups {
        for pair in shown_pairs(group) {
            for even in &pair.break_evens {
                table.row(even_row(group, pair, even));
            }
        }
    }
    let hidden = view.answer.groups.len() - groups.len();
    if hidden > 0 {
        table.note("The other workloads, and every pair of servers, are in --json.");
    } else if groups.iter().any(|group| group.rows.len() > 2) {
        table.note("Every pair of servers is in --json.");
    }
    table.note("Below its break-even price the server is the cheaper of the two.");
    Some(table.without_empty_columns())
}

fn even_row(group: &WorkloadCosts, pair: &CandidatePair, even: &BreakEven) -> Vec<Cell> {
    let name = |at: usize| group.rows[at].candidate.name.clone();
    let (price, ratio) = match &even.price_usd {
        Ok(price) if *price > 0.0 => {
            (format::dollars(*price), format::ratio(even.other_price_usd / price))
        }
        _ => ("none".to_owned(), String::new()),
    };
    let sign = if even.offset_usd < 0.0 { "-" } else { "+" };
    let given = even.priced.as_ref();
    let solved = |value: Option<f64>| value.map(|value| format::significant(value, 3));
    vec![
        group.workload.clone().into(),
        name(pair.own).into(),
        name(pair.other).into(),
        format::plain(even.years).into(),
        format::plain(even.usd_per_kwh).into(),
        format::dollars(even.other_price_usd).into(),
        Cell::new(price, Tone::Strong),
        ratio.into(),
        format!(
            "{} p {sign} {}",
            format::significant(even.slope, 3),
            format::usd(even.offset_usd.abs())
        )
        .into(),
        Cell::optional(even.equal_price_usd.as_ref().ok().map(|price| format::dollars(*price))),
        Cell::optional(solved(given.and_then(|given| given.even_usd_per_kwh.clone().ok()))),
        Cell::optional(solved(given.and_then(|given| given.even_years.clone().ok()))),
    ]
}

/// One table for each pair with prices: the sensitivity of their ratio, the widest swing first.
fn sensitivity(view: &CostView<'_>) -> Vec<Table> {
    let mut tables = Vec::new();
    for group in &view.answer.groups {
        for pair in shown_pairs(group).filter(|pair| !pair.swings.is_empty()) {
            let name = |at: usize| &group.rows[at].candidate.name;
            let of = match group.workload.is_empty() {
                true => String::new(),
                false => format!(", {}", group.workload),
            };
            let title = format!("Sensitivity of {} over {}{of}", name(pair.own), name(pair.other));
            let mut table = Table::new(title)
                .column("assumption", Align::Left, ALWAYS)
                .column("from", Align::Right, 7)
                .column("to", Align::Right, 7)
                .column("ratio there", Align::Decimal, ALWAYS)
                .column("and there", Align::Decimal, ALWAYS)
                .column("even at", Align::Right, ALWAYS);
            for (assumption, swing) in &pair.swings {
                let flips = swing.flips_at;
                table.row(vec![
                    assumption.name.clone().into(),
                    number(assumption.low).into(),
                    number(assumption.high).into(),
                    format::ratio(swing.ratio_at_low).into(),
                    format::ratio(swing.ratio_at_high).into(),
                    match flips {
                        Some(value) => Cell::new(number(value), Tone::Warning),
                        None => Cell::from(""),
                    },
                ]);
            }
            if let Some(even) = pair.break_evens.first() {
                table.note(format!(
                    "One at a time, all others as assumed, at {} years and {} $/kWh.",
                    format::plain(even.years),
                    format::plain(even.usd_per_kwh)
                ));
            }
            tables.push(table);
        }
    }
    tables
}

fn number(value: f64) -> String {
    if value.abs() >= 1e6 { format::count_short(value) } else { format::significant(value, 3) }
}
