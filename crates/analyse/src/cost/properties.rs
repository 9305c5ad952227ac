//! Properties of any machine.

use proptest::prelude::*;

use super::*;

fn server() -> impl Strategy<Value = ServedLoad> {
    (1.0..50_000.0, 1e3..5e6, 1.0..2_000.0, 0.0..8.0f64).prop_map(
        |(price_usd, throughput_ops_s, power_w, rack_units)| ServedLoad {
            price_usd,
            throughput_ops_s,
            power_w,
            rack_units,
        },
    )
}

fn assumptions() -> impl Strategy<Value = Assumptions> {
    (1e5..1e9, 0.5..10.0, 0.01..1.0, 1.0..3.0, 0.0..100.0f64).prop_map(
        |(target_ops_s, years, usd_per_kwh, pue, usd_per_rack_unit_month)| Assumptions {
            target_ops_s,
            years,
            usd_per_kwh,
            pue,
            usd_per_rack_unit_month,
        },
    )
}

fn total(server: &ServedLoad, assumed: &Assumptions) -> f64 {
    ServerFleet::of(server, assumed).unwrap().total_usd_per_h()
}

proptest! {
    #[test]
    fn cost_rises_with_price_power_and_shorter_life(
        server in server(), assumed in assumptions(), by in 1.001..10.0f64,
    ) {
        let base = total(&server, &assumed);
        let dearer = ServedLoad { price_usd: server.price_usd * by, ..server };
        prop_assert!(total(&dearer, &assumed) > base);
        let hungrier = ServedLoad { power_w: server.power_w * by, ..server };
        prop_assert!(total(&hungrier, &assumed) > base);
        let longer = Assumptions { years: assumed.years * by, ..assumed };
        prop_assert!(total(&server, &longer) < base);
        let electricity = Assumptions { usd_per_kwh: assumed.usd_per_kwh * by, ..assumed };
        prop_assert!(total(&server, &electricity) > base);
        let building = Assumptions { pue: assumed.pue * by, ..assumed };
        prop_assert!(total(&server, &building) > base);
        let more = Assumptions { target_ops_s: assumed.target_ops_s * by, ..assumed };
        prop_assert!(total(&server, &more) >= base);
        let faster = ServedLoad { throughput_ops_s: server.throughput_ops_s * by, ..server };
        prop_assert!(total(&faster, &assumed) <= base);
    }

    #[test]
    fn the_servers_serve_the_target_and_one_less_does_not(
        server in server(), assumed in assumptions(),
    ) {
        let n = servers_for(assumed.target_ops_s, server.throughput_ops_s).unwrap() as f64;
        let own = server.throughput_ops_s;
        prop_assert!(n * own >= assumed.target_ops_s * (1.0 - 1e-8));
        prop_assert!(n == 1.0 || (n - 1.0) * own < assumed.target_ops_s);
    }

    #[test]
    fn lifetime_cost_is_hourly_cost_times_hours(server in server(), assumed in assumptions()) {
        let alone = Assumptions {
            target_ops_s: server.throughput_ops_s, usd_per_rack_unit_month: 0.0, ..assumed
        };
        let life = total_usd(&server, &alone).unwrap();
        let hours = alone.years * HOURS_PER_YEAR;
        prop_assert!((total(&server, &alone) * hours / life - 1.0).abs() < 1e-9);
    }

    #[test]
    fn costs_are_equal_at_the_break_even_price(
        a in server(), b in server(), assumed in assumptions(),
    ) {
        let (own, other) = (cost_line(&a, &assumed).unwrap(), cost_line(&b, &assumed).unwrap());
        let expected = total(&b, &assumed);
        match break_even_price(&own, &other, b.price_usd) {
            Ok(price_usd) => {
                let there = total(&ServedLoad { price_usd, ..a }, &assumed);
                prop_assert!((there / expected - 1.0).abs() < 1e-9, "{there} {expected}");
                let below = total(&ServedLoad { price_usd: price_usd * 0.99, ..a }, &assumed);
                prop_assert!(below <= expected);
            }
            Err(_) => prop_assert!(own.at(0.0) > expected),
        }
    }

    #[test]
    fn costs_are_equal_at_other_break_evens(
        a in server(), b in server(), assumed in assumptions(),
    ) {
        let even = |assumed: &Assumptions| (total(&a, assumed) / total(&b, assumed) - 1.0).abs();
        if let Ok(usd_per_kwh) = break_even_electricity(&a, &b, &assumed) {
            let there = Assumptions { usd_per_kwh, ..assumed };
            prop_assert!(even(&there) < 1e-6);
        }
        if let Ok(years) = break_even_years(&a, &b, &assumed) {
            let there = Assumptions { years, ..assumed };
            prop_assert!(even(&there) < 1e-6);
        }
        let (one, two) = (cost_line(&a, &assumed).unwrap(), cost_line(&b, &assumed).unwrap());
        if let Ok(price) = equal_price(&one, &two) {
            prop_assert!((one.at(price) / two.at(price) - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn power_lies_between_idle_and_full(
        idle in 0.0..500.0f64, more in 0.1..500.0f64, u in 0.0..=1.0f64,
    ) {
        let curve = PowerCurve::line(idle, idle + more).unwrap();
        let watts = curve.at(u).unwrap();
        prop_assert!((idle..=idle + more).contains(&watts));
        prop_assert!((curve.load_at(watts).unwrap() - u).abs() < 1e-6);
    }

    #[test]
    fn saving_is_a_share_of_the_other(own in 0.1..1e4f64, other in 0.1..1e4f64) {
        let share = saving(own, other).unwrap();
        prop_assert!((other * (1.0 - share) - own).abs() < 1e-6);
        prop_assert_eq!(share > 0.0, own < other);
    }
}
