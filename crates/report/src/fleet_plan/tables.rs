//! The tables of a plan.

use analyse::fleet_plan::{MachineChoice, PlannedFleet, PricingModel, SizeLimit};

use super::PlanView;
use super::sentence::money;
use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

const KILOGRAMS_PER_TONNE: f64 = 1e3;

/// One row a choice, the cheapest first.
pub(super) fn fleets(view: &PlanView<'_>) -> Table {
    let life = format!("$ over {} years", format::plain(view.terms.years));
    let mut table = Table::new("Fleets, the cheapest first")
        .column("machine", Align::Wrap, ALWAYS)
        .column("machines", Align::Right, ALWAYS)
        .column("binds", Align::Left, ALWAYS)
        .column("$ a month", Align::Right, ALWAYS)
        .column("95 %", Align::Right, 75)
        .column("more", Align::Right, ALWAYS)
        .column("cheapest in", Align::Right, 65)
        .column(life, Align::Right, 60)
        .column("load", Align::Right, 40)
        .column("W", Align::Right, 80)
        .column("rack units", Align::Right, 70)
        .column("racks", Align::Right, 30)
        .column("full by", Align::Left, 20)
        .column("CO2 t", Align::Decimal, 50);
    let least = view.plan.first().cost.total_usd_per_h();
    for (nth, fleet) in view.plan.fleets.iter().enumerate() {
        let confidence = view.confidence.map(|all| &all.choices[fleet.choice]);
        let more = fleet.cost.total_usd_per_h() / least - 1.0;
        let tone = if nth == 0 { Tone::Strong } else { Tone::Plain };
        table.row(vec![
            Cell::new(view.choices[fleet.choice].name.clone(), tone),
            Cell::new(format::count(fleet.machines()), tone),
            fleet.size.binding().name().into(),
            Cell::new(money(fleet.usd_per_month()), tone),
            Cell::optional(
                confidence
                    .and_then(|one| one.usd_per_month)
                    .map(|(low, high)| format!("{} to {}", money(low), money(high))),
            ),
            Cell::from(match nth > 0 && more.is_finite() {
                true => format::percent(more),
                false => String::new(),
            }),
            Cell::optional(confidence.map(|one| format::percent(one.cheapest_share))),
            money(fleet.usd_over_life()).into(),
            format::percent(fleet.utilisation).into(),
            Cell::optional(fleet.watts.map(format::dollars)),
            Cell::optional(fleet.rack_units.map(format::plain)),
            Cell::optional(fleet.racks.map(|racks| format::count(racks.racks))),
            Cell::optional(fleet.racks.map(|racks| racks.limit.name().to_owned())),
            Cell::optional(
                carbon_kg(fleet).map(|kg| format::significant(kg / KILOGRAMS_PER_TONNE, 3)),
            ),
        ]);
    }
    let mut table = table.without_empty_columns();
    for note in unavailable(view) {
        table.note(note);
    }
    table
}

/// CO2 over the life, where any of it is known.
fn carbon_kg(fleet: &PlannedFleet) -> Option<f64> {
    let parts = [fleet.carbon.running_kg, fleet.carbon.embodied_kg];
    let known = parts.iter().flatten().copied();
    parts.iter().any(Option::is_some).then(|| known.sum())
}

/// What is in CO2, and why a figure is missing.
fn unavailable(view: &PlanView<'_>) -> Vec<String> {
    let fleets = &view.plan.fleets;
    let mut notes = vec![
        "Modelled. load: the average load of a machine as a share of its capacity; W: the average \
         power of all machines, with PUE."
            .to_owned(),
    ];
    let any = |of: fn(&PlannedFleet) -> bool| fleets.iter().any(of);
    if any(|fleet| fleet.carbon.running_kg.is_none()) {
        notes.push(match view.terms.carbon_g_per_kwh {
            None => "CO2 of electricity is unavailable: the intensity of the grid is not known; \
                     --carbon gives it."
                .to_owned(),
            Some(_) => "CO2 of electricity is unavailable where the power is not known.".to_owned(),
        });
    }
    if any(|fleet| fleet.carbon.embodied_kg.is_none()) {
        notes.push(
            "CO2 of making the machines is unavailable: `embodied_kg` of the platform gives it."
                .to_owned(),
        );
    }
    notes.push(match view.confidence {
        Some(all) => format!(
            "95 %: the interval of $ a month over {} resamples of the repeats of each capacity; prices \
             and power are taken as certain, and with few repeats it is too short.",
            all.resamples
        ),
        None => "How sure the first choice is, is unknown: no capacity has repeats. Repeat the search \
                 into the same file."
            .to_owned(),
    });
    if any(|fleet| fleet.watts.is_none()) {
        notes.push("W is unavailable where the power of a rented machine is not known.".to_owned());
    }
    notes
}

/// Machines by what they are needed for.
pub(super) fn needed(view: &PlanView<'_>) -> Table {
    const LIMITS: [SizeLimit; 5] = [
        SizeLimit::Throughput,
        SizeLimit::Memory,
        SizeLimit::Storage,
        SizeLimit::Network,
        SizeLimit::Replicas,
    ];
    let mut table =
        Table::new("Machines that each limit needs").column("machine", Align::Wrap, ALWAYS);
    for limit in LIMITS {
        table = table.column(limit.name(), Align::Right, ALWAYS);
    }
    let mut table = table.column("spares", Align::Right, ALWAYS);
    for fleet in &view.plan.fleets {
        let binding = fleet.size.binding();
        let mut cells = vec![Cell::from(view.choices[fleet.choice].name.clone())];
        for limit in LIMITS {
            let machines = fleet.size.needed.iter().find(|(of, _)| *of == limit);
            let tone = if limit == binding { Tone::Strong } else { Tone::Plain };
            let text = machines.map_or(String::new(), |(_, machines)| format::count(*machines));
            cells.push(Cell::new(text, tone));
        }
        cells.push(format::count(fleet.size.spares).into());
        table.row(cells);
    }
    table.without_empty_columns()
}

/// Measured rates that held: cost against latency and power. None where none was measured.
pub(super) fn frontier(view: &PlanView<'_>) -> Option<Table> {
    if view.frontier.is_empty() {
        return None;
    }
    let mut table = Table::new("Cost against latency and power")
        .column("machine", Align::Wrap, ALWAYS)
        .column("ops/s each", Align::Right, ALWAYS)
        .column("latency", Align::Right, ALWAYS)
        .column("machines", Align::Right, ALWAYS)
        .column("$ a month", Align::Right, ALWAYS)
        .column("W", Align::Right, 60)
        .column("frontier", Align::Left, ALWAYS);
    for point in view.frontier {
        table.row(vec![
            view.choices[point.fleet.choice].name.clone().into(),
            format::count_short(point.at.rate_ops_s).into(),
            format::latency(point.at.latency_ns).into(),
            format::count(point.fleet.machines()).into(),
            money(point.fleet.usd_per_month()).into(),
            Cell::optional(point.fleet.watts.map(format::dollars)),
            match point.is_dominated {
                true => Cell::from(""),
                false => Cell::new("on it", Tone::Good),
            },
        ]);
    }
    table.note(
        "One row for each measured rate that held: machines run up to that rate have that latency \
         (of the objective's first condition). On the frontier: no other is at least as good in \
         cost, latency and power and better in one.",
    );
    Some(table.without_empty_columns())
}

/// Capacities, prices and power with their sources; the assumptions stand below.
pub(super) fn inputs(view: &PlanView<'_>) -> Table {
    let mut table = Table::new("Inputs and assumptions")
        .column("machine", Align::Wrap, ALWAYS)
        .column("kops/s", Align::Decimal, ALWAYS)
        .column("from", Align::Wrap, 80)
        .column("price", Align::Right, ALWAYS)
        .column("price from", Align::Wrap, 70)
        .column("W", Align::Right, 90)
        .column("W from", Align::Wrap, 60);
    for (choice, source) in view.choices.iter().zip(view.sources) {
        let watts = choice.power.as_ref().map(|power| format::significant(power.active_w, 3));
        table.row(vec![
            choice.name.clone().into(),
            format::kops(choice.capacity_ops_s).into(),
            source.capacity.clone().into(),
            price(choice).into(),
            source.price.clone().into(),
            Cell::optional(watts),
            source.power.clone().into(),
        ]);
    }
    for note in view.notes {
        table.note(note.clone());
    }
    table.without_empty_columns()
}

fn price(choice: &MachineChoice) -> String {
    match choice.pricing {
        PricingModel::Bought { price_usd } => format!("${}", format::dollars(price_usd)),
        PricingModel::Rented { usd_per_h } => format!("${}/h", format::significant(usd_per_h, 3)),
    }
}
