//! The highest rate that holds an objective, and curves over rates.

use std::time::Duration;

use serde_json::Value;

use crate::servers::{Memcached, slow};
use crate::tool::{Place, command_output, until};

fn search<'a>(store: &'a str, slo: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["search", store, "--slo", slo, "--records", "500", "--json"];
    args.extend(more);
    args
}

#[test]
fn the_knee_of_a_server_whose_service_time_is_known_is_found() {
    const SERVICE: Duration = Duration::from_millis(2);
    let knee = 1.0 / SERVICE.as_secs_f64();
    let store = format!("memcached://{}?protocol=text", slow(SERVICE));
    let place = Place::new();
    let more = [
        "--time",
        "1s",
        "--warm-up",
        "100ms",
        "--resolution",
        "10%",
        "--from",
        "100",
        "--to",
        "5k",
    ];
    // Another program may take the machine while a trial is under way: a second and a third try.
    let mut seen = Vec::new();
    let near = (0..3).any(|_| {
        let json = place.run(&search(&store, "p50<60ms", &more)).json();
        let rate = json["rate_ops_s"].as_f64().unwrap_or(0.0);
        let above = json["not_held_ops_s"].as_f64().unwrap_or(f64::INFINITY);
        let servers = ["objective", "achieved_rate"].map(Value::from).contains(&json["ended_by"]);
        seen.push(json["conclusion"].clone());
        // Within the resolution on either side, and what one second can tell.
        servers && (0.88 * knee..=1.04 * knee).contains(&rate) && above / rate <= 1.1001
    });
    assert!(near, "the knee is at {knee}: {seen:#?}");
}

#[test]
fn a_search_on_memcached_ends_with_a_reason_and_stores_its_trials() {
    let server = Memcached::start();
    let place = Place::new();
    let url = server.url();
    let more =
        ["--time", "200ms", "--warm-up", "0s", "--resolution", "25%", "--trials", "12", "--out"];
    let mut args = search(&url, "p99<30ms", &more);
    args.push("found.sqlite");
    let result = place.run(&args);
    let json = result.json();
    let held = json["held"].as_bool().unwrap();
    let ended = json["ended_by"].as_str().unwrap();
    let not_the_servers = ["client", "disturbed"].contains(&ended);
    assert_eq!(result.code, i32::from(!held || not_the_servers), "{json}");
    assert_eq!(held, json["rate_ops_s"].is_number());
    assert_eq!(json["slo"], "p99<30ms");
    assert!(json["calibration_ops_s"].as_f64().unwrap() > 0.0);
    let trials = json["trials"].as_array().unwrap();
    assert!(!trials.is_empty() && trials.len() <= 12);
    let kept = place.run(&["report", "found.sqlite", "--json"]).json();
    let kept = kept.as_array().unwrap();
    assert_eq!(kept.len(), trials.len() + 1, "the closed loop before them is kept too");
    let role = |run: &Value| run["settings"]["search"].as_str().unwrap().to_owned();
    assert_eq!(role(&kept[0]), "calibration");
    for (trial, run) in trials.iter().zip(&kept[1..]) {
        assert_eq!((role(run).as_str(), &run["run"]), ("trial", &trial["run"]));
        assert_eq!(run["settings"]["slo"], "p99<30ms");
        assert_eq!(run["target_rate_ops_s"], trial["rate_ops_s"]);
        let condition = &trial["conditions"][0];
        assert_eq!(
            (condition["condition"].as_str(), condition["limit_us"].as_f64()),
            (Some("p99<30ms"), Some(30e3))
        );
        assert!(condition["samples"].as_u64().unwrap() > 0, "{trial}");
    }
}

#[test]
fn searches_end_at_the_upper_bound_or_without_a_rate() {
    let place = Place::new();
    let more = ["--to", "2k", "--time", "400ms", "--warm-up", "0s"];
    let json = place.json(&search("null", "p50<10s", &more));
    assert_eq!((json["rate_ops_s"].as_f64(), json["held"].as_bool()), (Some(2000.0), Some(true)));
    assert_eq!(json["ended_by"], "upper_bound");
    let more = ["--from", "1k", "--to", "2k", "--time", "200ms", "--warm-up", "0s"];
    let result = place.run(&search("null", "p50<1ns", &more));
    assert_eq!(result.code, 1, "{}", result.err);
    let json = result.json();
    assert_eq!((&json["rate_ops_s"], &json["held"]), (&Value::Null, &Value::Bool(false)));
    let result = place.run(&[
        "search", "null", "--slo", "p50<1ns", "--from", "1k", "--to", "2k", "--time", "200ms",
    ]);
    // The second on a busy machine; which of them when is tested in `analyse`.
    let conclusions = ["no rate held", "no rate could be judged"];
    assert!(conclusions.iter().any(|one| result.out.contains(one)), "{result:#?}");
    assert_eq!(result.code, 1, "{result:#?}");
    assert!(result.out.contains("p50<1ns") && result.out.contains("target"), "{result:#?}");
    assert!(
        result.err.contains("a closed loop reaches") && result.err.contains("ops/s  answered"),
        "{result:#?}"
    );
}

#[test]
fn a_time_limit_ends_a_search() {
    let place = Place::new();
    let more = ["--time", "400ms", "--warm-up", "0s", "--max-time", "1ms"];
    let result = place.run(&search("null", "p50<10s", &more));
    let json = result.json();
    assert_eq!((result.code, json["ended_by"].as_str()), (1, Some("time")));
    assert_eq!(json["trials"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_stopped_search_keeps_its_trials_and_reports_progress() {
    let place = Place::new();
    let mut args = search("null", "p50<10s", &["--time", "1s", "--warm-up", "0s"]);
    args.extend(["--out", "found.sqlite"]);
    let child = place.start(&args);
    let trials = || {
        let result = place.run(&["report", "found.sqlite", "--json"]);
        serde_json::from_str::<Value>(&result.out)
            .ok()
            .and_then(|runs| Some(runs.as_array()?.len()))
    };
    until("two runs", || trials().is_some_and(|runs| runs >= 2));
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let result = command_output(child.wait_with_output().unwrap());
    assert_eq!(result.code, 1, "{result:#?}");
    let json = result.json();
    assert_eq!(json["ended_by"], "stopped");
    assert!(json["conclusion"].as_str().unwrap().contains("stopped after"), "{json}");
    assert_eq!(trials(), Some(json["trials"].as_array().unwrap().len() + 1));
}

#[test]
fn refuses_invalid_searches() {
    let place = Place::new();
    for (args, words) in [
        (&["null"][..], &["--slo", "ycsb-c"][..]),
        (&["null", "--slo", "p99<1"], &["no unit"]),
        (&["null", "--slo", "update.p99<1ms"], &["has no `update`"]),
        (&["null", "--slo", "p99<1ms", "--from", "2k", "--to", "1k"], &["swap"]),
        (&["null", "--slo", "p99<1ms", "--resolution", "0"], &["resolution"]),
        (&["null", "--slo", "p99<1ms", "--resolution", "x"], &["2%"]),
        (&["null", "--slo", "p99<1ms", "--trials", "1"], &["trials"]),
        (&["null", "--slo", "p99<1ms", "--workload", "ycsb-load"], &["load"]),
        (&["null", "--slo", "p99<1ms", "--connections", "3"], &["connections"]),
        (&["memcached://127.0.0.1:1", "--slo", "p99<1ms", "--time", "0s"], &["--time"]),
    ] {
        let args: Vec<&str> = ["search"].into_iter().chain(args.iter().copied()).collect();
        place.refused(&args, words);
    }
    // The workload's own objective needs no flag: it gets as far as connecting.
    let result =
        place.run(&["search", "memcached://127.0.0.1:1", "-w", "data-caching", "-n", "100"]);
    assert!(result.code != 0 && !result.err.contains("--slo"), "{result:#?}");
}

#[test]
fn rates_that_are_swept_are_a_curve_on_data_that_is_loaded_once() {
    let server = Memcached::start();
    let place = Place::new();
    let url = server.url();
    let args = [
        "bench",
        &url,
        "-w",
        "etc",
        "-n",
        "500",
        "--rate",
        "500..1500/3",
        "--time",
        "300ms",
        "--slo",
        "p99<10s",
        "--out",
        "curve.sqlite",
    ];
    let result = place.run(&args);
    assert_eq!(result.err.matches("loading 500 records").count(), 1, "{result:#?}");
    assert_eq!(result.err.matches("reusing the loaded data").count(), 0, "{result:#?}");
    assert!(result.out.contains("Latency in µs against rate"), "{result:#?}");
    assert!(result.out.contains("p99<10s") && result.out.contains("holds"), "{result:#?}");
    let page = place.ok(&["report", "curve.sqlite", "--html", "curve.html"]);
    drop(page);
    let page = std::fs::read_to_string(place.file("curve.html")).unwrap();
    assert!(page.contains("rates-etc") && page.contains("p99&lt;10s"), "the figure has its limit");
    let mut again = args.to_vec();
    again.extend(["--json", "--quiet"]);
    let json = place.run(&again).json();
    let rates: Vec<f64> = json
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["target_rate_ops_s"].as_f64().unwrap())
        .collect();
    assert_eq!(rates, [500.0, 1000.0, 1500.0]);
    place.refused(&["bench", "null", "--slo", "p99<1ms"], &["--rate"]);
}

#[test]
fn rates_beyond_the_server_are_noted_once_and_measured() {
    let place = Place::new();
    let store = format!("memcached://{}?protocol=text", slow(Duration::from_millis(10)));
    let args = ["bench", &store, "-n", "100", "--rate", "400..1200/3", "--time", "500ms", "--json"];
    let result = place.run(&args);
    assert_eq!(result.code, 1, "{result:#?}");
    assert_eq!(result.json().as_array().unwrap().len(), 3);
    assert_eq!(result.err.matches("measured anyway").count(), 1, "{}", result.err);
}

#[test]
fn a_workload_that_adds_records_is_loaded_anew_for_each_rate() {
    let server = Memcached::start();
    let place = Place::new();
    let url = server.url();
    let args =
        ["bench", &url, "-w", "ycsb-d", "-n", "500", "--rate", "500..1000/2", "--time", "300ms"];
    let result = place.run(&args);
    assert_eq!(result.err.matches("loading 500 records").count(), 2, "{result:#?}");
}

#[test]
fn the_requests_of_a_trace_are_sent_at_the_rates_of_a_search() {
    let server = Memcached::start();
    let place = Place::new();
    let lines = (0..40_000).map(|n| format!("{},key:{:04},8,100,1,get,0\n", n / 20_000, n % 500));
    place.write("requests.csv", &lines.collect::<String>());
    let url = server.url();
    let args = ["search", &url, "--slo", "p50<10s", "--trace", "requests.csv", "--refill"];
    let short = ["--time", "200ms", "--warm-up", "0s", "--json", "--quiet"];
    let found = ["--to", "4k", "--out", "found.sqlite"];
    let json = place.run(&[&args[..], &short, &found].concat()).json();
    assert_eq!((&json["held"], &json["ended_by"]), (&true.into(), &"upper_bound".into()), "{json}");
    let runs = place.run(&["report", "found.sqlite", "--json"]).json();
    let runs = runs.as_array().unwrap();
    assert_eq!(
        runs[0]["settings"]["trace.speed"], "max",
        "the closed loop sends the same requests"
    );
    for run in &runs[1..] {
        assert_eq!(run["settings"]["trace"], "requests.csv");
        assert_eq!(run["settings"]["trace.speed"], "rate");
        assert_eq!(run["settings"]["search"], "trial");
        assert!(run["stream"]["trace"]["requests"].as_u64().unwrap() > 10, "{run}");
    }
    // A trial of 20 s at 4k requests a second is longer than the trace.
    let long = ["--from", "4k", "--to", "4k", "--time", "20s", "--quiet"];
    let says = ["the trace ended after", "--trace-copies", "--to"];
    place.refused(&[&args[..], &long].concat(), &says);
    let more = |more: &[&'static str]| [&args[..], more].concat();
    place.refused(&more(&["--rate-profile", "ramp:1k..2k@10s"]), &["--rate-profile", "bench"]);
    place.refused(&more(&["--speed", "2"]), &["--speed", "leave it out"]);
    place.refused(&more(&["--mix", "read=1"]), &["--mix"]);
    let of_writes = ["search", &url, "--slo", "update.p50<1s", "--trace", "requests.csv"];
    place.refused(&of_writes, &["the trace have no `update`"]);
    let of_stdin = ["search", &url, "--slo", "p50<1s", "--trace", "-"];
    place.refused(&of_stdin, &["--trace -", "name a file"]);
    let without = ["search", &url, "--trace", "requests.csv"];
    place.refused(&without, &["--slo is missing"]);
}
