//! Load that moves: in a bench, in a study's levels, in a dry run and in a report, and what is refused.

use serde_json::Value;

use crate::tool::Place;

fn bench<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["bench", "null", "--records", "2k"];
    args.extend(more);
    args
}

fn offered(run: &Value) -> Vec<f64> {
    let samples = run["samples"].as_array().unwrap().iter();
    let series = samples.clone().find(|series| series["signal"] == "client.offered_rate");
    let values = series.map(|series| series["values"].as_array().unwrap().clone());
    values.unwrap_or_default().iter().map(|value| value.as_f64().unwrap()).collect()
}

#[test]
fn a_profile_is_offered_recorded_and_reported() {
    let place = Place::new();
    let profile = "steps:2k@1s,6k@1s,1k@1s";
    let run = bench(&["--rate-profile", profile, "--out", "r.sqlite", "--json", "--quiet"]);
    // A busy machine may make the client late, which is not what is looked at here.
    let json = place.run(&run).json();
    assert_eq!((&json["operations"], &json["target_rate_ops_s"]), (&9000.into(), &3000.0.into()));
    assert_eq!(json["settings"]["rate_profile"], profile);
    let offered = offered(&json);
    assert!((2..=4).contains(&offered.len()), "{offered:?}");
    for (is, expected) in offered.iter().zip([2000.0, 6000.0]) {
        assert!((is / expected - 1.0_f64).abs() < 0.05, "{offered:?}");
    }
    place.ok(&["report", "r.sqlite", "--html", "r.html"]);
    let page = std::fs::read_to_string(place.file("r.html")).unwrap();
    assert!(page.contains("offered (by the profile)"));
}

#[test]
fn a_dry_run_says_length_requests_and_peak() {
    let place = Place::new();
    let profile = ["--rate", "10k", "--rate-profile", "steps:0.5x@30s,2x@30s", "--dry-run"];
    let words = place.ok(&bench(&profile));
    let line = words.lines().find(|line| line.contains("rate profile")).unwrap();
    for part in ["takes 1 min 00 s", "750,000 requests", "20.00 kops/s"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let mut json = bench(&profile);
    json.push("--json");
    let moving = &place.json(&json)[0]["rate_profile"];
    assert_eq!((&moving["requests"], &moving["peak_ops_s"]), (&750e3.into(), &20e3.into()));
}

#[test]
fn a_profile_is_a_level_of_a_study() {
    let place = Place::new();
    place.write("day.csv", "time,rate\n0,0.5x\n1,1.5x\n2,0.5x\n");
    place.write(
        "s.toml",
        "name = \"s\"\nsequence = [\"ycsb-c\"]\n[store.null]\n[data]\nrecords = 1000\n[measure]\n\
         threads = 1\nrate = \"2k\"\ntime = \"2s\"\n[factors.course]\nset = \"measure.rate_profile\"\n\
         levels = [\"constant\", \"day.csv\"]\n",
    );
    let output = place.run(&["run", "s.toml", "--out", "s.sqlite", "--json", "--quiet"]);
    let runs: Vec<Value> =
        output.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(runs.len(), 2, "{}", output.err);
    let moving: Vec<bool> = runs.iter().map(|run| !offered(run).is_empty()).collect();
    assert_eq!(moving.iter().filter(|moves| **moves).count(), 1, "{moving:?}");
    for run in &runs {
        assert_eq!(run["operations"], 4000);
        let profile = run["settings"]["rate_profile"].as_str();
        assert_eq!(
            profile.is_some_and(|name| name.starts_with("day.csv#")),
            !offered(run).is_empty()
        );
    }
}

#[test]
fn mistakes_name_the_place_and_the_way_out() {
    let place = Place::new();
    for (name, text) in
        [("back.csv", "0,1k\n20,1k\n10,1k\n"), ("below.csv", "0,1k\n5,-1\n"), ("empty.csv", "")]
    {
        place.write(name, text);
    }
    let cases: &[(&[&str], &[&str])] = &[
        (&["--rate-profile", "steps:0.5x@1s"], &["--rate-profile", "give `rate` too"]),
        (&["--rate-profile", "steps:5k@1s", "--rate", "1k"], &["--rate-profile", "`0.5x`"]),
        (&["--rate-profile", "steps:5k@1s", "--think", "1ms"], &["--think", "closed loop"]),
        (&["--rate-profile", "steps:5k@1s", "--ops", "9"], &["--ops", "give a time"]),
        (&["--rate-profile", "steps:-1@1s"], &["--rate-profile", "below zero"]),
        (&["--rate-profile", "sin:mean=1"], &["did you mean `sine`?"]),
        (&["--rate-profile", "none.csv"], &["none.csv", "No such file"]),
        (&["--rate-profile", "back.csv"], &["`back.csv`, line 3", "goes back", "sort"]),
        (&["--rate-profile", "below.csv"], &["`below.csv`, line 2", "below zero"]),
        (&["--rate-profile", "empty.csv"], &["`empty.csv` is empty", "time,rate"]),
        (&["--rate-profile", "steps:2G@1s"], &["at most 1G"]),
    ];
    for (args, words) in cases {
        place.refused(&bench(args), words);
    }
}
