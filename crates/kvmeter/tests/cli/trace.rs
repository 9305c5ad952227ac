//! Recorded traces, from the command line and from studies.

use std::fmt::Write;

use serde_json::Value;

use crate::tool::Place;

/// Two hundred requests a second, four hundred in the second of three seconds.
const REQUESTS: u64 = 800;

fn text() -> String {
    let mut text = String::new();
    for (second, requests) in [(7, 200), (8, 400), (9, 200)] {
        for request in 0..requests {
            let (key, size) = (request * 7 % 50, 100 + request % 30);
            let operation = ["get", "get", "set", "delete"][request % 4];
            writeln!(text, "{second},key:{key:03},7,{size},1,{operation},0").unwrap();
        }
    }
    text
}

fn place() -> Place {
    let place = Place::new();
    place.write("requests.csv", &text());
    place
}

fn bench<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["bench", "null", "--trace", "requests.csv", "--json", "--quiet"];
    args.extend(more);
    args
}

fn reading(run: &Value, signal: &str) -> f64 {
    let readings = run["readings"].as_array().unwrap();
    let json = readings.iter().find(|reading| reading["signal"] == signal);
    json.and_then(|reading| reading["answer"]["value"].as_f64())
        .unwrap_or_else(|| panic!("no {signal}"))
}

#[test]
fn a_trace_is_replayed_as_it_was_recorded() {
    let place = place();
    let result = place.run(&bench(&["--speed", "3", "--threads", "2", "--no-pin"]));
    let run = result.json();
    assert_eq!(run["operations"], REQUESTS);
    assert_eq!((&run["loop"], &run["arrivals"]), (&"open".into(), &"recorded".into()));
    assert_eq!(run["errors"], 0);
    let settings = &run["settings"];
    assert_eq!(settings["trace"], "requests.csv");
    assert_eq!(settings["trace.speed"], "3");
    assert_eq!(settings["trace.bytes"], text().len().to_string());
    assert!(settings["trace.modified"].is_string());
    assert!(settings["workload.records"].is_null(), "{settings}");
    let trace = &run["stream"]["trace"];
    assert_eq!((&trace["requests"], &trace["keys_cut"]), (&REQUESTS.into(), &0.into()));
    // All of it was due in the first second.
    assert_eq!(trace["due_each_second"], REQUESTS);
    assert_eq!(reading(&run, "trace.peak_rate"), REQUESTS as f64);
    assert!(reading(&run, "trace.worst_second") > 0.0);
    assert_eq!(reading(&run, "cache.hit_ratio"), 1.0, "the null store says that it has everything");
}

#[test]
fn a_trace_as_fast_as_the_store_is_a_closed_loop() {
    let place = place();
    let run = place.json(&bench(&["--speed", "max", "--ops", "500"]));
    assert_eq!((&run["operations"], &run["loop"]), (&500.into(), &"closed".into()));
    assert_eq!(run["settings"]["trace.speed"], "max");
    let seconds = run["seconds"].as_f64().unwrap();
    assert!(seconds > 0.0 && seconds < 60.0, "{seconds}");
    let retimed = place.run(&bench(&["--rate", "4k", "--arrivals", "poisson"])).json();
    assert_eq!((&retimed["operations"], &retimed["arrivals"]), (&800.into(), &"poisson".into()));
    assert_eq!(retimed["target_rate_ops_s"], 4000.0);
    assert_eq!(retimed["settings"]["trace.speed"], "rate");
}

#[test]
fn a_trace_is_summarised_without_a_store() {
    let place = place();
    let json = place.json(&bench(&["--dry-run"]));
    assert_eq!((&json["requests"], &json["duration_s"]), (&800.into(), &3.into()));
    assert_eq!(json["asked"]["read"], 400);
    assert_eq!((&json["read_share"], &json["peak_rate_ops_s"]), (&0.5.into(), &400.into()));
    assert_eq!(json["mean_key_bytes"], 7.0);
    assert!((json["distinct_keys"].as_f64().unwrap() - 50.0).abs() <= 2.0);
    let table = place.ok(&["bench", "null", "--trace", "requests.csv", "--dry-run"]);
    assert!(table.contains("busiest second") && table.contains("read 50.0 %"), "{table}");
}

#[test]
fn a_published_trace_is_replayed() {
    let place = Place::new();
    let header = "timestamp,key,key_size,value_size,client,operation,TTL";
    let text = "0,a,1,10,1,set,-1\n5,b,1,10,1,get,0\n";
    place.write("shared.csv", &format!("\u{feff}{header}\n{text}"));
    let args = ["bench", "null", "--trace", "shared.csv", "--ops", "10", "--json"];
    let result = place.run(&[&args[..], &["--speed", "20"]].concat());
    let run = result.json();
    assert_eq!(run["operations"], 2);
    assert!(result.err.contains(&format!("shared.csv:1: skipped the header `{header}`")));
    assert_eq!(run["stream"]["trace"]["header_skipped"], header);
    // Two requests in a quarter of a second.
    let target = run["target_rate_ops_s"].as_f64().unwrap();
    assert!(target > 0.5 && target != target.round(), "{target}");
    let warnings = run["warnings"].to_string();
    assert!(warnings.contains("has 2 requests, fewer than the 10 requested"), "{warnings}");
    let result = place.run(&[&args[..], &["--dry-run"]].concat());
    assert!(
        result.err.contains("skipped") && result.err.contains("--ops 10 is beyond"),
        "{result:?}"
    );
}

#[test]
fn a_load_of_fewer_records_than_operations_says_so() {
    let place = Place::new();
    let args = ["bench", "null", "--workload", "ycsb-load", "--records", "1k", "--json", "--quiet"];
    let run = place.json(&[&args[..], &["--ops", "2k"]].concat());
    assert_eq!(run["operations"], 1000);
    assert!(run["warnings"].to_string().contains("the load has 1000 records"), "{run}");
    let run = place.json(&[&args[..], &["--ops", "1k"]].concat());
    assert!(!run["warnings"].to_string().contains("the load has"), "{run}");
}

#[test]
fn a_bad_line_is_named_and_what_was_measured_before_it_is_kept() {
    let place = place();
    place.write("bad.csv", &format!("{}9,key:001,7,big,1,get,0\n", text()));
    let args =
        ["bench", "null", "--trace", "bad.csv", "--speed", "max", "--json", "--out", "o.sqlite"];
    let result = place.run(&args);
    assert_eq!(result.code, 2, "{result:?}");
    assert!(
        result.err.contains("bad.csv:801: the value size is not a whole number"),
        "{}",
        result.err
    );
    let run = result.json();
    assert_eq!((&run["operations"], &run["valid"]), (&800.into(), &false.into()));
    assert!(run["invalid_because"][0].as_str().unwrap().contains("bad.csv:801"));
    let kept: Value = serde_json::from_str(&place.ok(&["report", "o.sqlite", "--json"])).unwrap();
    assert_eq!(kept.as_array().unwrap().len(), 1);
}

#[test]
fn mistakes_with_traces_are_refused_with_a_way_out() {
    let place = place();
    place.write("empty.csv", "");
    place.write("x.lz4", "\u{4}\"M\u{18}....");
    let with = |file| ["bench", "null", "--trace", file];
    place.refused(&with("none.csv"), &["none.csv", "No such file"]);
    place.refused(&with("empty.csv"), &["empty.csv", "holds no request"]);
    let refused = |more: &[&str], words: &[&str]| {
        place.refused(&bench(more), words);
    };
    refused(&["--speed", "0"], &["--speed", "`max`"]);
    refused(&["--speed", "2", "--rate", "1k"], &["--speed", "only one"]);
    refused(&["--think", "1ms"], &["--think", "`max`"]);
    refused(&["--arrivals", "pareto"], &["--arrivals", "need a rate"]);
    refused(&["--warm-up", "1s", "--warm-up-rate", "1k"], &["--warm-up-rate", "beginning"]);
    refused(&["--workload", "etc"], &["--workload"]);
    refused(&["--steady"], &["--steady", "throughput"]);
    place.refused(&["bench", "null", "--speed", "2"], &["--trace"]);
    place.refused(&["bench", "null", "--trace", "-", "--repeat", "2"], &["standard input"]);
}

/// A log of `MONITOR`: 300 requests in 1.495 s, of 30 keys.
fn monitor() -> String {
    (0..300).fold(String::from("OK\n"), |mut log, request| {
        let (at, key) = (request * 5, request % 30);
        let command = if request % 10 == 0 { "\"SET\"" } else { "\"GET\"" };
        let value = if request % 10 == 0 { " \"0123456789\"" } else { "" };
        let second = 1_795_939_752 + at / 1000;
        writeln!(
            log,
            "{second}.{:03}000 [0 127.0.0.1:5] {command} \"a key {key}\"{value}",
            at % 1000
        )
        .unwrap();
        log
    })
}

#[test]
fn the_format_is_told_by_the_content_or_by_name() {
    let place = place();
    place.write("log", &monitor());
    let bench = ["bench", "null", "--trace", "log", "--json", "--quiet", "--speed", "5"];
    // Whether an open loop is valid depends on what else the machine does.
    let run = place.run(&bench).json();
    assert_eq!(run["operations"], 300);
    assert_eq!(run["settings"]["trace.format"], "redis-monitor");
    assert_eq!(run["stream"]["trace"]["records_ignored"], 1);
    let json = place.json(&["bench", "null", "--trace", "log", "--json", "--dry-run"]);
    assert_eq!((&json["format"], &json["times"]), (&"redis-monitor".into(), &"exact".into()));
    assert_eq!((&json["duration_s"], &json["peak_rate_ops_s"]), (&1.495.into(), &200.into()));
    let named = |name| ["bench", "null", "--trace", "log", "--dry-run", "--trace-format", name];
    place.ok(&named("auto"));
    place.refused(&named("twitter"), &["log:1: it has 1 of the 7 fields"]);
    place.refused(&named("redis_monitor"), &["--trace-format", "did you mean `redis-monitor`"]);
    place.write("reads", "1.000001 [0 a] \"GET\" \"k\"\n");
    let table = place.ok(&["bench", "null", "--trace", "reads", "--dry-run"]);
    assert!(table.contains("unknown: no size of a value is in it"), "{table}");
    place.write("bytes", "\u{1}\u{2}\u{3}");
    let args = ["bench", "null", "--trace", "bytes"];
    place.refused(&args, &["begins like no format", "--trace-format"]);
}

#[test]
fn a_trace_without_times_is_no_recorded_load() {
    let place = place();
    place.write("untimed.csv", "key,op,size\na,GET,10\nb,SET,20\n");
    let args = ["bench", "null", "--trace", "untimed.csv", "--json", "--quiet"];
    let words = ["untimed.csv has no times", "`cachelib`", "a rate, or the speed `max`"];
    place.refused(&args, &words);
    place.refused(&[&args[..], &["--speed", "2"]].concat(), &words);
    let run = place.json(&[&args[..], &["--speed", "max"]].concat());
    assert_eq!(run["operations"], 2);
    let run = place.run(&[&args[..], &["--rate", "100"]].concat()).json();
    assert_eq!(run["operations"], 2);
    let json = place.json(&[&args[..], &["--dry-run"]].concat());
    assert_eq!((&json["times"], &json["requests"]), (&"none".into(), &2.into()));
    assert!(json["duration_s"].is_null() && json["peak_rate_ops_s"].is_null(), "{json}");
    let table = place.ok(&["bench", "null", "--trace", "untimed.csv", "--dry-run"]);
    assert!(table.contains("unknown: cachelib has no times"), "{table}");
    place.write("s.toml", &study("trace = \"untimed.csv\"", r#"["mine"]"#));
    place.refused(&["run", "s.toml", "--dry-run"], &["s.toml:9:9", "has no times"]);
}

#[test]
fn malformed_records_are_left_out_where_so_many_may_be() {
    let place = place();
    place.write("bad.csv", &format!("nonsense\n{}9,key:001,7,big,1,get,0\n", text()));
    let with = |most| {
        let args = ["bench", "null", "--trace", "bad.csv", "--speed", "max", "--json"];
        place.run(&[&args[..], &["--trace-skip-bad", most]].concat())
    };
    let result = with("2");
    let run = result.json();
    assert_eq!((&run["operations"], &run["valid"]), (&REQUESTS.into(), &true.into()), "{run}");
    assert_eq!(run["stream"]["trace"]["records_skipped"], 2);
    assert_eq!(run["settings"]["trace.skip_bad"], "2");
    let warnings = run["warnings"].to_string();
    assert!(
        warnings.contains("malformed records of the trace that were left out: 2"),
        "{warnings}"
    );
    let result = with("1");
    assert_eq!(result.code, 2, "{result:?}");
    assert!(result.err.contains("bad.csv:802: the value size"), "{result:?}");
    let args = ["bench", "null", "--trace", "bad.csv", "--dry-run", "--trace-skip-bad", "2"];
    assert!(place.ok(&args).contains("2 records, left out"));
}

#[test]
fn a_trace_is_sampled_by_key_and_copied() {
    let place = place();
    let count = |more: &[&str]| {
        let run = place.json(&bench(&[&["--speed", "max"], more].concat()));
        run["operations"].as_u64().unwrap()
    };
    assert_eq!(count(&["--trace-copies", "3"]), 3 * REQUESTS);
    // Every one of the fifty keys has sixteen requests.
    let sampled = count(&["--trace-sample", "0.3"]);
    assert!(sampled % 16 == 0 && (48..=480).contains(&sampled), "{sampled}");
    let json = place.json(&bench(&["--dry-run", "--trace-copies", "3"]));
    assert!((json["distinct_keys"].as_f64().unwrap() - 150.0).abs() <= 5.0, "{json}");
    assert_eq!((&json["duration_s"], &json["peak_rate_ops_s"]), (&3.into(), &1200.into()));
    let refused = |more: &[&str], words: &[&str]| {
        place.refused(&bench(more), words);
    };
    refused(&["--trace-copies", "0"], &["--trace-copies: is 1 to 10000, not 0"]);
    refused(&["--trace-sample", "0"], &["--trace-sample: is above 0 and at most 1"]);
    refused(&["--trace-sample", "nan"], &["--trace-sample: is above 0"]);
    place.refused(&["bench", "null", "--trace-copies", "2"], &["--trace <FILE>"]);
}

#[test]
fn scans_of_a_trace_need_a_store_that_scans() {
    let place = Place::new();
    place.write("queries", "0x6b31 1 0 10 1\n0x6b31 0 0 0 2\n0x6b30 6 0 0 3\n0x6b32 6 0 0 4\n");
    let run = |store| ["bench", store, "--trace", "queries", "--speed", "max", "--json", "--quiet"];
    let run_ok = place.json(&run("null"));
    assert_eq!((&run_ok["operations"], &run_ok["valid"]), (&4.into(), &true.into()), "{run_ok}");
    assert_eq!(run_ok["latency_us"]["scan"]["count"], 2, "{run_ok}");
    place.refused(
        &run("memcached://127.0.0.1:1"),
        &["for the store `memcached`", "queries:3: it is a scan", "--trace-skip-bad"],
    );
}

fn study(workload: &str, sequence: &str) -> String {
    format!(
        "name = \"traces\"\nsequence = {sequence}\n[store.null]\n[data]\nrecords = \"1k\"\n\
         [measure]\ntime = \"1s\"\n[workloads.mine]\n{workload}\n"
    )
}

#[test]
fn a_study_replays_traces() {
    let place = place();
    place.write("s.toml", &study("trace = \"requests.csv\"\nspeed = \"max\"", r#"["mine"]"#));
    let out = place.ok(&["run", "s.toml", "--out", "o.sqlite", "--json", "--quiet"]);
    let run: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!((&run["operations"], &run["workload"]), (&800.into(), &"mine".into()));
    assert_eq!(run["settings"]["trace"], "requests.csv");
    place.write("s.toml", &study("trace = \"requests.csv\"", r#"["ycsb-c", "clear", "mine"]"#));
    let plan = place.json(&["run", "s.toml", "--dry-run", "--json"]);
    assert_eq!(plan[1]["settings"]["trace.speed"], "1");
    assert_eq!(plan[0]["settings"]["trace"], Value::Null);
}

#[test]
fn a_study_says_where_its_traces_are_wrong() {
    let place = place();
    let wrong = |workload: &str, sequence: &str, words: &[&str]| {
        place.write("s.toml", &study(workload, sequence));
        place.refused(&["run", "s.toml", "--dry-run"], words);
    };
    let trace = "trace = \"requests.csv\"";
    wrong("trace = \"none.csv\"", r#"["mine"]"#, &["none.csv", "s.toml:9:9"]);
    wrong("speed = 2", r#"["mine"]"#, &["is for a trace", "s.toml:9:9"]);
    wrong(&format!("{trace}\nspeed = 0"), r#"["mine"]"#, &["`max`", "s.toml:10:9"]);
    wrong(&format!("{trace}\nfrom = \"ycsb-a\""), r#"["mine"]"#, &["from: belongs", "s.toml:10"]);
    wrong(trace, r#"["load", "mine"]"#, &["needs no load", "s.toml:2"]);
    wrong(trace, r#"["ycsb-c", "mine"]"#, &["put \"clear\" between `ycsb-c` and it"]);
    wrong(trace, r#"["mine", "ycsb-c"]"#, &["put \"clear\" between it and `ycsb-c`"]);
    wrong("trace = \"-\"", r#"["mine", "mine"]"#, &["standard input"]);
    wrong("trace_copies = 2", r#"["mine"]"#, &["trace_copies: is for a trace", "s.toml:9:16"]);
    wrong(
        &format!("{trace}\ntrace_sample = 2.0"),
        r#"["mine"]"#,
        &["trace_sample: is above 0 and at most 1", "s.toml:10:16"],
    );
    wrong(&format!("{trace}\ntrace_format = \"csv\""), r#"["mine"]"#, &["s.toml:10:16", "twitter"]);
}
