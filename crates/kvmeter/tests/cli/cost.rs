//! What it costs: publications, numbers, results, and questions that cannot be answered.

use serde_json::Value;

use crate::tool::Place;

fn near(value: &Value, wanted: f64, within: f64) {
    let json = value.as_f64().unwrap_or_else(|| panic!("{value} for {wanted}"));
    assert!((json - wanted).abs() <= within, "{json} for {wanted}");
}

fn find<'v>(all: &'v Value, key: &str, wanted: &str) -> &'v Value {
    let json = all.as_array().unwrap().iter().find(|one| one[key] == wanted);
    json.unwrap_or_else(|| panic!("no {key} {wanted} in {all}"))
}

#[test]
fn the_table_of_the_thesis_and_its_break_even_prices() {
    let place = Place::new();
    let json = place.json(&["cost", "--published", "arm-vs-x86", "--json"]);
    assert_eq!(json["origin"], "modelled");
    let mut cells = 0;
    for workload in json["workloads"].as_array().unwrap() {
        for server in workload["servers"].as_array().unwrap() {
            let printed = &server["published"];
            for cost in printed["costs"].as_array().unwrap() {
                let at = &cost["usd_per_kwh"];
                let own = server["costs"].as_array().unwrap();
                let own = own.iter().find(|own| own["usd_per_kwh"] == *at).unwrap();
                let printed = cost["energy_usd_per_h"].as_f64().unwrap();
                near(&own["energy_usd_per_h"], printed, 0.0065);
                cells += 1;
            }
            let normalised = printed["normalised_energy_cost"].as_f64().unwrap();
            near(&server["normalised_energy_cost"], normalised, 0.0101);
        }
    }
    assert_eq!(cells, 40);
    let average = find(&json["workloads"], "workload", "Average");
    let servers: Vec<u64> = average["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| server["servers"].as_u64().unwrap())
        .collect();
    assert_eq!(servers, [297, 198, 179, 84]);
    let pairs = average["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 6);
    let pair = pairs.iter().find(|pair| pair["own"] == "s1" && pair["other"] == "s4").unwrap();
    let first = &pair["even"][0];
    near(&first["lifetime_years"], 3.0, 0.0);
    near(&first["usd_per_kwh"], 0.07, 0.0);
    near(&first["other_price_usd"], 3000.0, 0.0);
    near(&first["own_price_usd"], 858.4, 0.5);

    let text = place.ok(&["cost", "--published", "arm-vs-x86", "--html", "cost.html"]);
    assert!(text.contains("858") && text.contains("Average") && text.contains("printed"), "{text}");
    let page = std::fs::read_to_string(place.file("cost.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("s1 at 858 $ = s4 at 3,000 $"));
}

#[test]
fn the_savings_of_the_poster() {
    let place = Place::new();
    let json = place.json(&["cost", "--published", "mbwu", "--json"]);
    let first = &json["compared"][0];
    near(&first["saving"]["usd_per_mbwu"], 0.649, 0.0005);
    near(&first["saving"]["a_per_mbwu"], 0.3965, 0.0001);
    near(&first["printed_saving"]["usd_per_mbwu"], 0.65, 0.0);
    near(&first["printed_saving"]["a_per_mbwu"], 0.396, 0.0);
    near(&first["equivalent_platforms"], 12.0, 0.0);
    assert!(first["saving"]["w_per_mbwu"].is_null(), "no voltage, no watts");
    let volts = place.json(&["cost", "--published", "mbwu", "--volts", "120", "--json"]);
    near(&volts["compared"][0]["host"]["w_per_mbwu"], 34.6, 1e-9);
    near(&volts["compared"][0]["own"]["kwh_per_mbwu_year"], 182.9, 0.05);
    let text = place.ok(&["cost", "--published", "mbwu"]);
    assert!(text.contains("64.9 %") && text.contains("39.6 %"), "{text}");
}

#[test]
fn costs_of_given_numbers() {
    let place = Place::new();
    place.write(
        "big.toml",
        "name = \"big\"\nprice_usd = 3000\nidle_w = 90\nfull_load_w = 200\nrack_units = 2\n\
         lifetime_years = 4\nelectricity_usd_per_kwh = 0.2\n",
    );
    let args = [
        "cost",
        "--platform",
        "name=small,throughput=250k,watts=50,idle=20,price=800,rack_units=1",
        "--platform",
        "big.toml,throughput=1M",
        "--target",
        "10M",
        "--pue",
        "1.5",
        "--carbon",
        "400",
        "--rack-rent",
        "10",
        "--utilisation",
        "50%",
        "--json",
    ];
    let json = place.json(&args);
    let group = &json["workloads"][0];
    let small = find(&group["servers"], "server", "small");
    let big = find(&group["servers"], "server", "big");
    assert_eq!((&small["servers"], &big["servers"]), (&40.into(), &10.into()));
    near(&small["power_average_w"], 35.0, 1e-9);
    near(&big["power_average_w"], 145.0, 1e-9);
    assert_eq!(big["racks"], 1);
    let cost = &small["costs"][0];
    near(&cost["energy_usd_per_h"], 40.0 * 0.035 * 1.5 * 0.2, 1e-9);
    near(&cost["equipment_usd_per_h"], 40.0 * 800.0 / (4.0 * 8760.0), 1e-9);
    near(&cost["rack_usd_per_h"], 40.0 * 120.0 / 8760.0, 1e-9);
    near(&small["carbon_kg_per_h"], 40.0 * 0.035 * 1.5 * 0.4, 1e-9);
    // The break-even price put back is even.
    let even = group["pairs"][0]["even"][0]["own_price_usd"].as_f64().unwrap();
    let price = format!("name=small,throughput=250k,watts=50,idle=20,price={even},rack_units=1");
    let mut back = args;
    back[2] = &price;
    let back = place.json(&back);
    near(&back["workloads"][0]["pairs"][0]["even"][0]["cost_ratio"], 1.0, 1e-9);
    let swings = group["pairs"][0]["hangs_on"].as_array().unwrap();
    assert!(swings.iter().any(|swing| swing["assumption"] == "utilisation"), "{swings:?}");

    let units = place.json(&[
        "cost",
        "--platform",
        "mbwu-host,mbwus=6,watts=200,m2=0.6",
        "--platform",
        "mbwu-embedded,mbwus=0.5,watts=10,m2=0.01",
        "--json",
    ]);
    near(&units["compared"][0]["saving"]["m2_per_mbwu"], 0.8, 1e-9);
    near(&units["compared"][0]["saving"]["w_per_mbwu"], 0.4, 1e-9);
}

#[test]
fn runs_are_costed_with_the_power_that_was_modelled_or_given() {
    let place = Place::new();
    let bench = ["--records", "1k", "--time", "200ms", "--out", "r.sqlite", "--quiet"];
    let with = |more: &[&'static str]| [&["bench", "null"], &bench[..], more].concat();
    place.ok(&with(&["--repeat", "3", "--probes", "model=50:150", "--idle-power", "0s"]));
    let json = place.json(&["cost", "r.sqlite", "--platform", "price=1000", "--json"]);
    let servers = &json["workloads"][0]["servers"];
    assert_eq!(servers.as_array().unwrap().len(), 1, "three repeats are one server: {servers}");
    let server = &servers[0];
    assert_eq!(server["power_origin"], "modelled");
    let watts = server["power_under_load_w"].as_f64().unwrap();
    assert!((50.0..=150.0).contains(&watts), "{watts}");
    assert_eq!(server["throughput_from"], "median of 3 runs");
    assert!(server["costs"][0]["total_usd_per_h"].as_f64().unwrap() > 0.0);
    let json = place.json(&["cost", "r.sqlite", "--platform", "price=1,watts=70", "--json"]);
    near(&json["workloads"][0]["servers"][0]["power_under_load_w"], 70.0, 0.0);
    place.refused(&["cost", "r.sqlite"], &["price is not known", "--energy-only"]);

    // U of its own, and the average of all rows, which is that of one.
    let measured =
        ["cost", "r.sqlite", "--platform", "watts=100,idle=40", "--energy-only", "--json"];
    let own = ["--utilisation", "measured", "--average"];
    let json = place.json(&[&measured[..], &own[..]].concat());
    let row = |workload: &str| find(&json["workloads"], "workload", workload)["servers"][0].clone();
    let (one, all) = (row("ycsb-c"), row("average"));
    let busy = one["utilisation"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&busy), "{busy}");
    near(&one["power_average_w"], busy * 100.0 + (1.0 - busy) * 40.0, 1e-6);
    near(&all["power_average_w"], one["power_average_w"].as_f64().unwrap(), 1e-6);
    assert_eq!(all["throughput_ops_s"], one["throughput_ops_s"]);
    assert_eq!(all["throughput_from"], "mean of the machine's other rows");
    let given = ["cost", "--platform", "s1,throughput=1k,watts=50,price=1"];
    place.refused(
        &[&given[..], &own[..1], &["measured"]].concat(),
        &["how busy the CPUs of s1 were", "give a share"],
    );
    place.refused(
        &["cost", "r.sqlite", "--platform", "s1,throughput=1k,watts=50", "--platform", "price=1"],
        &["s1: its price is not known", "the thesis gives none"],
    );
}

#[test]
fn candidates_of_other_work_are_noted() {
    let place = Place::new();
    let bench = ["--records", "1k", "--time", "200ms", "--out", "r.sqlite", "--quiet"];
    for mix in ["read=1", "read=1,update=1"] {
        place.ok(&[&["bench", "null", "--mix", mix], &bench[..]].concat());
    }
    let shown = place.ok(&["cost", "r.sqlite", "--platform", "price=1000,watts=50"]);
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("did other work than") && flat.contains("share of update"), "{shown}");
}

#[test]
fn refuses_unanswerable_questions() {
    let place = Place::new();
    place.write("odd.toml", "name = \"odd\"\nprise_usd = 5\n");
    place.write("bad.toml", "name = \"bad\"\nprice_usd = -5\n");
    let s1 = "s1,throughput=300k,watts=50,price=900";
    let cases: &[(&[&str], &[&str])] = &[
        (&["cost"], &["nothing to cost", "--platform", "--published"]),
        (&["cost", "nowhere.sqlite"], &["nowhere.sqlite"]),
        (&["cost", "--published", "arm-vs-x68"], &["did you mean `arm-vs-x86`?"]),
        (
            &["cost", "--platform", "mbwu-hots,throughput=1k,watts=5"],
            &["did you mean `mbwu-host`?"],
        ),
        (
            &["cost", "--platform", "s1,troughput=1k"],
            &["`troughput`", "did you mean `throughput`?"],
        ),
        (&["cost", "--platform", "s1"], &["throughput is missing"]),
        (&["cost", "--platform", "s1,throughput=1k"], &["power is not known", "P_a", "watts=W"]),
        (
            &["cost", "--platform", "s1,throughput=1k,watts=50"],
            &["price is not known", "the thesis gives none", "price=USD", "--energy-only"],
        ),
        (&["cost", "--platform", "s1,throughput=1k,watts=30,price=1"], &["idle power of 41 W"]),
        (&["cost", "--platform", "s1,throughput=0,watts=50"], &["throughput: 0"]),
        (&["cost", "--platform", "odd.toml,throughput=1k"], &["did you mean `price_usd`?"]),
        (&["cost", "--platform", "bad.toml,throughput=1k"], &["`price_usd` is -5"]),
        (&["cost", "--platform", s1, "--years", "0"], &["--years: 0"]),
        (&["cost", "--platform", s1, "--years", "three"], &["three"]),
        (&["cost", "--platform", s1, "--price-per-kwh", "-0.1"], &["--price-per-kwh: -0.1"]),
        (&["cost", "--platform", s1, "--pue", "0.5"], &["--pue: 0.5"]),
        (&["cost", "--platform", s1, "--utilisation", "150%"], &["--utilisation: 1.5"]),
        (&["cost", "--platform", s1, "--target", "0"], &["--target: 0"]),
        (&["cost", "--platform", s1, "--target", "1e30"], &["servers would be needed"]),
        (&["cost", "--platform", s1, "--carbon", "-1"], &["--carbon: -1"]),
        (&["cost", "--platform", s1, "--rack-rent", "5"], &["height of s1", "rack_units=N"]),
        (&["cost", "--platform", s1, "--platform", s1], &["two machines are called `s1`"]),
        (
            &["cost", "--platform", "name=x,throughput=1k,watts=5,price=1", "--utilisation", "50%"],
            &["idle power of x is not known", "idle=W"],
        ),
        (&["cost", "--platform", "s1,mbwus=2"], &["price is not known"]),
        (&["cost", "--platform", "mbwu-host,mbwus=2"], &["name another one"]),
        (&["cost", "--published", "mbwu", "--html", "x.html"], &["--html"]),
        (&["cost", "--platform", s1, "--html", "."], &["is a directory"]),
    ];
    for (args, words) in cases {
        place.refused(args, words);
    }
}

/// Power by a model, which every machine has.
const PRICED: &str = r#"
name = "priced"
sequence = ["ycsb-c"]
[store.null]
[data]
records = 1000
[measure]
threads = 1
warm_up = "50ms"
time = "200ms"
[probes]
use = ["model"]
idle = "0s"
model = { idle_w = 110, full_w = 220 }
"#;

#[test]
fn a_study_on_a_named_platform_ends_with_what_it_costs() {
    let place = Place::new();
    place.write("study.toml", PRICED);
    place.write("server.toml", "name = \"a server\"\nprice_usd = 2400\n");
    let run = |platform: &'static str, out: &'static str| {
        place.run(&["run", "study.toml", "--out", out, "--platform", platform])
    };
    let done = run("server.toml", "own.sqlite");
    assert!(done.out.contains("Total cost, modelled"), "{}", done.out);
    assert!(done.out.contains("null on a server"), "{}", done.out);
    // A platform without a price has the cost of its energy.
    let done = run("s4", "s4.sqlite");
    assert!(done.out.contains("Energy cost of 100 Mops/s"), "{}", done.out);
    assert!(done.out.contains("null on s4") && !done.out.contains("Total cost"), "{}", done.out);
    // The file knows its platform.
    place.ok(&["cost", "s4.sqlite", "--energy-only"]);
    place.refused(
        &["run", "study.toml", "--platform", "s44", "--dry-run"],
        &["--platform s44", "did you mean `s4`?"],
    );
    // A pipe is not waited for, and a device is not read to its end.
    let pipe = place.file("pipe.toml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for platform in [pipe.to_str().unwrap(), "/dev/zero"] {
        let args = ["run", "study.toml", "--platform", platform, "--dry-run"];
        place.refused(&args, &["cannot be read", "not a regular file"]);
    }
    // Without power the study has no price.
    place.write("bare.toml", &PRICED.replace("\"model\"", "").replace("model = {", "# {"));
    let done = place.run(&["run", "bare.toml", "--out", "b.sqlite", "--platform", "s4"]);
    assert!(done.err.contains("not priced: "), "{}", done.err);
}
