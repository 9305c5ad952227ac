//! `kvmeter micro`: what is measured is said whole, and what makes no sense is refused.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::Value;

use crate::tool::Place;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn stream_reports_results_and_machine() {
    let args = ["micro", "stream", "--size", "64KiB,128KiB", "-j", "1,2", "--time", "0s", "--json"];
    let json = Place::new().json(&args);
    let points = json["stream"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    for point in points {
        let kernels = point["kernels"].as_array().unwrap();
        let names: Vec<&str> = kernels.iter().map(|k| k["kernel"].as_str().unwrap()).collect();
        assert_eq!(names, ["copy", "scale", "add", "triad"]);
        assert!(kernels.iter().all(|kernel| kernel["best_gb_s"].as_f64().unwrap() > 0.0));
        assert_eq!(point["rounds"], 10);
    }
    assert!(json["machine"]["facts"].as_array().unwrap().len() > 10);
    let warnings = json["warnings"].to_string();
    assert!(warnings.contains("the bandwidth of caches"), "{warnings}");
    assert!(keys(&json).contains(&"neighbours") && keys(&json).contains(&"steal"));
    let table = Place::new().ok(&["micro", "stream", "--size", "64KiB", "--time", "0s"]);
    assert!(table.contains("triad") && table.contains("results verified"), "{table}");
}

#[test]
fn latency_finds_levels_and_costs_are_reported() {
    let place = Place::new();
    let sizes = ["micro", "latency", "--size", "4KiB..32KiB", "--time", "1ms"];
    let json = place.json(&[sizes.as_slice(), &["--json"]].concat());
    assert_eq!(json["latency"]["points"].as_array().unwrap().len(), 13);
    assert!(json["levels"].is_array());
    assert!(place.ok(&sizes).contains("Levels found in the curve"));
    for (name, first) in [("clock", None), ("syscall", Some("null")), ("switch", None)] {
        let json = place.json(&["micro", name, "--time", "1ms", "--json"]);
        assert_eq!(json["micro"], name);
        let rows = json[name].as_array().unwrap();
        assert!(rows.len() >= 2, "{json}");
        if let Some(first) = first {
            assert_eq!(rows[0]["name"], first);
        }
        assert!(place.ok(&["micro", name, "--time", "1ms"]).contains("ns"));
    }
}

#[test]
fn a_hog_reports_its_traffic_and_serves_its_parent() {
    let place = Place::new();
    let hog = ["micro", "hog", "--size", "8MiB", "--rate", "1MB/s"];
    let result = place.run(&[hog.as_slice(), &["--time", "300ms", "--json"]].concat());
    let json = result.json();
    let held = json["hog"]["held"].as_bool().unwrap();
    // A machine that is busy elsewhere may not let it.
    assert_eq!(result.code, i32::from(!held), "{}", result.err);
    assert_eq!(json["hog"]["target_gb_s"], 0.001);
    assert!(json["hog"]["bytes"].as_u64().unwrap() > 0);

    let job = r#"{"bench": {"Hog": {"size": "8MiB", "rate": "1MB/s"}}}"#;
    let mut served = place
        .command(&["micro", "job", job])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = served.stdin.take().unwrap();
    let mut lines = BufReader::new(served.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "ready");
    input.write_all(b"look\n").unwrap();
    let look = lines.next().unwrap();
    assert_eq!(look.split(' ').filter(|word| word.parse::<u64>().is_ok()).count(), 3, "{look}");
    drop(input);
    assert!(served.wait().unwrap().success());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    for (args, words) in [
        (&["stream", "--size", "1TB"][..], &["--size", "available"][..]),
        (&["stream", "--threads", "0"], &["--threads"]),
        (&["stream", "--size", "8"], &["--size", "no line"]),
        (&["stream", "--rounds", "0", "--size", "64KiB"], &["--rounds"]),
        (&["stream", "--size", "8KiB..4KiB"], &["--size", "above the first"]),
        (&["stream", "--cpus", "9999"], &["--cpus", "may use"]),
        (&["stream", "--place", "node:900", "--size", "64KiB"], &["--place", "first-touch"]),
        (&["stream", "--stores", "fast"], &["plain, streaming"]),
        (&["hog", "--rate", "10"], &["bandwidth", "10GB/s"]),
        (&["hog", "--rate", "0GB/s", "--size", "1MiB"], &["--rate"]),
        (&["hog", "--size", "1KiB"], &["--size"]),
        (&["latency", "--size", "100"], &["--size"]),
        (&["latency", "--stride", "7"], &["--stride"]),
    ] {
        place.refused(&[&["micro"], args].concat(), words);
    }
    for (job, words) in [("{", "EOF"), (r#"{"bench": {"Bog": {}}}"#, "`Bog`")] {
        place.refused(&["micro", "job", job], &[words]);
    }
}

#[test]
fn a_study_runs_with_a_hog_as_co_runner() {
    let place = Place::new();
    place.write(
        "starved.toml",
        "name = \"starved\"\nsequence = [\"ycsb-c\"]\n[store.null]\n[data]\nrecords = 1000\n\
         [measure]\nthreads = 1\ntime = \"300ms\"\n\
         [beside.hog]\nrate = \"1MB/s\"\ncpus = \"0\"\nsize = \"8MiB\"\n\
         [factors.bandwidth]\nset = \"beside.hog.rate\"\nlevels = [\"none\", \"1MB/s\"]\n",
    );
    let out = place.ok(&["run", "starved.toml", "--out", "r.sqlite", "--json"]);
    let runs: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(runs.len(), 2);
    let taken: Vec<bool> =
        runs.iter().map(|run| run.to_string().contains("beside.hog.bandwidth")).collect();
    let asked: Vec<bool> =
        runs.iter().map(|run| run["settings"]["factor.bandwidth"] == "1MB/s").collect();
    assert_eq!(taken, asked, "{runs:#?}");
    assert!(taken.contains(&true) && taken.contains(&false));
}
