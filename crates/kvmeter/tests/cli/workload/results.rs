//! `kvmeter workload describe` of a results file.

use crate::tool::Place;

fn measured(place: &Place, more: &[&str]) {
    let bench = ["bench", "null", "--records", "2k", "--out", "runs.sqlite", "--quiet"];
    place.ok(&[&bench[..], more].concat());
}

#[test]
fn the_stream_of_a_run_is_generated_again() {
    let place = Place::new();
    let mix = ["--workload", "ycsb-a", "--popularity", "zipfian:0.8", "--seed", "7"];
    measured(&place, &[&mix[..], &["--ops", "20k", "--threads", "1"]].concat());
    let run = place.json(&["report", "runs.sqlite", "--json"])[0].clone();
    let described = place.json(&["workload", "describe", "runs.sqlite", "--json", "--quiet"]);
    assert_eq!((&described["format"], &described["times"]), (&"results".into(), &"none".into()));
    assert_eq!(described["requests"], run["stream"]["operations_drawn"]);
    assert_eq!(described["reads"], run["stream"]["asked"]["read"]);
    let text = place.ok(&["workload", "describe", "runs.sqlite"]);
    assert!(text.contains("their fingerprint is that of the run"), "{text}");
    assert!(text.contains("20,000 operations"), "{text}");
    // It is described, fitted and proven like a trace.
    let id = run["run"].as_str().unwrap();
    let fitted = ["--run", id, "--out", "mine.toml", "--check", "--json", "--quiet"];
    let fitted = place.json(&[&["workload", "describe", "runs.sqlite"], &fitted[..]].concat());
    assert_eq!(fitted["check"]["holds"], true, "{fitted}");
}

#[test]
fn of_several_runs_one_is_chosen() {
    let place = Place::new();
    measured(&place, &["--workload", "ycsb-a", "--ops", "3k", "--threads", "1"]);
    measured(&place, &["--workload", "ycsb-b", "--ops", "3k", "--threads", "1"]);
    let describe = |more: &[&'static str]| [&["workload", "describe"], more].concat();
    place.refused(&describe(&["runs.sqlite"]), &["2 such runs", "--run ID"]);
    let one = place.json(&describe(&["runs.sqlite?workload=ycsb-b", "--json", "--quiet"]));
    assert_eq!(one["requests"], 3000);
    assert!(one["reads"].as_u64().unwrap() > 2700);
    place.refused(&describe(&["runs.sqlite", "--run", "nope"]), &["--run nope", "no such run"]);
    place.refused(&describe(&["runs.sqlite?workload=etc"]), &["etc"]);
    place.refused(&describe(&["runs.sqlite", "--trace-sample", "0.1"]), &["--trace-sample"]);
    place.write("t.csv", "7,a,1,1,1,get,0\n7,b,1,1,1,get,0\n");
    place.refused(&describe(&["t.csv", "--run", "x"]), &["--run", "not one"]);
    let replay = ["bench", "null", "--trace", "t.csv", "--speed", "max", "--out", "replay.sqlite"];
    place.run(&[&replay[..], &["--quiet"]].concat());
    place.refused(&describe(&["replay.sqlite"]), &["replayed a trace", "t.csv"]);
    place.write("cut.sqlite", "SQLite format 3\0 and no more");
    place.refused(&describe(&["cut.sqlite"]), &["cut.sqlite"]);
}
