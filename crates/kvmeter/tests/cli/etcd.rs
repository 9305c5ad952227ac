//! etcd through the command: a cluster under load, one of whose members is killed.

use std::time::Duration;

use serde_json::Value;

use crate::etcd_servers::Etcd;
use crate::tool::{Place, command_output};

fn warnings(run: &Value) -> String {
    run["warnings"].to_string()
}

#[test]
fn a_run_says_which_cluster_it_measured() {
    let Some(etcd) = Etcd::start(3, &[]) else { return };
    let place = Place::new();
    let url = etcd.url();
    let bench = |more: &[&str]| {
        let args = ["bench", &url, "--records", "200", "--time", "1s", "--json", "--probes", "off"];
        place.json(&[&args[..], more].concat())
    };
    let run = bench(&["--workload", "ycsb-e", "--threads", "2"]);
    let run = &run;
    assert_eq!(run["valid"], true, "{run}");
    assert_eq!(run["settings"]["store.members"], "3", "{run}");
    assert!(run["settings"]["store.cluster_id"].is_string(), "{run}");
    assert!(run["settings"].get("connections").is_none(), "{run}");
    assert!(run["store_version"].as_str().unwrap().starts_with("etcd 3."), "{run}");
    // Its log and pages are written by the members, not by the command.
    let reading = |name: &str| {
        let all = run["readings"].as_array().unwrap();
        all.iter().find(|reading| reading["signal"] == name).map(|reading| &reading["answer"])
    };
    let written = reading("server.write_amplification").unwrap();
    assert!(written["value"].as_f64().unwrap() > 1.0, "{written}");
    assert_eq!(reading("write_amplification"), None);
    // An open loop, on data that is found again: the inserts of the run before are not.
    let open = ["--workload", "ycsb-c", "--rate", "200", "--threads", "2"];
    bench(&open);
    let again =
        place.run(&[&["bench", &url, "--records", "200", "--time", "1s"], &open[..]].concat());
    assert!(again.code == 0 && again.err.contains("reusing"), "{again:#?}");
    place.refused(&["bench", &url, "--depth", "4"], &["`depth`", "`threads`"]);
    place.refused(&["bench", &url, "--agents", "127.0.0.1:1"], &["agents", "`etcd` is not one"]);
}

#[test]
fn a_killed_member_is_told_and_the_run_goes_on() {
    let Some(mut etcd) = Etcd::start(3, &[]) else { return };
    let place = Place::new();
    let url = format!("{}?timeout=9s", etcd.url());
    let child = place.start(&[
        "bench",
        &url,
        "--workload",
        "ycsb-a",
        "--records",
        "200",
        "--time",
        "6s",
        "--rate",
        "200",
        "--threads",
        "6",
        "--json",
        "--probes",
        "off",
    ]);
    std::thread::sleep(Duration::from_millis(3500));
    etcd.kill(0);
    let output = command_output(child.wait_with_output().unwrap());
    let run = &output.json();
    let told = warnings(run);
    let killed = format!("127.0.0.1:{} did not serve", etcd.ports[0]);
    assert!(told.contains(&killed) && told.contains("served late"), "{told}");
    assert_eq!(run["failures"], Value::Array(Vec::new()), "{run}");
    // The run after it is told which endpoint it did without.
    let args = ["bench", &url, "--workload", "ycsb-c", "--records", "200", "--time", "500ms"];
    let run = &place.json(&[&args[..], &["--json", "--probes", "off"]].concat());
    assert!(warnings(run).contains("nothing listens there"), "{run}");
}

#[test]
fn what_was_measured_before_all_members_were_lost_is_kept() {
    let Some(mut etcd) = Etcd::start(1, &[]) else { return };
    let place = Place::new();
    let url = format!("{}?timeout=1s", etcd.url());
    let child = place.start(&[
        "bench",
        &url,
        "--workload",
        "ycsb-c",
        "--records",
        "200",
        "--time",
        "60s",
        "--threads",
        "2",
        "--json",
        "--probes",
        "off",
    ]);
    std::thread::sleep(Duration::from_millis(3000));
    etcd.kill(0);
    let output = command_output(child.wait_with_output().unwrap());
    assert_eq!(output.code, 1, "{output:#?}");
    let run = &output.json();
    assert!(run["operations"].as_u64().unwrap() > 0 && run["valid"] == false, "{run}");
    assert!(run["invalid_because"].to_string().contains("not served within 1s"), "{run}");
}
