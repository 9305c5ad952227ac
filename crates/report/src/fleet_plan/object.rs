//! The plan as one JSON object, units in its keys.

use analyse::fleet_plan::{FrontierPoint, MachineChoice, MixedFleet, PlannedFleet, PricingModel};
use serde_json::{Map, Value, json};

use super::{ChoiceSource, PlanView, sentences, turning};

/// The plan, its inputs and their sources.
pub fn object(view: &PlanView<'_>) -> Value {
    let fleets: Vec<Value> = view.plan.fleets.iter().map(|one| fleet(view, one)).collect();
    let inputs = view.choices.iter().zip(view.sources);
    let inputs: Vec<Value> = inputs.map(|(choice, source)| input(choice, source)).collect();
    let frontier: Vec<Value> = view.frontier.iter().map(|one| point(view, one)).collect();
    json!({
        "origin": "modelled",
        "answer": sentences(view),
        "demand": {
            "rate_ops_s": view.demand.rate_ops_s,
            "peak_over_mean": view.demand.peak_over_mean,
            "peak_ops_s": view.demand.peak_ops_s(),
            "data_bytes": view.demand.data_bytes,
            "replicas": view.demand.replicas,
            "spares": view.demand.spares,
            "slo": view.objective,
        },
        "assumed": {
            "lifetime_years": view.terms.years,
            "usd_per_kwh": view.terms.usd_per_kwh,
            "pue": view.terms.pue,
            "usd_per_rack_unit_month": view.terms.usd_per_rack_unit_month,
            "rack_w": view.terms.rack_w,
            "carbon_g_per_kwh": view.terms.carbon_g_per_kwh,
        },
        "fleets": fleets,
        "mixed": view.mixed.map(|mixed| several_kinds(view, mixed)),
        "frontier": frontier,
        "turning_points": view.turning.iter().map(|one| turning::object(view, one)).collect::<Vec<_>>(),
        "resamples": view.confidence.map(|confidence| confidence.resamples),
        "inputs": inputs,
        "notes": view.notes,
    })
}

fn fleet(view: &PlanView<'_>, fleet: &PlannedFleet) -> Value {
    let needed = fleet.size.needed.iter();
    let needed: Map<String, Value> =
        needed.map(|(limit, machines)| (limit.name().to_owned(), (*machines).into())).collect();
    let confidence = view.confidence.map(|all| &all.choices[fleet.choice]);
    let interval = confidence.and_then(|one| one.usd_per_month);
    let least = view.plan.first().cost.total_usd_per_h();
    json!({
        "machine": view.choices[fleet.choice].name,
        "machines": fleet.machines(),
        "spares": fleet.size.spares,
        "binds": fleet.size.binding().name(),
        "needed": needed,
        "utilisation": fleet.utilisation,
        "usd_per_h": fleet.cost.total_usd_per_h(),
        "usd_per_month": fleet.usd_per_month(),
        "usd_per_month_low": interval.map(|interval| interval.0),
        "usd_per_month_high": interval.map(|interval| interval.1),
        "cheapest_share": confidence.map(|one| one.cheapest_share),
        "usd_over_life": fleet.usd_over_life(),
        "equipment_usd_per_h": fleet.cost.equipment_usd_per_h,
        "energy_usd_per_h": fleet.cost.energy_usd_per_h,
        "rack_usd_per_h": fleet.cost.rack_usd_per_h,
        "cost_over_first": fleet.cost.total_usd_per_h() / least,
        "machine_average_w": fleet.machine_w,
        "all_machines_w": fleet.watts,
        "rack_units": fleet.rack_units,
        "racks": fleet.racks.map(|racks| racks.racks),
        "racks_full_by": fleet.racks.map(|racks| racks.limit.name()),
        "running_carbon_kg": fleet.carbon.running_kg,
        "embodied_carbon_kg": fleet.carbon.embodied_kg,
    })
}

fn several_kinds(view: &PlanView<'_>, mixed: &MixedFleet) -> Value {
    let kinds = mixed.machines.iter().map(
        |(choice, machines)| json!({ "machine": view.choices[*choice].name, "machines": machines }),
    );
    json!({
        "fleet": kinds.collect::<Vec<_>>(),
        "usd_per_month": mixed.usd_per_month(),
        "all_machines_w": mixed.watts,
        "optimality_gap": mixed.gap,
    })
}

fn point(view: &PlanView<'_>, point: &FrontierPoint) -> Value {
    json!({
        "machine": view.choices[point.fleet.choice].name,
        "rate_ops_s": point.at.rate_ops_s,
        "latency_us": point.at.latency_ns / 1e3,
        "machines": point.fleet.machines(),
        "usd_per_month": point.fleet.usd_per_month(),
        "all_machines_w": point.fleet.watts,
        "on_frontier": !point.is_dominated,
    })
}

fn input(choice: &MachineChoice, source: &ChoiceSource) -> Value {
    let (price_usd, usd_per_h) = match choice.pricing {
        PricingModel::Bought { price_usd } => (Some(price_usd), None),
        PricingModel::Rented { usd_per_h } => (None, Some(usd_per_h)),
    };
    json!({
        "machine": choice.name,
        "capacity_ops_s": choice.capacity_ops_s,
        "capacity_from": source.capacity,
        "repeats_ops_s": choice.repeats_ops_s,
        "write_share": choice.write_share,
        "price_usd": price_usd,
        "usd_per_h": usd_per_h,
        "price_from": source.price,
        "power_at_capacity_w": choice.power.as_ref().map(|power| power.active_w),
        "power_from": source.power,
        "rack_units": choice.rack_units,
        "data_in_memory": choice.data_room.in_memory,
        "data_room_bytes": choice.data_room.bytes,
        "bytes_taken_per_byte": choice.data_room.taken_per_byte,
        "network_bytes_s": choice.network.map(|network| network.bytes_per_s),
        "bytes_per_op": choice.network.map(|network| network.bytes_per_op),
        "embodied_kg": choice.embodied_kg,
        "platform_source": source.platform,
    })
}
