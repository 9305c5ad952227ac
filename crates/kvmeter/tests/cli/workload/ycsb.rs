//! Property files of YCSB as workloads.

use crate::tool::Place;

/// The published values of YCSB's workload A.
const A: &str = "recordcount=1000\noperationcount=5000\n\
                 workload=site.ycsb.workloads.CoreWorkload\n\nreadallfields=true\n\n\
                 readproportion=0.5\nupdateproportion=0.5\nscanproportion=0\ninsertproportion=0\n\n\
                 requestdistribution=zipfian\n";

#[test]
fn a_property_file_issues_the_requests_of_the_preset() {
    let place = Place::new();
    place.write("a.properties", A);
    let bench = |workload: &str| {
        let args = ["bench", "null", "--workload", workload, "--records", "2000"];
        let more = ["--ops", "5000", "--threads", "1", "--json", "--quiet"];
        place.run(&[&args[..], &more].concat()).json()
    };
    let (file, preset) = (bench("a.properties"), bench("ycsb-a"));
    assert_eq!(file["workload"], "a.properties");
    for setting in ["workload.is", "workload.records", "workload.data_bytes"] {
        assert_eq!(file["settings"][setting], preset["settings"][setting], "{setting}");
    }
    assert_eq!(file["operations"], preset["operations"]);
    assert!(file["stream"]["fingerprint"].is_string(), "{}", file["stream"]);
    assert_eq!(file["stream"]["fingerprint"], preset["stream"]["fingerprint"]);
}

#[test]
fn what_a_property_file_says_of_a_run_is_named_with_its_flags() {
    let place = Place::new();
    place.write("a.properties", &format!("{A}threadcount=4\ntarget=2000\n"));
    let run = place.run(&["bench", "null", "--workload", "a.properties", "--ops", "100"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let flags = "a.properties also says how to run, which is no part of a workload; give it as \
                 flags: --ops 5000 --threads 4 --rate 2000";
    assert!(run.err.contains(flags), "{}", run.err);
    place.write(
        "study.toml",
        "name = 's'\nsequence = ['load', 'a.properties', 'mine']\n[store.null]\n[workloads.mine]\n\
         from = 'a.properties'\nmulti_get = 2\n[measure]\noperations = 1000\n",
    );
    let run = place.run(&["run", "study.toml", "--dry-run"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let keys = "give it in [measure]: operations = \"5000\", threads = \"4\", rate = \"2000\"";
    assert_eq!(run.err.matches(keys).count(), 1, "{}", run.err);
}

#[test]
fn a_property_that_kvmeter_does_not_have_is_a_wrong_request() {
    let place = Place::new();
    place.write("redis.properties", "recordcount=10\nredis.host=localhost\n");
    place.write("twice.properties", "recordcount=10\nrecordcount=20\n");
    place.write("long.properties", &"#".repeat(1 << 21));
    place.write("a.properties", A);
    let bench = |more: &[&str], words: &[&str]| {
        place.refused(&[&["bench", "null", "--workload"], more].concat(), words);
    };
    bench(&["redis.properties"], &["redis.properties: line 2: `redis.host`", "URL"]);
    bench(&["twice.properties"], &["line 2: `recordcount` is given on line 1 too"]);
    bench(&["long.properties"], &["is longer than 1048576 bytes"]);
    bench(&["none.properties"], &["none.properties", "No such file"]);
    bench(&["a.properties", "--rate-profile", "a.properties"], &["has no rate over time"]);
    place.write("study.toml", "name = 's'\nsequence = ['redis.properties']\n[store.null]\n");
    place.refused(&["run", "study.toml", "--dry-run"], &["study.toml", "`redis.host`"]);
    place.write("requests.csv", "1,key,3,10,1,get,0\n");
    let out = ["workload", "describe", "requests.csv", "--out", "mine.properties"];
    place.refused(&out, &["--out mine.properties", "ends in .toml"]);
}
