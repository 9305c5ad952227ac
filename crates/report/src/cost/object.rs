//! The answer as one JSON object, units in its keys.

use analyse::cost::{
    BreakEven, CandidateCosts, CandidatePair, CostAt, CostError, SourcedCandidate, WorkloadCosts,
};
use serde_json::{Value, json};

use super::{CostView, PrintedCost};

/// The answer and the sources of its numbers.
pub fn object(view: &CostView<'_>, candidates: &[SourcedCandidate]) -> Value {
    let terms = view.terms;
    let workloads: Vec<Value> =
        view.answer.groups.iter().map(|group| workload(view, candidates, group)).collect();
    json!({
        "origin": "modelled",
        "title": view.title,
        "target_ops_s": terms.target_ops_s,
        "assumed": {
            "lifetime_years": terms.years,
            "usd_per_kwh": terms.usd_per_kwh,
            "pue": terms.pue,
            "utilisation": terms.utilisation,
            "usd_per_rack_unit_month": terms.usd_per_rack_unit_month,
            "carbon_g_per_kwh": terms.carbon_g_per_kwh,
            "hours_per_year": analyse::cost::HOURS_PER_YEAR,
            "spread": terms.spread,
        },
        "workloads": workloads,
        "notes": view.notes,
    })
}

fn workload(view: &CostView<'_>, candidates: &[SourcedCandidate], group: &WorkloadCosts) -> Value {
    let servers: Vec<Value> = group.rows.iter().map(|row| server(view, candidates, row)).collect();
    let pairs: Vec<Value> = group.pairs.iter().map(|pair| against(group, pair)).collect();
    json!({ "workload": group.workload, "servers": servers, "pairs": pairs })
}

fn server(view: &CostView<'_>, candidates: &[SourcedCandidate], row: &CandidateCosts) -> Value {
    let candidate = &row.candidate;
    let sourced = candidates.iter().find(|one| {
        one.candidate.name == candidate.name && one.candidate.workload == candidate.workload
    });
    let printed =
        view.printed.iter().find(|p| p.name == candidate.name && p.workload == candidate.workload);
    let costs: Vec<Value> =
        row.costs.iter().map(|at| cost(candidate.price_usd.is_some(), at)).collect();
    json!({
        "server": candidate.name,
        "platform": sourced.and_then(|one| Some(one.platform.as_ref()?.name.as_str())),
        "platform_source": sourced.and_then(|one| one.platform.as_ref()?.source.as_deref()),
        "price_usd": candidate.price_usd,
        "throughput_ops_s": candidate.throughput_ops_s,
        "throughput_from": sourced.map(|one| one.throughput_from.as_str()),
        "power_under_load_w": candidate.active_w,
        "power_idle_w": sourced.and_then(|one| one.power.idle_w),
        "power_from": sourced.map(|one| one.power.from.as_str()),
        "power_origin": sourced.map(|one| one.power.origin),
        "power_boundary": sourced.and_then(|one| one.power.boundary),
        "power_average_w": row.average_w,
        "utilisation": candidate.utilisation,
        "servers": row.servers,
        "all_servers_w": row.power_w,
        "normalised_energy_cost": row.normalised,
        "racks": row.racks,
        "floor_m2": row.floor_m2,
        "carbon_kg_per_h": row.carbon_kg_per_h,
        "costs": costs,
        "published": printed.map(as_printed),
    })
}

fn as_printed(printed: &PrintedCost) -> Value {
    let costs: Vec<Value> = printed
        .usd_per_h
        .iter()
        .map(|(price, cost)| json!({ "usd_per_kwh": price, "energy_usd_per_h": cost }))
        .collect();
    json!({ "origin": "published", "costs": costs, "normalised_energy_cost": printed.normalised })
}

fn cost(priced: bool, at: &CostAt) -> Value {
    let only_priced = |value: f64| priced.then_some(value);
    json!({
        "lifetime_years": at.years,
        "usd_per_kwh": at.usd_per_kwh,
        "energy_usd_per_h": at.fleet.energy_usd_per_h,
        "rack_usd_per_h": at.fleet.rack_usd_per_h,
        "equipment_usd_per_h": only_priced(at.fleet.equipment_usd_per_h),
        "total_usd_per_h": only_priced(at.fleet.total_usd_per_h()),
        "total_usd_per_gop": only_priced(at.usd_per_gop),
        "usd_per_h_without_price": at.line.fixed_usd_per_h,
        "usd_per_h_per_usd_of_price": at.line.per_h,
    })
}

fn against(group: &WorkloadCosts, pair: &CandidatePair) -> Value {
    let name = |at: usize| &group.rows[at].candidate.name;
    let at: Vec<Value> = pair.break_evens.iter().map(even).collect();
    let swings: Vec<Value> = pair
        .swings
        .iter()
        .map(|(assumption, swing)| {
            json!({
                "assumption": assumption.name,
                "low": assumption.low,
                "base": assumption.base,
                "high": assumption.high,
                "ratio_at_low": swing.ratio_at_low,
                "ratio_at_high": swing.ratio_at_high,
                "even_at": swing.flips_at,
            })
        })
        .collect();
    json!({ "own": name(pair.own), "other": name(pair.other), "even": at, "hangs_on": swings })
}

fn even(even: &BreakEven) -> Value {
    let given = even.priced.as_ref();
    json!({
        "lifetime_years": even.years,
        "usd_per_kwh": even.usd_per_kwh,
        "own_price_per_other_price": even.slope,
        "own_price_offset_usd": even.offset_usd,
        "other_price_usd": even.other_price_usd,
        "own_price_usd": value(&even.price_usd),
        "no_own_price_because": reason(&even.price_usd),
        "same_price_usd": value(&even.equal_price_usd),
        "cost_ratio": given.map(|given| given.ratio),
        "even_usd_per_kwh": given.and_then(|given| value(&given.even_usd_per_kwh)),
        "even_lifetime_years": given.and_then(|given| value(&given.even_years)),
    })
}

fn value(solved: &Result<f64, CostError>) -> Option<f64> {
    solved.as_ref().ok().copied()
}

fn reason(solved: &Result<f64, CostError>) -> Option<String> {
    solved.as_ref().err().map(ToString::to_string)
}
