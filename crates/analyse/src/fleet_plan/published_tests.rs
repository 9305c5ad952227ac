//! The thesis's numbers of servers and costs follow from its printed inputs.

use super::*;
use crate::cost::power_of_cost_w;
use crate::cost::published::{Cluster, Clusters, Published};

/// A server of a row of table 5.2: its share of the target, and the power that follows from the cost
/// at the high price of electricity, as `docs/cost.md` says.
fn server(table: &Clusters, row: &Cluster, at: usize, price_usd: f64) -> MachineChoice {
    let active_w = power_of_cost_w(row.usd_per_h[1][at], row.servers[at], 0.25).unwrap();
    MachineChoice {
        name: table.platforms[at].clone(),
        capacity_ops_s: table.target_ops_s.0 / row.servers[at] as f64,
        pricing: PricingModel::Bought { price_usd },
        power: Some(MachinePower { active_w, repeats_w: Vec::new(), curve: None }),
        rack_units: None,
        ..test_machines::machine("", 1.0)
    }
}

fn clusters() -> Clusters {
    match Published::named("arm-vs-x86").unwrap() {
        Published::Clusters(table) => table,
        Published::WorkUnits(_) => panic!("another publication"),
    }
}

/// As in the thesis: neither peak nor spare, PUE 1, no rent.
fn as_published(table: &Clusters, usd_per_kwh: f64, years: f64) -> (Demand, PurchaseTerms) {
    let demand = Demand {
        rate_ops_s: table.target_ops_s.0,
        peak_over_mean: 1.0,
        data_bytes: None,
        replicas: 1,
        spares: 0,
    };
    let terms = PurchaseTerms {
        years,
        usd_per_kwh,
        pue: 1.0,
        usd_per_rack_unit_month: 0.0,
        rack_w: None,
        carbon_g_per_kwh: None,
    };
    (demand, terms)
}

#[test]
fn reproduces_the_servers_and_costs_of_table_5_2() {
    let table = clusters();
    let mut cells = 0;
    for (level, usd_per_kwh) in table.electricity_usd_per_kwh.iter().enumerate() {
        let (demand, terms) = as_published(&table, *usd_per_kwh, 3.0);
        for row in &table.workloads {
            for at in 0..table.platforms.len() {
                let choice = server(&table, row, at, 0.0);
                let fleet = PlannedFleet::of((at, &choice), &demand, &terms).unwrap();
                assert_eq!(fleet.machines(), row.servers[at], "{}", row.name);
                assert_eq!(fleet.size.binding(), SizeLimit::Throughput);
                let (own, printed) = (fleet.cost.total_usd_per_h(), row.usd_per_h[level][at]);
                // What rounding to a cent of the print and of the input allows.
                assert!((own - printed).abs() < 0.0065, "{}: {own} for {printed}", row.name);
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 40);
}

#[test]
fn reproduces_less_than_1k_for_s1_against_3k_for_s4() {
    let table = clusters();
    let row = table.workloads.iter().find(|row| row.name == table.headline).unwrap();
    for (usd_per_kwh, years, even_usd) in
        [(0.07, 3.0, 858.4), (0.25, 3.0, 884.0), (0.07, 5.0, 865.0), (0.25, 5.0, 907.0)]
    {
        let (demand, terms) = as_published(&table, usd_per_kwh, years);
        let first = |s1_usd: f64| {
            let choices = [server(&table, row, 0, s1_usd), server(&table, row, 3, 3_000.0)];
            let plan = plan(&choices, &demand, &terms).unwrap();
            (plan.first().choice, plan.first().machines())
        };
        // A dollar below the break-even price 297 of S1 are bought, a dollar above 84 of S4.
        assert_eq!(first(even_usd - 1.0), (0, 297), "{usd_per_kwh} {years}");
        assert_eq!(first(even_usd + 1.0), (1, 84), "{usd_per_kwh} {years}");
        assert!(even_usd < 1_000.0);
    }
}
