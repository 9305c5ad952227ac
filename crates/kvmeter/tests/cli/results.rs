//! Reading results: report, compare, export, and files that are not results.

use std::process::Command;

use serde_json::Value;

use crate::tool::Place;

/// A place with one results file: null and LMDB under the same workload, three times.
fn measured() -> Place {
    let place = Place::new();
    for store in ["null", "lmdb:db"] {
        place.ok(&[
            "bench",
            store,
            "--records",
            "1k",
            "--time",
            "200ms",
            "--repeat",
            "3",
            "--out",
            "r.sqlite",
            "--quiet",
        ]);
    }
    place
}

/// How the throughput of LMDB compares with that of null.
fn throughput(place: &Place) -> Value {
    let found = place.json(&["compare", "r.sqlite?store=null", "r.sqlite?store=lmdb", "--json"]);
    let metrics = found["cells"][0]["metrics"].as_array().unwrap();
    metrics.iter().find(|metric| metric["metric"] == "throughput").unwrap().clone()
}

#[test]
fn a_results_file_is_shown_compared_and_exported() {
    // Another program may take the machine, so that three repeats prove nothing: more tries.
    let proves = |place: &Place| throughput(place)["verdict"] == "worse";
    let place = (0..8).map(|_| measured()).find(proves).unwrap_or_else(measured);
    let all = place.json(&["report", "r.sqlite", "--json"]);
    assert_eq!(all.as_array().unwrap().len(), 6);
    let lmdb = place.json(&["report", "r.sqlite?store=lmdb", "--json"]);
    assert_eq!(lmdb.as_array().unwrap().len(), 3);
    assert!(place.ok(&["report", "r.sqlite"]).contains("lmdb ycsb-c"));
    assert!(place.ok(&["report", "r.sqlite", "--markdown"]).contains("| lmdb ycsb-c"));
    place.ok(&["report", "r.sqlite", "--html", "pages/r.html"]);
    assert!(std::fs::read_to_string(place.file("pages/r.html")).unwrap().contains("<svg"));

    let throughput = throughput(&place);
    assert_eq!(throughput["verdict"], "worse", "nothing is as fast as null: {throughput}");
    assert!(throughput["ratio_high"].as_f64().unwrap() < 1.0);
    let same = place.json(&["compare", "r.sqlite?store=lmdb", "r.sqlite?store=lmdb", "--json"]);
    for metric in same["cells"][0]["metrics"].as_array().unwrap() {
        assert_eq!(metric["verdict"], "no difference", "{metric}");
    }
    assert!(place.ok(&["compare", "r.sqlite?store=null", "r.sqlite?store=lmdb"]).contains("worse"));

    let csv = place.ok(&["export", "r.sqlite", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 7, "a header and one row a run and operation: {csv}");
    let json: Value = place.json(&["export", "r.sqlite", "--format", "json"]);
    assert_eq!(json.as_array().unwrap().len(), 6);
    assert!(place.ok(&["export", "r.sqlite", "--format", "markdown"]).contains("| --"));
    for table in ["runs", "latency", "series", "readings"] {
        place.ok(&[
            "export",
            "r.sqlite",
            "--format",
            "parquet",
            "--table",
            table,
            "--out",
            "t.parquet",
        ]);
        let bytes = std::fs::read(place.file("t.parquet")).unwrap();
        assert_eq!((&bytes[..4], &bytes[bytes.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    }
}

#[test]
fn a_plain_sqlite_shell_reads_it() {
    let place = measured();
    let output = Command::new("sqlite3")
        .arg(place.file("r.sqlite"))
        .arg("select count(*), min(throughput_ops_s) > 0 from run_summary")
        .output()
        .expect("sqlite3 is not installed; `make test` installs it");
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "6|1");
}

#[test]
fn foreign_files_are_refused() {
    let place = measured();
    place.write("text.sqlite", "not a database, but long enough to be taken for one at a glance");
    place.write("empty.sqlite", "");
    place.refused(&["report", "text.sqlite"], &["text.sqlite", "not a results file"]);
    place.refused(&["report", "empty.sqlite"], &["empty.sqlite"]);
    place.refused(&["report", "."], &["."]);
    place.refused(&["bench", "null", "--ops", "10", "--out", "text.sqlite"], &["text.sqlite"]);
    assert!(std::fs::read_to_string(place.file("text.sqlite")).unwrap().starts_with("not a"));
    let raise = "pragma user_version = 999";
    let status = Command::new("sqlite3").arg(place.file("r.sqlite")).arg(raise).status().unwrap();
    assert!(status.success());
    place.refused(&["report", "r.sqlite"], &["999", "upgrade kvmeter"]);
    place.refused(&["bench", "null", "--ops", "10", "--out", "r.sqlite"], &["999"]);
}

#[test]
fn filters_without_a_match_list_values() {
    let place = measured();
    place.refused(&["report", "r.sqlite?store=rocksdb"], &["rocksdb", "lmdb", "null"]);
    place.refused(&["report", "r.sqlite?stor=lmdb"], &["stor", "store"]);
    place.refused(&["export", "r.sqlite", "--format", "xml"], &["xml", "csv"]);
    place.refused(&["export", "r.sqlite", "--format", "csv", "--table", "run"], &["runs"]);
}

/// A bench of the null store in a file of its own.
fn benched(place: &Place, file: &str, more: &[&str]) {
    let args = ["bench", "null", "--records", "1k", "--time", "100ms", "--repeat", "3"];
    let out = ["--out", file, "--quiet"];
    place.ok(&[&args[..], &out[..], more].concat());
}

#[test]
fn files_are_merged_once_and_compared_with_a_verdict() {
    let place = Place::new();
    benched(&place, "a.sqlite", &[]);
    benched(&place, "b.sqlite", &[]);
    place.ok(&["merge", "a.sqlite", "b.sqlite", "--out", "both.sqlite"]);
    assert_eq!(place.json(&["report", "both.sqlite", "--json"]).as_array().unwrap().len(), 6);
    let twice = ["merge", "a.sqlite", "both.sqlite", "--out", "c.sqlite"];
    place.refused(&twice, &["a.sqlite", "both.sqlite", "both hold"]);
    assert!(!place.file("c.sqlite").exists());
    place.refused(&["merge", "a.sqlite", "--out", "both.sqlite"], &["exists already"]);
    place.refused(&["merge", "a.sqlite", "none.sqlite", "--out", "d.sqlite"], &["none.sqlite"]);

    let found = place.json(&["compare", "a.sqlite", "b.sqlite", "--json"]);
    assert!(found["verdict"].as_str().unwrap().ends_with('.'), "{found}");
    let overall = found["overall"].as_array().unwrap();
    assert!(overall.iter().any(|one| one["metric"] == "throughput"), "{found}");
}

#[test]
fn different_workloads_are_compared_only_by_filter() {
    let place = Place::new();
    benched(&place, "a.sqlite", &["--workload", "ycsb-c"]);
    benched(&place, "b.sqlite", &["--workload", "ycsb-b"]);
    place.refused(
        &["compare", "a.sqlite", "b.sqlite"],
        &["`workload", "ycsb-c", "ycsb-b", "not comparable"],
    );
    let meant = ["compare", "a.sqlite?workload=ycsb-c", "b.sqlite?workload=ycsb-b"];
    assert!(place.ok(&meant).contains("another workload"));
}

#[test]
fn other_durability_is_named_where_results_are_compared() {
    let place = Place::new();
    for (file, store) in [("a.sqlite", "spill:a"), ("b.sqlite", "spill:b?durability=sync")] {
        let args = ["bench", store, "--records", "100", "--ops", "200", "--workload", "ycsb-a"];
        let run = place.json(&[&args[..], &["--out", file, "--quiet", "--json"]].concat());
        let survives = if file == "a.sqlite" { "process kill" } else { "power loss" };
        assert_eq!(run["settings"]["survives"], survives);
    }
    let caution = "they promise different durability, and are not comparable in that respect";
    let words = format!("survives: process kill against power loss ({caution})");
    let compared = place.ok(&["compare", "a.sqlite", "b.sqlite"]);
    assert!(compared.contains(&words), "{compared}");
    place.ok(&["merge", "a.sqlite", "b.sqlite", "--out", "both.sqlite"]);
    let report = place.ok(&["report", "both.sqlite"]);
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("survive a power loss (spill), a process kill (spill)"), "{report}");
}

#[test]
fn refuses_answers_and_figures_without_a_study() {
    let place = Place::new();
    benched(&place, "a.sqlite", &[]);
    place.refused(&["report", "a.sqlite", "--answers"], &["--answers", "a.sqlite"]);
    place.refused(&["report", "a.sqlite", "--figures", "f"], &["--figures", "export"]);
}
