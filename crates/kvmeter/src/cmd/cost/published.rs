//! A publication's clusters, recomputed from its printed numbers.

use analyse::cost::published::{Cluster, Clusters};
use analyse::cost::{
    LoadPower, Platform, PowerCurve, ServerCandidate, SourcedCandidate, power_of_cost_w,
};
use report::cost::PrintedCost;

use super::CostArgs;
use super::output::CostOutput;
use super::terms::terms;
use crate::exit::{ExitOutcome, request};
use crate::output::Output;

/// Computed from the numbers of servers and the cost at the highest price of electricity, which has
/// the most digits; the publication's other columns are shown for comparison.
pub fn clusters(args: &CostArgs, table: &Clusters, show: &Output) -> anyhow::Result<ExitOutcome> {
    let platforms: Vec<Platform> =
        table.platforms.iter().map(|name| Platform::built_in(name)).collect::<Result<_, _>>()?;
    let mut candidates = Vec::new();
    let mut printed = Vec::new();
    for row in &table.workloads {
        for (at, platform) in platforms.iter().enumerate() {
            candidates.push(server(table, row, at, platform)?);
            let prices = table.electricity_usd_per_kwh.iter().copied();
            let costs = row.usd_per_h.iter().map(|costs| costs[at]);
            printed.push(PrintedCost {
                workload: row.name.clone(),
                name: platform.name.clone(),
                usd_per_h: prices.zip(costs).collect(),
                normalised: row.normalised[at],
            });
        }
    }
    let mut notes = vec![
        format!("Source: {}.", table.source),
        "Modelled from the published numbers of servers and their costs at the higher price, which \
         give the power of a server; the printed columns are published."
            .to_owned(),
    ];
    let mut terms = terms(args, &platforms.iter().collect::<Vec<_>>(), &mut notes)?;
    if args.target.is_none() {
        terms.target_ops_s = table.target_ops_s.0;
    }
    let shown = CostOutput {
        title: &table.source,
        candidates: &candidates,
        terms: &terms,
        printed: &printed,
        headline: Some(&table.headline),
        notes,
    };
    shown.show(args, show)
}

fn server(
    table: &Clusters,
    row: &Cluster,
    at: usize,
    platform: &Platform,
) -> anyhow::Result<SourcedCandidate> {
    let wrong = |why: String| request(format!("{}, {}: {why}", row.name, platform.name));
    let dearest = table
        .electricity_usd_per_kwh
        .iter()
        .zip(&row.usd_per_h)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    let (price, costs) = dearest.ok_or_else(|| wrong("no price of electricity".to_owned()))?;
    let watts = power_of_cost_w(costs[at], row.servers[at], *price)
        .map_err(|error| wrong(error.to_string()))?;
    let idle_w = platform.idle_w.as_ref().map(|given| given.value);
    let curve = idle_w
        .map(|idle| PowerCurve::line(idle, watts))
        .transpose()
        .map_err(|error| wrong(error.to_string()))?;
    let from = format!("printed cost at {price} $/kWh over the printed number of servers");
    Ok(SourcedCandidate {
        candidate: ServerCandidate {
            name: platform.name.clone(),
            workload: row.name.clone(),
            price_usd: None,
            throughput_ops_s: table.target_ops_s.0 / row.servers[at] as f64,
            active_w: watts,
            utilisation: None,
            curve,
            rack_units: platform.rack_units.as_ref().map(|given| given.value),
            footprint_m2: platform.footprint_m2.as_ref().map(|given| given.value),
        },
        platform: Some(platform.clone()),
        throughput_from: "target over the printed number of servers".to_owned(),
        power: LoadPower { idle_w, ..LoadPower::given(watts, &from) },
        work: Vec::new(),
        notes: Vec::new(),
    })
}
