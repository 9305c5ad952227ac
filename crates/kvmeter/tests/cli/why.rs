//! `--why` and `[why]`: a pass after the measured runs that says where their time goes. Where this
//! user may not sample processes the tests say that they are skipped.

use std::fs::File;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::tool::{Place, until};

/// Whether the command can profile here; else it says why not.
fn possible(place: &Place) -> bool {
    let args = ["bench", "null", "--time", "50ms", "--probes", "off", "--why"];
    let done = place.run(&[&args[..], &["--out", "probe.sqlite"]].concat());
    let refused = done.code == 2 && done.err.contains("perf_event_paranoid");
    if refused {
        eprintln!("SKIPPED: {}", done.err);
    }
    !refused
}

fn profiles(place: &Place, file: &str) -> Vec<(String, Value)> {
    let runs = place.json(&["report", file, "--json"]);
    let of = |run: &Value| {
        let settings = &run["settings"];
        (format!("{} {}", run["workload"], settings["repeat"]), run["profile"].clone())
    };
    runs.as_array().unwrap().iter().map(of).collect()
}

#[test]
fn client_and_server_are_profiled_after_the_run() {
    let place = Place::new();
    if !possible(&place) {
        return;
    }
    if Command::new("memcached").arg("-h").stdout(Stdio::null()).status().is_err() {
        eprintln!("SKIPPED: memcached is not installed");
        return;
    }
    let args = "bench memcached --server memory=64MiB --workload ycsb-b --records 5k --time 1500ms \
                --probes off --why --out w.sqlite";
    let args: Vec<&str> = args.split_ascii_whitespace().collect();
    let out = place.ok(&args);
    let out = out.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    for words in
        ["Where the time of memcached ycsb-b goes", "memcached (server): It", "kvmeter (cl"]
    {
        assert!(out.contains(words), "{words}: {out}");
    }
    let all = profiles(&place, "w.sqlite");
    assert_eq!(all.len(), 1, "the pass is no run: {all:?}");
    let profile = &all[0].1;
    assert!(profile["operations"].as_u64().unwrap() > 0 && profile["frequency_hz"] == 499);

    let folded = place.ok(&["export", "w.sqlite", "--format", "folded"]);
    let samples = |process: &str, frame: &str| -> u64 {
        let lines = folded.lines().filter(|line| line.starts_with(process));
        let lines = lines.filter(|line| line.contains(frame));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    };
    let (client, server) = (samples("kvmeter;", ""), samples("memcached;", ""));
    assert!(client > 10 && server > 10, "{folded}");
    assert!(samples("kvmeter;", "drive::net::worker") > client / 2, "{folded}");
    // Its own symbols were stripped, those of its libraries were not.
    assert!(samples("memcached;", "event_base_loop") > server / 4, "{folded}");
    if profile["kernel"] == true {
        assert!(samples("memcached;", "_[k]") > server / 4, "{folded}");
        let waits = place.ok(&["export", "w.sqlite", "--format", "folded-waits"]);
        assert!(waits.contains("epoll_wait"), "{waits}");
    }
    place.ok(&["report", "w.sqlite", "--html", "w.html"]);
    let page = std::fs::read_to_string(place.file("w.html")).unwrap();
    assert!(page.contains("class=\"flame\"") && page.contains("<title>event_base_loop: "));
    counts_are_there_or_say_why_not(profile, &out, &page);
    slots_are_there_or_say_why_not(profile, &out);
}

/// What became of the pipeline's slots; most virtual machines do not count them.
fn slots_are_there_or_say_why_not(profile: &Value, out: &str) {
    let top_down = &profile["top_down"];
    let processes = top_down["processes"].as_array().unwrap();
    if let Some(reason) = top_down["unavailable"].as_str() {
        eprintln!("SKIPPED: {reason}");
        assert!(reason.contains("; ") && out.contains("No top-down analysis: "), "{reason}");
    } else {
        assert_eq!(processes.len(), 2, "{top_down}");
    }
    for process in processes {
        let shares = process["shares"].as_object().unwrap();
        let known = shares.values().filter_map(Value::as_f64);
        assert!(known.clone().all(|share| (0.0..=1.0).contains(&share)), "{process}");
        if known.count() > 0 {
            assert!(out.contains("Of its pipeline slots ") || out.contains("of its cycles"));
        }
    }
}

/// What was counted inside the kernel while memcached was loaded over TCP.
fn counts_are_there_or_say_why_not(profile: &Value, out: &str, page: &str) {
    let counts = &profile["kernel_counts"];
    let missing = counts["unavailable"].as_array().unwrap();
    for missing in missing {
        let reason = missing["reason"].as_str().unwrap();
        eprintln!("SKIPPED: {}: {reason}", missing["what"]);
        assert!(!reason.contains("rejected") && out.contains("No figures of "), "{reason}");
    }
    let is_missing = |what: &str| missing.iter().any(|missing| missing["what"] == what);
    let histograms = counts["histograms"].as_array().unwrap();
    let count = |quantity: &str, subject: &str| -> u64 {
        let is = |h: &&Value| h["quantity"] == quantity && h["subject"] == subject;
        histograms.iter().find(is).map_or(0, |h| h["count"].as_u64().unwrap())
    };
    if !is_missing("run queues") {
        // Each answer wakes a thread of the other side.
        assert!(count("run_queue", "memcached") > 10 && count("run_queue", "kvmeter") > 10);
        assert!(out.contains("Its threads waited ") && page.contains("<h3>Waits for a CPU</h3>"));
    }
    if !is_missing("softirqs") {
        assert!(count("softirq", "NET_RX") > 10 && page.contains("<h3>Softirqs</h3>"));
    }
    if !is_missing("connections") {
        let tcp = counts["tcp"].as_array().unwrap();
        let sides: Vec<&Value> = tcp.iter().map(|tcp| &tcp["side"]).collect();
        assert_eq!(sides, ["client", "server"], "{tcp:?}");
        assert!(tcp.iter().all(|tcp| tcp["median_rtt_us"].as_f64().unwrap() > 0.0), "{tcp:?}");
    }
}

const STUDY: &str = r#"
name = "causes"
repeats = 2
sequence = ["load", "ycsb-c", "ycsb-b", "ycsb-d"]
[store.lmdb]
[data]
records = 2000
[measure]
time = "300ms"
[probes]
use = "off"
[why]
frequency = 999
"#;

#[test]
fn the_last_repeat_of_each_cell_is_profiled() {
    let place = Place::new();
    if !possible(&place) {
        return;
    }
    place.write("study.toml", STUDY);
    place.ok(&["run", "study.toml", "--out", "w.sqlite"]);
    let all = profiles(&place, "w.sqlite");
    let profiled: Vec<&str> =
        all.iter().filter(|(_, profile)| !profile.is_null()).map(|(run, _)| run.as_str()).collect();
    assert_eq!(profiled, ["\"ycsb-c\" \"2\"", "\"ycsb-b\" \"2\""], "{all:?}");
    let runs = place.json(&["report", "w.sqlite", "--json"]);
    assert!(runs.to_string().contains("no profile was made: it adds or deletes records"), "{runs}");
    let folded = place.ok(&["export", "w.sqlite", "--format", "folded"]);
    assert!(folded.lines().any(|line| line.contains(";mdb_")), "{folded}");

    place.ok(&["run", "study.toml", "--out", "o.sqlite", "--set", "why.only.workload=ycsb-b"]);
    let all = profiles(&place, "o.sqlite");
    assert_eq!(all.iter().filter(|(_, profile)| !profile.is_null()).count(), 1, "{all:?}");
}

#[test]
fn a_kill_during_the_pass_loses_no_run() {
    let place = Place::new();
    if !possible(&place) {
        return;
    }
    let args = ["bench", "null", "--time", "2s", "--probes", "off", "--why", "--out", "w.sqlite"];
    let words = File::create(place.file("words")).unwrap();
    let mut child = place.command(&args).stdout(Stdio::null()).stderr(words).spawn().unwrap();
    let said = || std::fs::read_to_string(place.file("words")).unwrap();
    until("the pass", || said().contains("samples where the time goes"));
    child.kill().unwrap();
    child.wait().unwrap();
    let all = profiles(&place, "w.sqlite");
    assert!(all.len() == 1 && all[0].1.is_null(), "{all:?}");
    let refused = ["export", "w.sqlite", "--format", "folded"];
    place.refused(&refused, &["none of the selected runs was profiled", "--why"]);
}

#[test]
fn mistakes_are_refused_before_anything_runs() {
    let place = Place::new();
    let bench = ["bench", "null", "--why"];
    for (more, words) in [
        (&["--why-frequency", "0"][..], "1 to 10000 samples a second"),
        (&["--agents", "host"][..], "cannot be used with"),
        (&["--trace", "t.csv"][..], "cannot be used with"),
    ] {
        place.refused(&[&bench[..], more].concat(), &[words]);
    }
    place.refused(&["bench", "null", "--why-frequency", "9"], &["--why"]);
}
