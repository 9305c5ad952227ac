//! One measurement, on every store that is built in.

use serde_json::Value;

use crate::tool::Place;

/// Every store that keeps an index of its own; `raw` has a test of its own.
fn stores() -> impl Iterator<Item = &'static str> {
    let schemes = store::ADAPTERS.iter().filter(|adapter| adapter.on_disk());
    schemes.map(|adapter| adapter.scheme).filter(|scheme| *scheme != "raw")
}

fn bench<'a>(store: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["bench", store, "--records", "2k", "--json", "--quiet"];
    args.extend(more);
    args
}

#[test]
fn a_bench_prints_one_object_with_all_that_was_measured() {
    let place = Place::new();
    for scheme in stores() {
        let store = format!("{scheme}:db-{scheme}");
        let json = place.json(&bench(&store, &["--workload", "ycsb-b", "--time", "1s"]));
        assert!(json["throughput_ops_s"].as_f64().unwrap() > 0.0, "{scheme}");
        for op in ["read", "update"] {
            for key in ["mean", "p50", "p99", "p99_9", "max"] {
                let value = json["latency_us"][op][key].as_f64();
                assert!(value.unwrap_or(0.0) > 0.0, "{scheme} {op} {key}: {value:?}");
            }
        }
        assert!(json["cpu_s_per_mop"].as_f64().unwrap() > 0.0, "{scheme}");
        let operations = json["operations"].as_u64().unwrap();
        let reads = json["latency_us"]["read"]["count"].as_u64().unwrap();
        let updates = json["latency_us"]["update"]["count"].as_u64().unwrap();
        assert_eq!(reads + updates, operations, "{scheme}: every operation has a latency");
        assert_eq!(json["verified"].as_u64(), Some(reads), "{scheme}: every read is verified");
        assert_eq!(json["errors"], 0, "{scheme}");
        assert_eq!(json["valid"], true, "{scheme}: {}", json["invalid_because"]);
        assert_eq!(json["invalid_because"], Value::Array(vec![]));
        assert_eq!(json["loop"], "closed");
        assert!(json["store_version"].as_str().unwrap().chars().any(|c| c.is_ascii_digit()));
    }
}

#[test]
fn values_of_maximum_length_are_measured() {
    let place = Place::new();
    // One byte more is refused.
    let more = ["--value-size", "64342", "--ops", "2k", "--workload", "ycsb-a"];
    let json = place.json(&bench("spill:db?segment=64KiB", &more));
    assert_eq!((&json["errors"], &json["valid"]), (&Value::from(0), &Value::from(true)));
    assert_eq!(json["operations"], 2000);
}

#[test]
fn null_measures_the_harness() {
    let place = Place::new();
    let json = place.json(&bench("null", &["--workload", "ycsb-a", "--ops", "100k"]));
    assert_eq!(json["operations"], 100_000);
    assert!(json["harness"]["ns_per_op"].as_f64().unwrap() > 0.0);
    assert_eq!(json["verified"], 0, "null gives nothing back that could be verified");
    assert_eq!(json["valid"], true);
}

#[test]
fn a_run_states_the_skew_that_it_produced() {
    let place = Place::new();
    let share = |popularity: &str| {
        let args = [
            "bench",
            "null",
            "--popularity",
            popularity,
            "--records",
            "1M",
            "--ops",
            "1M",
            "--json",
        ];
        let json = place.json(&args);
        let skew = &json["stream"]["skew"];
        assert_eq!(skew["operations"], 1_000_000);
        // With a million records, 1 % of them are 10,000.
        assert_eq!(skew["top_1_percent"], skew["top_10000"]);
        skew["top_10000"].as_f64().unwrap()
    };
    // YCSB's scrambled Zipf: 39.4 %, and 1 % of a uniform one; four standard deviations.
    assert!((share("scrambled_zipfian:0.99") - 0.394).abs() < 0.002);
    assert!((share("uniform") - 0.01).abs() < 0.0004);
    // A Zipf law over the records themselves: zeta(10^4) / zeta(10^6) at 0.99.
    assert!((share("zipfian:0.99") - 0.665).abs() < 0.015);
}

#[test]
fn every_ycsb_workload_runs_in_turn_on_the_same_directory() {
    let place = Place::new();
    for workload in ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f", "ycsb-load"] {
        let args = bench("rocksdb:db", &["--workload", workload, "--ops", "2k", "--threads", "2"]);
        let json = place.json(&args);
        assert_eq!(json["errors"], 0, "{workload}: {}", json["failures"]);
        assert_eq!(json["valid"], true, "{workload}: {}", json["invalid_because"]);
        assert_eq!(json["operations"], 2000, "{workload}");
    }
}

/// An in-memory index that is merged many times and a log that is collected, which none of the
/// small benches above come to.
#[test]
fn spill_answers_every_ycsb_workload_from_data_much_larger_than_its_memory() {
    let place = Place::new();
    // An L0 takes some 1,000 of the 20,000 keys.
    let store = "spill:db?memory=64KiB&segment=1MiB";
    let reading = |json: &Value, signal: &str| {
        let readings = json["readings"].as_array().unwrap();
        let reading = readings.iter().find(|reading| reading["signal"] == signal);
        reading.and_then(|reading| reading["answer"]["value"].as_f64()).unwrap_or(f64::NAN)
    };
    for workload in ["load", "a", "b", "c", "d", "e", "f"] {
        let named = format!("ycsb-{workload}");
        let args = [
            "bench",
            store,
            "--workload",
            &named,
            "--records",
            "20k",
            "--value-size",
            "1000",
            "--ops",
            "40k",
            "--threads",
            "2",
            "--json",
            "--quiet",
        ];
        let json = place.json(&args);
        assert_eq!(json["errors"], 0, "{workload}: {}", json["failures"]);
        assert_eq!(json["valid"], true, "{workload}: {}", json["invalid_because"]);
        let count = |op: &str| json["latency_us"][op]["count"].as_u64().unwrap_or(0);
        let verified = json["verified"].as_u64().unwrap();
        if workload == "e" {
            assert!(verified > count("scan"), "{workload}: every record of a scan is verified");
        } else {
            let read = count("read") + count("read_modify_write");
            assert_eq!(verified, read, "{workload}: every read is verified");
        }
        if workload == "load" {
            assert_eq!((json["phase"].as_str(), count("insert")), (Some("load"), 20_000));
        } else {
            assert_eq!(json["operations"], 40_000, "{workload}");
        }
        if ["load", "a", "f"].contains(&workload) {
            let merges = reading(&json, "store.spills");
            assert!(merges > 5.0, "{workload}: {merges} merges");
        }
        if ["a", "f"].contains(&workload) {
            let collected = reading(&json, "store.collected.segments");
            assert!(collected > 0.0, "{workload}: {collected} segments were collected");
        }
    }
}

#[test]
fn loaded_data_is_used_again_unless_it_is_other_data() {
    let place = Place::new();
    let told = |more: &[&str]| {
        let mut args = vec!["bench", "lmdb:db", "--records", "2k", "--ops", "1k"];
        args.extend(more);
        let result = place.run(&args);
        assert_eq!(result.code, 0, "{result:#?}");
        result.err
    };
    assert!(told(&[]).contains("loading 2k records"));
    assert!(told(&[]).contains("reusing the loaded data"));
    assert!(told(&["--value-size", "500"]).contains("holds other data"));
    assert!(
        told(&["--value-size", "500", "--workload", "ycsb-d"]).contains("reusing the loaded data")
    );
    assert!(told(&["--value-size", "500"]).contains("has added records"));
    assert!(
        told(&["--value-size", "500", "--mix", "read=1,delete=1"])
            .contains("reusing the loaded data")
    );
    assert!(told(&["--value-size", "500"]).contains("no complete data"));
}

#[test]
fn options_that_shape_the_data_are_what_the_data_was_written_with() {
    let place = Place::new();
    let told = |store: &str| {
        let result = place.run(&["bench", store, "--records", "2k", "--ops", "1k"]);
        assert_eq!(result.code, 0, "{result:#?}");
        result.err
    };
    told("rocksdb:db");
    assert!(told("rocksdb:db?cache=1MiB").contains("reusing the loaded data"));
    assert!(told("rocksdb:db?compression=zstd").contains("loading"));
    assert!(told("rocksdb:db?compression=zstd&bloom_bits=10").contains("loading"));
}

#[test]
fn a_mix_of_inserts_adds_to_the_data() {
    let place = Place::new();
    let json = place.json(&bench("lmdb:db", &["--mix", "insert=1", "--ops", "3k"]));
    assert_eq!(json["phase"], "measure");
    assert_eq!(json["operations"], 3000);
    let json = place.json(&bench("lmdb:load", &["--workload", "ycsb-load"]));
    assert_eq!((json["phase"].as_str(), json["operations"].as_u64()), (Some("load"), Some(2000)));
}

#[test]
fn the_same_seed_issues_the_same_operations_for_any_threads() {
    let place = Place::new();
    let fingerprint = |threads: &str, seed: &str| {
        let more = ["--workload", "ycsb-d", "--ops", "20001", "--threads", threads, "--seed", seed];
        let json = place.json(&bench("null", &more));
        (json["stream"]["fingerprint"].clone(), json["stream"]["asked"]["insert"].clone())
    };
    let alone = fingerprint("1", "7");
    assert!(alone.0.is_string() && alone.1.as_u64() > Some(0), "{alone:?}");
    assert_eq!(alone, fingerprint("2", "7"));
    assert_eq!(alone, fingerprint("5", "7"));
    assert_ne!(alone.0, fingerprint("1", "8").0);
}

#[test]
fn an_open_loop_separates_response_and_service_time() {
    let place = Place::new();
    let more = ["--rate", "2k", "--arrivals", "poisson", "--time", "1s"];
    let json = place.run(&bench("lmdb:db", &more)).json();
    assert_eq!(json["loop"], "open");
    assert_eq!(json["target_rate_ops_s"], 2000.0);
    assert_eq!(json["arrivals"], "poisson");
    let response = json["latency_us"]["read"]["mean"].as_f64().unwrap();
    let service = json["service_us"]["read"]["mean"].as_f64().unwrap();
    assert!(response >= service, "{response} {service}");
    assert_eq!(json["latency_us"]["read"]["count"], json["service_us"]["read"]["count"]);
}

#[test]
fn operations_of_an_open_loop_are_the_time_in_which_they_are_due() {
    let place = Place::new();
    let more = ["--rate", "1k", "--ops", "300", "--time", "20s", "--threads", "3"];
    // A busy machine may make the client late, which is not what is looked at here.
    let json = place.run(&bench("null", &more)).json();
    let operations = json["operations"].as_u64().unwrap();
    assert!((297..=303).contains(&operations), "{operations}");
    let seconds = json["seconds"].as_f64().unwrap();
    assert!((0.29..5.0).contains(&seconds), "{seconds}");
}

#[test]
fn a_stopped_bench_leaves_consistent_data() {
    let place = Place::new();
    place.ok(&bench("lmdb:db", &["--ops", "100"]));
    for workload in [&["--workload", "ycsb-d"][..], &["--mix", "read=1,delete=1"]] {
        let mut args = bench("lmdb:db", &["--warm-up", "30s"]);
        args.extend(workload);
        let child = place.start(&args);
        // The data has no name while it changes.
        let marker = || std::fs::read_to_string(place.file("db/KVMETER.json")).unwrap();
        crate::tool::until("the warm-up", || marker().contains("\"dataset\": null"));
        std::thread::sleep(std::time::Duration::from_millis(300));
        let id = child.id().to_string();
        let status = std::process::Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(status.success());
        let result = crate::tool::command_output(child.wait_with_output().unwrap());
        assert_eq!((result.code, result.out.as_str()), (1, ""), "{result:#?}");
        let json = place.json(&bench("lmdb:db", &["--ops", "2k", "--workload", "ycsb-d"]));
        assert_eq!(json["errors"], 0, "{}", json["failures"]);
    }
}

#[test]
fn a_window_after_a_warm_up_has_the_requested_operations() {
    let place = Place::new();
    let more = ["--warm-up", "200ms", "--ops", "1000", "--threads", "3", "--think", "1ms"];
    let json = place.json(&bench("null", &more));
    assert_eq!(json["operations"], 1000);
    let drawn = json["stream"]["operations_drawn"].as_u64().unwrap();
    assert!(drawn > 1000, "the warm-up is of the same stream");
    // Three threads that pause for a millisecond each: 3,000 a second at the most.
    let rate = json["throughput_ops_s"].as_f64().unwrap();
    assert!(rate < 3000.0, "{rate}");
}

#[test]
fn a_rate_that_cannot_be_held_is_invalid_and_exits_with_1() {
    let place = Place::new();
    let result = place.run(&bench("null", &["--rate", "1G", "--time", "300ms"]));
    assert_eq!(result.code, 1, "{}", result.err);
    let json = result.json();
    assert_eq!(json["valid"], false);
    let words = json["invalid_because"].to_string();
    assert!(words.contains("rate was not achieved"), "{words}");
}

#[test]
fn repeats_are_an_array() {
    let place = Place::new();
    let json = place.json(&bench("null", &["--ops", "1k", "--repeat", "3"]));
    let repeats: Vec<&Value> =
        json.as_array().unwrap().iter().map(|run| &run["settings"]["repeat"]).collect();
    assert_eq!(repeats, ["1", "2", "3"]);
}

#[test]
fn a_store_in_use_by_another_process_is_refused() {
    let place = Place::new();
    let mut other = place.start(&["bench", "lmdb:db", "--records", "2k", "--time", "60s"]);
    crate::tool::until("the other's marker", || place.file("db/KVMETER.json").exists());
    place.refused(&["bench", "lmdb:db", "--records", "2k"], &["in use"]);
    other.kill().unwrap();
    other.wait().unwrap();
    place.ok(&["bench", "lmdb:db", "--records", "2k", "--ops", "100"]);
}
