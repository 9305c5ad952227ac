//! From measurements to a purchase.

use serde_json::Value;

use crate::tool::Place;

fn near(value: &Value, wanted: f64, within: f64) {
    let json = value.as_f64().unwrap_or_else(|| panic!("{value} for {wanted}"));
    assert!((json - wanted).abs() <= within, "{json} for {wanted}");
}

/// The trials of a search whose highest rate of 2,000 holds.
fn searched(place: &Place, out: &str) {
    let objective = ["search", "null", "--slo", "p50<10s", "--records", "500", "--to", "2k"];
    let short = ["--time", "200ms", "--warm-up", "0s", "--quiet", "--out", out];
    place.ok(&[&objective[..], &short[..]].concat());
}

#[test]
fn a_search_becomes_a_purchase() {
    let place = Place::new();
    searched(&place, "r.sqlite");
    let args = [
        "plan",
        "r.sqlite",
        "--rate",
        "3k",
        "--peak-over-mean",
        "2",
        "--platform",
        "name=box,price=1000,watts=150,idle=50,rack_units=1,memory=1GiB,embodied_kg=800",
        "--price-per-kwh",
        "0.2",
        "--pue",
        "1.5",
        "--carbon",
        "400",
        "--json",
    ];
    let json = place.json(&args);
    let fleet = &json["fleets"][0];
    assert_eq!(json["demand"]["slo"], "p50<10s", "the objective is that of the search");
    near(&json["inputs"][0]["capacity_ops_s"], 2_000.0, 0.0);
    // 6,000 at the peak: three machines and a spare, at 3,000 of 8,000.
    assert_eq!((&fleet["machines"], &fleet["binds"]), (&4.into(), &"throughput".into()));
    near(&fleet["utilisation"], 0.375, 1e-9);
    near(&fleet["all_machines_w"], 4.0 * 87.5 * 1.5, 1e-9);
    let hours = 3.0 * 8_760.0;
    near(&fleet["usd_over_life"], 4_000.0 + 0.525 * 0.2 * hours, 1e-6);
    near(&fleet["running_carbon_kg"], 0.525 * 0.4 * hours, 1e-6);
    near(&fleet["embodied_carbon_kg"], 3_200.0, 0.0);
    assert_eq!(fleet["rack_units"], 4.0);
    assert!(json["frontier"].as_array().unwrap().iter().any(|point| point["on_frontier"] == true));

    // A GiB of memory each, and more data than throughput.
    let data = ["--data", "3GiB", "--replicas", "2"];
    let json = place.json(&[&args[..], &data[..]].concat());
    let fleet = &json["fleets"][0];
    assert_eq!((&fleet["machines"], &fleet["binds"]), (&7.into(), &"memory".into()));
    let notes = json["notes"].to_string();
    assert!(notes.contains("its capacity was measured with"), "{notes}");

    let text = place.ok(&[&args[..args.len() - 1], &["--html", "plan.html"]].concat());
    assert!(text.starts_with("Buy 4 of null on box, one of them spare"), "{text}");
    assert!(text.contains("There is no runner-up") && text.contains("6,759"), "{text}");
    let page = std::fs::read_to_string(place.file("plan.html")).unwrap();
    let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("no {words}"));
    let order = ["Buy 4 of null", "Fleets, the cheapest", "<svg", "Inputs and assumptions"].map(at);
    assert!(order.is_sorted(), "{order:?}");
}

/// Two results of one store, whose data differ.
#[test]
fn machines_that_did_other_work_are_noted() {
    let place = Place::new();
    searched(&place, "r.sqlite");
    let plan = |files: &[&str]| {
        let rest = ["--rate", "3k", "--platform", "price=1000,watts=150", "--json"];
        place.json(&[&["plan"], files, &rest].concat())["notes"].to_string()
    };
    assert!(!plan(&["r.sqlite"]).contains("did not do the same work"));
    let other = ["search", "null", "--slo", "p50<10s", "--records", "700", "--to", "2k"];
    let short = ["--time", "200ms", "--warm-up", "0s", "--quiet", "--out", "s.sqlite"];
    place.ok(&[&other[..], &short[..]].concat());
    let notes = plan(&["r.sqlite", "s.sqlite"]);
    assert!(notes.contains("did not do the same work: workload.records is 500 ("), "{notes}");
    assert!(notes.contains(" and 700 ("), "{notes}");
    assert_eq!(notes.matches("did not do the same work").count(), 1, "{notes}");
}

#[test]
fn capacities_are_interpolated_within_what_was_measured() {
    let place = Place::new();
    let bench = ["bench", "null", "--records", "500", "--rate", "1k..3k/3", "--time", "300ms"];
    // On a busy machine a run may be marked invalid; what held in spite of that held.
    place.run(&[&bench[..], &["--quiet", "--out", "r.sqlite"]].concat());
    let with =
        ["plan", "r.sqlite", "--rate", "10k", "--platform", "price=1000,watts=150", "--json"];
    let json = place.json(&[&with[..], &["--slo", "p50<10s"]].concat());
    // Nothing breaks the objective, so one of the measured rates it is, and nothing beyond.
    let capacity = json["inputs"][0]["capacity_ops_s"].as_f64().unwrap();
    assert!([1e3, 2e3, 3e3].contains(&capacity), "{json}");
    let noted = json["notes"].to_string().contains("no rate above");
    assert_eq!(
        noted,
        json["inputs"][0]["capacity_from"] == "the highest measured rate, which held"
    );
    place.refused(
        &[&with[..], &["--slo", "p50<1ns"]].concat(),
        &["no machine holds p50<1ns", "--slo", "kvmeter search"],
    );
    place.refused(&with, &["--slo is missing", "none of their own"]);
}

/// The thesis's average row: 297 of S1 for 100 Mops/s, against 84 of S4 at $3,000.
#[test]
fn the_thesis_prefers_s1_below_its_break_even_price() {
    let place = Place::new();
    let first = |price: &str| {
        let s1 = format!("s1,throughput=337k,watts=52,price={price}");
        let json = place.json(&[
            "plan",
            "--rate",
            "100M",
            "--spares",
            "0",
            "--price-per-kwh",
            "0.07",
            "--years",
            "3",
            "--platform",
            &s1,
            "--platform",
            "s4,throughput=1.1905M,watts=203,price=3000",
            "--json",
        ]);
        let fleet = &json["fleets"][0];
        (fleet["machine"].as_str().unwrap().to_owned(), fleet["machines"].as_u64().unwrap())
    };
    assert_eq!(first("840"), ("s1".to_owned(), 297));
    assert_eq!(first("880"), ("s4".to_owned(), 84));
}

#[test]
fn machines_are_rented_on_terms() {
    let place = Place::new();
    place.write(
        "cloud.toml",
        "name = \"cloud\"\npriced = \"2020-01-31\"\nrented = [\n\
         { term = \"on-demand\", usd_per_h = 0.5 },\n{ term = \"reserved\", usd_per_h = 0.3 },\n\
         { term = \"spot\", usd_per_h = 0.1 }]\n",
    );
    let args = ["plan", "--rate", "10k", "--platform", "cloud.toml,throughput=5k", "--json"];
    let json = place.json(&args);
    let fleets = json["fleets"].as_array().unwrap();
    let names: Vec<&str> = fleets.iter().map(|one| one["machine"].as_str().unwrap()).collect();
    assert_eq!(names, ["cloud, rented reserved", "cloud, rented on-demand"]);
    near(&fleets[0]["usd_per_month"], 3.0 * 0.3 * 730.0, 1e-9);
    assert!(fleets[0]["all_machines_w"].is_null());
    assert!(json["notes"].to_string().contains("prices of platform cloud are of 2020-01-31"));
    let json = place.json(&[&args[..], &["--term", "spot"]].concat());
    near(&json["fleets"][0]["usd_per_month"], 3.0 * 0.1 * 730.0, 1e-9);
}

#[test]
fn refuses_plans_that_cannot_be() {
    let place = Place::new();
    let bench = ["bench", "null", "--records", "100", "--time", "100ms", "--quiet"];
    place.ok(&[&bench[..], &["--out", "closed.sqlite"]].concat());
    place.write("odd.toml", "name = \"odd\"\npriced = \"May 2026\"\n");
    place.write("free.toml", "name = \"free\"\nrented = [{ term = \"spot\", usd_per_h = 0 }]\n");
    place.write("spot.toml", "name = \"p\"\nrented = [{ term = \"spot\", usd_per_h = 1 }]\n");
    let s1 = "s1,throughput=300k,watts=52,price=900";
    let rate = ["plan", "--rate", "1M"];
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &["no machine to choose from", "kvmeter search"]),
        (&["closed.sqlite", "--slo", "p99<1ms"], &["no open loop", "kvmeter search"]),
        (&["nowhere.sqlite"], &["nowhere.sqlite"]),
        (&["--platform", "s1"], &["throughput is missing"]),
        (&["--platform", "s1,throughput=1k,watts=52"], &["price is not known", "usd_per_h=USD"]),
        (&["--platform", "s1,throughput=1k,price=5"], &["power is not known", "watts=W"]),
        (&["--platform", s1, "--platform", s1], &["two machines are called `s1`"]),
        (&["--platform", s1, "--data", "1TiB"], &["how much memory", "memory=256GiB", "--data"]),
        (&["--platform", s1, "--data", "0"], &["--data"]),
        (&["--platform", s1, "--peak-over-mean", "0.5"], &["--peak-over-mean: 0.5"]),
        (&["--platform", s1, "--years", "0"], &["--years: 0"]),
        (&["--platform", s1, "--replicas", "0"], &["--replicas"]),
        (&["--platform", s1, "--rack-power", "50"], &["52 W", "--rack-power"]),
        (&["--platform", s1, "--rack-rent", "5"], &["height of s1", "rack_units=N"]),
        (&["--platform", s1, "--slo", "p99<1"], &["no unit"]),
        (&["--platform", s1, "--term", "monthly"], &["on-demand, reserved, spot"]),
        (&["--platform", "odd.toml,throughput=1k"], &["`May 2026` is not a day"]),
        (&["--platform", "free.toml,throughput=1k"], &["`rented` is 0"]),
        (&["--platform", "spot.toml,throughput=1k"], &["its terms are spot", "--term"]),
        (&["--platform", s1, "--html", "."], &["is a directory"]),
    ];
    for (args, words) in cases {
        place.refused(&[&rate[..], args].concat(), words);
    }
    place.refused(&["plan", "--rate", "0", "--platform", s1], &["--rate: 0"]);
    place.refused(&["plan", "--platform", s1], &["--rate"]);
}

#[test]
fn prices_are_read_from_a_published_table() {
    let place = Place::new();
    place.write(
        "list.csv",
        "Instance Type,Region,Term,Price per hour,Memory,vCPU\nbig,eu,On Demand,$2,64 GiB,16\n\
         big,us,On Demand,1.5,64 GiB,16\nbig,eu,Reserved,1.25,64 GiB,16\n",
    );
    place.write("list.json", r#"[{"instance": "big", "usd_per_h": 3}]"#);
    place.write("bad.csv", "instance,usd_per_h\nbig,2\nsmall,free\n");
    let args = ["plan", "--rate", "10k", "--platform", "name=big,throughput=5k", "--prices"];
    let with = |more: &[&'static str]| [&args[..], more].concat();
    let json = place.json(&with(&["list.csv", "--region", "eu", "--data", "100GiB", "--json"]));
    let fleets = json["fleets"].as_array().unwrap();
    let names: Vec<&str> = fleets.iter().map(|one| one["machine"].as_str().unwrap()).collect();
    assert_eq!(names, ["big, rented reserved", "big, rented on-demand"]);
    near(&fleets[0]["usd_per_month"], 3.0 * 1.25 * 730.0, 1e-9);
    near(&fleets[0]["needed"]["memory"], 2.0, 0.0);
    assert_eq!(json["inputs"][0]["price_from"], "list.csv, line 2 (16 vCPUs)");
    let json = place.json(&with(&["list.json", "--json"]));
    near(&json["fleets"][0]["usd_per_month"], 3.0 * 3.0 * 730.0, 1e-9);
    place.refused(&with(&["list.csv"]), &["line 2 and line 3", "--region"]);
    place.refused(&with(&["bad.csv"]), &["bad.csv, line 3", "`usd_per_h` is `free`"]);
    place.refused(&with(&["none.csv"]), &["none.csv"]);
    let other =
        ["plan", "--rate", "1k", "--platform", "name=x,throughput=5k", "--prices", "list.csv"];
    place.refused(&other, &["no machine of that name", "name=big"]);
}

#[test]
fn several_kinds_together_may_be_cheaper() {
    let place = Place::new();
    let json = place.json(&[
        "plan",
        "--rate",
        "2.1M",
        "--spares",
        "0",
        "--platform",
        "name=large,throughput=1M,watts=150,price=5000",
        "--platform",
        "name=small,throughput=150k,watts=150,price=1000",
        "--json",
    ]);
    assert_eq!(json["fleets"][0]["machines"], 3, "large ones alone");
    let fleet = json["mixed"]["fleet"].to_string();
    assert_eq!(fleet, r#"[{"machine":"large","machines":2},{"machine":"small","machines":1}]"#);
    assert_eq!(json["mixed"]["optimality_gap"], 0.0);
    assert!(json["answer"].to_string().contains("Several kinds together cost"), "{json}");
}
